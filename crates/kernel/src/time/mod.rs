//! Time: clocks, sleeping, timers.
//!
//! `clock.rs` reads clocks, `sleep.rs` sleeps, `queue.rs` is the one thread that all timers share. On it stand interval
//! timers (`itimer.rs`), timers of `timer_create` (`posix.rs`), timerfds (`timerfd.rs`), and the timers on CPU clocks
//! that `cpu.rs` polls. A [`Schedule`] says when a timer goes off.
//!
//! Lock levels: `Buffer` (a timerfd) or `GroupTimers` (a process's timers), then `Timers` (the queue).

pub mod clock;
mod cpu;
mod cpu_limit;
pub mod group;
pub mod itimer;
pub mod posix;
pub mod queue;
mod schedule;
pub mod sleep;
mod timer;
pub mod timerfd;

use std::time::Duration;

use abi::{Clock, Errno, Timespec};
use sync::SysResult;

pub(crate) use schedule::{Schedule, Setting};
pub(crate) use sleep::{SleepRestart, restart_sleep};

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

/// The time on a clock that one can sleep on. `EINVAL` for others.
pub fn now(clock: Clock) -> SysResult<Duration> {
    let host = match clock {
        Clock::REALTIME | Clock::REALTIME_ALARM => rustix::time::ClockId::Realtime,
        Clock::TAI => return Ok(clock::tai()),
        Clock::MONOTONIC => rustix::time::ClockId::Monotonic,
        Clock::BOOTTIME | Clock::BOOTTIME_ALARM => rustix::time::ClockId::Boottime,
        _ => return Err(Errno::EINVAL.into()),
    };
    Ok(clock::host_time(host))
}

/// What a relative time on this clock is measured by: a clock that nobody sets.
fn relative_clock(clock: Clock) -> Clock {
    match clock {
        Clock::REALTIME | Clock::REALTIME_ALARM | Clock::TAI => Clock::MONOTONIC,
        clock => clock,
    }
}
