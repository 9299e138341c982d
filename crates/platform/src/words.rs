//! Words that a guest thread and the kernel share while the guest runs: what it blocks, what waits for it.

use std::sync::atomic::{AtomicU64, Ordering};

/// The words of one guest thread, as any thread of the kernel may use them: without waiting, whether the guest runs or not.
///
/// Where the platform serves calls inside the guest process, the guest may write them at any time: what is read is its own
/// thread's word about itself, and worth no more.
pub trait SharedWords: Send + Sync {
    /// The signals that it blocks, signal `n` as bit `n - 1`. Sequentially consistent, as all of these.
    fn blocked(&self) -> u64;
    fn set_blocked(&self, set: u64);

    /// The signals that wait for it or for its process, as it is told: one that changes what it blocks of these comes to the
    /// kernel at once ([`Trap::Interrupted`](crate::Trap::Interrupted)). Too many are harmless.
    fn add_pending(&self, set: u64);
    fn set_pending(&self, set: u64);

    /// Whether advice about memory that has no effect beyond its contents (`madvise`) may go to the host without the kernel.
    fn set_advice_is_free(&self, free: bool);
}

/// The words of a platform that serves nothing by itself.
#[derive(Debug, Default)]
pub struct OwnWords {
    blocked: AtomicU64,
}

impl OwnWords {
    /// Of a thread that blocks these signals.
    pub fn new(blocked: u64) -> OwnWords {
        OwnWords { blocked: AtomicU64::new(blocked) }
    }
}

impl SharedWords for OwnWords {
    fn blocked(&self) -> u64 {
        self.blocked.load(Ordering::SeqCst)
    }

    fn set_blocked(&self, set: u64) {
        self.blocked.store(set, Ordering::SeqCst);
    }

    fn add_pending(&self, _: u64) {}

    fn set_pending(&self, _: u64) {}

    fn set_advice_is_free(&self, _: bool) {}
}
