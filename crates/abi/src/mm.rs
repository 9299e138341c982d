//! Memory: protection, mappings, advice (`asm-generic/mman*.h`, `linux/mman.h`).

use crate::macros::{flags, names, write_flags};

flags! {
    /// What a page may be used for; 0 is `PROT_NONE`.
    custom Prot: u32, "PROT_" {
        READ = 1;
        WRITE = 2;
        EXEC = 4;
        SEM = 8;
        GROWSDOWN = 0x0100_0000;
        GROWSUP = 0x0200_0000;
    }
}

impl core::fmt::Display for Prot {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        if self.0 == 0 {
            return f.write_str("PROT_NONE");
        }
        write_flags(
            f,
            u64::from(self.0),
            Self::NAMES.iter().map(|&(bits, name)| (u64::from(bits), name)),
            false,
        )
    }
}

impl Prot {
    /// No access.
    pub const NONE: Prot = Prot(0);
}

flags! {
    /// Flags of `mmap`. The four lowest bits are the kind ([`MapFlags::kind`]), six at the top the size of
    /// huge pages.
    custom MapFlags: u32, "MAP_" {
        SHARED = 0x1;
        PRIVATE = 0x2;
        DROPPABLE = 0x8;
        FIXED = 0x10;
        ANONYMOUS = 0x20;
        /// x86 alone: in the lowest 2 GiB.
        BIT32 = 0x40, "MAP_32BIT";
        ABOVE4G = 0x80;
        GROWSDOWN = 0x100;
        DENYWRITE = 0x800;
        EXECUTABLE = 0x1000;
        LOCKED = 0x2000;
        NORESERVE = 0x4000;
        POPULATE = 0x8000;
        NONBLOCK = 0x1_0000;
        STACK = 0x2_0000;
        HUGETLB = 0x4_0000;
        /// With [`MapKind::SHARED_VALIDATE`] alone.
        SYNC = 0x8_0000;
        FIXED_NOREPLACE = 0x10_0000;
        UNINITIALIZED = 0x400_0000;
    }
}

names! {
    /// The kind of a mapping (`MAP_TYPE` bits).
    MapKind: u32, "MAP_" {
        FILE = 0;
        SHARED = 1;
        PRIVATE = 2;
        /// Shared, and unknown flags are refused.
        SHARED_VALIDATE = 3;
        DROPPABLE = 8;
    }
}

impl MapFlags {
    /// The bits of the kind.
    pub const KIND_MASK: u32 = 0xf;
    /// Where the logarithm of the huge page's size lies.
    pub const HUGE_SHIFT: u32 = 26;
    /// How wide it is.
    pub const HUGE_MASK: u32 = 0x3f;

    /// Shared, private or droppable.
    pub const fn kind(self) -> MapKind {
        MapKind(self.0 & Self::KIND_MASK)
    }

    /// The logarithm of the size of huge pages that is asked for; 0 is the default.
    pub const fn huge_page_log2(self) -> u32 {
        self.0 >> Self::HUGE_SHIFT
    }
}

impl core::fmt::Display for MapFlags {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        self.kind().fmt(f)?;
        let huge = if self.contains(MapFlags::HUGETLB) { self.huge_page_log2() } else { 0 };
        let rest = self.0 & !Self::KIND_MASK & !(huge << Self::HUGE_SHIFT);
        write_flags(
            f,
            u64::from(rest),
            Self::NAMES.iter().map(|&(bits, name)| (u64::from(bits), name)),
            true,
        )?;
        if huge != 0 {
            write!(f, "|{huge}<<MAP_HUGE_SHIFT")?;
        }
        Ok(())
    }
}

flags! {
    /// Flags of `mremap`.
    MremapFlags: u32, "MREMAP_" {
        MAYMOVE = 1;
        FIXED = 2;
        DONTUNMAP = 4;
    }

    /// Flags of `msync`.
    MsFlags: u32, "MS_" {
        ASYNC = 1;
        INVALIDATE = 2;
        SYNC = 4;
    }

    /// Flags of `mlock2`.
    MlockFlags: u32, "MLOCK_" {
        ONFAULT = 1;
    }

    /// Flags of `mlockall`.
    MclFlags: u32, "MCL_" {
        CURRENT = 1;
        FUTURE = 2;
        ONFAULT = 4;
    }

    /// Flags of `memfd_create`. Its six top bits are as in [`MapFlags`].
    MfdFlags: u32, "MFD_" {
        CLOEXEC = 1;
        ALLOW_SEALING = 2;
        HUGETLB = 4;
        NOEXEC_SEAL = 8;
        EXEC = 0x10;
    }

    /// Rights that `pkey_alloc` takes away.
    PkeyAccess: u32, "PKEY_" {
        DISABLE_ACCESS = 1;
        DISABLE_WRITE = 2;
    }

    /// Flags of `map_shadow_stack`.
    ShadowStackFlags: u32, "SHADOW_STACK_" {
        SET_TOKEN = 1;
    }

    /// Flags of `mbind`.
    MbindFlags: u32, "MPOL_MF_" {
        STRICT = 1;
        MOVE = 2;
        MOVE_ALL = 4;
    }

    /// Flags of `get_mempolicy`.
    MempolicyFlags: u32, "MPOL_F_" {
        NODE = 1;
        ADDR = 2;
        MEMS_ALLOWED = 4;
    }

    /// Flags of `userfaultfd`.
    UserfaultfdFlags: u32, "" {
        USER_MODE_ONLY = 1, "UFFD_USER_MODE_ONLY";
        NONBLOCK = 0o4000, "O_NONBLOCK";
        CLOEXEC = 0o2000000, "O_CLOEXEC";
    }
}

names! {
    /// Advice of `madvise`.
    Madvise: i32, "MADV_" {
        NORMAL = 0;
        RANDOM = 1;
        SEQUENTIAL = 2;
        WILLNEED = 3;
        DONTNEED = 4;
        FREE = 8;
        REMOVE = 9;
        DONTFORK = 10;
        DOFORK = 11;
        MERGEABLE = 12;
        UNMERGEABLE = 13;
        HUGEPAGE = 14;
        NOHUGEPAGE = 15;
        DONTDUMP = 16;
        DODUMP = 17;
        WIPEONFORK = 18;
        KEEPONFORK = 19;
        COLD = 20;
        PAGEOUT = 21;
        POPULATE_READ = 22;
        POPULATE_WRITE = 23;
        DONTNEED_LOCKED = 24;
        COLLAPSE = 25;
        HWPOISON = 100;
        SOFT_OFFLINE = 101;
        GUARD_INSTALL = 102;
        GUARD_REMOVE = 103;
    }

    /// Policy of NUMA memory, without the flags of [`MempolicyMode`].
    Mempolicy: i32, "MPOL_" {
        DEFAULT = 0;
        PREFERRED = 1;
        BIND = 2;
        INTERLEAVE = 3;
        LOCAL = 4;
        PREFERRED_MANY = 5;
        WEIGHTED_INTERLEAVE = 6;
    }
}

flags! {
    /// Flags in [`MempolicyMode`].
    MempolicyModeFlags: u32, "MPOL_F_" {
        NUMA_BALANCING = 0x2000;
        RELATIVE_NODES = 0x4000;
        STATIC_NODES = 0x8000;
    }
}

/// The mode argument of `mbind` and `set_mempolicy`: a policy and flags.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct MempolicyMode(pub u32);

impl MempolicyMode {
    /// The policy.
    pub const fn policy(self) -> Mempolicy {
        Mempolicy((self.0 & !MempolicyModeFlags::KNOWN.bits()).cast_signed())
    }

    /// The flags.
    pub const fn flags(self) -> MempolicyModeFlags {
        MempolicyModeFlags::from_bits_retain(self.0 & MempolicyModeFlags::KNOWN.bits())
    }
}

impl core::fmt::Display for MempolicyMode {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        self.policy().fmt(f)?;
        let names = MempolicyModeFlags::NAMES.iter().map(|&(bits, name)| (u64::from(bits), name));
        write_flags(f, u64::from(self.flags().bits()), names, true)
    }
}

impl core::fmt::Debug for MempolicyMode {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        core::fmt::Display::fmt(self, f)
    }
}

/// In `mincore`'s result: the page is resident.
pub const MINCORE_RESIDENT: u8 = 1;

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;

    #[test]
    fn mappings_print_their_kind_first() {
        let flags = MapFlags::PRIVATE | MapFlags::ANONYMOUS | MapFlags::FIXED;
        assert_eq!(flags.to_string(), "MAP_PRIVATE|MAP_FIXED|MAP_ANONYMOUS");
        let huge = MapFlags::from_bits_retain(0x4_0003 | 21 << 26);
        assert_eq!(huge.to_string(), "MAP_SHARED_VALIDATE|MAP_HUGETLB|21<<MAP_HUGE_SHIFT");
        assert_eq!(Prot::NONE.to_string(), "PROT_NONE");
        assert_eq!((Prot::READ | Prot::EXEC).to_string(), "PROT_READ|PROT_EXEC");
        assert_eq!(Madvise(99).to_string(), "99");
    }
}
