//! What a file system uses of its limits: pages and inodes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use abi::Errno;
use sync::SysResult;

/// Bytes in a page, Linux's unit of tmpfs space.
pub(crate) const PAGE: u64 = 4096;

/// Pages that files have in host memfds, added up over the file systems that share the account, but for files that guest
/// processes may hold, which are in a register of their own ([`host::lent`]).
#[derive(Clone, Debug, Default)]
pub struct HostPages(Arc<AtomicU64>);

impl HostPages {
    /// Bytes.
    pub fn bytes(&self) -> u64 {
        self.0.load(Ordering::Relaxed).saturating_mul(PAGE)
    }

    /// A file's share is `new` pages, no longer `old`.
    fn change(&self, old: u64, new: u64) {
        // The closure always gives a value.
        let step = |all: u64| Some(all.saturating_sub(old).saturating_add(new));
        let _ = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, step);
    }
}

/// A count with a limit; 0 is no limit, as in tmpfs's options.
#[derive(Debug, Default)]
pub(crate) struct Counter {
    used: AtomicU64,
    limit: u64,
    host: HostPages,
}

impl Counter {
    pub(crate) fn new(limit: u64) -> Counter {
        Counter { used: AtomicU64::new(0), limit, host: HostPages::default() }
    }

    /// Counts what lies in memfds in `host` too.
    pub(crate) fn with_host(self, host: HostPages) -> Counter {
        Counter { host, ..self }
    }

    /// What a file has in its memfd is `new` pages, no longer `old`.
    pub(crate) fn note_host(&self, old: u64, new: u64) {
        self.host.change(old, new);
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
