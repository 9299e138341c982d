//! New tasks: `fork`, `vfork`, `clone`, `clone3`.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use abi::{CloneArgs, CloneFlags, Errno, Signal, UserAddr};
use platform::NewContext;
use sync::SysResult;
use zerocopy::IntoBytes;

use crate::syscall::{CloneRegisters, CloneStruct, Pid};
use crate::task::{CurrentTask, GroupEntry, INIT_PID, PID_MAX, Task, TaskShared, ThreadGroup, exit, run};

/// Flags that ask for what there is not (name spaces and the like).
const UNSUPPORTED: CloneFlags = CloneFlags::NEWNS
    .union(CloneFlags::NEWCGROUP)
    .union(CloneFlags::NEWUTS)
    .union(CloneFlags::NEWIPC)
    .union(CloneFlags::NEWUSER)
    .union(CloneFlags::NEWPID)
    .union(CloneFlags::NEWNET)
    .union(CloneFlags::INTO_CGROUP);

pub fn sys_fork(task: &mut CurrentTask) -> SysResult<Pid> {
    do_clone(task, &CloneArgs { exit_signal: exit_signal(Signal::CHLD), ..CloneArgs::default() })
}

pub fn sys_vfork(task: &mut CurrentTask) -> SysResult<Pid> {
    let flags = CloneFlags::VFORK | CloneFlags::VM;
    do_clone(task, &CloneArgs { flags, exit_signal: exit_signal(Signal::CHLD), ..CloneArgs::default() })
}

pub fn sys_clone(task: &mut CurrentTask, registers: CloneRegisters) -> SysResult<Pid> {
    let CloneRegisters { flags, stack, parent_tid, child_tid, tls } = registers;
    let args = CloneArgs {
        flags: flags.without_signal() & CloneFlags::from_bits_retain(0xffff_ffff),
        pidfd: parent_tid.0,
        child_tid: child_tid.0,
        parent_tid: parent_tid.0,
        exit_signal: exit_signal(flags.exit_signal()),
        stack: stack.0,
        tls: tls.0,
        ..CloneArgs::default()
    };
    if flags.contains(CloneFlags::PIDFD | CloneFlags::PARENT_SETTID) {
        return Err(Errno::EINVAL.into());
    }
    do_clone(task, &args)
}

fn exit_signal(signal: Signal) -> u64 {
    u64::from(signal.0.unsigned_abs())
}

pub fn sys_clone3(task: &mut CurrentTask, args: CloneStruct) -> SysResult<Pid> {
    let CloneStruct { addr: args, size } = args;
    const FIRST_VERSION: usize = 64;
    if size > 4096 {
        return Err(Errno::E2BIG.into());
    }
    if size < FIRST_VERSION {
        return Err(Errno::EINVAL.into());
    }
    let mut clone = CloneArgs::default();
    let known = size_of::<CloneArgs>();
    let part = clone.as_mut_bytes().get_mut(..size.min(known)).unwrap_or(&mut []);
    task.mm.read_bytes(args, part)?;
    if size > known {
        let mut rest = vec![0; size - known];
        task.mm.read_bytes(args.checked_add(known as u64).ok_or(Errno::EFAULT)?, &mut rest)?;
        if rest.iter().any(|byte| *byte != 0) {
            return Err(Errno::E2BIG.into());
        }
    }
    check_clone3(&clone)?;
    if clone.stack != 0 {
        clone.stack = clone.stack.wrapping_add(clone.stack_size);
    }
    do_clone(task, &clone)
}

/// The checks of `clone3` alone (Linux: `copy_clone_args_from_user`, `clone3_args_valid`).
fn check_clone3(args: &CloneArgs) -> SysResult<()> {
    let known = CloneFlags::KNOWN | CloneFlags::NEWTIME;
    let refused = CloneFlags::DETACHED;
    let stack_ok =
        (args.stack == 0) == (args.stack_size == 0) && UserAddr(args.stack).in_guest_range(args.stack_size);
    let threads_signal =
        args.flags.intersects(CloneFlags::THREAD | CloneFlags::PARENT) && args.exit_signal != 0;
    let clears = CloneFlags::SIGHAND | CloneFlags::CLEAR_SIGHAND;
    if args.exit_signal & !CloneFlags::SIGNAL_MASK != 0
        || args.exit_signal > Signal::MAX.unsigned_abs().into()
        || !known.contains(args.flags)
        || args.flags.intersects(refused)
        || args.flags.contains(clears)
        || threads_signal
        || !stack_ok
        || (args.set_tid == 0) != (args.set_tid_size == 0)
    {
        return Err(Errno::EINVAL.into());
    }
    if args.set_tid_size != 0 || args.flags.contains(CloneFlags::NEWTIME) {
        // Choosing pids needs a name space of one's own.
        return Err(Errno::EPERM.into());
    }
    Ok(())
}

/// The checks of all kinds of clone, in Linux's order (`copy_process`).
fn check_flags(task: &CurrentTask, flags: CloneFlags) -> SysResult<()> {
    let needs = |flag: CloneFlags, other: CloneFlags| flags.contains(flag) && !flags.contains(other);
    if flags.contains(CloneFlags::NEWNS | CloneFlags::FS)
        || flags.contains(CloneFlags::NEWUSER | CloneFlags::FS)
        || needs(CloneFlags::THREAD, CloneFlags::SIGHAND)
        || needs(CloneFlags::SIGHAND, CloneFlags::VM)
    {
        return Err(Errno::EINVAL.into());
    }
    // Nor may a thread be in other name spaces than its group.
    if flags.contains(CloneFlags::THREAD) && flags.intersects(CloneFlags::NEWUSER | CloneFlags::NEWPID) {
        return Err(Errno::EINVAL.into());
    }
    // An init has no siblings.
    if flags.contains(CloneFlags::PARENT) && task.pid() == INIT_PID {
        return Err(Errno::EINVAL.into());
    }
    if flags.contains(CloneFlags::PIDFD | CloneFlags::DETACHED) {
        return Err(Errno::EINVAL.into());
    }
    if flags.intersects(UNSUPPORTED) {
        return Err(Errno::EPERM.into());
    }
    Ok(())
}

fn do_clone(task: &mut CurrentTask, args: &CloneArgs) -> SysResult<Pid> {
    let flags = args.flags;
    check_flags(task, flags)?;
    if flags.contains(CloneFlags::SETTLS) && args.tls >= abi::GUEST_TOP {
        return Err(Errno::EPERM.into());
    }
    // Linux: a signal that is pending is taken before a fork, so that groups can be killed as a whole.
    if task.has_signal() && !flags.contains(CloneFlags::THREAD) {
        return Err(sync::SysError::Restart(task.leave_for_signals()?.always()));
    }
    let kernel = task.kernel().clone();
    let tid = reserve_pid(task)?;
    let made = make_task(task, args, tid);
    let (child, new) = match made {
        Ok(made) => made,
        Err(error) => {
            kernel.tasks.lock().release_pid(tid);
            return Err(error);
        }
    };
    let vfork = flags.contains(CloneFlags::VFORK).then(|| child.group.clone());
    if flags.contains(CloneFlags::PARENT_SETTID) {
        // Linux ignores a fault here.
        let _ = task.mm.write(UserAddr(args.parent_tid), &tid);
    }
    let mm = child.shared.lock().mm.clone();
    if let Err(error) = start(task, child, new, args) {
        kernel.tasks.lock().release_pid(tid);
        if let Some(mm) = mm {
            mm.release();
        }
        return Err(error);
    }
    drop(mm);
    if let Some(group) = vfork {
        let done = task.waiter.wait_killable(&[&group.events], None, || {
            group.released_memory.load(Ordering::SeqCst).then_some(())
        });
        // Killed meanwhile: the run loop sees to it.
        let _ = done;
    }
    Ok(Pid(tid))
}

/// A pid within the user's limit and the kernel's budget of tasks.
fn reserve_pid(task: &CurrentTask) -> SysResult<i32> {
    let limit = task.limit(crate::resource::NPROC);
    let uid = task.cred.uid;
    let mut tasks = task.kernel().tasks.lock();
    let budget = task.kernel().options.max_tasks;
    // Nobody is born while all are killed (Linux: `zap_pid_ns_processes`), or a fork bomb would go on.
    if task.kernel().is_shutting_down() {
        return Err(Errno::ENOMEM.into());
    }
    if tasks.tasks.len() >= budget {
        return Err(Errno::EAGAIN.into());
    }
    if uid != 0 && limit < PID_MAX.unsigned_abs().into() {
        let own = tasks.tasks.values().filter(|other| other.cred().uid == uid).count();
        if own as u64 >= limit {
            return Err(Errno::EAGAIN.into());
        }
    }
    tasks.reserve_pid().ok_or(Errno::EAGAIN.into())
}

/// Makes the guest thread and the task for it; nothing runs yet.
fn make_task(
    task: &mut CurrentTask,
    args: &CloneArgs,
    tid: i32,
) -> SysResult<(Arc<Task>, Box<dyn NewContext>)> {
    let flags = args.flags;
    let (mm, new) = if flags.contains(CloneFlags::THREAD) {
        let thread = task.context.new_thread().map_err(|error| task.kernel().platform_failed(&error))?;
        (task.mm.share(), thread)
    } else if flags.contains(CloneFlags::VM) {
        let process =
            task.context.fork_sharing_memory().map_err(|error| task.kernel().platform_failed(&error))?;
        (task.mm.share_from(process.space), process.thread)
    } else {
        let mm = task.mm.clone();
        let _lock = mm.lock(&task.waiter)?;
        let process = task.context.fork().map_err(|error| task.kernel().platform_failed(&error))?;
        (mm.fork(process.space), process.thread)
    };
    let shares = |flag| flags.contains(flag);
    let handlers = if shares(CloneFlags::SIGHAND) { task.handlers.clone() } else { task.handlers.copy() };
    if shares(CloneFlags::CLEAR_SIGHAND) {
        handlers.reset_handlers();
    }
    let shared = TaskShared {
        mm: Some(mm.clone()),
        files: Some(if shares(CloneFlags::FILES) { task.files.share() } else { task.files.copy() }),
        fs: Some(if shares(CloneFlags::FS) { task.fs.clone() } else { task.fs.copy() }),
        handlers,
        cred: task.cred.clone(),
        name: task.task.shared.lock().name.clone(),
    };
    let group = if shares(CloneFlags::THREAD) { task.group().clone() } else { task.group().fork(tid) };
    if !shares(CloneFlags::THREAD) {
        group.live_in(task.kernel(), &mm.space);
        group.watch_cpu_limit(task.kernel());
    }
    let child = Task::new(task.kernel().clone(), tid, group, shared, task.task.blocked());
    child.inherit(&task.task);
    Ok((child, new))
}

/// Enters the task into the table and starts its kernel thread. What fails does so before anybody sees the task.
fn start(
    task: &mut CurrentTask,
    child: Arc<Task>,
    new: Box<dyn NewContext>,
    args: &CloneArgs,
) -> SysResult<()> {
    let flags = args.flags;
    let kernel = task.kernel().clone();
    let files = task.files.clone();
    let pidfd = flags
        .contains(CloneFlags::PIDFD)
        .then(|| crate::task::pidfd::prepare(task, &files.table, &child.group, UserAddr(args.pidfd)))
        .transpose()?;
    {
        let mut tasks = kernel.tasks.lock();
        if flags.contains(CloneFlags::THREAD) {
            if task.group().signals.lock().ends(task.tid()) {
                return Err(Errno::EAGAIN.into());
            }
            tasks.add_thread(child.group.pid, child.clone());
        } else {
            let own = tasks.groups.get(&task.pid());
            let (pgid, sid, grandparent) =
                own.map_or((0, 0, INIT_PID), |own| (own.pgid, own.sid, own.parent));
            let parent_thread = own.map(|own| own.parent_thread.clone()).unwrap_or_default();
            let sibling = flags.contains(CloneFlags::PARENT);
            let exit_signal = match (sibling, own) {
                (true, Some(own)) => own.exit_signal,
                _ => i32::try_from(args.exit_signal).unwrap_or(0),
            };
            let entry = GroupEntry {
                parent: if sibling { grandparent } else { task.pid() },
                pgid,
                sid,
                exit_signal,
                parent_thread: if sibling { parent_thread } else { Arc::downgrade(&task.task) },
                ..GroupEntry::new(child.group.clone())
            };
            tasks.add_group(entry, Some(child.clone()));
        }
    }
    if let Some((number, file)) = pidfd {
        number.install(file);
    }
    let setup = ChildSetup {
        stack: args.stack,
        tls: flags.contains(CloneFlags::SETTLS).then_some(args.tls),
        set_tid: flags.contains(CloneFlags::CHILD_SETTID).then_some(UserAddr(args.child_tid)),
        clear_tid: flags.contains(CloneFlags::CHILD_CLEARTID).then_some(UserAddr(args.child_tid)),
        // Threads and children that share memory have no alternate stack, but vfork's.
        alternate_stack: (!flags.contains(CloneFlags::VM) || flags.contains(CloneFlags::VFORK))
            .then(|| task.alternate_stack()),
    };
    spawn_kernel_thread(child, new, move |child| setup.apply(child));
    Ok(())
}

/// What a new task does on its own kernel thread before its guest runs.
struct ChildSetup {
    stack: u64,
    tls: Option<u64>,
    set_tid: Option<UserAddr>,
    clear_tid: Option<UserAddr>,
    alternate_stack: Option<abi::Sigaltstack>,
}

impl ChildSetup {
    fn apply(self, child: &mut CurrentTask) {
        child.context.set_result(0);
        if self.stack != 0 {
            child.context.registers_mut().rsp = self.stack;
        }
        if let Some(tls) = self.tls {
            child.context.registers_mut().fs_base = tls;
        }
        if let Some(alternate) = self.alternate_stack {
            child.put_alternate_stack(&alternate);
        }
        child.after_fork_memory();
        if let Some(at) = self.set_tid {
            // Linux ignores a fault here.
            let _ = child.mm.write(at, &child.tid());
        }
        child.clear_child_tid = self.clear_tid.unwrap_or(UserAddr::NULL);
    }
}

/// Gives a task its kernel thread. `first` runs there before the guest does.
pub(crate) fn spawn_kernel_thread(
    task: Arc<Task>,
    new: Box<dyn NewContext>,
    first: impl FnOnce(&mut CurrentTask) + Send + 'static,
) {
    let name = format!("task {}", task.tid());
    let for_thread = task.clone();
    let life = move || match new.bind() {
        Ok(context) => {
            let mut current = CurrentTask::begin(for_thread, context);
            first(&mut current);
            run::run(current);
        }
        Err(error) => {
            tracing::error!(%error, "a new guest thread cannot be driven");
            exit::abandon(&for_thread);
        }
    };
    let kernel = &task.kernel;
    let placed = kernel.options.placement.then(|| task.cpus());
    if let Err(error) = kernel.threads.start(name, placed, life) {
        tracing::error!(%error, "no kernel thread for a new task");
        exit::abandon(&task);
    }
}

impl ThreadGroup {
    /// What a forked child's group has of its parent's.
    fn fork(&self, pid: i32) -> Arc<ThreadGroup> {
        let child = ThreadGroup::new(pid, *self.limits.lock());
        child.dumpable.store(self.dumpable.load(Ordering::Relaxed), Ordering::Relaxed);
        child.coredump_filter.store(self.coredump_filter.load(Ordering::Relaxed), Ordering::Relaxed);
        child.personality.store(self.personality.load(Ordering::Relaxed), Ordering::Relaxed);
        let terminal = self.terminal.lock().clone();
        *child.terminal.lock() = terminal;
        child.thp_disable.store(self.thp_disable.load(Ordering::Relaxed), Ordering::Relaxed);
        // Whoever had more authority before may have left its mark on this memory too.
        child.authority_unchanged.store(self.authority_unchanged.load(Ordering::Relaxed), Ordering::Relaxed);
        let command_line = self.command_line.lock().clone();
        *child.command_line.lock() = command_line;
        child
    }
}
