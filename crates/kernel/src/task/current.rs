//! The task that the calling kernel thread drives.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Instant;

use abi::{Errno, SigSet, Signal, UserAddr};
use platform::{Context, Counters, Event, HostCall, HostCallError, HostCallFailure, Identity, Trap};
use sync::{Deadline, Interrupts, Restart, SysError, SysResult, WaitEnd, WaitQueue, Waiter};
use vfs::{Caller, Cred};

use crate::fs::delegation::Delegation;
use crate::fs::{Files, Fs};
use crate::kernel::Kernel;
use crate::mm::Mm;
use crate::profile::{TaskProfile, What};
use crate::resource;
use crate::signal::Handlers;
use crate::task::run::{InterruptedCall, LastFault, RestartBlock};
use crate::task::{Task, ThreadGroup};

/// A guest thread as its own kernel thread holds it. What only that thread uses lies here, without locks; the
/// `Arc`s are those of the task's [`TaskShared`](super::TaskShared), kept in step by the `set_` methods.
pub struct CurrentTask {
    pub task: Arc<Task>,
    pub context: Box<dyn Context>,
    pub waiter: Waiter,
    pub mm: Arc<Mm>,
    pub files: Arc<Files>,
    pub fs: Arc<Fs>,
    pub handlers: Arc<Handlers>,
    pub cred: Arc<Cred>,
    /// The mask to go back to when no handler runs (`sigsuspend`, `ppoll`, …).
    pub saved_mask: Option<SigSet>,
    pub(super) interrupted: Option<InterruptedCall>,
    /// A kick was seen by a wait, or there was no looking yet: what it came for is seen to before the guest goes on.
    pub(super) must_look: Cell<bool>,
    /// SIGCONTs of the group when this thread last took a signal.
    pub(crate) continuations_seen: Cell<u64>,
    /// The number of the system call that is being served, for the report if the kernel fails.
    pub(super) serving: Option<u64>,
    pub restart_block: RestartBlock,
    pub last_fault: LastFault,
    /// The guest's instruction pointer may be where a patched site's jump is.
    pub(crate) may_be_covered: bool,
    /// Cleared and woken when the task ends (`CLONE_CHILD_CLEARTID`).
    pub clear_child_tid: UserAddr,
    /// It has called `exit`, with this code.
    pub(super) exit_code: Option<i32>,
    pub counters: Counters,
    pub(crate) delegation: Delegation,
    pub(crate) profile: Option<Box<TaskProfile>>,
    /// Somebody observes its calls: a trace or a profile.
    pub(super) is_observed: bool,
    /// What its counters are known by.
    pub(super) counters_id: u64,
}

impl CurrentTask {
    /// Takes a task over, on its kernel thread.
    pub(crate) fn begin(task: Arc<Task>, mut context: Box<dyn Context>) -> CurrentTask {
        let own = task.kernel.stats.task_begins();
        context.set_counters(own.counters.clone());
        let profile = TaskProfile::begin(&task);
        let delegation = Delegation::begin(&task, &*context);
        let waiter = Waiter::new();
        // The first and only time: each task has one kernel thread.
        let _ = task.parker.set(waiter.parker().clone());
        *task.interrupter.lock() = Some(context.interrupter());
        THIS_THREAD.set(Arc::downgrade(&task));
        *task.meter.lock() = Some(context.meter());
        let before = u64::try_from(super::threads::time_before().as_nanos()).unwrap_or(u64::MAX);
        task.kernel_time_before_ns.store(before, Ordering::Relaxed);
        task.kernel_thread.store(rustix::thread::gettid().as_raw_nonzero().get(), Ordering::Relaxed);
        let shared = task.shared.lock().clone();
        let missing = "a new task has memory and files";
        if let Some(trace) = &task.kernel.trace {
            trace.task_begins();
        }
        let mut current = CurrentTask {
            waiter,
            context,
            mm: shared.mm.unwrap_or_else(|| unreachable!("{missing}")),
            files: shared.files.unwrap_or_else(|| unreachable!("{missing}")),
            fs: shared.fs.unwrap_or_else(|| unreachable!("{missing}")),
            handlers: shared.handlers,
            cred: shared.cred,
            saved_mask: None,
            interrupted: None,
            must_look: Cell::new(true),
            continuations_seen: Cell::new(0),
            serving: None,
            restart_block: RestartBlock::None,
            last_fault: LastFault::default(),
            may_be_covered: false,
            clear_child_tid: UserAddr::NULL,
            exit_code: None,
            is_observed: profile.is_some() || task.kernel.trace.is_some(),
            profile,
            delegation,
            counters_id: own.id(),
            counters: own.counters,
            task,
        };
        current.share_words();
        current.apply_unusual_scheduling();
        current.publish_identity();
        current
    }

    /// Goes over to the words of a new guest thread. What waits for it is told when it looks for signals.
    fn share_words(&self) {
        self.task.set_words(self.context.shared_words());
        self.must_look.set(true);
        self.say_who_advises();
    }

    /// Says whether advice about memory is to come to the kernel.
    fn say_who_advises(&self) {
        self.task.words().set_advice_is_free(!self.mm.asks_advice());
    }

    pub fn kernel(&self) -> &Arc<Kernel> {
        &self.task.kernel
    }

    pub fn group(&self) -> &Arc<ThreadGroup> {
        &self.task.group
    }

    pub fn pid(&self) -> i32 {
        self.task.group.pid
    }

    pub fn tid(&self) -> i32 {
        self.task.tid()
    }

    /// The soft limit of a resource.
    pub fn limit(&self, which: usize) -> u64 {
        self.group().limits.lock().soft(which)
    }

    pub fn set_cred(&mut self, cred: Cred) {
        self.cred = Arc::new(cred);
        self.task.shared.lock().cred = self.cred.clone();
        self.publish_identity();
    }

    /// Tells the platform what the calls answer that only tell who one is, unless each is to be seen.
    fn publish_identity(&mut self) {
        if self.kernel().trace.is_none() {
            let cred = &self.cred;
            let (uid, euid, gid, egid) = (cred.uid, cred.euid, cred.gid, cred.egid);
            let identity = Identity { pid: self.pid(), tid: self.tid(), uid, euid, gid, egid };
            self.context.set_identity(&identity);
        }
    }

    /// The tasks that use its memory, itself among them.
    pub(crate) fn users_of_memory(&self) -> Vec<Arc<Task>> {
        let shares =
            |task: &&Arc<Task>| task.shared.lock().mm.as_ref().is_some_and(|mm| mm.shares_with(&self.mm));
        self.kernel().tasks.lock().tasks.values().filter(shares).cloned().collect()
    }

    pub fn set_mm(&mut self, mm: Arc<Mm>) {
        self.mm = mm;
        self.task.has_left.store(self.mm.moved(), Ordering::SeqCst);
        self.task.shared.lock().mm = Some(self.mm.clone());
        self.say_who_advises();
    }

    pub fn set_files(&mut self, files: Arc<Files>) {
        self.withdraw_delegations();
        self.files = files;
        self.task.shared.lock().files = Some(self.files.clone());
    }

    pub fn set_fs(&mut self, fs: Arc<Fs>) {
        self.fs = fs;
        self.task.shared.lock().fs = Some(self.fs.clone());
    }

    pub fn set_handlers(&mut self, handlers: Arc<Handlers>) {
        self.handlers = handlers;
        self.task.shared.lock().handlers = self.handlers.clone();
    }

    /// Replaces the guest thread by one of a fresh host process; the old one ends.
    pub(crate) fn set_context(&mut self, mut context: Box<dyn Context>) {
        context.set_counters(self.counters.clone());
        *self.task.interrupter.lock() = Some(context.interrupter());
        self.task.set_meter(context.meter());
        self.group().usage.lock().leave(self.mm.space.last_usage());
        self.delegation = Delegation::begin(&self.task, &*context);
        self.context = context;
        self.share_words();
        self.apply_unusual_scheduling();
        self.publish_identity();
    }

    /// For a call that is to be made again once signals have been looked at, whoever takes them: another thread may be about
    /// to take the one that is pending, and only that one was kicked (Linux: TIF_SIGPENDING set, -ERESTARTSYS).
    pub(crate) fn leave_for_signals(&self) -> SysResult<Restart> {
        self.task.kick();
        match self.waiter.wait(&[], Some(Instant::now()), || None::<()>) {
            Err(WaitEnd::Interrupted(restart)) => Ok(restart),
            // Not reached: the kick is there.
            _ => Err(Errno::EINTR.into()),
        }
    }

    /// Waits until `check` gives a value; only a signal that is to be taken (or the task's end) interrupts it.
    pub fn wait<T>(
        &self,
        queues: &[&WaitQueue],
        deadline: Deadline,
        mut check: impl FnMut(&CurrentTask) -> Option<T>,
    ) -> Result<T, WaitEnd> {
        if let Some(value) = check(self) {
            return Ok(value);
        }
        self.counters.add(Event::Wait, 1);
        let began = self.profile_begin();
        let end = loop {
            let end = self.waiter.wait(queues, deadline, || check(self));
            if matches!(end, Err(WaitEnd::Interrupted(_))) {
                // A kick may have come for something else, or for a signal that another thread took.
                self.waiter.clear(Interrupts::SIGNAL);
                self.must_look.set(true);
                if !self.has_signal() {
                    continue;
                }
            }
            break end;
        };
        self.profile_end(began, || What::Wait);
        end
    }

    /// Runs the guest, unless there is something to see to first.
    pub(super) fn enter_guest(&mut self) -> Trap {
        sync::assert_no_lock_held();
        self.enter_trampoline();
        self.task.in_guest.store(true, Ordering::SeqCst);
        self.follow_moves();
        let kicked = self.waiter.parker().is_interrupted(Interrupts::ANY);
        let began = self.profile_begin();
        let trap = if kicked { Trap::Interrupted } else { self.context.run() };
        self.profile_end(began, || What::Guest);
        // A kick that still sees it set is one too many, no more.
        self.task.in_guest.store(false, Ordering::Release);
        if self.delegation.is_used {
            self.count_delegated_io();
        }
        if !kicked && matches!(trap, Trap::Interrupted) {
            self.counters.add(Event::Kick, 1);
        }
        trap
    }

    /// One host call in the guest's thread that may block: a kick interrupts it.
    pub fn blocking_host_call(&mut self, call: HostCall<'_>) -> Result<u64, HostCallError> {
        sync::assert_no_lock_held();
        let began = self.profile_begin();
        self.task.sleeping.store(true, Ordering::Relaxed);
        self.task.in_guest.store(true, Ordering::SeqCst);
        let result = match self.task.parker.get() {
            Some(parker) if parker.is_interrupted(Interrupts::ANY) => Err(HostCallError::Interrupted),
            _ => self.context.host_calls(&[call]).map_err(|failure: HostCallFailure| failure.error),
        };
        self.task.in_guest.store(false, Ordering::SeqCst);
        self.task.sleeping.store(false, Ordering::Relaxed);
        self.profile_end(began, || What::HostCalls { count: 1 });
        if result == Err(HostCallError::Interrupted) {
            self.counters.add(Event::Kick, 1);
        }
        result
    }

    /// Makes the calls in the guest's thread, in order, until one fails. They do not block.
    pub fn host_calls(&mut self, calls: &[HostCall<'_>]) -> SysResult<u64> {
        sync::assert_no_lock_held();
        loop {
            let began = self.profile_begin();
            let result = self.context.host_calls(calls).map_err(|failure| failure.error);
            let count = u32::try_from(calls.len()).unwrap_or(u32::MAX);
            self.profile_end(began, || What::HostCalls { count });
            match result {
                Ok(value) => return Ok(value),
                Err(HostCallError::Failed(errno)) => return Err(errno.into()),
                // The process is gone; the run loop will find out.
                Err(HostCallError::Died) => return Err(Errno::EFAULT.into()),
                // Calls that do not block are not interrupted half-way: do them again.
                Err(HostCallError::Interrupted) => continue,
            }
        }
    }

    /// Counts that the guest asked for what is not built: `call`, and what of it. Gives the error that a kernel
    /// without it has.
    pub fn not_built(&self, call: &'static str, what: &'static str, errno: Errno) -> SysError {
        self.kernel().stats.count_not_built(call, what);
        errno.into()
    }

    /// What it gave to `exit`.
    pub(crate) fn exit_code(&self) -> Option<i32> {
        self.exit_code
    }

    /// Forgets that a call was interrupted.
    pub fn no_restart(&mut self) {
        self.interrupted = None;
        self.restart_block = RestartBlock::None;
    }

    /// The time a relative time-out ends, from now on.
    pub fn deadline(span: std::time::Duration) -> Deadline {
        Instant::now().checked_add(span)
    }
}

impl Caller for CurrentTask {
    fn waiter(&self) -> &Waiter {
        &self.waiter
    }

    fn cred(&self) -> &Cred {
        &self.cred
    }

    fn file_size_limit(&self) -> u64 {
        self.limit(resource::FSIZE)
    }

    fn file_too_big(&self) {
        self.send_to_self(Signal::XFSZ);
    }

    fn broken_pipe(&self) {
        self.send_to_self(Signal::PIPE);
    }

    fn read_user(&self, from: UserAddr, into: &mut [u8]) -> SysResult<()> {
        self.mm.read_bytes(from, into)
    }

    fn write_user(&self, to: UserAddr, bytes: &[u8]) -> SysResult<()> {
        self.mm.write_bytes(to, bytes)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// The task behind a [`Caller`], for the kernel's own files.
pub fn current(caller: &dyn Caller) -> SysResult<&CurrentTask> {
    caller.as_any().downcast_ref().ok_or(SysError::Errno(Errno::EINVAL))
}

/// Waits as the task behind a [`Caller`] until `check` gives a value: a signal that is to be taken interrupts it.
pub fn wait_as<T>(
    caller: &dyn Caller,
    queues: &[&WaitQueue],
    deadline: Deadline,
    mut check: impl FnMut() -> Option<T>,
) -> Result<T, WaitEnd> {
    match current(caller) {
        Ok(task) => task.wait(queues, deadline, |_| check()),
        Err(_) => caller.waiter().wait(queues, deadline, check),
    }
}

thread_local! {
    /// The task that this kernel thread drives.
    static THIS_THREAD: RefCell<Weak<Task>> = const { RefCell::new(Weak::new()) };
}

/// The task that the calling kernel thread drives (Linux: `current`), for the few files whose readiness depends on who
/// asks (signalfd). `None` on the kernel's own threads.
pub fn task_of_this_thread() -> Option<Arc<Task>> {
    THIS_THREAD.with_borrow(Weak::upgrade)
}
