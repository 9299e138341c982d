//! Signals: pending sets, actions, sending, delivery, frames.
//!
//! All of it is virtual: no host signal stands for a guest's. A signal is sent (`send.rs`) into a pending
//! set of a task or group; the receiver's own kernel thread takes it before the guest goes on
//! (`deliver.rs`) and pushes a frame (`frame.rs`) or acts.

mod deliver;
mod frame;
mod pending;
pub mod send;
pub mod signalfd;
pub mod syscalls;
mod wait_mask;

use std::sync::Arc;

use abi::{SaFlags, SigSet, Sigaction, Signal};
use sync::{Mutex, order};

pub use deliver::Delivery;
pub use pending::PendingSignals;

use crate::task::GroupExit;

/// A group's shared signal state.
#[derive(Default)]
pub struct GroupSignals {
    pub pending: PendingSignals,
    /// Decided how the group ends: all threads are on their way out.
    pub exit: Option<GroupExit>,
    /// The thread that execs and waits for the others to go.
    pub exec_by: Option<i32>,
    /// A core file is being made of the process.
    pub dump: Option<Arc<crate::coredump::CoreDump>>,
    pub stop: StopState,
    /// Counts SIGCONTs: one that is sent after a stop signal was taken cancels the stop (Linux: `JOBCTL_STOP_DEQUEUED`).
    pub continuations: u64,
    /// A stop that `wait` has not reported yet.
    pub stop_report: Option<Signal>,
    /// A continuation that `wait` has not reported yet.
    pub continue_report: bool,
    /// A continuation that the parent has not been told of yet.
    pub continue_notify: bool,
}

/// Job control.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StopState {
    #[default]
    Running,
    /// Threads stop one by one; `stopped` have.
    Stopping {
        signal: Signal,
        stopped: usize,
    },
    Stopped {
        signal: Signal,
    },
}

impl GroupSignals {
    /// Whether this thread is on its way out: the group ends, or another thread execs.
    pub fn ends(&self, tid: i32) -> bool {
        self.exit.is_some() || self.exec_by.is_some_and(|by| by != tid)
    }

    /// Ends a stop; says whether there was one.
    pub fn end_stop(&mut self) -> bool {
        let was = self.stop != StopState::Running;
        self.stop = StopState::Running;
        self.stop_report = None;
        was
    }
}

/// A table of actions, shared by `CLONE_SIGHAND`.
#[derive(Default)]
pub struct Handlers {
    actions: Mutex<order::Handlers, Actions>,
}

struct Actions([Sigaction; 64]);

impl Default for Actions {
    fn default() -> Self {
        Actions([Sigaction::default(); 64])
    }
}

fn slot(signal: Signal) -> usize {
    usize::try_from(signal.0 - 1).unwrap_or(0)
}

impl Handlers {
    /// The default for all signals but these, which are ignored.
    pub fn ignoring(signals: SigSet) -> Handlers {
        let handlers = Handlers::default();
        for signal in (1..=64).map(Signal).filter(|signal| signals.contains(*signal)) {
            handlers.set(signal, Sigaction { handler: Sigaction::IGN, ..Sigaction::default() });
        }
        handlers
    }

    /// A copy, for a fork.
    pub fn copy(&self) -> Arc<Handlers> {
        Arc::new(Handlers { actions: Mutex::new(Actions(self.actions.lock().0)) })
    }

    /// What this signal does.
    pub fn get(&self, signal: Signal) -> Sigaction {
        self.actions.lock().0.get(slot(signal)).copied().unwrap_or_default()
    }

    pub fn set(&self, signal: Signal, action: Sigaction) {
        if let Some(place) = self.actions.lock().0.get_mut(slot(signal)) {
            *place = action;
        }
    }

    /// What exec and `CLONE_CLEAR_SIGHAND` do: handlers become the default, ignored ones stay ignored.
    pub fn reset_handlers(&self) {
        for action in &mut self.actions.lock().0 {
            let handler = if action.handler == Sigaction::IGN { Sigaction::IGN } else { Sigaction::DFL };
            *action = Sigaction { handler, ..Sigaction::default() };
        }
    }

    /// Whether a signal that is not blocked would do nothing.
    pub fn ignores(&self, signal: Signal) -> bool {
        match self.get(signal).handler {
            Sigaction::IGN => !SigSet::UNBLOCKABLE.contains(signal),
            Sigaction::DFL => SigSet::DEFAULT_IGNORED.contains(signal),
            _ => false,
        }
    }

    /// The signals that are ignored, and those that are caught, for /proc.
    pub fn sets(&self) -> (SigSet, SigSet) {
        let (mut ignored, mut caught) = (SigSet::EMPTY, SigSet::EMPTY);
        for (index, action) in (1..).zip(&self.actions.lock().0) {
            match action.handler {
                Sigaction::DFL => {}
                Sigaction::IGN => ignored.insert(Signal(index)),
                _ => caught.insert(Signal(index)),
            }
        }
        (ignored, caught)
    }

    /// Whether children's ends are reaped unseen (`SIGCHLD` ignored, or `SA_NOCLDWAIT`).
    pub fn reaps_children(&self) -> bool {
        let action = self.get(Signal::CHLD);
        action.handler == Sigaction::IGN || action.flags.contains(SaFlags::NOCLDWAIT)
    }
}
