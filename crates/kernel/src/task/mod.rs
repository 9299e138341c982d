//! Tasks: guest threads as the kernel knows them.
//!
//! - [`Task`]: what any kernel thread may know of a guest thread.
//! - [`CurrentTask`]: the handle that only its own kernel thread holds: registers, memory, files.
//! - [`ThreadGroup`]: a guest process. [`Tasks`] is the table of all of them, with their family links.
//! - `run.rs`: the whole life of a guest thread.
//!
//! Lock levels: `Tasks`, then a group's `Signals`, a task's `TaskSignals`, `Handlers`, `TaskShared`.

mod current;
pub mod exit;
pub mod fork;
mod group;
mod here;
pub mod ids;
mod pid_table;
pub mod pidfd;
pub mod process_group;
pub mod run;
pub(crate) mod threads;
mod trap;
pub mod unshare;
pub mod wait;

use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use abi::SigSet;
use platform::{Interrupter, Meter, OwnWords, SharedWords};
use sync::{Interrupts, Mutex, Parker, order};
use vfs::Cred;

pub use current::{CurrentTask, current, task_of_this_thread, wait_as};
pub use group::{GroupExit, ThreadGroup};
pub use pid_table::{GroupEntry, INIT_PID, PID_MAX, Tasks, TasksInner, Zombie};

use crate::fs::delegation::TaskHolder;
use crate::fs::{Files, Fs};
use crate::kernel::Kernel;
use crate::mm::Mm;
use crate::resource::IoCounters;
use crate::sched::Scheduling;
use crate::signal::{Handlers, PendingSignals};

/// Slack of init's timers, in nanoseconds.
const TIMER_SLACK_NS: u64 = 50_000;

/// A guest thread, as others see it. Aligned so that what its thread writes at each call (`in_guest`) shares no cache
/// line with another task's.
#[repr(align(128))]
pub struct Task {
    pub kernel: Arc<Kernel>,
    /// Its thread id. Changes once at most: when it execs without being the leader.
    tid: AtomicI32,
    pub group: Arc<ThreadGroup>,
    pub shared: Mutex<order::TaskShared, TaskShared>,
    /// The signals that it blocks while `sigtimedwait` waits for them: they end and ignore nothing meanwhile (Linux:
    /// `real_blocked`).
    waited_for: AtomicU64,
    /// Signals sent to this thread alone. Locked below the group's signal lock.
    pub pending: Mutex<order::TaskSignals, PendingSignals>,
    parker: OnceLock<Arc<Parker>>,
    interrupter: Mutex<order::Leaf, Option<Arc<dyn Interrupter>>>,
    /// Its kernel thread is in `Context::run` (or a blocking host call): kicks go to the platform too.
    in_guest: AtomicBool,
    /// What `Mm::moved` was when its guest last began to run.
    pub(crate) has_left: AtomicU64,
    /// What its guest and the kernel both change. Another while it has no guest thread, and when it execs in a fresh process.
    words: Mutex<order::Leaf, Arc<dyn SharedWords>>,
    /// What takes away the files that it was handed.
    pub(crate) holder: Mutex<order::Leaf, Option<Arc<TaskHolder>>>,
    /// It blocks in a host call.
    sleeping: AtomicBool,
    /// It is ending, and with it its host thread.
    pub(crate) leaving: AtomicBool,
    /// `PR_SET_PDEATHSIG`: the signal it gets when the thread that made it ends; 0 for none.
    pub parent_death_signal: AtomicI32,
    /// `PR_SET_TIMERSLACK`, and what 0 resets it to.
    pub timer_slack_ns: AtomicU64,
    pub default_timer_slack_ns: AtomicU64,
    pub scheduling: Mutex<order::Leaf, Scheduling>,
    /// Its own thread is to have the host threads follow `scheduling`.
    pub(crate) scheduling_changed: AtomicBool,
    /// The head of its robust futexes (`set_robust_list`).
    pub(crate) robust_list: AtomicU64,
    /// What it has read and written.
    pub io: IoCounters,
    /// What its guest thread has used.
    pub(crate) meter: Mutex<order::Leaf, Option<Arc<dyn Meter>>>,
    /// Host tid of its kernel thread, 0 before there is one.
    pub(crate) kernel_thread: AtomicI32,
    /// CPU time that that had used before.
    pub(crate) kernel_time_before_ns: AtomicU64,
}

/// What a task shows to others and others may hold on to: its memory, files, credentials, name.
#[derive(Clone)]
pub struct TaskShared {
    /// `None` once it has exited.
    pub mm: Option<Arc<Mm>>,
    pub files: Option<Arc<Files>>,
    pub fs: Option<Arc<Fs>>,
    pub handlers: Arc<Handlers>,
    pub cred: Arc<Cred>,
    /// `comm`, up to 15 bytes.
    pub name: Vec<u8>,
}

impl Task {
    pub fn new(
        kernel: Arc<Kernel>,
        tid: i32,
        group: Arc<ThreadGroup>,
        shared: TaskShared,
        blocked: SigSet,
    ) -> Arc<Task> {
        Arc::new(Task {
            kernel,
            tid: AtomicI32::new(tid),
            group,
            shared: Mutex::new(shared),
            waited_for: AtomicU64::new(0),
            pending: Mutex::default(),
            parker: OnceLock::new(),
            interrupter: Mutex::new(None),
            in_guest: AtomicBool::new(false),
            has_left: AtomicU64::new(0),
            words: Mutex::new(Arc::new(OwnWords::new(blocked.0))),
            holder: Mutex::new(None),
            sleeping: AtomicBool::new(false),
            leaving: AtomicBool::new(false),
            parent_death_signal: AtomicI32::new(0),
            timer_slack_ns: AtomicU64::new(TIMER_SLACK_NS),
            default_timer_slack_ns: AtomicU64::new(TIMER_SLACK_NS),
            scheduling: Mutex::default(),
            scheduling_changed: AtomicBool::new(false),
            robust_list: AtomicU64::new(0),
            io: IoCounters::default(),
            meter: Mutex::new(None),
            kernel_thread: AtomicI32::new(0),
            kernel_time_before_ns: AtomicU64::new(0),
        })
    }

    /// Takes from the task that makes it what is inherited by clone.
    pub(crate) fn inherit(&self, parent: &Task) {
        let slack = parent.timer_slack_ns.load(Ordering::Relaxed);
        self.timer_slack_ns.store(slack, Ordering::Relaxed);
        self.default_timer_slack_ns.store(slack, Ordering::Relaxed);
        // Its registers are its parent's.
        self.has_left.store(parent.has_left.load(Ordering::SeqCst), Ordering::SeqCst);
        let scheduling = parent.scheduling.lock().for_child();
        *self.scheduling.lock() = scheduling;
    }

    pub fn tid(&self) -> i32 {
        self.tid.load(Ordering::Relaxed)
    }

    pub(crate) fn set_tid(&self, tid: i32) {
        self.tid.store(tid, Ordering::Relaxed);
    }

    /// The signals that it blocks: its own word, never `SIGKILL` and `SIGSTOP`. While its guest runs, it may change them.
    pub fn blocked(&self) -> SigSet {
        SigSet(self.words().blocked()).difference(SigSet::UNBLOCKABLE)
    }

    /// The signals that are kept for it whatever their action: blocked, or waited for.
    pub(crate) fn kept(&self) -> SigSet {
        self.blocked().union(SigSet(self.waited_for.load(Ordering::SeqCst)))
    }

    /// Says which blocked signals `sigtimedwait` waits for.
    pub(crate) fn set_waited_for(&self, set: SigSet) {
        self.waited_for.store(set.0, Ordering::SeqCst);
    }

    /// Replaces them. Only its own thread does so; `SIGKILL` and `SIGSTOP` are never blocked.
    pub(crate) fn set_blocked(&self, set: SigSet) {
        self.words().set_blocked(set.difference(SigSet::UNBLOCKABLE).0);
    }

    pub fn cred(&self) -> Arc<Cred> {
        self.shared.lock().cred.clone()
    }

    /// Whether it sleeps (for /proc).
    pub fn is_asleep(&self) -> bool {
        if self.in_guest.load(Ordering::Relaxed) && !self.sleeping.load(Ordering::Relaxed) {
            let meter = self.meter.lock().clone();
            return meter.is_some_and(|meter| meter.sleeps());
        }
        self.sleeping.load(Ordering::Relaxed) || self.parker.get().is_some_and(|parker| parker.is_asleep())
    }

    /// Makes its kernel thread look for signals and other work before the guest goes on.
    pub fn kick(&self) {
        self.interrupt(Interrupts::SIGNAL);
    }

    /// What its guest and the kernel both change.
    pub(crate) fn words(&self) -> Arc<dyn SharedWords> {
        self.words.lock().clone()
    }

    /// Goes over to other words, with the same signals blocked and the same alternate stack.
    pub(crate) fn set_words(&self, words: Arc<dyn SharedWords>) {
        words.set_blocked(self.blocked().0);
        words.set_alternate_stack(&self.words().alternate_stack());
        let old = std::mem::replace(&mut *self.words.lock(), words);
        drop(old);
    }

    /// Takes back the files that it was handed.
    pub(crate) fn withdraw_delegations(&self) {
        let holder = self.holder.lock().clone();
        if let Some(holder) = holder {
            holder.withdraw_all();
        }
    }

    /// Makes its guest come to the kernel once, if it runs.
    pub(crate) fn call_in(&self) {
        if self.runs_guest() {
            let interrupter = self.interrupter.lock().clone();
            if let Some(interrupter) = interrupter {
                interrupter.interrupt();
            }
        }
    }

    /// Whether its guest's own code may be running.
    pub(crate) fn runs_guest(&self) -> bool {
        self.in_guest.load(Ordering::SeqCst) && !self.sleeping.load(Ordering::SeqCst)
    }

    /// Makes its kernel thread leave also waits that signals do not end.
    pub fn kick_to_end(&self) {
        self.interrupt(Interrupts::KILL);
    }

    /// The same when its group ends: nor does its guest keep it for long, whatever that does.
    pub(crate) fn kick_with_group(&self) {
        self.kick_to_end();
        let interrupter = self.interrupter.lock().clone();
        if let Some(interrupter) = interrupter {
            interrupter.interrupt_to_end();
        }
    }

    fn interrupt(&self, why: Interrupts) {
        // Without a parker the thread has not begun; it looks for work before it enters the guest.
        let Some(parker) = self.parker.get() else { return };
        parker.interrupt(why);
        // SeqCst on both sides: either the thread sees the interrupt before it enters, or we see it inside.
        if self.in_guest.load(Ordering::SeqCst) {
            let interrupter = self.interrupter.lock().clone();
            if let Some(interrupter) = interrupter {
                interrupter.interrupt();
            }
        }
    }
}
