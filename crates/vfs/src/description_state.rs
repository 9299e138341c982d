//! What `fcntl` keeps with an open file.

use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};

/// The owner that gets SIGIO and SIGURG (`F_SETOWN`): a pid, a negated process group, or 0.
#[derive(Default)]
pub struct DescriptionState {
    owner: AtomicI32,
    /// Real and effective user of who chose the owner.
    chosen_by: AtomicU64,
    signal: AtomicI32,
}

impl DescriptionState {
    pub fn owner(&self) -> i32 {
        self.owner.load(Ordering::Relaxed)
    }
    /// Sets the owner, for a caller of this real and effective user: whom that one may signal gets the signals.
    pub fn set_owner(&self, owner: i32, uid: u32, euid: u32) {
        self.chosen_by.store(u64::from(uid) << 32 | u64::from(euid), Ordering::Relaxed);
        self.owner.store(owner, Ordering::Relaxed);
    }
    /// Real and effective user of who chose the owner.
    pub fn chosen_by(&self) -> (u32, u32) {
        let [euid, uid] = [0, 32].map(|shift| self.chosen_by.load(Ordering::Relaxed) >> shift & 0xffff_ffff);
        (u32::try_from(uid).unwrap_or(0), u32::try_from(euid).unwrap_or(0))
    }
    /// `F_SETSIG`'s signal, 0 for SIGIO.
    pub fn signal(&self) -> i32 {
        self.signal.load(Ordering::Relaxed)
    }
    pub fn set_signal(&self, signal: i32) {
        self.signal.store(signal, Ordering::Relaxed);
    }
}
