//! A mutex whose level is part of its type.

use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};

/// A level of the lock order; the levels are in [`order`](crate::order).
pub trait Level {
    const RANK: u16;
    const NAME: &'static str;
}

/// A mutex around its data, of level `L`. Short critical sections only: never held across copies to or from a
/// guest, a wait, running the guest, or a host call that can block (see [`assert_no_lock_held`]).
pub struct Mutex<L: Level, T: ?Sized> {
    level: PhantomData<fn() -> L>,
    inner: parking_lot::Mutex<T>,
}

/// Holds a [`Mutex`].
pub struct MutexGuard<'a, T: ?Sized> {
    inner: parking_lot::MutexGuard<'a, T>,
    #[cfg(debug_assertions)]
    _held: held::Held,
}

impl<L: Level, T> Mutex<L, T> {
    pub const fn new(value: T) -> Self {
        Mutex { level: PhantomData, inner: parking_lot::Mutex::new(value) }
    }

    /// The data, when the mutex is no longer shared.
    pub fn into_inner(self) -> T {
        self.inner.into_inner()
    }
}

impl<L: Level, T: ?Sized> Mutex<L, T> {
    /// Takes the lock. In debug builds, panics when a lock of this rank or a higher one is held already.
    pub fn lock(&self) -> MutexGuard<'_, T> {
        #[cfg(debug_assertions)]
        let held = held::Held::push(L::RANK, L::NAME);
        MutexGuard {
            inner: self.inner.lock(),
            #[cfg(debug_assertions)]
            _held: held,
        }
    }

    /// The data, without locking, when nobody else can have it.
    pub fn get_mut(&mut self) -> &mut T {
        self.inner.get_mut()
    }
}

impl<L: Level, T: Default> Default for Mutex<L, T> {
    fn default() -> Self {
        Mutex::new(T::default())
    }
}

impl<L: Level, T: ?Sized> std::fmt::Debug for Mutex<L, T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Mutex<{}>", L::NAME)
    }
}

impl<T: ?Sized> Deref for MutexGuard<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.inner
    }
}

impl<T: ?Sized> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.inner
    }
}

/// Debug builds: panics when the calling thread holds a [`Mutex`]. For the places where none may be held:
/// guest copies, waits, running the guest, blocking host calls.
#[inline]
pub fn assert_no_lock_held() {
    #[cfg(debug_assertions)]
    held::assert_none();
}

#[cfg(debug_assertions)]
mod held {
    use std::cell::RefCell;

    thread_local! {
        static HELD: RefCell<Vec<(u16, &'static str)>> = const { RefCell::new(Vec::new()) };
    }

    /// One entry on the thread's list of held locks.
    pub(super) struct Held(u16);

    impl Held {
        pub(super) fn push(rank: u16, name: &'static str) -> Held {
            HELD.with_borrow_mut(|held| {
                if let Some((top, top_name)) = held.iter().max().filter(|(top, _)| *top >= rank) {
                    panic!("lock order: {name} ({rank}) taken while {top_name} ({top}) is held");
                }
                held.push((rank, name));
            });
            Held(rank)
        }
    }

    impl Drop for Held {
        fn drop(&mut self) {
            HELD.with_borrow_mut(|held| {
                if let Some(index) = held.iter().rposition(|(rank, _)| *rank == self.0) {
                    held.remove(index);
                }
            });
        }
    }

    pub(super) fn assert_none() {
        HELD.with_borrow(|held| assert!(held.is_empty(), "locks held where none may be: {held:?}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::order::{Inode, Tasks};

    #[test]
    #[cfg(debug_assertions)]
    fn the_order_is_checked() {
        let outer: Mutex<Tasks, u32> = Mutex::new(1);
        let inner: Mutex<Inode, u32> = Mutex::new(2);
        {
            let _outer = outer.lock();
            let _inner = inner.lock();
        }
        assert_no_lock_held();
        let wrong = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let _inner = inner.lock();
            let _outer = outer.lock();
        }));
        assert!(wrong.is_err());
        assert_no_lock_held();
    }
}
