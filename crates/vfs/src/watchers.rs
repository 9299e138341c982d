//! Those who are to know when an open file's last descriptor is closed: epolls that watch it.

use std::sync::{Arc, Weak};

use sync::{Mutex, order};

use crate::FileDescription;

/// Watches an open file without keeping it open.
pub trait Watcher: Send + Sync {
    /// The file is being closed for good; its operations can still be used. No lock is held.
    fn file_closed(&self, file: &FileDescription);
}

/// The watchers of one open file.
#[derive(Default)]
pub struct Watchers {
    all: Mutex<order::Leaf, Vec<Weak<dyn Watcher>>>,
}

impl Watchers {
    /// Adds a watcher; those that are gone make room for it.
    pub fn add(&self, watcher: Weak<dyn Watcher>) {
        let mut all = self.all.lock();
        // Only now and then, so that adding many stays linear.
        if all.len().is_power_of_two() {
            all.retain(|known| known.strong_count() > 0);
        }
        all.push(watcher);
    }

    /// Takes all of them out.
    pub(crate) fn take(&self) -> Vec<Arc<dyn Watcher>> {
        std::mem::take(&mut *self.all.lock()).iter().filter_map(Weak::upgrade).collect()
    }
}
