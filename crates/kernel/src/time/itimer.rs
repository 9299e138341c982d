//! `setitimer`, `getitimer`, `alarm`.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use abi::{Clock, Errno, ItimerWhich, Itimerspec, Itimerval, NSEC_PER_SEC, Signal, Timespec, Timeval};
use sync::SysResult;

use super::Setting;
use super::cpu::{Counts, CpuTimer};
use super::timer::{Effect, Timer, TimerClock};
use crate::syscall::{In, Out};
use crate::task::CurrentTask;

impl CurrentTask {
    fn itimer(&self, which: ItimerWhich) -> SysResult<Arc<Timer>> {
        let group = self.group();
        let make = |slot: &OnceLock<Arc<Timer>>, clock, signal| {
            slot.get_or_init(|| Timer::new(self.kernel(), group, clock, Effect::Itimer(signal))).clone()
        };
        let cpu = |counts| TimerClock::Cpu(CpuTimer::of_process(group, counts));
        match which {
            ItimerWhich::REAL => {
                Ok(make(&group.timers.real, TimerClock::Host(Clock::MONOTONIC), Signal::ALRM))
            }
            ItimerWhich::VIRTUAL => Ok(make(&group.timers.virtual_time, cpu(Counts::User), Signal::VTALRM)),
            ItimerWhich::PROF => Ok(make(&group.timers.profiling, cpu(Counts::All), Signal::PROF)),
            _ => Err(Errno::EINVAL.into()),
        }
    }
}

/// As the guest is told: microseconds, at least one while the timer runs.
fn to_itimerval(spec: &Itimerspec) -> Itimerval {
    let timeval = |time: Timespec| Timeval { sec: time.sec, usec: time.nsec / 1000 };
    let mut value = timeval(spec.value);
    if spec.value != Timespec::default() && value == Timeval::default() {
        value.usec = 1;
    }
    Itimerval { interval: timeval(spec.interval), value }
}

fn span(time: Timeval) -> SysResult<Duration> {
    if !time.is_valid() {
        return Err(Errno::EINVAL.into());
    }
    super::duration(Timespec { sec: time.sec, nsec: time.usec * 1000 })
}

pub fn sys_getitimer(task: &mut CurrentTask, which: ItimerWhich, value: Out<Itimerval>) -> SysResult<()> {
    let found = to_itimerval(&task.itimer(which)?.get());
    task.mm.write(value.0, &found)
}

/// A null new value means zero (Linux still takes it, with a warning in its log).
pub fn sys_setitimer(
    task: &mut CurrentTask,
    which: ItimerWhich,
    new: In<Itimerval>,
    old: Out<Itimerval>,
) -> SysResult<()> {
    let new: Itimerval = if new.is_null() { Itimerval::default() } else { task.mm.read(new.0)? };
    let setting = Setting::relative(span(new.value)?, span(new.interval)?);
    let before = to_itimerval(&task.itimer(which)?.set(&setting));
    if old.is_null() { Ok(()) } else { task.mm.write(old.0, &before) }
}

/// Gives the seconds that were left, rounded to the nearest but to one at least.
pub fn sys_alarm(task: &mut CurrentTask, seconds: u32) -> SysResult<u32> {
    let setting = Setting::relative(Duration::from_secs(u64::from(seconds)), Duration::ZERO);
    let left = task.itimer(ItimerWhich::REAL)?.set(&setting).value;
    let half = i64::try_from(NSEC_PER_SEC / 2).unwrap_or(i64::MAX);
    let rounds_up = left.nsec >= half || (left.sec == 0 && left.nsec > 0);
    Ok(u32::try_from(left.sec + i64::from(rounds_up)).unwrap_or(u32::MAX))
}
