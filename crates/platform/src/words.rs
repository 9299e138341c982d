//! Words that a guest thread and the kernel share: what it blocks, what waits for it, its alternate signal stack.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use abi::{Sigaltstack, SsFlags};

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

    /// Its alternate signal stack as it set it (Linux: `sas_ss_sp`, `sas_ss_flags`, `sas_ss_size`): any three numbers. Only
    /// whole while the guest is stopped, so only its own kernel thread uses it.
    fn alternate_stack(&self) -> Sigaltstack;
    fn set_alternate_stack(&self, stack: &Sigaltstack);
}

/// The words of a platform that serves nothing by itself.
#[derive(Debug)]
pub struct OwnWords {
    blocked: AtomicU64,
    alternate_sp: AtomicU64,
    alternate_flags: AtomicU32,
    alternate_size: AtomicU64,
}

impl Default for OwnWords {
    fn default() -> OwnWords {
        OwnWords::new(0)
    }
}

impl OwnWords {
    /// Of a thread that blocks these signals and has no alternate stack.
    pub fn new(blocked: u64) -> OwnWords {
        let Sigaltstack { sp, flags, size, .. } = Sigaltstack::DISABLED;
        OwnWords {
            blocked: AtomicU64::new(blocked),
            alternate_sp: AtomicU64::new(sp),
            alternate_flags: AtomicU32::new(flags.bits()),
            alternate_size: AtomicU64::new(size),
        }
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

    fn alternate_stack(&self) -> Sigaltstack {
        Sigaltstack {
            sp: self.alternate_sp.load(Ordering::Relaxed),
            flags: SsFlags::from_bits_retain(self.alternate_flags.load(Ordering::Relaxed)),
            pad: 0,
            size: self.alternate_size.load(Ordering::Relaxed),
        }
    }

    fn set_alternate_stack(&self, stack: &Sigaltstack) {
        self.alternate_sp.store(stack.sp, Ordering::Relaxed);
        self.alternate_flags.store(stack.flags.bits(), Ordering::Relaxed);
        self.alternate_size.store(stack.size, Ordering::Relaxed);
    }
}
