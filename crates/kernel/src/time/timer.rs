//! A process's timer, whatever made it: `setitimer` or `timer_create`.
//!
//! A timer that has gone off is not armed again before its signal is taken; what it missed until then is the overrun. So
//! a short period floods nobody (Linux: `posixtimer_rearm`). Only the itimers on CPU clocks go on by themselves.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use abi::{Clock, Itimerspec, SiCode, Siginfo, Signal};
use sync::{Mutex, order};

use super::cpu::{CpuTimer, Poll};
use super::queue::{Armed, Expire};
use super::{Schedule, Setting};
use crate::kernel::Kernel;
use crate::signal::send::{Sent, Target, send_timer};
use crate::task::{Task, ThreadGroup};

/// Between two looks at whether a signal is still ignored.
const IGNORED_PAUSE: Duration = Duration::from_millis(10);

/// What a timer runs by.
#[derive(Clone)]
pub(super) enum TimerClock {
    /// One that can be slept on.
    Host(Clock),
    Cpu(CpuTimer),
}

/// What happens when it goes off.
pub(super) enum Effect {
    /// `SIGEV_NONE`: it is only looked at.
    None,
    /// `setitimer`: a plain signal to the process.
    Itimer(Signal),
    /// `timer_create`: a signal that tells its number and value. `None`: to the process.
    Notify { id: i32, thread: Option<Weak<Task>>, signal: Signal, value: u64 },
}

/// A look at a timer's clock.
#[derive(Clone, Copy)]
struct Now {
    time: Duration,
    /// How many threads may drive the clock on at once.
    threads: u32,
}

/// A timer.
pub(super) struct Timer {
    own: Weak<Timer>,
    kernel: Weak<Kernel>,
    group: Weak<ThreadGroup>,
    clock: TimerClock,
    effect: Effect,
    /// Set to a relative time, which is not moved when its clock is set.
    relative: AtomicBool,
    state: Mutex<order::GroupTimers, State>,
}

#[derive(Default)]
struct State {
    schedule: Schedule,
    /// Counts settings, so that a signal of an earlier one is known. Never 0 once set.
    sequence: u32,
    /// Its signal has been sent and not been taken.
    pending: bool,
    /// Missed expiries of the signal taken last.
    overrun: i32,
    armed: Option<Armed>,
    poll: Poll,
}

impl Timer {
    pub(super) fn new(
        kernel: &Arc<Kernel>,
        group: &Arc<ThreadGroup>,
        clock: TimerClock,
        effect: Effect,
    ) -> Arc<Timer> {
        Arc::new_cyclic(|own| Timer {
            own: own.clone(),
            kernel: Arc::downgrade(kernel),
            group: Arc::downgrade(group),
            clock,
            effect,
            relative: AtomicBool::new(false),
            state: Mutex::default(),
        })
    }

    /// The time on its clock. Not with the state locked: a CPU clock asks all tasks.
    fn now(&self, kernel: &Kernel) -> Now {
        match &self.clock {
            TimerClock::Host(clock) => {
                let relative = self.relative.load(Ordering::Relaxed);
                let clock = if relative { super::relative_clock(*clock) } else { *clock };
                // The clock was checked when the timer was made.
                Now { time: super::now(clock).unwrap_or_default(), threads: 1 }
            }
            TimerClock::Cpu(cpu) => Now { time: cpu.now(kernel), threads: cpu.threads(kernel) },
        }
    }

    /// Replaces the setting; gives the old one as it stood.
    pub(super) fn set(&self, setting: &Setting) -> Itimerspec {
        let Some(kernel) = self.kernel.upgrade() else { return Itimerspec::default() };
        let before = self.now(&kernel);
        let old = self.show(&self.state.lock(), before.time);
        self.relative.store(!setting.is_absolute(), Ordering::Relaxed);
        let now = self.now(&kernel);
        let mut state = self.state.lock();
        state.schedule = setting.schedule(now.time);
        state.sequence = state.sequence.wrapping_add(1).max(1);
        state.pending = false;
        state.overrun = 0;
        self.arm(&kernel, &mut state, now);
        old
    }

    /// The setting as it stands.
    pub(super) fn get(&self) -> Itimerspec {
        let Some(kernel) = self.kernel.upgrade() else { return Itimerspec::default() };
        let now = self.now(&kernel);
        self.show(&self.state.lock(), now.time)
    }

    pub(super) fn overrun(&self) -> i32 {
        self.state.lock().overrun
    }

    fn show(&self, state: &State, now: Duration) -> Itimerspec {
        match self.effect {
            // Linux: it is not running before its signal is taken.
            Effect::Itimer(_) if state.pending => state.schedule.show_disarmed(),
            Effect::None if state.schedule.is_due(now) && !state.schedule.is_periodic() => {
                state.schedule.show_disarmed()
            }
            _ => state.schedule.show(now),
        }
    }

    fn arm(&self, kernel: &Kernel, state: &mut State, now: Now) {
        state.armed = None;
        let left = match self.effect {
            Effect::None => None,
            _ => state.schedule.left(now.time),
        };
        if let Some(left) = left {
            self.arm_after(kernel, state, left, now);
        }
    }

    fn arm_after(&self, kernel: &Kernel, state: &mut State, left: Duration, now: Now) {
        let delay = match &self.clock {
            TimerClock::Host(_) => left,
            // As if all its threads ran.
            TimerClock::Cpu(_) => state.poll.delay(left, now.time, now.threads),
        };
        let own: Weak<dyn Expire> = self.own.clone();
        state.armed = Instant::now().checked_add(delay).map(|at| kernel.timers.arm(at, own));
    }

    /// Its time has come, or it is time to look. What is to be sent, if anything.
    fn go_off(&self, kernel: &Kernel, now: Now) -> Option<Siginfo> {
        let mut state = self.state.lock();
        // It was disarmed or set anew while the timer thread was on its way here.
        state.armed.as_ref()?;
        if !state.schedule.is_due(now.time) {
            // A CPU clock that has not got there, or a clock that was set back.
            self.arm(kernel, &mut state, now);
            return None;
        }
        state.armed = None;
        let on_cpu_clock = matches!(self.clock, TimerClock::Cpu(_));
        match &self.effect {
            Effect::None => None,
            Effect::Itimer(signal) => {
                if on_cpu_clock {
                    state.schedule.advance(now.time);
                    self.arm(kernel, &mut state, now);
                } else {
                    state.pending = state.schedule.is_periodic();
                    end_unless_periodic(&mut state, now.time);
                }
                Some(Siginfo::kill(*signal, SiCode::KERNEL, 0, 0))
            }
            Effect::Notify { id, signal, value, .. } => {
                state.pending = true;
                end_unless_periodic(&mut state, now.time);
                Some(Siginfo { pad: state.sequence, ..Siginfo::timer(*signal, *id, 0, *value) })
            }
        }
    }

    fn send(&self, kernel: &Kernel, info: Siginfo) -> Sent {
        let Some(group) = self.group.upgrade() else { return Sent::Queued };
        let target = match &self.effect {
            Effect::Notify { thread: Some(thread), .. } => thread.upgrade().map(Some),
            _ => Some(None),
        };
        let tasks = kernel.tasks.lock();
        let threads = tasks.threads(group.pid);
        match target {
            Some(Some(thread)) => send_timer(&group, threads, Target::Thread(&thread), info),
            Some(None) => send_timer(&group, threads, Target::Group, info),
            // The thread that it was for has ended.
            None => Sent::Ignored,
        }
    }

    /// Nobody wants its signal now: a periodic one goes on, since somebody may later.
    fn was_ignored(&self, kernel: &Kernel, sequence: u32) {
        let now = self.now(kernel);
        let mut state = self.state.lock();
        if state.sequence != sequence || !matches!(self.effect, Effect::Notify { .. }) {
            return;
        }
        state.pending = false;
        state.schedule.advance(now.time);
        if let Some(left) = state.schedule.left(now.time) {
            self.arm_after(kernel, &mut state, left.max(IGNORED_PAUSE), now);
        }
    }

    /// Its signal is being taken: gives it with the expiries missed, and arms the timer again. `None`: the signal is of
    /// an earlier setting and no longer true.
    pub(super) fn signal_taken(&self, info: Siginfo) -> Option<Siginfo> {
        let kernel = self.kernel.upgrade()?;
        let now = self.now(&kernel);
        let mut state = self.state.lock();
        let is_notify = matches!(self.effect, Effect::Notify { .. });
        if is_notify && (info.pad != state.sequence || !state.pending) {
            return None;
        }
        if !std::mem::take(&mut state.pending) {
            return Some(info);
        }
        let missed =
            if state.schedule.is_periodic() { state.schedule.advance(now.time).saturating_sub(1) } else { 0 };
        state.overrun = i32::try_from(missed).unwrap_or(i32::MAX);
        self.arm(&kernel, &mut state, now);
        Some(match &self.effect {
            Effect::Notify { id, signal, value, .. } => Siginfo::timer(*signal, *id, state.overrun, *value),
            _ => info,
        })
    }
}

fn end_unless_periodic(state: &mut State, now: Duration) {
    if !state.schedule.is_periodic() {
        state.schedule.advance(now);
    }
}

impl Expire for Timer {
    fn expire(self: Arc<Self>) {
        let Some(kernel) = self.kernel.upgrade() else { return };
        let now = self.now(&kernel);
        let Some(info) = self.go_off(&kernel, now) else { return };
        if self.send(&kernel, info) == Sent::Ignored {
            self.was_ignored(&kernel, info.pad);
        }
    }
}
