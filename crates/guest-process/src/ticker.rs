//! A thread's life that looks at something every so often, and sleeps as long as there is nothing to look at.

use std::sync::atomic::{AtomicBool, Ordering, fence};
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

/// See the module's head.
#[derive(Debug, Default)]
pub(crate) struct Ticker {
    state: Mutex<State>,
    wake: Condvar,
    /// Whether it waits to be woken.
    asleep: AtomicBool,
}

#[derive(Debug, Default)]
struct State {
    woken: bool,
    ended: bool,
}

impl Ticker {
    /// There is something to look at: after the store that says so.
    pub(crate) fn alert(&self) {
        // Pairs with the fence in `run`: either it sees what we have stored, or we see it asleep.
        fence(Ordering::SeqCst);
        if self.asleep.load(Ordering::Relaxed) {
            self.state.lock().woken = true;
            self.wake.notify_one();
        }
    }

    /// Calls `look` every `period` until [`Ticker::end`]; while it says that there is nothing to do, and `idle` agrees,
    /// not before the next alert.
    pub(crate) fn run(&self, period: Duration, mut look: impl FnMut() -> bool, idle: impl Fn() -> bool) {
        loop {
            let mut state = self.state.lock();
            if !state.ended {
                self.wake.wait_for(&mut state, period);
            }
            if state.ended {
                return;
            }
            drop(state);
            if look() {
                continue;
            }
            self.asleep.store(true, Ordering::Relaxed);
            fence(Ordering::SeqCst);
            let idle = idle();
            let mut state = self.state.lock();
            while idle && !state.woken && !state.ended {
                self.wake.wait(&mut state);
            }
            state.woken = false;
            self.asleep.store(false, Ordering::Relaxed);
        }
    }

    /// Ends it.
    pub(crate) fn end(&self) {
        self.state.lock().ended = true;
        self.wake.notify_one();
    }
}
