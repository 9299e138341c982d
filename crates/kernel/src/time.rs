//! Sleeping and time-outs.

use std::time::{Duration, Instant};

use abi::{Clock, Errno, TimerFlags, Timespec, UserAddr};
use sync::{SysError, SysResult, WaitEnd};

use crate::syscall::{In, Out};
use crate::task::CurrentTask;
use crate::task::run::RestartBlock;

/// A relative time of the guest's. `EINVAL`: negative, or nanoseconds out of range.
pub fn duration(time: Timespec) -> SysResult<Duration> {
    let nanos = u32::try_from(time.nsec).ok().filter(|nanos| *nanos < 1_000_000_000).ok_or(Errno::EINVAL)?;
    let seconds = u64::try_from(time.sec).map_err(|_| Errno::EINVAL)?;
    Ok(Duration::new(seconds, nanos))
}

/// A duration as the guest sees it.
pub fn timespec(time: Duration) -> Timespec {
    Timespec { sec: i64::try_from(time.as_secs()).unwrap_or(i64::MAX), nsec: i64::from(time.subsec_nanos()) }
}

/// A sleep that `restart_syscall` goes on with.
#[derive(Clone, Copy, Debug)]
pub struct SleepRestart {
    until: Instant,
    /// Where the time left is written when a handler runs.
    remaining: UserAddr,
}

pub fn sys_nanosleep(task: &mut CurrentTask, time: In<Timespec>, left: Out<Timespec>) -> SysResult<()> {
    let span = duration(task.mm.read(time.0)?)?;
    sleep_for(task, span, left.0)
}

fn sleep_for(task: &mut CurrentTask, span: Duration, remaining: UserAddr) -> SysResult<()> {
    // Beyond what the host's clock can tell is for ever.
    let until =
        Instant::now().checked_add(span).unwrap_or_else(|| Instant::now() + Duration::from_secs(1 << 32));
    sleep_until(task, SleepRestart { until, remaining })
}

fn sleep_until(task: &mut CurrentTask, sleep: SleepRestart) -> SysResult<()> {
    match task.wait(&[], Some(sleep.until), |_| None::<()>) {
        Ok(()) | Err(WaitEnd::TimedOut) => Ok(()),
        Err(WaitEnd::Interrupted(restart)) => {
            if !sleep.remaining.is_null() {
                let left = sleep.until.saturating_duration_since(Instant::now());
                task.mm.write(sleep.remaining, &timespec(left))?;
            }
            task.restart_block = RestartBlock::Sleep(sleep);
            Err(SysError::Restart(restart.block()))
        }
    }
}

pub(crate) fn restart_sleep(
    task: &mut CurrentTask,
    sleep: SleepRestart,
) -> SysResult<crate::syscall::Outcome> {
    sleep_until(task, sleep).map(crate::syscall::SyscallReturn::outcome)
}

pub fn sys_clock_nanosleep(
    task: &mut CurrentTask,
    clock: Clock,
    flags: TimerFlags,
    time: In<Timespec>,
    left: Out<Timespec>,
) -> SysResult<()> {
    let now = now(clock)?;
    let span = duration(task.mm.read(time.0)?)?;
    if !flags.contains(TimerFlags::ABSTIME) {
        return sleep_for(task, span, left.0);
    }
    let Some(wait) = span.checked_sub(now).filter(|wait| !wait.is_zero()) else { return Ok(()) };
    let until = Instant::now().checked_add(wait);
    match task.wait(&[], until, |_| None::<()>) {
        Ok(()) | Err(WaitEnd::TimedOut) => Ok(()),
        Err(WaitEnd::Interrupted(restart)) => Err(SysError::Restart(restart.no_handler())),
    }
}

/// The time on a clock that one can sleep on.
pub fn now(clock: Clock) -> SysResult<Duration> {
    let host = match clock {
        Clock::REALTIME | Clock::REALTIME_ALARM | Clock::TAI => rustix::time::ClockId::Realtime,
        Clock::MONOTONIC => rustix::time::ClockId::Monotonic,
        Clock::BOOTTIME | Clock::BOOTTIME_ALARM => rustix::time::ClockId::Boottime,
        _ => return Err(Errno::EINVAL.into()),
    };
    let time = rustix::time::clock_gettime(host);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    Ok(Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or(0)))
}
