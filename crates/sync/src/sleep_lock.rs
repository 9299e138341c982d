//! A lock that may be held across guest copies and host calls.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::wait::{WaitEnd, WaitQueue, Waiter};

/// A lock whose holder may sleep, and whose takers sleep in the one wait primitive, so that a kill ends them.
/// It guards an order of steps, not data. For a pipe's readers, an Mm's mappings (INVARIANTS 2.2).
#[derive(Default)]
pub struct SleepLock {
    taken: AtomicBool,
    queue: WaitQueue,
}

/// Holds a [`SleepLock`].
pub struct SleepLockGuard<'a>(&'a SleepLock);

impl SleepLock {
    pub const fn new() -> SleepLock {
        SleepLock { taken: AtomicBool::new(false), queue: WaitQueue::new() }
    }

    /// Takes it; only the task's end interrupts the wait.
    pub fn lock(&self, waiter: &Waiter) -> Result<SleepLockGuard<'_>, WaitEnd> {
        waiter.wait_killable(&[&self.queue], None, || self.try_lock())
    }

    /// Takes it; a signal interrupts the wait too.
    pub fn lock_interruptible(&self, waiter: &Waiter) -> Result<SleepLockGuard<'_>, WaitEnd> {
        waiter.wait(&[&self.queue], None, || self.try_lock())
    }

    /// Takes it if it is free.
    pub fn try_lock(&self) -> Option<SleepLockGuard<'_>> {
        // A guard exists only where the lock was got: dropping one lets go.
        if self.taken.swap(true, Ordering::SeqCst) { None } else { Some(SleepLockGuard(self)) }
    }
}

impl Drop for SleepLockGuard<'_> {
    fn drop(&mut self) {
        self.0.taken.store(false, Ordering::SeqCst);
        self.0.queue.wake(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failing_to_take_it_leaves_it_taken() {
        let lock = SleepLock::new();
        let held = lock.try_lock();
        assert!(held.is_some());
        assert!(lock.try_lock().is_none());
        assert!(lock.try_lock().is_none());
        drop(held);
        assert!(lock.try_lock().is_some());
    }

    #[test]
    fn only_one_thread_is_inside() {
        let lock = SleepLock::new();
        let inside = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let waiter = Waiter::new();
                    for _ in 0..2000 {
                        let _held = lock.lock(&waiter);
                        assert!(!inside.swap(true, Ordering::SeqCst));
                        std::thread::yield_now();
                        inside.store(false, Ordering::SeqCst);
                    }
                });
            }
        });
    }
}
