//! The dentry cache: keeps names alive for a while after their last use.
//!
//! A ring of strong references with second chances (CLOCK): a dentry that was used since the hand last passed
//! stays. The ring is bounded, and a removed name leaves it at once, so that the file's space is given back.
//!
//! Neighbours: `namei` keeps what it walks along, `ops` and `mount` let go.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use sync::Mutex;
use sync::order::Leaf;

use crate::{Dentry, FileSystem};

/// How many names are kept unless told otherwise.
const CAPACITY: usize = 8192;

/// Keeps the dentries last used.
pub struct DentryCache {
    ring: Mutex<Leaf, Ring>,
    capacity: usize,
}

#[derive(Default)]
struct Ring {
    slots: Vec<Option<Arc<Dentry>>>,
    hand: usize,
}

impl Default for DentryCache {
    fn default() -> Self {
        DentryCache::new(CAPACITY)
    }
}

impl DentryCache {
    /// A cache of at most `capacity` names.
    pub fn new(capacity: usize) -> DentryCache {
        DentryCache { ring: Mutex::default(), capacity: capacity.max(1) }
    }

    /// Notes a use of `dentry`, and keeps it from now on.
    pub(crate) fn keep(&self, dentry: &Arc<Dentry>) {
        if !dentry.used.load(Ordering::Relaxed) {
            dentry.used.store(true, Ordering::Relaxed);
        }
        if dentry.cache_slot.load(Ordering::Relaxed) != usize::MAX {
            return;
        }
        // What was in the slot goes after the lock: the last reference may free an inode.
        let _evicted = self.put(dentry);
    }

    fn put(&self, dentry: &Arc<Dentry>) -> Option<Arc<Dentry>> {
        let mut ring = self.ring.lock();
        if dentry.is_removed() || dentry.cache_slot.load(Ordering::Relaxed) != usize::MAX {
            return None;
        }
        if ring.slots.len() < self.capacity {
            dentry.cache_slot.store(ring.slots.len(), Ordering::Relaxed);
            ring.slots.push(Some(dentry.clone()));
            return None;
        }
        let at = ring.victim();
        let slot = ring.slots.get_mut(at)?;
        let evicted = slot.replace(dentry.clone());
        if let Some(evicted) = &evicted {
            evicted.cache_slot.store(usize::MAX, Ordering::Relaxed);
        }
        dentry.cache_slot.store(at, Ordering::Relaxed);
        evicted
    }

    /// Lets go of a name that is gone.
    pub(crate) fn let_go(&self, dentry: &Arc<Dentry>) {
        let mut ring = self.ring.lock();
        let at = dentry.cache_slot.load(Ordering::Relaxed);
        let kept = ring.slots.get_mut(at).and_then(|slot| slot.take_if(|kept| Arc::ptr_eq(kept, dentry)));
        if kept.is_some() {
            dentry.cache_slot.store(usize::MAX, Ordering::Relaxed);
        }
        drop(ring);
        drop(kept);
    }

    /// Lets go of all names of a file system (it was unmounted).
    pub(crate) fn let_go_of_all(&self, fs: &Arc<dyn FileSystem>) {
        let mut ring = self.ring.lock();
        let gone: Vec<Arc<Dentry>> = ring
            .slots
            .iter_mut()
            .filter_map(|slot| slot.take_if(|kept| Arc::ptr_eq(&kept.inode.fs, fs)))
            .collect();
        gone.iter().for_each(|dentry| dentry.cache_slot.store(usize::MAX, Ordering::Relaxed));
        drop(ring);
        drop(gone);
    }

    /// Lets go of everything (memory is short; `drop_caches`).
    pub fn clear(&self) {
        let gone = std::mem::take(&mut *self.ring.lock()).slots;
        gone.iter().flatten().for_each(|dentry| dentry.cache_slot.store(usize::MAX, Ordering::Relaxed));
    }
}

impl Ring {
    /// The next slot that is empty or was not used since the hand passed. Two rounds find one.
    fn victim(&mut self) -> usize {
        let len = self.slots.len().max(1);
        for _ in 0..len.saturating_mul(2) {
            let at = self.hand % len;
            self.hand = (at + 1) % len;
            match self.slots.get(at) {
                Some(Some(dentry)) if dentry.used.swap(false, Ordering::Relaxed) => {}
                _ => return at,
            }
        }
        self.hand
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_support::{TestFs, name};

    #[test]
    fn what_was_used_stays_and_what_is_removed_goes_at_once() {
        let cache = DentryCache::new(3);
        let root = Dentry::new_root(TestFs::new().root());
        let all: Vec<Arc<Dentry>> = (0..5).map(|i| name(&root, &format!("n{i}"))).collect();
        all.iter().take(3).for_each(|dentry| cache.keep(dentry));
        // The hand passes all three once and takes the first; then n1 is used again, so n2 goes.
        cache.keep(&all[3]);
        cache.keep(&all[1]);
        cache.keep(&all[4]);
        let kept: Vec<bool> = all.iter().map(|dentry| Arc::strong_count(dentry) == 2).collect();
        assert_eq!(kept, [false, true, false, true, true]);
        root.forget(&all[1]);
        cache.let_go(&all[1]);
        cache.keep(&all[1]);
        assert_eq!(Arc::strong_count(&all[1]), 1);
        cache.let_go_of_all(&root.inode.fs);
        assert_eq!(Arc::strong_count(&all[3]), 1);
    }
}
