//! What a file is: modes, types, device numbers, and `stat`, `statx` and `statfs` results
//! (`asm/stat.h`, `linux/stat.h`, `asm/statfs.h`).

use crate::macros::{flags, layout, names};
use crate::time::Timespec;

names! {
    /// A file's type: the `S_IFMT` bits of its mode, in place.
    FileType: u32, "S_IF" {
        FIFO = 0o010000, "S_IFIFO";
        CHR = 0o020000;
        DIR = 0o040000;
        BLK = 0o060000;
        REG = 0o100000;
        LNK = 0o120000;
        SOCK = 0o140000;
    }
}

impl FileType {
    /// Its number in a directory entry (`DT_REG` and so on).
    pub const fn dirent_type(self) -> u8 {
        ((self.0 >> 12) & 0xf) as u8
    }
}

flags! {
    /// A file's mode: type and permission bits (`st_mode`).
    custom FileMode: u32, "S_I" {
        SUID = 0o4000, "S_ISUID";
        SGID = 0o2000, "S_ISGID";
        SVTX = 0o1000, "S_ISVTX";
        RWXU = 0o700;
        RUSR = 0o400;
        WUSR = 0o200;
        XUSR = 0o100;
        RWXG = 0o070;
        RGRP = 0o040;
        WGRP = 0o020;
        XGRP = 0o010;
        RWXO = 0o007;
        ROTH = 0o004;
        WOTH = 0o002;
        XOTH = 0o001;
    }
}

impl FileMode {
    /// The bits that hold the type (`S_IFMT`).
    pub const TYPE_MASK: u32 = 0o170000;
    /// The bits that `chmod` may set (`S_IALLUGO`).
    pub const PERMISSION_MASK: u32 = 0o7777;

    /// A mode of this type and these permission bits.
    pub const fn new(file_type: FileType, permissions: u32) -> FileMode {
        FileMode((file_type.0 & Self::TYPE_MASK) | (permissions & Self::PERMISSION_MASK))
    }

    /// Its type.
    pub const fn file_type(self) -> FileType {
        FileType(self.0 & Self::TYPE_MASK)
    }

    /// Its permission bits with set-id and sticky bits, 0 to 0o7777.
    pub const fn permissions(self) -> u32 {
        self.0 & Self::PERMISSION_MASK
    }

    /// The same type with other permission bits.
    pub const fn with_permissions(self, permissions: u32) -> FileMode {
        FileMode((self.0 & !Self::PERMISSION_MASK) | (permissions & Self::PERMISSION_MASK))
    }

    /// Whether it is a regular file's.
    pub const fn is_regular(self) -> bool {
        self.file_type().0 == FileType::REG.0
    }

    /// Whether it is a directory's.
    pub const fn is_dir(self) -> bool {
        self.file_type().0 == FileType::DIR.0
    }

    /// Whether it is a symbolic link's.
    pub const fn is_symlink(self) -> bool {
        self.file_type().0 == FileType::LNK.0
    }
}

impl core::fmt::Display for FileMode {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let file_type = self.file_type();
        match file_type.name() {
            Some(name) => write!(f, "{name}|0{:03o}", self.0 & !Self::TYPE_MASK),
            None => write!(f, "0{:03o}", self.0),
        }
    }
}

/// A device number as user space sees it, from major and minor. Linux keeps 12 and 20 bits of them
/// (`new_encode_dev`); what lies above is cut off.
pub const fn makedev(major: u32, minor: u32) -> u64 {
    let (major, minor) = (major as u64 & 0xfff, minor as u64 & 0xf_ffff);
    (minor & 0xff) | (major << 8) | ((minor & !0xff) << 12)
}

/// The major number in a device number (`new_decode_dev`: bits above 32 do not count).
pub const fn major(dev: u64) -> u32 {
    ((dev >> 8) & 0xfff) as u32
}

/// The minor number in a device number.
pub const fn minor(dev: u64) -> u32 {
    let dev = dev & 0xffff_ffff;
    (dev & 0xff) as u32 | ((dev >> 12) & 0xf_ff00) as u32
}

layout! {
    /// `struct stat`.
    struct Stat: 144 {
        0 dev: u64,
        8 ino: u64,
        16 nlink: u64,
        24 mode: FileMode,
        28 uid: u32,
        32 gid: u32,
        36 pad0: u32,
        40 rdev: u64,
        48 size: i64,
        56 blksize: i64,
        /// In units of 512 bytes.
        64 blocks: i64,
        72 atime: Timespec,
        88 mtime: Timespec,
        104 ctime: Timespec,
        120 unused: [i64; 3],
    }

    /// `struct statx_timestamp`.
    struct StatxTimestamp: 16 {
        0 sec: i64,
        8 nsec: u32,
        12 reserved: i32,
    }

    /// `struct statx`, with the fields that 6.18 knows.
    struct Statx: 256 {
        0 mask: StatxMask,
        4 blksize: u32,
        8 attributes: StatxAttributes,
        16 nlink: u32,
        20 uid: u32,
        24 gid: u32,
        28 mode: u16,
        30 spare0: u16,
        32 ino: u64,
        40 size: u64,
        48 blocks: u64,
        56 attributes_mask: StatxAttributes,
        64 atime: StatxTimestamp,
        80 btime: StatxTimestamp,
        96 ctime: StatxTimestamp,
        112 mtime: StatxTimestamp,
        128 rdev_major: u32,
        132 rdev_minor: u32,
        136 dev_major: u32,
        140 dev_minor: u32,
        144 mnt_id: u64,
        152 dio_mem_align: u32,
        156 dio_offset_align: u32,
        160 subvol: u64,
        168 atomic_write_unit_min: u32,
        172 atomic_write_unit_max: u32,
        176 atomic_write_segments_max: u32,
        180 dio_read_offset_align: u32,
        184 atomic_write_unit_max_opt: u32,
        188 spare2: u32,
        192 spare3: [u64; 8],
    }

    /// `struct statfs`.
    struct Statfs: 120 {
        0 fs_type: FsMagic,
        8 bsize: i64,
        16 blocks: u64,
        24 bfree: u64,
        32 bavail: u64,
        40 files: u64,
        48 ffree: u64,
        56 fsid: [i32; 2],
        64 namelen: i64,
        72 frsize: i64,
        80 flags: StatfsFlags,
        88 spare: [i64; 4],
    }

    /// `struct ustat`, the result of the call of that name.
    struct Ustat: 32 {
        0 tfree: i32,
        4 pad: u32,
        8 tinode: u64,
        16 fname: [u8; 6],
        22 fpack: [u8; 6],
        28 pad1: u32,
    }

    /// `struct file_attr`, of `file_getattr` and `file_setattr`.
    struct FileAttr: 24 {
        0 xflags: u64,
        8 extsize: u32,
        12 nextents: u32,
        16 projid: u32,
        20 cowextsize: u32,
    }
}

impl From<Timespec> for StatxTimestamp {
    fn from(time: Timespec) -> StatxTimestamp {
        StatxTimestamp { sec: time.sec, nsec: u32::try_from(time.nsec).unwrap_or(0), reserved: 0 }
    }
}

flags! {
    /// Which fields of [`Statx`] are wanted, or filled in.
    StatxMask: u32, "STATX_" {
        BASIC_STATS = 0x7ff;
        TYPE = 0x1;
        MODE = 0x2;
        NLINK = 0x4;
        UID = 0x8;
        GID = 0x10;
        ATIME = 0x20;
        MTIME = 0x40;
        CTIME = 0x80;
        INO = 0x100;
        SIZE = 0x200;
        BLOCKS = 0x400;
        BTIME = 0x800;
        MNT_ID = 0x1000;
        DIOALIGN = 0x2000;
        MNT_ID_UNIQUE = 0x4000;
        SUBVOL = 0x8000;
        WRITE_ATOMIC = 0x1_0000;
        DIO_READ_ALIGN = 0x2_0000;
        RESERVED = 0x8000_0000, "STATX__RESERVED";
    }

    /// `stx_attributes`.
    StatxAttributes: u64, "STATX_ATTR_" {
        COMPRESSED = 0x4;
        IMMUTABLE = 0x10;
        APPEND = 0x20;
        NODUMP = 0x40;
        ENCRYPTED = 0x800;
        AUTOMOUNT = 0x1000;
        MOUNT_ROOT = 0x2000;
        VERITY = 0x10_0000;
        DAX = 0x20_0000;
        WRITE_ATOMIC = 0x40_0000;
    }

    /// Mount flags as `statfs` shows them (`linux/statfs.h`).
    StatfsFlags: u64, "ST_" {
        RDONLY = 0x1;
        NOSUID = 0x2;
        NODEV = 0x4;
        NOEXEC = 0x8;
        SYNCHRONOUS = 0x10;
        VALID = 0x20;
        MANDLOCK = 0x40;
        NOATIME = 0x400;
        NODIRATIME = 0x800;
        RELATIME = 0x1000;
        NOSYMFOLLOW = 0x2000;
    }
}

names! {
    /// A file system's magic number (`linux/magic.h`).
    FsMagic: i64, "" {
        ANON_INODE = 0x0904_1934, "ANON_INODE_FS_MAGIC";
        BINFMTFS = 0x4249_4e4d, "BINFMTFS_MAGIC";
        BPF = 0xcafe_4a11, "BPF_FS_MAGIC";
        BTRFS = 0x9123_683e, "BTRFS_SUPER_MAGIC";
        CGROUP = 0x0027_e0eb, "CGROUP_SUPER_MAGIC";
        CGROUP2 = 0x6367_7270, "CGROUP2_SUPER_MAGIC";
        DEBUGFS = 0x6462_6720, "DEBUGFS_MAGIC";
        DEVPTS = 0x1cd1, "DEVPTS_SUPER_MAGIC";
        EROFS = 0xe0f5_e1e2, "EROFS_SUPER_MAGIC_V1";
        EXT4 = 0xef53, "EXT4_SUPER_MAGIC";
        FUSE = 0x6573_5546, "FUSE_SUPER_MAGIC";
        HOSTFS = 0x00c0_ffee, "HOSTFS_SUPER_MAGIC";
        HUGETLBFS = 0x9584_58f6, "HUGETLBFS_MAGIC";
        ISOFS = 0x9660, "ISOFS_SUPER_MAGIC";
        MQUEUE = 0x1980_0202, "MQUEUE_MAGIC";
        MSDOS = 0x4d44, "MSDOS_SUPER_MAGIC";
        NFS = 0x6969, "NFS_SUPER_MAGIC";
        NSFS = 0x6e73_6673, "NSFS_MAGIC";
        OVERLAYFS = 0x794c_7630, "OVERLAYFS_SUPER_MAGIC";
        PIDFS = 0x5049_4446, "PID_FS_MAGIC";
        PIPEFS = 0x5049_5045, "PIPEFS_MAGIC";
        PROC = 0x9fa0, "PROC_SUPER_MAGIC";
        RAMFS = 0x8584_58f6, "RAMFS_MAGIC";
        SECURITYFS = 0x7363_6673, "SECURITYFS_MAGIC";
        SOCKFS = 0x534f_434b, "SOCKFS_MAGIC";
        SQUASHFS = 0x7371_7368, "SQUASHFS_MAGIC";
        SYSFS = 0x6265_6572, "SYSFS_MAGIC";
        TMPFS = 0x0102_1994, "TMPFS_MAGIC";
        TRACEFS = 0x7472_6163, "TRACEFS_MAGIC";
        V9FS = 0x0102_1997, "V9FS_MAGIC";
        XFS = 0x5846_5342, "XFS_SUPER_MAGIC";
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;

    #[test]
    fn device_numbers_keep_12_and_20_bits() {
        assert_eq!(makedev(1, 3), 0x103);
        assert_eq!(makedev(0xfff, 0xf_ffff), 0xffff_ffff);
        assert_eq!(makedev(0x1001, 0x10_0000), 0x100);
        for (a, b) in [(136, 7), (259, 0x1_2345), (0, 41)] {
            assert_eq!((major(makedev(a, b)), minor(makedev(a, b))), (a, b));
        }
    }

    #[test]
    fn modes_print_as_type_and_octal() {
        assert_eq!(FileMode::new(FileType::REG, 0o644).to_string(), "S_IFREG|0644");
        assert_eq!(FileType::LNK.dirent_type(), 10);
        assert!(FileMode::new(FileType::DIR, 0).is_dir());
    }
}
