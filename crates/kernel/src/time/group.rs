//! The timers of a process.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use abi::{SiCode, Siginfo, Signal};
use sync::{Mutex, order};

use super::cpu_limit::CpuLimit;
use super::timer::Timer;
use crate::task::ThreadGroup;
use crate::users::Held;

/// A process's timers: three interval timers, made when first set, and those of `timer_create`.
#[derive(Default)]
pub struct GroupTimers {
    pub(super) real: OnceLock<Arc<Timer>>,
    pub(super) virtual_time: OnceLock<Arc<Timer>>,
    pub(super) profiling: OnceLock<Arc<Timer>>,
    pub(super) cpu_limit: OnceLock<Arc<CpuLimit>>,
    pub(super) posix: Mutex<order::GroupTimers, PosixTimers>,
}

/// The timers of `timer_create`, by number.
#[derive(Default)]
pub(super) struct PosixTimers {
    pub timers: BTreeMap<i32, PosixTimer>,
    pub next_id: i32,
}

/// A timer, and its place in its user's queue of signals.
pub(super) struct PosixTimer {
    pub timer: Arc<Timer>,
    pub _share: Held,
}

impl GroupTimers {
    /// Those of `timer_create` go (exec, and the end of the process).
    pub(crate) fn delete_posix(&self) {
        let gone = std::mem::take(&mut self.posix.lock().timers);
        drop(gone);
    }

    pub(super) fn find(&self, id: i32) -> Option<Arc<Timer>> {
        self.posix.lock().timers.get(&id).map(|found| found.timer.clone())
    }
}

impl ThreadGroup {
    /// A signal has been taken out of a pending set: a timer that sent it learns of it. `None`: the timer has been
    /// deleted or set anew meanwhile, and the signal goes with that. Not with a signal lock held.
    pub(crate) fn timer_signal_taken(&self, info: Siginfo) -> Option<Siginfo> {
        if info.code == SiCode::TIMER.0 && info.pad != 0 {
            return self.timers.find(info.timer_id())?.signal_taken(info);
        }
        match self.timers.real.get() {
            Some(real) if info.signo == Signal::ALRM => real.signal_taken(info),
            _ => Some(info),
        }
    }
}
