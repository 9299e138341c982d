//! The end of tasks and groups.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use abi::{ChldCode, FutexCmd, FutexFlags, SiCode, Siginfo, Signal, UserAddr};
use platform::{FutexCall, HostCall, OwnWords};
use sync::SysResult;

use crate::signal::StopState;
use crate::syscall::Outcome;
use crate::task::{CurrentTask, GroupExit, INIT_PID, Task, TasksInner, ThreadGroup, Zombie};

pub fn sys_exit(task: &mut CurrentTask, code: i32) -> SysResult<Outcome> {
    task.exit_code = Some(code & 0xff);
    Ok(Outcome::Exited)
}

pub fn sys_exit_group(task: &mut CurrentTask, code: i32) -> SysResult<Outcome> {
    task.exit_group_unless_execing(GroupExit::Code(code & 0xff));
    task.exit_code = Some(0);
    Ok(Outcome::Exited)
}

impl CurrentTask {
    /// Ends the whole group like this, unless it is ending already.
    pub(crate) fn exit_group(&self, how: GroupExit) {
        self.kernel().tasks.begin_exit(self.group(), how);
    }

    /// The same by what the guest does, a call or a fatal signal of its own: while another thread execs, only this one
    /// ends, and the exec goes on (Linux: `do_group_exit` looks at `group_exec_task`).
    pub(crate) fn exit_group_unless_execing(&self, how: GroupExit) {
        let tasks = self.kernel().tasks.lock();
        self.group().begin_exit_by(Some(self.tid()), how, tasks.threads(self.pid()));
    }

    /// Has the other threads of the group end. The caller holds its signals' lock, and has noted there why.
    pub(crate) fn kick_others_to_end(&self, tasks: &TasksInner) {
        for thread in tasks.threads(self.pid()) {
            if !Arc::ptr_eq(thread, &self.task) {
                thread.kick_to_end();
            }
        }
    }

    /// What the guest's memory is told of the end: robust futexes, the word that `pthread_join` waits for.
    pub(crate) fn tell_memory(&mut self) {
        crate::futex::release_robust_list(self);
        let at = std::mem::replace(&mut self.clear_child_tid, UserAddr::NULL);
        // Linux: only when somebody else is left to see it.
        if at.is_null() || self.mm.users() <= 1 || self.mm.write(at, &0u32).is_err() {
            return;
        }
        let wake = FutexCall {
            uaddr: at,
            op: FutexCmd::WAKE.0 | FutexFlags::empty().bits(),
            val: 1,
            timeout: None,
            val2: 0,
            uaddr2: UserAddr::NULL,
            val3: 0,
        };
        // A process that is gone has nobody to wake.
        let _ = self.host_calls(&[HostCall::Futex(wake)]);
    }
}

/// Ends the task: tells memory, gives up what it holds, and if it is the group's last, makes the group a zombie.
pub(super) fn end_task(mut task: CurrentTask) {
    task.take_part_in_core_dump();
    task.no_restart();
    task.trace_end();
    task.tell_memory();
    if task.mm.users() <= 1 || task.kernel().tasks.threads(task.pid()).len() <= 1 {
        task.group().release_memory();
    }
    let files = task.files.clone();
    files.release(&task);
    release_terminal(&task);
    let counters_id = task.counters_id;
    let kernel = task.task.kernel.clone();
    let shared_task = task.task.clone();
    let code = task.exit_code;
    let last = kernel.tasks.threads(task.pid()).len() <= 1;
    {
        shared_task.io.look_at_storage();
        let served = shared_task.kernel_time();
        let mut usage = shared_task.group.usage.lock();
        usage.kernel_thread_ended(served, &shared_task.io.get());
        // The thread may drive another task soon.
        shared_task.kernel_thread.store(0, Ordering::Relaxed);
        if last {
            usage.leave(task.mm.space.last_usage());
        }
    }
    shared_task.leaving.store(true, Ordering::SeqCst);
    if last {
        shared_task.group.leave_host_process();
    }
    task.mm.release();
    {
        let mut shared = shared_task.shared.lock();
        let gone = (shared.mm.take(), shared.files.take(), shared.fs.take());
        drop(shared);
        shared_task.interrupter.lock().take();
        // The guest thread's may be another's soon.
        shared_task.set_words(Arc::new(OwnWords::default()));
        drop(gone);
    }
    // The host thread ends with the context, and the host process with the last reference to its memory:
    // before the parent learns of it, so that all it held is free.
    drop(task);
    kernel.stats.task_ended(counters_id);
    leave_group(&kernel, &shared_task, code);
}

/// A session's leader that ends gives its terminal up for all.
fn release_terminal(task: &CurrentTask) {
    let (is_leader, is_last) = {
        let tasks = task.kernel().tasks.lock();
        let entry = tasks.groups.get(&task.pid());
        entry.map_or((false, false), |entry| (entry.sid == task.pid(), entry.threads.len() <= 1))
    };
    if !is_last {
        return;
    }
    if is_leader {
        crate::tty::leader_exits(task.kernel(), task.group());
    } else {
        let terminal = task.group().terminal.lock().take();
        drop(terminal);
    }
}

/// A task whose guest thread never ran.
pub(super) fn abandon(task: &Arc<Task>) {
    let kernel = task.kernel.clone();
    task.group.release_memory();
    {
        let tasks = kernel.tasks.lock();
        let threads = tasks.threads(task.group.pid);
        if threads.len() <= 1 {
            task.group.begin_exit(GroupExit::Signal { signal: Signal::KILL, core: false }, threads);
        }
    }
    let shared = task.shared.lock().clone();
    if let Some(mm) = shared.mm {
        mm.release();
    }
    leave_group(&kernel, task, None);
}

fn leave_group(kernel: &Arc<crate::kernel::Kernel>, task: &Arc<Task>, code: Option<i32>) {
    let group = task.group.clone();
    let mut stop_done = None;
    let mut ended = None;
    {
        let mut tasks = kernel.tasks.lock();
        let left = tasks.remove_thread(task);
        if left > 0 {
            give_children_to_siblings(&mut tasks, task);
        }
        if task.tid() == group.pid
            && let Some(entry) = tasks.groups.get_mut(&group.pid)
        {
            entry.name = task.shared.lock().name.clone();
        }
        if left == 0 {
            ended = Some(end_group(&mut tasks, task, code));
        } else {
            stop_done = finish_stop(task, left);
            retarget_signals(&tasks, &group);
        }
        if let Some(signal) = stop_done {
            tasks.report_to_parent(group.pid, ChldCode::STOPPED, signal.0);
        }
    }
    group.events.wake(0);
    if let Some(exit) = ended {
        group.timers.delete_posix();
        kernel.group_ended(group.pid, exit);
    }
}

/// A signal for the group that the gone thread was to take is another's now (Linux: `retarget_shared_pending`).
fn retarget_signals(tasks: &TasksInner, group: &ThreadGroup) {
    if group.signals.lock().pending.set().is_empty() {
        return;
    }
    if let Some(entry) = tasks.groups.get(&group.pid) {
        entry.threads.iter().for_each(|thread| thread.kick());
    }
}

/// The rest of a group had stopped already: with this thread gone, the stop is complete.
fn finish_stop(task: &Arc<Task>, left: usize) -> Option<Signal> {
    let mut state = task.group.signals.lock();
    match state.stop {
        StopState::Stopping { signal, stopped } if stopped >= left => {
            state.stop = StopState::Stopped { signal };
            state.stop_report = Some(signal);
            Some(signal)
        }
        _ => None,
    }
}

/// The last thread has gone: children get a new parent, the parent is told.
fn end_group(tasks: &mut TasksInner, last: &Arc<Task>, code: Option<i32>) -> GroupExit {
    let group = &last.group;
    let pid = group.pid;
    // Without exit_group it is the last thread's code that counts (Linux: `synchronize_group_exit`).
    let exit = group.exit().unwrap_or(GroupExit::Code(code.unwrap_or(0)));
    let given_away = reparent_children(tasks, pid);
    let usage = group.usage.lock().own();
    let cred = last.cred();
    let zombie = Zombie { exit, usage, uid: cred.uid, gid: cred.gid };
    if let Some(entry) = tasks.groups.get_mut(&pid) {
        entry.zombie = Some(zombie);
    }
    hang_up_orphans(tasks, pid, &given_away);
    notify_parent(tasks, pid);
    exit
}

/// Gives the children of a group that ends to the nearest subreaper above it, or to init; says which.
fn reparent_children(tasks: &mut TasksInner, pid: i32) -> Vec<i32> {
    let children: Vec<i32> = match tasks.groups.get_mut(&pid) {
        Some(entry) => std::mem::take(&mut entry.children).into_iter().collect(),
        None => return Vec::new(),
    };
    if children.is_empty() {
        return children;
    }
    let reaper = find_reaper(tasks, pid);
    for child in children.iter().copied() {
        let Some(entry) = tasks.groups.get_mut(&child) else { continue };
        entry.parent = reaper;
        // A child that is given away tells its new parent by SIGCHLD, whatever it was cloned with.
        entry.exit_signal = Signal::CHLD.0;
        let is_zombie = entry.zombie.is_some();
        if let Some(reaper) = tasks.groups.get_mut(&reaper) {
            reaper.children.insert(child);
        }
        give_to(tasks, child, reaper);
        tell_of_parents_death(tasks, child, pid);
        if is_zombie {
            notify_parent(tasks, child);
        }
    }
    children
}

/// A thread ends and its process goes on: the children it made are another thread's now.
fn give_children_to_siblings(tasks: &mut TasksInner, gone: &Arc<Task>) {
    let pid = gone.group.pid;
    let Some(entry) = tasks.groups.get(&pid) else { return };
    let made_by_it = |child: &&i32| {
        let parent = tasks.groups.get(child).and_then(|child| child.parent_thread.upgrade());
        parent.is_some_and(|parent| Arc::ptr_eq(&parent, gone))
    };
    let children: Vec<i32> = entry.children.iter().filter(made_by_it).copied().collect();
    for child in children {
        give_to(tasks, child, pid);
        tell_of_parents_death(tasks, child, pid);
    }
}

/// Makes a thread of `parent` the one whose end the child may be told of.
fn give_to(tasks: &mut TasksInner, child: i32, parent: i32) {
    let thread = tasks.groups.get(&parent).and_then(|parent| parent.threads.first());
    let thread = thread.map(Arc::downgrade).unwrap_or_default();
    if let Some(entry) = tasks.groups.get_mut(&child) {
        entry.parent_thread = thread;
    }
}

/// Each thread that asked for it gets its signal (`PR_SET_PDEATHSIG`; Linux: `forget_original_parent`).
fn tell_of_parents_death(tasks: &TasksInner, child: i32, parent: i32) {
    let Some(entry) = tasks.groups.get(&child) else { return };
    for thread in &entry.threads {
        let signal = Signal(thread.parent_death_signal.load(Ordering::Relaxed));
        if signal.is_valid() {
            // The child may be ending itself.
            let _ = tasks.send_to_group(child, Siginfo::kill(signal, SiCode::USER, parent, 0));
        }
    }
}

fn find_reaper(tasks: &TasksInner, pid: i32) -> i32 {
    let mut at = tasks.groups.get(&pid).map_or(INIT_PID, |entry| entry.parent);
    for _ in 0..tasks.groups.len() {
        match tasks.groups.get(&at) {
            Some(entry) if at == INIT_PID || entry.group.subreaper.load(Ordering::Relaxed) => {
                if entry.zombie.is_none() {
                    return at;
                }
                at = entry.parent;
            }
            Some(entry) => at = entry.parent,
            None => break,
        }
    }
    INIT_PID
}

/// Stopped members of process groups that nobody can continue any more get SIGHUP and SIGCONT (POSIX; Linux:
/// `kill_orphaned_pgrp`).
fn hang_up_orphans(tasks: &mut TasksInner, pid: i32, given_away: &[i32]) {
    let Some(own) = tasks.groups.get(&pid) else { return };
    let (own_pgid, own_sid, own_parent) = (own.pgid, own.sid, own.parent);
    let mut candidates = vec![];
    // Its own group, if it was the one whose parent kept the group from being orphaned.
    let parent_elsewhere =
        tasks.groups.get(&own_parent).is_some_and(|parent| parent.pgid != own_pgid && parent.sid == own_sid);
    if parent_elsewhere {
        candidates.push(own_pgid);
    }
    // The groups of its children, which have another parent now.
    let children = given_away.iter().filter_map(|child| tasks.groups.get(child));
    candidates
        .extend(children.filter(|entry| entry.sid == own_sid && entry.pgid != own_pgid).map(|e| e.pgid));
    candidates.sort_unstable();
    candidates.dedup();
    for pgid in candidates {
        let has_stopped = tasks
            .process_group(pgid)
            .any(|entry| matches!(entry.group.signals.lock().stop, StopState::Stopped { .. }));
        if has_stopped && tasks.is_orphaned(pgid, Some(pid)) {
            for signal in [Signal::HUP, Signal::CONT] {
                let info = Siginfo::kill(signal, SiCode::KERNEL, 0, 0);
                // Nobody left to signal is fine.
                let _ = tasks.send_to_process_group(pgid, info);
            }
        }
    }
}

/// Tells the parent of a zombie; one whose parent does not want to know is forgotten at once.
pub(super) fn notify_parent(tasks: &mut TasksInner, pid: i32) {
    let Some(entry) = tasks.groups.get(&pid) else { return };
    let (Some(zombie), parent, signal) = (entry.zombie, entry.parent, Signal(entry.exit_signal)) else {
        return;
    };
    let Some(parent_entry) = tasks.groups.get(&parent) else { return };
    let parent_group = parent_entry.group.clone();
    let handlers = parent_entry.threads.first().map(|leader| leader.shared.lock().handlers.clone());
    // An init that is the kernel's own has no threads: it reaps at once.
    let unseen = handlers.as_ref().is_none_or(|handlers| signal == Signal::CHLD && handlers.reaps_children());
    if signal.is_valid() {
        let (code, status) = match zombie.exit {
            GroupExit::Code(code) => (ChldCode::EXITED, code),
            GroupExit::Signal { signal, core: false } => (ChldCode::KILLED, signal.0),
            GroupExit::Signal { signal, core: true } => (ChldCode::DUMPED, signal.0),
        };
        let mut info = Siginfo::child(
            code,
            pid,
            zombie.uid,
            status,
            zombie.usage.user_ticks(),
            zombie.usage.system_ticks(),
        );
        info.signo = signal;
        // SIGCHLD merges; another signal may find the queue full, which loses only its information.
        let _ = tasks.send_to_group(parent, info);
    }
    if unseen {
        tasks.reap(pid, false);
    }
    parent_group.child_events.wake(0);
}

impl TasksInner {
    /// Forgets a zombie. Its usage goes to the parent's if it was waited for.
    pub fn reap(&mut self, pid: i32, waited_for: bool) {
        let Some(entry) = self.groups.get(&pid) else { return };
        let children_usage = entry.group.usage.lock().children;
        if let (Some(zombie), true) = (entry.zombie, waited_for)
            && let Some(parent) = self.groups.get(&entry.parent)
        {
            let mut usage = parent.group.usage.lock();
            usage.children.add(&zombie.usage);
            usage.children.add(&children_usage);
        }
        self.remove_group(pid);
    }
}
