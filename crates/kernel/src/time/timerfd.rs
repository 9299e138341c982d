//! timerfd: expiries that are read.
//!
//! The count is worked out from the clock whenever somebody looks. The timer thread only wakes who waits: once, and again
//! when the expiries have been read, so that a short period costs nothing while nobody reads (Linux does the same).

use std::any::Any;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use abi::{Clock, Errno, Itimerspec, OpenFlags, TimerfdFlags, TimerfdSettimeFlags};
use smallvec::{SmallVec, smallvec};
use sync::{Mutex, SleepLock, SysResult, WaitQueue, order};
use vfs::{Attributes, Caller, FileDescription, FileOps, Ready, Seek, UserWrite};

use super::clock::check_alarm_clock;
use super::queue::{Armed, Expire, TimerQueue};
use super::{Schedule, Setting};
use crate::syscall::{Fd, In, Out};
use crate::task::{CurrentTask, wait_as};

/// Bytes of a read.
const SIZE: usize = 8;

struct TimerFd {
    timer: Arc<FdTimer>,
    attributes: Attributes,
}

struct FdTimer {
    own: Weak<FdTimer>,
    clock: Clock,
    timers: Arc<TimerQueue>,
    state: Mutex<order::Buffer, State>,
    /// Held while the count is copied out, before it is taken.
    reading: SleepLock,
    queue: WaitQueue,
}

#[derive(Default)]
struct State {
    schedule: Schedule,
    /// What `schedule` runs by: a relative time is not moved when the clock is set.
    clock: Option<Clock>,
    /// Expiries not read yet.
    count: u64,
    armed: Option<Armed>,
}

impl FdTimer {
    fn now(&self, state: &State) -> Duration {
        // The clock was checked when the timer was made.
        super::now(state.clock.unwrap_or(self.clock)).unwrap_or_default()
    }

    /// Counts what has expired by now.
    fn refresh(&self, state: &mut State) {
        let now = self.now(state);
        state.count = state.count.saturating_add(state.schedule.advance(now));
    }

    /// Has the thread wake who waits at the next expiry.
    fn arm(&self, state: &mut State) {
        let left = state.schedule.left(self.now(state));
        let own: Weak<dyn Expire> = self.own.clone();
        state.armed =
            left.and_then(|left| Instant::now().checked_add(left)).map(|at| self.timers.arm(at, own));
    }

    fn has_expired(&self) -> bool {
        let mut state = self.state.lock();
        self.refresh(&mut state);
        state.count > 0
    }

    /// Copies the count out, then takes it. `None`: nothing has expired.
    fn take(&self, caller: &dyn Caller, to: &mut dyn UserWrite) -> SysResult<Option<usize>> {
        let _one_at_a_time = self.reading.lock(caller.waiter())?;
        if !self.has_expired() {
            return Ok(None);
        }
        let count = self.state.lock().count;
        if count > 0 && to.put(&count.to_ne_bytes()) < SIZE {
            return Err(Errno::EFAULT.into());
        }
        let mut state = self.state.lock();
        // A new setting meanwhile has begun to count anew.
        state.count = state.count.saturating_sub(count);
        self.arm(&mut state);
        Ok((count > 0).then_some(SIZE))
    }

    fn set(&self, setting: &Setting, clock: Clock) -> Itimerspec {
        let old = {
            let mut state = self.state.lock();
            self.refresh(&mut state);
            let old = state.schedule.show(self.now(&state));
            state.clock = Some(clock);
            state.schedule = setting.schedule(self.now(&state));
            state.count = 0;
            self.arm(&mut state);
            old
        };
        // Who sleeps till the old time shall look again.
        self.queue.wake(0);
        old
    }

    fn get(&self) -> Itimerspec {
        let mut state = self.state.lock();
        self.refresh(&mut state);
        state.schedule.show(self.now(&state))
    }
}

impl Expire for FdTimer {
    fn expire(self: Arc<Self>) {
        {
            let mut state = self.state.lock();
            if state.armed.take().is_none() {
                return;
            }
            self.refresh(&mut state);
            if state.count == 0 {
                // The clock was set back.
                self.arm(&mut state);
                return;
            }
        }
        self.queue.wake(Ready::IN.bits());
    }
}

impl FileOps for TimerFd {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn read(&self, file: &FileDescription, caller: &dyn Caller, to: &mut dyn UserWrite) -> SysResult<usize> {
        if to.room() < SIZE {
            return Err(Errno::EINVAL.into());
        }
        let timer = &*self.timer;
        loop {
            if let Some(count) = timer.take(caller, to)? {
                return Ok(count);
            }
            if file.is_nonblocking() {
                return Err(Errno::EAGAIN.into());
            }
            wait_as(caller, &[&timer.queue], None, || timer.has_expired().then_some(()))?;
        }
    }

    fn attributes(&self) -> Option<SysResult<Attributes>> {
        Some(Ok(self.attributes))
    }

    /// Linux: `noop_llseek`.
    fn seek(&self, _: &FileDescription, _: Seek) -> SysResult<u64> {
        Ok(0)
    }

    fn poll(&self, _: &FileDescription) -> Ready {
        if self.timer.has_expired() { Ready::IN } else { Ready::empty() }
    }

    fn wait_queues(&self) -> SmallVec<[&WaitQueue; 2]> {
        smallvec![&self.timer.queue]
    }

    fn link_name(&self) -> Option<String> {
        Some("anon_inode:[timerfd]".into())
    }
}

pub fn sys_timerfd_create(task: &mut CurrentTask, clock: Clock, flags: TimerfdFlags) -> SysResult<Fd> {
    let known = matches!(
        clock,
        Clock::MONOTONIC | Clock::REALTIME | Clock::REALTIME_ALARM | Clock::BOOTTIME | Clock::BOOTTIME_ALARM
    );
    if flags.has_unknown() || !known {
        return Err(Errno::EINVAL.into());
    }
    check_alarm_clock(task, clock)?;
    let timer = Arc::new_cyclic(|own| FdTimer {
        own: own.clone(),
        clock,
        timers: task.kernel().timers.clone(),
        state: Mutex::default(),
        reading: SleepLock::new(),
        queue: WaitQueue::new(),
    });
    let file = TimerFd { timer, attributes: task.kernel().anon.anonymous() };
    let mut status = OpenFlags::RDWR;
    status.set(OpenFlags::NONBLOCK, flags.contains(TimerfdFlags::NONBLOCK));
    task.install(FileDescription::new(Box::new(file), None, status), flags.contains(TimerfdFlags::CLOEXEC))
}

fn find(task: &CurrentTask, fd: Fd) -> SysResult<Arc<FdTimer>> {
    let file = task.files.get(fd)?;
    Ok(file.downcast::<TimerFd>().ok_or(Errno::EINVAL)?.timer.clone())
}

/// TFD_TIMER_CANCEL_ON_SET is taken; the host's clock is not seen to be set, so it never happens.
pub fn sys_timerfd_settime(
    task: &mut CurrentTask,
    fd: Fd,
    flags: TimerfdSettimeFlags,
    new: In<Itimerspec>,
    old: Out<Itimerspec>,
) -> SysResult<()> {
    let new: Itimerspec = task.mm.read(new.0)?;
    if flags.has_unknown() {
        return Err(Errno::EINVAL.into());
    }
    let absolute = flags.contains(TimerfdSettimeFlags::ABSTIME);
    let setting = Setting::new(&new, absolute)?;
    let timer = find(task, fd)?;
    check_alarm_clock(task, timer.clock)?;
    let clock = if absolute { timer.clock } else { super::relative_clock(timer.clock) };
    let before = timer.set(&setting, clock);
    if old.is_null() { Ok(()) } else { task.mm.write(old.0, &before) }
}

pub fn sys_timerfd_gettime(task: &mut CurrentTask, fd: Fd, value: Out<Itimerspec>) -> SysResult<()> {
    let timer = find(task, fd)?;
    task.mm.write(value.0, &timer.get())
}
