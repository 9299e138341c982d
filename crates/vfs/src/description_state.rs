//! What `fcntl` keeps with an open file.

use std::sync::atomic::{AtomicI32, Ordering};

/// The owner that gets SIGIO and SIGURG (`F_SETOWN`): a pid, a negated process group, or 0.
#[derive(Default)]
pub struct DescriptionState {
    owner: AtomicI32,
    signal: AtomicI32,
}

impl DescriptionState {
    pub fn owner(&self) -> i32 {
        self.owner.load(Ordering::Relaxed)
    }
    pub fn set_owner(&self, owner: i32) {
        self.owner.store(owner, Ordering::Relaxed);
    }
    /// `F_SETSIG`'s signal, 0 for SIGIO.
    pub fn signal(&self) -> i32 {
        self.signal.load(Ordering::Relaxed)
    }
    pub fn set_signal(&self, signal: i32) {
        self.signal.store(signal, Ordering::Relaxed);
    }
}
