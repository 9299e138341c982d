//! Addresses in a guest's address space. They are numbers, never pointers: nothing here can be
//! dereferenced, and arithmetic is checked.

/// End of the guest's range (`TASK_SIZE` as guests see it), exclusive. What lies above belongs to the
/// stub. Linux's own is 0x7fff_ffff_f000; guests lose 512 MiB.
pub const GUEST_TOP: u64 = 0x7fff_e000_0000;

/// Bytes in a page.
pub const PAGE_SIZE: u64 = 4096;

/// An address that a guest gave, below, at or above [`GUEST_TOP`]: checked where it is used.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[repr(transparent)]
pub struct UserAddr(pub u64);

impl UserAddr {
    /// The null pointer.
    pub const NULL: UserAddr = UserAddr(0);

    /// Whether this is the null pointer.
    pub const fn is_null(self) -> bool {
        self.0 == 0
    }

    /// `self + bytes`, or `None` past the end of 64 bits.
    pub const fn checked_add(self, bytes: u64) -> Option<UserAddr> {
        match self.0.checked_add(bytes) {
            Some(sum) => Some(UserAddr(sum)),
            None => None,
        }
    }

    /// Whether `[self, self + len)` lies wholly in the guest's range (Linux: `access_ok`).
    pub const fn in_guest_range(self, len: u64) -> bool {
        matches!(self.0.checked_add(len), Some(end) if end <= GUEST_TOP)
    }

    /// Rounded down to a page.
    pub const fn page_floor(self) -> UserAddr {
        UserAddr(self.0 & !(PAGE_SIZE - 1))
    }

    /// Rounded up to a page, or `None` past the end of 64 bits.
    pub const fn page_ceil(self) -> Option<UserAddr> {
        match self.0.checked_add(PAGE_SIZE - 1) {
            Some(sum) => Some(UserAddr(sum & !(PAGE_SIZE - 1))),
            None => None,
        }
    }

    /// Whether it lies on a page boundary.
    pub const fn is_page_aligned(self) -> bool {
        self.0 & (PAGE_SIZE - 1) == 0
    }
}

impl core::fmt::Debug for UserAddr {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}
