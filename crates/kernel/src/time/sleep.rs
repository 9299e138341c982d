//! `nanosleep` and `clock_nanosleep`.

use std::time::{Duration, Instant};

use abi::{Clock, Errno, TimerFlags, Timespec, UserAddr};
use sync::{SysError, SysResult, WaitEnd};

use super::cpu::CpuTimer;
use super::{duration, now, timespec};
use crate::syscall::{In, Out};
use crate::task::CurrentTask;
use crate::task::run::RestartBlock;

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
    let cpu = sleep_clock(task, clock)?;
    let span = duration(task.mm.read(time.0)?)?;
    let absolute = flags.contains(TimerFlags::ABSTIME);
    if let Some(cpu) = cpu {
        return sleep_on_cpu_clock(task, &cpu, span, absolute);
    }
    if !absolute {
        return sleep_for(task, span, left.0);
    }
    let until = match span.checked_sub(now(clock)?).filter(|wait| !wait.is_zero()) {
        Some(wait) => Instant::now().checked_add(wait),
        None => return Ok(()),
    };
    match task.wait(&[], until, |_| None::<()>) {
        Ok(()) | Err(WaitEnd::TimedOut) => Ok(()),
        Err(WaitEnd::Interrupted(restart)) => Err(SysError::Restart(restart.no_handler())),
    }
}

/// The CPU clock to sleep on, if it is one. `EINVAL`: no such clock; `EOPNOTSUPP`: one that nobody can sleep on.
fn sleep_clock(task: &CurrentTask, clock: Clock) -> SysResult<Option<CpuTimer>> {
    match clock {
        Clock::REALTIME | Clock::MONOTONIC | Clock::BOOTTIME | Clock::TAI => Ok(None),
        Clock::MONOTONIC_RAW
        | Clock::REALTIME_COARSE
        | Clock::MONOTONIC_COARSE
        | Clock::THREAD_CPUTIME_ID
        | Clock::REALTIME_ALARM
        | Clock::BOOTTIME_ALARM => Err(Errno::EOPNOTSUPP.into()),
        clock => match CpuTimer::find(task, clock)? {
            // Linux: a thread that sleeps on its own clock would never wake.
            Some(cpu) if cpu.is_thread(&task.task) => Err(Errno::EINVAL.into()),
            Some(cpu) => Ok(Some(cpu)),
            None => Err(Errno::EINVAL.into()),
        },
    }
}

/// Sleeps until other threads have used so much CPU time.
fn sleep_on_cpu_clock(
    task: &CurrentTask,
    cpu: &CpuTimer,
    span: std::time::Duration,
    absolute: bool,
) -> SysResult<()> {
    let until = if absolute { span } else { cpu.now(task.kernel()).saturating_add(span) };
    let mut poll = super::cpu::Poll::default();
    loop {
        let now = cpu.now(task.kernel());
        if now >= until {
            return Ok(());
        }
        let soon = Instant::now().checked_add(poll.delay(until - now, now, cpu.threads(task.kernel())));
        match task.wait(&[], soon, |_| None::<()>) {
            Ok(()) | Err(WaitEnd::TimedOut) => {}
            Err(WaitEnd::Interrupted(_)) if !absolute => return Err(Errno::EINTR.into()),
            Err(WaitEnd::Interrupted(restart)) => return Err(SysError::Restart(restart.no_handler())),
        }
    }
}
