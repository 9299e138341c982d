//! Kernel threads that are held on their CPU: one on each that has been steady there, and one that has begun just now.

use std::sync::atomic::{AtomicBool, Ordering};

use rustix::thread::{CpuSet, sched_setaffinity};

use super::{NOWHERE, Pin, only};

/// Runs on one CPU after which a kernel thread is held there.
const STEADY: u32 = 16;

impl Pin {
    pub(super) fn held(&self) -> bool {
        self.held.load(Ordering::Relaxed) != NOWHERE
    }

    fn taken(&self, cpu: i32) -> Option<&AtomicBool> {
        self.taken.get(usize::try_from(cpu).ok()?)
    }

    fn cradle_of(&self, cpu: i32) -> Option<&AtomicBool> {
        self.cradles.get(usize::try_from(cpu).ok()?)
    }

    /// On the tracer's thread, which begins: holds it here, unless another that has begun just now is.
    ///
    /// An idle CPU would draw it away at its first wake-ups, each of which then costs more than most of what it is for.
    pub(super) fn cradle(&self, here: i32) {
        let _change = self.change.lock();
        if self.cradle_of(here).is_some_and(|cradle| !cradle.swap(true, Ordering::Relaxed)) {
            self.is_new.store(true, Ordering::Relaxed);
            self.held.store(here, Ordering::Relaxed);
            // An error means that this CPU was just taken away: it is let go like any other.
            let _ = sched_setaffinity(None, &only(here));
        }
    }

    /// What holds their common tracer is the other's from now on. `false`: nothing does.
    pub(super) fn bequeath(&self, heir: &Pin) -> bool {
        let _change = self.change.lock();
        let held = self.held.swap(NOWHERE, Ordering::Relaxed);
        heir.is_new.store(self.is_new.swap(false, Ordering::Relaxed), Ordering::Relaxed);
        heir.held.store(held, Ordering::Relaxed);
        held != NOWHERE
    }

    /// Its tracer, held as one that is new, is held as one that is not. `false`: another is.
    pub(super) fn keep(&self, here: i32) -> bool {
        let _change = self.change.lock();
        if self.held.load(Ordering::Relaxed) != here
            || self.taken(here).is_none_or(|taken| taken.swap(true, Ordering::Relaxed))
        {
            return false;
        }
        self.is_new.store(false, Ordering::Relaxed);
        if let Some(cradle) = self.cradle_of(here) {
            cradle.store(false, Ordering::Relaxed);
        }
        true
    }

    /// On the tracer's thread, which is where its tracee is: keeps it there, once it has been for a while.
    pub(super) fn hold(&self, here: i32) {
        let steady = self.steady.load(Ordering::Relaxed).saturating_add(1);
        self.steady.store(steady, Ordering::Relaxed);
        if steady >= STEADY {
            self.steady.store(0, Ordering::Relaxed);
            let _change = self.change.lock();
            let is_new_here = |cradle: &AtomicBool| cradle.load(Ordering::Relaxed);
            if !self.is_leader && self.cradle_of(here).is_some_and(is_new_here) {
                // Its leader's, likely, which goes on beside it.
                return;
            }
            if self.taken(here).is_some_and(|taken| !taken.swap(true, Ordering::Relaxed)) {
                self.held.store(here, Ordering::Relaxed);
                // An error means that this CPU was just taken away: it is let go like any other.
                let _ = sched_setaffinity(None, &only(here));
            }
        }
    }

    /// Lets the tracer go.
    pub(super) fn release(&self, cpus: &CpuSet) {
        let _change = self.change.lock();
        let held = self.held.swap(NOWHERE, Ordering::Relaxed);
        let is_new = self.is_new.swap(false, Ordering::Relaxed);
        if let Some(taken) = if is_new { self.cradle_of(held) } else { self.taken(held) } {
            taken.store(false, Ordering::Relaxed);
            // An error means that it is gone, or that the host has taken those CPUs away.
            let _ = sched_setaffinity(Some(self.tracer), cpus);
        }
    }
}
