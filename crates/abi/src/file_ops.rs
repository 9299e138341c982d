//! What can be done with open files beyond reading and writing: `fallocate`, `splice`, `flock`, seals,
//! extended attributes, and the flags of `preadv2` (`linux/falloc.h`, `linux/fs.h`, `linux/xattr.h`).

use crate::macros::{flags, layout, names};

flags! {
    /// Mode of `fallocate`.
    FallocFlags: u32, "FALLOC_FL_" {
        KEEP_SIZE = 0x1;
        PUNCH_HOLE = 0x2;
        NO_HIDE_STALE = 0x4;
        COLLAPSE_RANGE = 0x8;
        ZERO_RANGE = 0x10;
        INSERT_RANGE = 0x20;
        UNSHARE_RANGE = 0x40;
        WRITE_ZEROES = 0x80;
    }

    /// Flags of `preadv2` and `pwritev2`.
    RwfFlags: u32, "RWF_" {
        HIPRI = 0x1;
        DSYNC = 0x2;
        SYNC = 0x4;
        NOWAIT = 0x8;
        APPEND = 0x10;
        NOAPPEND = 0x20;
        ATOMIC = 0x40;
        DONTCACHE = 0x80;
    }

    /// Flags of `splice`, `tee`, `vmsplice`.
    SpliceFlags: u32, "SPLICE_F_" {
        MOVE = 1;
        NONBLOCK = 2;
        MORE = 4;
        GIFT = 8;
    }

    /// Flags of `sync_file_range`.
    SyncFileRangeFlags: u32, "SYNC_FILE_RANGE_" {
        WAIT_BEFORE = 1;
        WRITE = 2;
        WAIT_AFTER = 4;
    }

    /// Operation of `flock`: one of the first three, with or without `LOCK_NB`.
    FlockOp: u32, "LOCK_" {
        SH = 1;
        EX = 2;
        NB = 4;
        UN = 8;
        MAND = 32;
    }

    /// Argument of `F_NOTIFY`.
    DnotifyFlags: u32, "DN_" {
        ACCESS = 0x1;
        MODIFY = 0x2;
        CREATE = 0x4;
        DELETE = 0x8;
        RENAME = 0x10;
        ATTRIB = 0x20;
        MULTISHOT = 0x8000_0000;
    }

    /// Seals of a memfd (`F_ADD_SEALS`).
    SealFlags: u32, "F_SEAL_" {
        SEAL = 0x1;
        SHRINK = 0x2;
        GROW = 0x4;
        WRITE = 0x8;
        FUTURE_WRITE = 0x10;
        EXEC = 0x20;
    }

    /// Flags of `setxattr`.
    XattrFlags: u32, "XATTR_" {
        CREATE = 1;
        REPLACE = 2;
    }
}

names! {
    /// Advice of `fadvise64`.
    Fadvise: i32, "POSIX_FADV_" {
        NORMAL = 0;
        RANDOM = 1;
        SEQUENTIAL = 2;
        WILLNEED = 3;
        DONTNEED = 4;
        NOREUSE = 5;
    }
}

layout! {
    /// `struct xattr_args`, of `setxattrat` and `getxattrat`.
    struct XattrArgs: 16 {
        0 value: u64,
        8 size: u32,
        12 flags: XattrFlags,
    }

    /// `struct cachestat_range`.
    struct CachestatRange: 16 {
        0 off: u64,
        8 len: u64,
    }

    /// `struct cachestat`.
    struct Cachestat: 40 {
        0 nr_cache: u64,
        8 nr_dirty: u64,
        16 nr_writeback: u64,
        24 nr_evicted: u64,
        32 nr_recently_evicted: u64,
    }
}

/// Most bytes of an extended attribute's name, without its zero.
pub const XATTR_NAME_MAX: usize = 255;
/// Most bytes of an extended attribute's value.
pub const XATTR_SIZE_MAX: usize = 65_536;
/// Most bytes of a list of extended attributes.
pub const XATTR_LIST_MAX: usize = 65_536;
