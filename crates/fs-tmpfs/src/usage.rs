//! What a file system uses of its limits: pages and inodes.

use std::sync::atomic::{AtomicU64, Ordering};

use abi::Errno;
use sync::SysResult;

/// Bytes in a page, Linux's unit of tmpfs space.
pub(crate) const PAGE: u64 = 4096;

/// A count with a limit; 0 is no limit, as in tmpfs's options.
#[derive(Debug, Default)]
pub(crate) struct Counter {
    used: AtomicU64,
    limit: u64,
}

impl Counter {
    pub(crate) fn new(limit: u64) -> Counter {
        Counter { used: AtomicU64::new(0), limit }
    }

    pub(crate) fn limit(&self) -> u64 {
        self.limit
    }

    pub(crate) fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    pub(crate) fn free(&self) -> u64 {
        self.limit.saturating_sub(self.used())
    }

    /// Takes `count`, or nothing and `ENOSPC`.
    pub(crate) fn charge(&self, count: u64) -> SysResult<()> {
        let limit = if self.limit == 0 { u64::MAX } else { self.limit };
        let step = |used: u64| used.checked_add(count).filter(|used| *used <= limit);
        match self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, step) {
            Ok(_) => Ok(()),
            Err(_) => Err(Errno::ENOSPC.into()),
        }
    }

    pub(crate) fn give_back(&self, count: u64) {
        // The closure always gives a value.
        let step = |used: u64| Some(used.saturating_sub(count));
        let _ = self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, step);
    }

    /// Replaces a charge by what it turned out to be, limit or not: the host has allocated it.
    pub(crate) fn correct(&self, charged: u64, actual: u64) {
        if actual >= charged {
            self.used.fetch_add(actual.saturating_sub(charged), Ordering::Relaxed);
        } else {
            self.give_back(charged.saturating_sub(actual));
        }
    }
}
