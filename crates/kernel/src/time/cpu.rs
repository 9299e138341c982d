//! CPU clocks: the time that a process or thread has used.

use std::sync::{Arc, Weak};
use std::time::Duration;

use abi::{Clock, CpuClock, Errno};
use sync::SysResult;

use crate::kernel::Kernel;
use crate::task::{CurrentTask, Task, ThreadGroup};

/// Which time is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Counts {
    /// In the guest's own code.
    User,
    /// That and in the kernel.
    All,
}

/// A process's or thread's CPU clock.
#[derive(Clone)]
pub(crate) struct CpuTimer {
    of: Of,
    counts: Counts,
    /// Tells ticks only (`CPUCLOCK_PROF`, `CPUCLOCK_VIRT`).
    coarse: bool,
}

#[derive(Clone)]
enum Of {
    Process(Weak<ThreadGroup>),
    Thread(Weak<Task>),
}

impl CpuTimer {
    /// The clock of a whole process.
    pub(crate) fn of_process(group: &Arc<ThreadGroup>, counts: Counts) -> CpuTimer {
        CpuTimer { of: Of::Process(Arc::downgrade(group)), counts, coarse: false }
    }

    /// The clock that a number names: of the caller, or of another. `None`: it is no CPU clock. `EINVAL`: there is no
    /// such process, or no such thread in the caller's.
    pub(crate) fn find(task: &CurrentTask, clock: Clock) -> SysResult<Option<CpuTimer>> {
        let named = match clock {
            Clock::PROCESS_CPUTIME_ID => return Ok(Some(CpuTimer::of_process(task.group(), Counts::All))),
            Clock::THREAD_CPUTIME_ID => {
                return Ok(Some(CpuTimer {
                    of: Of::Thread(Arc::downgrade(&task.task)),
                    counts: Counts::All,
                    coarse: false,
                }));
            }
            clock => match clock.cpu_clock() {
                Some(named) => named,
                None => return Ok(None),
            },
        };
        let (counts, coarse) = match named.which {
            0 => (Counts::All, true),
            1 => (Counts::User, true),
            2 => (Counts::All, false),
            _ => return Err(Errno::EINVAL.into()),
        };
        Ok(Some(CpuTimer { of: find_owner(task, named)?, counts, coarse }))
    }

    /// The time now; what is gone stands still at zero.
    pub(crate) fn now(&self, kernel: &Kernel) -> Duration {
        let usage = match &self.of {
            Of::Process(group) => group.upgrade().map(|group| kernel.group_usage(&group)),
            Of::Thread(task) => task.upgrade().map(|task| task.usage()),
        };
        let usage = usage.unwrap_or_default();
        match self.counts {
            Counts::User => usage.user,
            Counts::All => usage.user + usage.system,
        }
    }

    /// Whether it is this very thread's.
    pub(crate) fn is_thread(&self, task: &Arc<Task>) -> bool {
        matches!(&self.of, Of::Thread(of) if std::ptr::eq(of.as_ptr(), Arc::as_ptr(task)))
    }

    /// How many threads may drive it on at once.
    pub(crate) fn threads(&self, kernel: &Kernel) -> u32 {
        let threads = match &self.of {
            Of::Process(group) => group.upgrade().map_or(1, |group| kernel.tasks.threads(group.pid).len()),
            Of::Thread(_) => 1,
        };
        u32::try_from(threads).unwrap_or(u32::MAX).max(1)
    }

    /// Its resolution (Linux: `posix_cpu_clock_getres`).
    pub(crate) fn resolution(&self) -> Duration {
        if self.coarse { Duration::from_millis(4) } else { Duration::from_nanos(1) }
    }
}

/// Linux: `pid_for_clock`.
fn find_owner(task: &CurrentTask, named: CpuClock) -> SysResult<Of> {
    if named.per_thread {
        let thread = match named.pid {
            0 => task.task.clone(),
            tid => task.kernel().tasks.task(tid).ok_or(Errno::EINVAL)?,
        };
        if !Arc::ptr_eq(&thread.group, task.group()) {
            return Err(Errno::EINVAL.into());
        }
        return Ok(Of::Thread(Arc::downgrade(&thread)));
    }
    let group = match named.pid {
        0 => task.group().clone(),
        pid if pid == task.tid() => task.group().clone(),
        pid => task.kernel().tasks.group(pid).ok_or(Errno::EINVAL)?,
    };
    Ok(Of::Process(Arc::downgrade(&group)))
}

/// The least and the longest time between two looks at a CPU clock. Linux looks at each tick, of 4 ms.
const SHORTEST_LOOK: Duration = Duration::from_millis(1);
const LONGEST_LOOK: Duration = Duration::from_millis(50);

/// When to look at a CPU clock again: often while it moves, seldom while it stands.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Poll {
    seen: Duration,
    pause: Duration,
}

impl Poll {
    /// How long until the next look, when `left` is missing and the clock shows `now`.
    pub(crate) fn delay(&mut self, left: Duration, now: Duration, threads: u32) -> Duration {
        let stands = now == self.seen;
        self.seen = now;
        self.pause =
            if stands { (self.pause * 2).clamp(SHORTEST_LOOK, LONGEST_LOOK) } else { Duration::ZERO };
        (left / threads).max(SHORTEST_LOOK).max(self.pause)
    }
}
