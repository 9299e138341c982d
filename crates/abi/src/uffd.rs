//! userfaultfd (`linux/userfaultfd.h`): what its requests and messages hold.

use crate::macros::{flags, layout, names};

names! {
    /// What a message tells.
    UffdEvent: u8, "UFFD_EVENT_" {
        PAGEFAULT = 0x12;
        FORK = 0x13;
        REMAP = 0x14;
        REMOVE = 0x15;
        UNMAP = 0x16;
    }
}

flags! {
    /// What a descriptor can do.
    UffdFeatures: u64, "UFFD_FEATURE_" {
        PAGEFAULT_FLAG_WP = 0x1;
        EVENT_FORK = 0x2;
        EVENT_REMAP = 0x4;
        EVENT_REMOVE = 0x8;
        MISSING_HUGETLBFS = 0x10;
        MISSING_SHMEM = 0x20;
        EVENT_UNMAP = 0x40;
        SIGBUS = 0x80;
        THREAD_ID = 0x100;
        MINOR_HUGETLBFS = 0x200;
        MINOR_SHMEM = 0x400;
        EXACT_ADDRESS = 0x800;
        WP_HUGETLBFS_SHMEM = 0x1000;
        WP_UNPOPULATED = 0x2000;
        POISON = 0x4000;
        WP_ASYNC = 0x8000;
        MOVE = 0x1_0000;
    }

    /// For which faults a range is registered.
    UffdRegisterMode: u64, "UFFDIO_REGISTER_MODE_" {
        MISSING = 1;
        WP = 2;
        MINOR = 4;
    }
}

layout! {
    /// `struct uffdio_api`.
    struct UffdioApi: 24 {
        0 api: u64,
        8 features: UffdFeatures,
        16 ioctls: u64,
    }

    /// `struct uffdio_range`.
    struct UffdioRange: 16 {
        0 start: u64,
        8 len: u64,
    }

    /// `struct uffdio_register`.
    struct UffdioRegister: 32 {
        0 range: UffdioRange,
        16 mode: UffdRegisterMode,
        24 ioctls: u64,
    }

    /// `struct uffdio_copy`.
    struct UffdioCopy: 40 {
        0 dst: u64,
        8 src: u64,
        16 len: u64,
        24 mode: u64,
        32 copy: i64,
    }

    /// `struct uffdio_zeropage`.
    struct UffdioZeropage: 32 {
        0 range: UffdioRange,
        16 mode: u64,
        24 zeropage: i64,
    }

    /// `struct uffdio_writeprotect`.
    struct UffdioWriteprotect: 24 {
        0 range: UffdioRange,
        16 mode: u64,
    }

    /// `struct uffd_msg`; `arg` is by the event: flags, address and thread of a fault.
    struct UffdMsg: 32 {
        0 event: UffdEvent,
        1 reserved1: u8,
        2 reserved2: u16,
        4 reserved3: u32,
        8 arg: [u64; 3],
    }
}

/// The only version (`UFFD_API`).
pub const UFFD_API: u64 = 0xaa;
