//! Scheduling as guests see it: policies, priorities, the CPUs that a thread may use.
//!
//! The host schedules. What a guest asks for is kept and told back by Linux's rules. The set of CPUs is also applied to
//! the host threads, and niceness to the guest's own, as far as the host lets it: without privileges a thread gets only
//! nicer. The kernel's threads keep theirs: one that holds a lock must not wait for a CPU behind everybody. Policies
//! (real-time, batch, idle) are only told back.

pub mod affinity;
pub mod io_priority;
pub mod membarrier;
pub mod policy;
pub mod priority;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use abi::SchedPolicy;
use vfs::{Capability, Cred};

pub use affinity::CpuMask;

use crate::syscall::Pid;
use crate::task::{CurrentTask, Task};

/// How a task is scheduled.
#[derive(Clone, Copy, Debug, Default)]
pub struct Scheduling {
    pub policy: SchedPolicy,
    /// 1 to 99 under the real-time policies, else 0.
    pub rt_priority: i32,
    /// -20 to 19.
    pub nice: i32,
    /// Children begin with the usual policy (`SCHED_RESET_ON_FORK`).
    pub reset_on_fork: bool,
    /// The CPUs it may use; `None`: all that there are.
    pub cpus: Option<CpuMask>,
    /// As `ioprio_get` gives it; 0: by its niceness.
    pub io_priority: i32,
}

impl Scheduling {
    /// What a child begins with (Linux: `sched_fork`).
    pub fn for_child(&self) -> Scheduling {
        let mut child = *self;
        if self.reset_on_fork {
            let is_fair = matches!(self.policy, SchedPolicy::NORMAL | SchedPolicy::BATCH | SchedPolicy::IDLE);
            if !is_fair {
                child.policy = SchedPolicy::NORMAL;
                child.rt_priority = 0;
                child.nice = 0;
            } else if self.nice < 0 {
                child.nice = 0;
            }
            child.reset_on_fork = false;
        }
        child
    }

    /// As the host's `/proc/PID/stat` counts: 0 to 39, or below -1 for the real-time policies.
    pub fn proc_priority(&self) -> i32 {
        if self.rt_priority > 0 { -1 - self.rt_priority } else { 20 + self.nice }
    }
}

/// Linux: `check_same_owner`.
fn is_same_owner(own: &Cred, target: &Cred) -> bool {
    own.euid == target.euid || own.euid == target.uid
}

/// Whether niceness may become this much for somebody with that `RLIMIT_NICE` (Linux: `can_nice`).
fn may_take_nice(cred: &Cred, limit: u64, nice: i32) -> bool {
    u64::try_from(20 - nice).unwrap_or(0) <= limit || cred.capable(Capability::SYS_NICE)
}

impl CurrentTask {
    /// Has the host threads of `target` follow its [`Scheduling`], which has changed: at once, or by its own thread soon.
    fn apply_scheduling_of(&mut self, target: &Task) {
        target.scheduling_changed.store(true, Ordering::SeqCst);
        if target.tid() == self.tid() {
            self.follow_scheduling();
        } else {
            target.kick();
        }
    }

    /// Does what others, or this task itself, have asked for of its host threads.
    pub(crate) fn follow_scheduling(&mut self) {
        if !self.task.scheduling_changed.load(Ordering::SeqCst) {
            return;
        }
        self.task.scheduling_changed.store(false, Ordering::SeqCst);
        self.apply_scheduling();
    }

    /// Has host threads that are new follow what is not as usual.
    pub(crate) fn apply_unusual_scheduling(&mut self) {
        let scheduling = *self.task.scheduling.lock();
        if scheduling.cpus.is_some() || scheduling.nice != 0 {
            self.apply_scheduling();
        }
    }

    fn apply_scheduling(&mut self) {
        self.apply_affinity();
        let nice = self.task.scheduling.lock().nice;
        self.context.set_nice(nice);
    }

    /// The task of this thread's id; 0 is the caller.
    fn task_by_id(&self, tid: Pid) -> Option<Arc<Task>> {
        match tid.0 {
            0 => Some(self.task.clone()),
            tid => self.kernel().tasks.task_or_leader(tid),
        }
    }
}
