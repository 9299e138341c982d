//! `getrusage`, `times`, and where their numbers come from.
//!
//! A guest's user time is that of its host threads in the guest's code. Its system time is that of the same threads in
//! the host, and that of the kernel's threads which serve its calls.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use abi::{Errno, Rusage, RusageWho, Tms};
use platform::{HostUsage, Meter};
use sync::SysResult;

use super::{Usage, ticks};
use crate::syscall::Out;
use crate::task::{CurrentTask, Task, ThreadGroup};

impl From<HostUsage> for Usage {
    fn from(host: HostUsage) -> Usage {
        Usage {
            user: host.user,
            system: host.system,
            max_resident: host.max_resident_kib,
            minor_faults: host.minor_faults,
            major_faults: host.major_faults,
            voluntary_switches: host.voluntary_switches,
            involuntary_switches: host.involuntary_switches,
            ..Usage::default()
        }
    }
}

/// CPU time of the calling kernel thread.
pub(crate) fn this_threads_time() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(u64::try_from(now.tv_sec).unwrap_or(0), u32::try_from(now.tv_nsec).unwrap_or(0))
}

/// Bytes read from and written to the host's storage.
pub(crate) type StorageBytes = (u64, u64);

impl Task {
    /// What this thread has used.
    pub fn usage(&self) -> Usage {
        let meter = self.meter.lock().clone();
        let mut usage = meter.map(|meter| Usage::from(meter.read())).unwrap_or_default();
        usage.system += self.kernel_time();
        usage.io = self.io.get();
        usage
    }

    /// CPU time that its kernel thread has used for it, beside what the guest's thread has used.
    pub(crate) fn kernel_time(&self) -> Duration {
        match self.kernel_thread.load(Ordering::Relaxed) {
            0 => Duration::ZERO,
            tid => {
                let before = Duration::from_nanos(self.kernel_time_before_ns.load(Ordering::Relaxed));
                let now = host::clock::thread_cpu_time(tid).unwrap_or_default();
                now.saturating_sub(before).saturating_sub(self.doubled(now))
            }
        }
    }

    /// What of `now`, the CPU time of its kernel thread, is in the guest's as well.
    fn doubled(&self, now: Duration) -> Duration {
        let meter = self.meter.lock().clone();
        meter.map_or(Duration::ZERO, |meter| meter.doubled(now))
    }

    /// On its kernel thread: what its guest's thread has used is told by another meter from now on.
    pub(crate) fn set_meter(&self, meter: Arc<dyn Meter>) {
        let doubled = u64::try_from(self.doubled(this_threads_time()).as_nanos()).unwrap_or(u64::MAX);
        self.kernel_time_before_ns.fetch_add(doubled, Ordering::Relaxed);
        *self.meter.lock() = Some(meter);
    }
}

impl ThreadGroup {
    /// What the process has used: its host process now, host processes before that, and the kernel's threads.
    pub fn usage_of(&self, threads: &[Arc<Task>]) -> Usage {
        let mut usage = self.usage.lock().own();
        let space =
            threads.first().and_then(|task| task.shared.lock().mm.as_ref().map(|mm| mm.space.clone()));
        if let Some(space) = space {
            usage.add(&Usage::from(space.usage()));
        }
        for thread in threads {
            usage.system += thread.kernel_time();
            usage.io.add(&thread.io.get());
        }
        usage
    }
}

impl CurrentTask {
    /// What its process has used so far.
    pub fn group_usage(&self) -> Usage {
        self.group().usage_of(&self.kernel().tasks.threads(self.pid()))
    }

    /// CPU time of its process, for clocks and limits: user and system.
    pub fn process_cpu_time(&self) -> Duration {
        let usage = self.group_usage();
        usage.user + usage.system
    }

    /// CPU time of this thread.
    pub fn thread_cpu_time(&self) -> Duration {
        let usage = self.task.usage();
        usage.user + usage.system
    }
}

pub fn sys_getrusage(task: &mut CurrentTask, who: RusageWho, usage: Out<Rusage>) -> SysResult<()> {
    let found = match who {
        RusageWho::SELF => task.group_usage(),
        RusageWho::THREAD => task.task.usage(),
        RusageWho::CHILDREN => task.group().usage.lock().children,
        _ => return Err(Errno::EINVAL.into()),
    };
    task.mm.write(usage.0, &found.to_rusage())
}

/// The result is the time since the host started, in clock ticks.
pub fn sys_times(task: &mut CurrentTask, times: Out<Tms>) -> SysResult<i64> {
    if !times.is_null() {
        let (own, children) = (task.group_usage(), task.group().usage.lock().children);
        let tms = Tms {
            utime: own.user_ticks(),
            stime: own.system_ticks(),
            cutime: children.user_ticks(),
            cstime: children.system_ticks(),
        };
        task.mm.write(times.0, &tms)?;
    }
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    let since_boot =
        Duration::new(u64::try_from(now.tv_sec).unwrap_or(0), u32::try_from(now.tv_nsec).unwrap_or(0));
    Ok(ticks(since_boot))
}
