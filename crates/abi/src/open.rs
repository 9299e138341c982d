//! Opening files and what descriptors can do: `open` and its kin, `fcntl`, `lseek`, and the flags of the
//! `*at` calls (`asm-generic/fcntl.h`, `linux/fcntl.h`, `linux/openat2.h`, `linux/fs.h`).

use crate::macros::{flags, layout, names, write_flags};

flags! {
    /// Flags of `open`, and of an open description (`F_GETFL`). The two lowest bits are the access mode.
    custom OpenFlags: u32, "O_" {
        WRONLY = 0o1;
        RDWR = 0o2;
        CREAT = 0o100;
        EXCL = 0o200;
        NOCTTY = 0o400;
        TRUNC = 0o1000;
        APPEND = 0o2000;
        NONBLOCK = 0o4000;
        SYNC = 0o4010000;
        DSYNC = 0o10000;
        ASYNC = 0o20000, "FASYNC";
        DIRECT = 0o40000;
        LARGEFILE = 0o100000;
        TMPFILE = 0o20200000;
        DIRECTORY = 0o200000;
        NOFOLLOW = 0o400000;
        NOATIME = 0o1000000;
        CLOEXEC = 0o2000000;
        PATH = 0o10000000;
    }
}

names! {
    /// The access mode of [`OpenFlags`].
    AccessMode: u32, "O_" {
        RDONLY = 0;
        WRONLY = 1;
        RDWR = 2;
        /// 3: checked for both, may do neither.
        ACCMODE = 3;
    }
}

impl OpenFlags {
    /// Access mode 0, which has no bit.
    pub const RDONLY: OpenFlags = OpenFlags(0);
    /// The bits of the access mode (`O_ACCMODE`).
    pub const ACCESS_MASK: u32 = 3;
    /// What `F_SETFL` can change (`SETFL_MASK`).
    pub const SETFL_MASK: OpenFlags = OpenFlags(0o2000 | 0o4000 | 0o20000 | 0o40000 | 0o1000000);
    /// What `open` takes; it ignores other bits, `openat2` refuses them (`VALID_OPEN_FLAGS`).
    pub const VALID: OpenFlags = OpenFlags(
        0o3 | 0o100
            | 0o200
            | 0o400
            | 0o1000
            | 0o2000
            | 0o4000
            | 0o4010000
            | 0o20000
            | 0o40000
            | 0o100000
            | 0o20200000
            | 0o400000
            | 0o1000000
            | 0o2000000
            | 0o10000000,
    );

    /// The access mode.
    pub const fn access_mode(self) -> AccessMode {
        AccessMode(self.0 & Self::ACCESS_MASK)
    }

    /// Whether what it opens can be read.
    pub const fn is_readable(self) -> bool {
        matches!(self.access_mode(), AccessMode::RDONLY | AccessMode::RDWR)
    }

    /// Whether what it opens can be written.
    pub const fn is_writable(self) -> bool {
        matches!(self.access_mode(), AccessMode::WRONLY | AccessMode::RDWR)
    }
}

impl core::fmt::Display for AccessFlags {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        if self.is_empty() {
            // Whether it is there at all.
            return f.write_str("F_OK");
        }
        write_flags(
            f,
            u64::from(self.0),
            Self::NAMES.iter().map(|&(bits, name)| (u64::from(bits), name)),
            false,
        )
    }
}

impl core::fmt::Display for OpenFlags {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        self.access_mode().fmt(f)?;
        let names = Self::NAMES.iter().map(|&(bits, name)| (u64::from(bits), name));
        write_flags(f, u64::from(self.0 & !Self::ACCESS_MASK), names, true)
    }
}

flags! {
    /// `open_how.resolve`, of `openat2`.
    ResolveFlags: u64, "RESOLVE_" {
        NO_XDEV = 0x1;
        NO_MAGICLINKS = 0x2;
        NO_SYMLINKS = 0x4;
        BENEATH = 0x8;
        IN_ROOT = 0x10;
        CACHED = 0x20;
    }

    /// Flags of the `*at` calls. Some bits mean something else in some calls; those have a type of their
    /// own ([`UnlinkFlags`], [`HandleFlags`]).
    AtFlags: u32, "AT_" {
        SYMLINK_NOFOLLOW = 0x100;
        /// `AT_REMOVEDIR` and `AT_HANDLE_FID` are the same bit.
        EACCESS = 0x200;
        SYMLINK_FOLLOW = 0x400;
        NO_AUTOMOUNT = 0x800;
        EMPTY_PATH = 0x1000;
        STATX_FORCE_SYNC = 0x2000;
        STATX_DONT_SYNC = 0x4000;
        RECURSIVE = 0x8000;
        EXECVE_CHECK = 0x1_0000;
    }

    /// Flags of `unlinkat`.
    UnlinkFlags: u32, "AT_" {
        REMOVEDIR = 0x200;
    }

    /// Flags of `name_to_handle_at`.
    HandleFlags: u32, "AT_" {
        HANDLE_MNT_ID_UNIQUE = 0x1;
        HANDLE_CONNECTABLE = 0x2;
        HANDLE_FID = 0x200;
        SYMLINK_FOLLOW = 0x400;
        EMPTY_PATH = 0x1000;
    }

    /// Flags of `renameat2`.
    RenameFlags: u32, "RENAME_" {
        NOREPLACE = 1;
        EXCHANGE = 2;
        WHITEOUT = 4;
    }

    /// Mode of `access`; 0 is `F_OK`.
    custom AccessFlags: u32, "" {
        R_OK = 4;
        W_OK = 2;
        X_OK = 1;
    }

    /// Flags of a descriptor (`F_GETFD`).
    FdFlags: u32, "FD_" {
        CLOEXEC = 1;
    }

    /// Flags of `pipe2` and `dup3`.
    PipeFlags: u32, "O_" {
        /// `O_EXCL`: a queue of watch notifications.
        NOTIFICATION_PIPE = 0o200;
        NONBLOCK = 0o4000;
        DIRECT = 0o40000;
        CLOEXEC = 0o2000000;
    }

    /// Flags of `close_range`.
    CloseRangeFlags: u32, "CLOSE_RANGE_" {
        UNSHARE = 2;
        CLOEXEC = 4;
    }
}

/// Directory argument of the `*at` calls: the current directory.
pub const AT_FDCWD: i32 = -100;
/// Directory argument: the root of the mount namespace's pidfs handles (`FD_PIDFS_ROOT`).
pub const FD_PIDFS_ROOT: i32 = -10002;
/// Directory argument: the root of nsfs handles (`FD_NSFS_ROOT`).
pub const FD_NSFS_ROOT: i32 = -10003;
/// Pidfd argument: the calling thread (`PIDFD_SELF_THREAD`, `PIDFD_SELF`).
pub const PIDFD_SELF_THREAD: i32 = -10000;
/// Pidfd argument: the calling process (`PIDFD_SELF_THREAD_GROUP`).
pub const PIDFD_SELF_THREAD_GROUP: i32 = -10001;
/// Nothing at all (`FD_INVALID`).
pub const FD_INVALID: i32 = -10009;
/// Most bytes of a path, with its zero.
pub const PATH_MAX: usize = 4096;
/// Most bytes of one name in a path.
pub const NAME_MAX: usize = 255;
/// Most elements of an `iovec` array.
pub const UIO_MAXIOV: usize = 1024;
/// Most bytes that one read or write moves (`MAX_RW_COUNT`).
pub const MAX_RW_COUNT: usize = 0x7fff_f000;

names! {
    /// From where `lseek` counts.
    Whence: u32, "SEEK_" {
        SET = 0;
        CUR = 1;
        END = 2;
        DATA = 3;
        HOLE = 4;
    }

    /// Command of `fcntl`.
    FcntlCmd: u32, "F_" {
        DUPFD = 0;
        GETFD = 1;
        SETFD = 2;
        GETFL = 3;
        SETFL = 4;
        GETLK = 5;
        SETLK = 6;
        SETLKW = 7;
        SETOWN = 8;
        GETOWN = 9;
        SETSIG = 10;
        GETSIG = 11;
        SETOWN_EX = 15;
        GETOWN_EX = 16;
        GETOWNER_UIDS = 17;
        OFD_GETLK = 36;
        OFD_SETLK = 37;
        OFD_SETLKW = 38;
        SETLEASE = 1024;
        GETLEASE = 1025;
        NOTIFY = 1026;
        DUPFD_QUERY = 1027;
        CREATED_QUERY = 1028;
        CANCELLK = 1029;
        DUPFD_CLOEXEC = 1030;
        SETPIPE_SZ = 1031;
        GETPIPE_SZ = 1032;
        ADD_SEALS = 1033;
        GET_SEALS = 1034;
        GET_RW_HINT = 1035;
        SET_RW_HINT = 1036;
        GET_FILE_RW_HINT = 1037;
        SET_FILE_RW_HINT = 1038;
    }

    /// Kind of a record lock or lease.
    LockType: i16, "F_" {
        RDLCK = 0;
        WRLCK = 1;
        UNLCK = 2;
    }

    /// Whom [`FOwnerEx`] names.
    FOwnerType: i32, "F_OWNER_" {
        TID = 0;
        PID = 1;
        PGRP = 2;
    }
}

layout! {
    /// `struct open_how`, of `openat2`.
    struct OpenHow: 24 {
        0 flags: u64,
        8 mode: u64,
        16 resolve: ResolveFlags,
    }

    /// `struct flock`.
    struct Flock: 32 {
        0 lock_type: LockType,
        2 whence: i16,
        4 pad0: u32,
        8 start: i64,
        16 len: i64,
        24 pid: i32,
        28 pad1: u32,
    }

    /// `struct f_owner_ex`.
    struct FOwnerEx: 8 {
        0 owner_type: FOwnerType,
        4 pid: i32,
    }

    /// `struct iovec`.
    struct Iovec: 16 {
        0 base: u64,
        8 len: u64,
    }

    /// The fixed part of `struct file_handle`; `handle_bytes` of data follow.
    struct FileHandle: 8 {
        0 handle_bytes: u32,
        4 handle_type: i32,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;

    #[test]
    fn open_flags_print_their_access_mode_first() {
        assert_eq!(OpenFlags::RDONLY.to_string(), "O_RDONLY");
        let flags = OpenFlags::RDWR | OpenFlags::CREAT | OpenFlags::SYNC;
        assert_eq!(flags.to_string(), "O_RDWR|O_CREAT|O_SYNC");
        let odd = OpenFlags::from_bits_retain(0x8000_0000 | 0o10000 | 3);
        assert_eq!(odd.to_string(), "O_ACCMODE|O_DSYNC|0x80000000");
    }
}
