//! Reading clocks, and refusing to set them: the host's time is not the guest's to move.

use std::time::Duration;

use abi::{Clock, Errno, Timespec, Timeval, Timex, TimexModes, Timezone};
use rustix::time::ClockId;
use sync::SysResult;
use vfs::Capability;
use zerocopy::FromBytes;

use super::cpu::CpuTimer;
use super::{duration, timespec};
use crate::syscall::{In, InOut, Out};
use crate::task::CurrentTask;

/// The time on one of the host's clocks.
pub(super) fn host_time(clock: ClockId) -> Duration {
    to_duration(rustix::time::clock_gettime(clock))
}

/// International atomic time, as far as the host has been told how far it is from its own.
pub(super) fn tai() -> Duration {
    use rustix::time::{DynamicClockId, clock_gettime_dynamic};
    // Linux has had it since 3.10.
    clock_gettime_dynamic(DynamicClockId::Tai).map_or_else(|_| host_time(ClockId::Realtime), to_duration)
}

fn to_duration(time: rustix::time::Timespec) -> Duration {
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// The host's clock that is the guest's too. `EINVAL`: there is none. The alarm clocks need a clock chip that
/// goes on while the machine sleeps, which guests do not have.
fn host_clock(clock: Clock) -> SysResult<ClockId> {
    Ok(match clock {
        Clock::REALTIME => ClockId::Realtime,
        Clock::MONOTONIC => ClockId::Monotonic,
        Clock::MONOTONIC_RAW => ClockId::MonotonicRaw,
        Clock::REALTIME_COARSE => ClockId::RealtimeCoarse,
        Clock::MONOTONIC_COARSE => ClockId::MonotonicCoarse,
        Clock::BOOTTIME => ClockId::Boottime,
        _ => return Err(Errno::EINVAL.into()),
    })
}

pub fn sys_clock_gettime(task: &mut CurrentTask, clock: Clock, time: Out<Timespec>) -> SysResult<()> {
    let now = match CpuTimer::find(task, clock)? {
        Some(cpu) => cpu.now(task.kernel()),
        None if clock == Clock::TAI => tai(),
        None => host_time(host_clock(clock)?),
    };
    task.mm.write(time.0, &timespec(now))
}

pub fn sys_clock_getres(task: &mut CurrentTask, clock: Clock, resolution: Out<Timespec>) -> SysResult<()> {
    let found = match CpuTimer::find(task, clock)? {
        Some(cpu) => cpu.resolution(),
        None if clock == Clock::TAI => to_duration(rustix::time::clock_getres(ClockId::Realtime)),
        None => to_duration(rustix::time::clock_getres(host_clock(clock)?)),
    };
    if resolution.is_null() { Ok(()) } else { task.mm.write(resolution.0, &timespec(found)) }
}

pub fn sys_clock_settime(task: &mut CurrentTask, clock: Clock, time: In<Timespec>) -> SysResult<()> {
    let named_cpu_clock = clock.0 < 0 && CpuTimer::find(task, clock)?.is_some();
    if clock != Clock::REALTIME && !named_cpu_clock {
        return Err(Errno::EINVAL.into());
    }
    let time: Timespec = task.mm.read(time.0)?;
    if clock == Clock::REALTIME {
        duration(time)?;
    }
    Err(Errno::EPERM.into())
}

pub fn sys_gettimeofday(task: &mut CurrentTask, time: Out<Timeval>, zone: Out<Timezone>) -> SysResult<()> {
    if !time.is_null() {
        let now = host_time(ClockId::Realtime);
        let sec = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
        task.mm.write(time.0, &Timeval { sec, usec: i64::from(now.subsec_micros()) })?;
    }
    if !zone.is_null() {
        task.mm.write(zone.0, &Timezone::default())?;
    }
    Ok(())
}

pub fn sys_settimeofday(task: &mut CurrentTask, time: In<Timeval>, zone: In<Timezone>) -> SysResult<()> {
    if !time.is_null() {
        let time: Timeval = task.mm.read(time.0)?;
        if !time.is_valid() {
            return Err(Errno::EINVAL.into());
        }
    }
    if !zone.is_null() {
        task.mm.read::<Timezone>(zone.0)?;
    }
    Err(Errno::EPERM.into())
}

/// Linux reads the coarse clock: the second may be a tick late.
pub fn sys_time(task: &mut CurrentTask, time: Out<i64>) -> SysResult<i64> {
    let now = i64::try_from(host_time(ClockId::RealtimeCoarse).as_secs()).unwrap_or(i64::MAX);
    if !time.is_null() {
        task.mm.write(time.0, &now)?;
    }
    Ok(now)
}

pub fn sys_adjtimex(task: &mut CurrentTask, timex: InOut<Timex>) -> SysResult<i32> {
    let asked: Timex = task.mm.read(timex.0)?;
    let only_reads = asked.modes.is_empty() || asked.modes == TimexModes::OFFSET_SS_READ;
    if !only_reads {
        return Err(Errno::EPERM.into());
    }
    let (state, bytes) = host::timex::read().map_err(|_| Errno::EPERM)?;
    let found = Timex::read_from_bytes(&bytes).map_err(|_| Errno::EINVAL)?;
    task.mm.write(timex.0, &Timex { modes: asked.modes, ..found })?;
    Ok(state)
}

pub fn sys_clock_adjtime(task: &mut CurrentTask, clock: Clock, timex: InOut<Timex>) -> SysResult<i32> {
    if clock != Clock::REALTIME {
        // Linux: EINVAL for what is no clock, EOPNOTSUPP for one that cannot be adjusted.
        task.mm.read::<Timex>(timex.0)?;
        let known =
            clock == Clock::TAI || CpuTimer::find(task, clock)?.is_some() || host_clock(clock).is_ok();
        return Err(if known { Errno::EOPNOTSUPP } else { Errno::EINVAL }.into());
    }
    sys_adjtimex(task, timex)
}

/// Whether alarm clocks are refused for want of privilege: they are checked before it shows that there are none.
pub(super) fn check_alarm_clock(task: &CurrentTask, clock: Clock) -> SysResult<()> {
    let is_alarm = matches!(clock, Clock::REALTIME_ALARM | Clock::BOOTTIME_ALARM);
    match is_alarm && !task.cred.capable(Capability::WAKE_ALARM) {
        true => Err(Errno::EPERM.into()),
        false => Ok(()),
    }
}
