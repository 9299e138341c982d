//! Sending signals.

use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};

use abi::{ChldCode, DefaultAction, Errno, SiCode, SigSet, Siginfo, Signal};
use sync::SysResult;
use vfs::{Capability, Cred};

use crate::signal::{GroupSignals, PendingSignals, StopState};
use crate::task::{GroupExit, Task, TasksInner, ThreadGroup};
use crate::users::{Counted, Held};

/// Who gets a signal.
#[derive(Clone, Copy)]
pub enum Target<'a> {
    /// Any thread of the group that does not block it.
    Group,
    Thread(&'a Arc<Task>),
}

/// What became of a signal that was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sent {
    /// It is pending, or has done what it does.
    Queued,
    /// It is ignored.
    Ignored,
}

/// Sends `info` to a group or one thread of it. `threads` are all threads of the group, the leader first.
///
/// `EAGAIN`: the queue of pending signals is full, for real-time signals sent with a value.
pub fn send(
    group: &ThreadGroup,
    threads: &[Arc<Task>],
    target: Target<'_>,
    info: Siginfo,
) -> Result<(), Errno> {
    send_queued(group, threads, target, info, queue).map(drop)
}

/// Sends a timer's signal. There is always room for it: a timer has one pending at most (Linux allocates it with the
/// timer).
pub(crate) fn send_timer(
    group: &ThreadGroup,
    threads: &[Arc<Task>],
    target: Target<'_>,
    info: Siginfo,
) -> Sent {
    let queue = |pending: &mut PendingSignals, info, _: &dyn Fn() -> Option<Held>| {
        pending.add_beside(info);
        Ok(())
    };
    send_queued(group, threads, target, info, queue).unwrap_or(Sent::Queued)
}

/// Puts a signal into a pending set; the function gives a share of the receiver's queue, `None` if that is full.
type Queue = fn(&mut PendingSignals, Siginfo, &dyn Fn() -> Option<Held>) -> Result<(), Errno>;

/// Most signals that a user has queued, whatever the limit: they are the kernel's memory.
pub(crate) const MOST_QUEUED: u64 = 1 << 19;

/// Sends `info`; `queue` puts it into a pending set.
fn send_queued(
    group: &ThreadGroup,
    threads: &[Arc<Task>],
    target: Target<'_>,
    info: Siginfo,
    queue: Queue,
) -> Result<Sent, Errno> {
    let signal = info.signo;
    let woken: Option<Arc<Task>>;
    let mut resumed = false;
    {
        let mut state = group.signals.lock();
        if state.exit.is_some() {
            if let Some(dump) = state.dump.as_ref().filter(|_| signal == Signal::KILL) {
                dump.give_up();
            }
            return Ok(Sent::Queued);
        }
        resumed |= apply_job_control(&mut state, threads, signal);
        let Some(first) = threads.first() else { return Ok(Sent::Queued) };
        let receiver = match target {
            Target::Thread(task) => task,
            Target::Group => first,
        };
        if is_dropped(group, receiver, signal, &info) {
            if resumed {
                drop(state);
                group.resume.wake(0);
            }
            return Ok(Sent::Ignored);
        }
        if signal == Signal::KILL {
            drop(state);
            group.begin_exit(GroupExit::Signal { signal, core: false }, threads);
            return Ok(Sent::Queued);
        }
        // The receiver's user pays, wherever the user's signals are queued (Linux: `sigqueue_alloc`).
        let limit = group.limits.lock().pending_signals().min(MOST_QUEUED);
        let uid = receiver.cred().uid;
        let share = || {
            let share = receiver.kernel.users.hold(uid, Counted::Signals, 1);
            (share.total() as u64 <= limit).then_some(share)
        };
        let told = match target {
            Target::Group => {
                queue(&mut state.pending, info, &share)?;
                threads
            }
            Target::Thread(task) => {
                queue(&mut task.pending.lock(), info, &share)?;
                std::slice::from_ref(task)
            }
        };
        told.iter().for_each(|task| task.words().add_pending(signal.mask().0));
        // Between telling of the signal and looking at masks, which guests change by themselves: whoever we believe to block it
        // sees it when it unblocks it, and whoever blocks it after we have looked sees it too (INVARIANTS 6.1).
        fence(Ordering::SeqCst);
        match target {
            Target::Thread(task) => woken = Some(task.clone()),
            // Linux: stopped threads want none; it stays pending until they go on.
            Target::Group if matches!(state.stop, StopState::Stopped { .. }) => woken = None,
            // Any thread that takes it will do; the leader if it can, as on Linux.
            Target::Group => woken = threads.iter().find(|task| wants(task, signal)).cloned(),
        }
        let stopped = matches!(state.stop, StopState::Stopped { .. });
        if let Some(task) = &woken
            && !stopped
            && is_fatal_at_once(task, signal)
            && state.exit.is_none()
        {
            drop(state);
            group.begin_exit(GroupExit::Signal { signal, core: false }, threads);
            return Ok(Sent::Queued);
        }
    }
    if resumed {
        group.resume.wake(0);
    }
    match woken {
        Some(task) => task.kick(),
        // All block it: somebody may be waiting for it in sigtimedwait or by a signalfd.
        None => threads.iter().for_each(|task| task.kick()),
    }
    group.events.wake(0);
    Ok(Sent::Queued)
}

/// What stop signals and SIGCONT do when they are sent, whatever becomes of them: each removes the other kind, and
/// SIGCONT continues the group. Says whether a stop has ended.
fn apply_job_control(state: &mut GroupSignals, threads: &[Arc<Task>], signal: Signal) -> bool {
    let removes = if signal == Signal::CONT {
        SigSet::DEFAULT_STOP
    } else if SigSet::DEFAULT_STOP.contains(signal) {
        Signal::CONT.mask()
    } else {
        return false;
    };
    state.pending.remove(removes);
    for thread in threads {
        thread.pending.lock().remove(removes);
    }
    if signal != Signal::CONT {
        return false;
    }
    state.continuations = state.continuations.wrapping_add(1);
    let was_stopped = matches!(state.stop, StopState::Stopped { .. });
    let ended = state.end_stop();
    if was_stopped {
        state.continue_report = true;
        state.continue_notify = true;
    }
    ended
}

/// Whether it is ignored already when it is sent. A blocked signal is kept: the action may change. So is a
/// default-ignored one while its action is a handler.
fn is_dropped(group: &ThreadGroup, receiver: &Arc<Task>, signal: Signal, info: &Siginfo) -> bool {
    let handlers = receiver.shared.lock().handlers.clone();
    let action = handlers.get(signal);
    if group.unkillable.load(std::sync::atomic::Ordering::Relaxed)
        && action.handler == abi::Sigaction::DFL
        && !is_forced(info)
    {
        return true;
    }
    if receiver.kept().contains(signal) {
        return false;
    }
    handlers.ignores(signal)
}

/// Whether it was raised by the thread's own instruction.
fn is_forced(info: &Siginfo) -> bool {
    SigSet::SYNCHRONOUS.contains(info.signo) && info.code > SiCode::USER.0 && info.code != SiCode::KERNEL.0
}

fn queue(pending: &mut PendingSignals, info: Siginfo, share: &dyn Fn() -> Option<Held>) -> Result<(), Errno> {
    if pending.merges(info.signo) {
        return Ok(());
    }
    let share = share();
    if share.is_some() || (info.signo.0 < Signal::RTMIN && info.code >= SiCode::USER.0) {
        pending.add(info, share);
        return Ok(());
    }
    if info.signo.is_realtime() && info.code != SiCode::USER.0 {
        return Err(Errno::EAGAIN);
    }
    pending.add_bare(info.signo);
    Ok(())
}

fn wants(task: &Arc<Task>, signal: Signal) -> bool {
    !task.blocked().contains(signal)
}

/// Whether the group can be ended at once, without waiting for the receiver to take the signal.
fn is_fatal_at_once(task: &Arc<Task>, signal: Signal) -> bool {
    let handlers = task.shared.lock().handlers.clone();
    handlers.get(signal).handler == abi::Sigaction::DFL
        && signal.default_action() == DefaultAction::Terminate
        && !task.kept().contains(signal)
}

impl TasksInner {
    /// Sends to a whole group. `ESRCH`: no such group.
    pub fn send_to_group(&self, pid: i32, info: Siginfo) -> Result<(), Errno> {
        let entry = self.groups.get(&pid).ok_or(Errno::ESRCH)?;
        if entry.zombie.is_some() {
            return Ok(());
        }
        send(&entry.group, &entry.threads, Target::Group, info)
    }

    /// Sends to every member of a process group. `ESRCH`: it has none.
    pub fn send_to_process_group(&self, pgid: i32, info: Siginfo) -> Result<(), Errno> {
        let mut found = false;
        for entry in self.process_group(pgid) {
            found = true;
            send(&entry.group, &entry.threads, Target::Group, info)?;
        }
        if found { Ok(()) } else { Err(Errno::ESRCH) }
    }

    /// Tells a parent that its child stopped or went on.
    pub fn report_to_parent(&self, pid: i32, code: ChldCode, status: i32) {
        let Some(entry) = self.groups.get(&pid) else { return };
        let Some(parent) = self.groups.get(&entry.parent) else { return };
        let uid = entry.threads.first().map_or(0, |task| task.cred().uid);
        if let Some(leader) = parent.threads.first() {
            let handlers = leader.shared.lock().handlers.clone();
            let action = handlers.get(Signal::CHLD);
            if !action.flags.contains(abi::SaFlags::NOCLDSTOP) {
                let usage = entry.group.usage_of(&entry.threads);
                let info = Siginfo::child(code, pid, uid, status, usage.user_ticks(), usage.system_ticks());
                // SIGCHLD merges, so it cannot fail for want of room.
                let _ = send(&parent.group, &parent.threads, Target::Group, info);
            }
        }
        parent.group.child_events.wake(0);
    }
}

/// Whether `sender` may signal `target` (Linux: `kill_ok_by_cred`).
pub fn may_signal(sender: &Cred, target: &Cred) -> bool {
    sender.euid == target.suid
        || sender.euid == target.uid
        || sender.uid == target.suid
        || sender.uid == target.uid
        || sender.capable(Capability::KILL)
}

/// The check of a `kill`: permission, or SIGCONT within the session.
pub fn check_kill(sender: &Cred, target: &Cred, signal: Signal, same_session: bool) -> SysResult<()> {
    if may_signal(sender, target) || (signal == Signal::CONT && same_session) {
        return Ok(());
    }
    Err(Errno::EPERM.into())
}
