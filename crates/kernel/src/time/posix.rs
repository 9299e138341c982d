//! `timer_create` and its kin.

use std::sync::Arc;

use abi::{Clock, Errno, Itimerspec, SigevNotify, Sigevent, Signal, TimerFlags};
use sync::SysResult;

use super::Setting;
use super::clock::check_alarm_clock;
use super::cpu::CpuTimer;
use super::group::PosixTimer;
use super::timer::{Effect, Timer, TimerClock};
use crate::signal::send::MOST_QUEUED;
use crate::syscall::{In, Out};
use crate::task::CurrentTask;
use crate::users::{Counted, Held};

pub fn sys_timer_create(
    task: &mut CurrentTask,
    clock: Clock,
    event: In<Sigevent>,
    timer: Out<i32>,
) -> SysResult<()> {
    let event: Option<Sigevent> = if event.is_null() { None } else { Some(task.mm.read(event.0)?) };
    let clock = find_clock(task, clock)?;
    let share = new_share(task)?;
    let id = new_id(task);
    let effect = find_effect(task, id, event)?;
    task.mm.write(timer.0, &id)?;
    let made = Timer::new(task.kernel(), task.group(), clock, effect);
    task.group().timers.posix.lock().timers.insert(id, PosixTimer { timer: made, _share: share });
    Ok(())
}

/// `EINVAL`: no such clock; `EOPNOTSUPP`: one without timers.
fn find_clock(task: &CurrentTask, clock: Clock) -> SysResult<TimerClock> {
    match clock {
        Clock::REALTIME | Clock::MONOTONIC | Clock::BOOTTIME | Clock::TAI => Ok(TimerClock::Host(clock)),
        Clock::MONOTONIC_RAW | Clock::REALTIME_COARSE | Clock::MONOTONIC_COARSE => {
            Err(Errno::EOPNOTSUPP.into())
        }
        Clock::REALTIME_ALARM | Clock::BOOTTIME_ALARM => {
            check_alarm_clock(task, clock)?;
            // Guests have no clock chip that could wake the machine.
            Err(Errno::EOPNOTSUPP.into())
        }
        clock => Ok(TimerClock::Cpu(CpuTimer::find(task, clock)?.ok_or(Errno::EINVAL)?)),
    }
}

/// A timer's place in the queue of signals. `EAGAIN`: its user has as many as there may be.
fn new_share(task: &CurrentTask) -> SysResult<Held> {
    let share = task.kernel().users.hold(task.cred.uid, Counted::Signals, 1);
    let most = task.group().limits.lock().pending_signals().min(MOST_QUEUED);
    if share.total() as u64 <= most { Ok(share) } else { Err(Errno::EAGAIN.into()) }
}

/// A number that no timer of the process has.
fn new_id(task: &CurrentTask) -> i32 {
    let mut posix = task.group().timers.posix.lock();
    // Bounded: fewer are taken than there are numbers.
    while posix.timers.contains_key(&posix.next_id) {
        posix.next_id = posix.next_id.checked_add(1).unwrap_or(0);
    }
    let id = posix.next_id;
    posix.next_id = id.checked_add(1).unwrap_or(0);
    id
}

/// Linux: `good_sigevent`.
fn find_effect(task: &CurrentTask, id: i32, event: Option<Sigevent>) -> SysResult<Effect> {
    let Some(event) = event else {
        let value = u64::from(id.cast_unsigned());
        return Ok(Effect::Notify { id, thread: None, signal: Signal::ALRM, value });
    };
    let thread = match event.notify {
        SigevNotify::NONE => return Ok(Effect::None),
        SigevNotify::SIGNAL | SigevNotify::THREAD => None,
        SigevNotify::THREAD_ID => {
            let thread = task.kernel().tasks.task(event.tid).ok_or(Errno::EINVAL)?;
            if !Arc::ptr_eq(&thread.group, task.group()) {
                return Err(Errno::EINVAL.into());
            }
            Some(Arc::downgrade(&thread))
        }
        _ => return Err(Errno::EINVAL.into()),
    };
    let signal = Signal(event.signo);
    match signal.is_valid() {
        true => Ok(Effect::Notify { id, thread, signal, value: event.value }),
        false => Err(Errno::EINVAL.into()),
    }
}

fn find(task: &CurrentTask, id: i32) -> SysResult<Arc<Timer>> {
    task.group().timers.find(id).ok_or(Errno::EINVAL.into())
}

pub fn sys_timer_settime(
    task: &mut CurrentTask,
    timer: i32,
    flags: TimerFlags,
    new: In<Itimerspec>,
    old: Out<Itimerspec>,
) -> SysResult<()> {
    if new.is_null() {
        return Err(Errno::EINVAL.into());
    }
    let new: Itimerspec = task.mm.read(new.0)?;
    let setting = Setting::new(&new, flags.contains(TimerFlags::ABSTIME))?;
    let before = find(task, timer)?.set(&setting);
    if old.is_null() { Ok(()) } else { task.mm.write(old.0, &before) }
}

pub fn sys_timer_gettime(task: &mut CurrentTask, timer: i32, value: Out<Itimerspec>) -> SysResult<()> {
    let found = find(task, timer)?.get();
    task.mm.write(value.0, &found)
}

pub fn sys_timer_getoverrun(task: &mut CurrentTask, timer: i32) -> SysResult<i32> {
    Ok(find(task, timer)?.overrun())
}

pub fn sys_timer_delete(task: &mut CurrentTask, timer: i32) -> SysResult<()> {
    let gone = task.group().timers.posix.lock().timers.remove(&timer);
    gone.map(drop).ok_or(Errno::EINVAL.into())
}
