//! Calls that stand alone: `reboot`, `syslog`, `membarrier`, `kcmp`, `getrandom`, modules, kexec, swap,
//! quotas, NUMA, `modify_ldt`.

use crate::macros::{flags, layout, names};

names! {
    /// Second argument of `reboot`: any of four.
    RebootMagic2: u32, "LINUX_REBOOT_" {
        MAGIC2 = 672_274_793;
        MAGIC2A = 85_072_278;
        MAGIC2B = 369_367_448;
        MAGIC2C = 537_993_216;
    }

    /// What `reboot` does.
    RebootCmd: u32, "LINUX_REBOOT_CMD_" {
        RESTART = 0x0123_4567;
        HALT = 0xcdef_0123;
        CAD_ON = 0x89ab_cdef;
        CAD_OFF = 0;
        POWER_OFF = 0x4321_fedc;
        RESTART2 = 0xa1b2_c3d4;
        SW_SUSPEND = 0xd000_fce2;
        KEXEC = 0x4558_4543;
    }

    /// What `syslog` does.
    SyslogAction: i32, "SYSLOG_ACTION_" {
        CLOSE = 0;
        OPEN = 1;
        READ = 2;
        READ_ALL = 3;
        READ_CLEAR = 4;
        CLEAR = 5;
        CONSOLE_OFF = 6;
        CONSOLE_ON = 7;
        CONSOLE_LEVEL = 8;
        SIZE_UNREAD = 9;
        SIZE_BUFFER = 10;
    }

    /// What `kcmp` compares.
    KcmpType: i32, "KCMP_" {
        FILE = 0;
        VM = 1;
        FILES = 2;
        FS = 3;
        SIGHAND = 4;
        IO = 5;
        SYSVSEM = 6;
        EPOLL_TFD = 7;
    }

    /// What `modify_ldt` does; Linux has no names for it.
    ModifyLdtFunc: i32, "" {
        READ = 0, "read";
        WRITE_OLD = 1, "write_old";
        READ_DEFAULT = 2, "read_default";
        WRITE = 0x11, "write";
    }

    /// What `quotactl` does: its command shifted down by eight bits.
    QuotaCmd: u32, "Q_" {
        SYNC = 0x80_0001;
        QUOTAON = 0x80_0002;
        QUOTAOFF = 0x80_0003;
        GETFMT = 0x80_0004;
        GETINFO = 0x80_0005;
        SETINFO = 0x80_0006;
        GETQUOTA = 0x80_0007;
        SETQUOTA = 0x80_0008;
        GETNEXTQUOTA = 0x80_0009;
        XQUOTAON = 0x5801;
        XQUOTAOFF = 0x5802;
        XGETQUOTA = 0x5803;
        XSETQLIM = 0x5804;
        XGETQSTAT = 0x5805;
        XQUOTARM = 0x5806;
        XQUOTASYNC = 0x5807;
        XGETQSTATV = 0x5808;
        XGETNEXTQUOTA = 0x5809;
    }

    /// Whose quotas: the lowest byte of `quotactl`'s command.
    QuotaType: u32, "" {
        USRQUOTA = 0;
        GRPQUOTA = 1;
        PRJQUOTA = 2;
    }

    /// What `sysfs` does; Linux has no names for it.
    SysfsOption: i32, "" {
        NAME_TO_INDEX = 1, "name_to_index";
        INDEX_TO_NAME = 2, "index_to_name";
        COUNT = 3, "count";
    }
}

/// The first magic number of `reboot`.
pub const LINUX_REBOOT_MAGIC1: u32 = 0xfee1_dead;

flags! {
    /// Flags of `getrandom`.
    GrndFlags: u32, "GRND_" {
        NONBLOCK = 1;
        RANDOM = 2;
        INSECURE = 4;
    }

    /// What `membarrier` does: one bit each, so that 0, `MEMBARRIER_CMD_QUERY`, can return the set.
    MembarrierCmd: u32, "MEMBARRIER_CMD_" {
        GLOBAL = 0x1;
        GLOBAL_EXPEDITED = 0x2;
        REGISTER_GLOBAL_EXPEDITED = 0x4;
        PRIVATE_EXPEDITED = 0x8;
        REGISTER_PRIVATE_EXPEDITED = 0x10;
        PRIVATE_EXPEDITED_SYNC_CORE = 0x20;
        REGISTER_PRIVATE_EXPEDITED_SYNC_CORE = 0x40;
        PRIVATE_EXPEDITED_RSEQ = 0x80;
        REGISTER_PRIVATE_EXPEDITED_RSEQ = 0x100;
        GET_REGISTRATIONS = 0x200;
    }

    /// Flags of `membarrier`.
    MembarrierFlags: u32, "MEMBARRIER_CMD_FLAG_" {
        CPU = 1;
    }

    /// Flags of `finit_module`.
    ModuleInitFlags: u32, "MODULE_INIT_" {
        IGNORE_MODVERSIONS = 1;
        IGNORE_VERMAGIC = 2;
        COMPRESSED_FILE = 4;
    }

    /// Flags of `delete_module`.
    DeleteModuleFlags: u32, "O_" {
        TRUNC = 0o1000;
        NONBLOCK = 0o4000;
    }

    /// Flags of `kexec_load`, above the architecture in their upper half.
    KexecFlags: u64, "KEXEC_" {
        ON_CRASH = 1;
        PRESERVE_CONTEXT = 2;
        UPDATE_ELFCOREHDR = 4;
        CRASH_HOTPLUG_SUPPORT = 8;
    }

    /// Flags of `kexec_file_load`.
    KexecFileFlags: u64, "KEXEC_FILE_" {
        UNLOAD = 1;
        ON_CRASH = 2;
        NO_INITRAMFS = 4;
        DEBUG = 8;
        NO_CMA = 0x10;
        FORCE_DTB = 0x20;
    }

    /// Flags of `swapon`, beside the priority in the lowest fifteen bits.
    SwapFlags: u32, "SWAP_FLAG_" {
        PREFER = 0x8000;
        DISCARD = 0x1_0000;
        DISCARD_ONCE = 0x2_0000;
        DISCARD_PAGES = 0x4_0000;
    }

    /// Flags of an inode (`FS_IOC_GETFLAGS`).
    InodeFlags: u32, "" {
        SECRM = 0x1, "FS_SECRM_FL";
        UNRM = 0x2, "FS_UNRM_FL";
        COMPR = 0x4, "FS_COMPR_FL";
        SYNC = 0x8, "FS_SYNC_FL";
        IMMUTABLE = 0x10, "FS_IMMUTABLE_FL";
        APPEND = 0x20, "FS_APPEND_FL";
        NODUMP = 0x40, "FS_NODUMP_FL";
        NOATIME = 0x80, "FS_NOATIME_FL";
        DIRTY = 0x100, "FS_DIRTY_FL";
        COMPRBLK = 0x200, "FS_COMPRBLK_FL";
        NOCOMP = 0x400, "FS_NOCOMP_FL";
        ENCRYPT = 0x800, "FS_ENCRYPT_FL";
        INDEX = 0x1000, "FS_INDEX_FL";
        IMAGIC = 0x2000, "FS_IMAGIC_FL";
        JOURNAL_DATA = 0x4000, "FS_JOURNAL_DATA_FL";
        NOTAIL = 0x8000, "FS_NOTAIL_FL";
        DIRSYNC = 0x1_0000, "FS_DIRSYNC_FL";
        TOPDIR = 0x2_0000, "FS_TOPDIR_FL";
        HUGE_FILE = 0x4_0000, "FS_HUGE_FILE_FL";
        EXTENT = 0x8_0000, "FS_EXTENT_FL";
        VERITY = 0x10_0000, "FS_VERITY_FL";
        EA_INODE = 0x20_0000, "FS_EA_INODE_FL";
        NOCOW = 0x80_0000, "FS_NOCOW_FL";
        DAX = 0x200_0000, "FS_DAX_FL";
        INLINE_DATA = 0x1000_0000, "FS_INLINE_DATA_FL";
        PROJINHERIT = 0x2000_0000, "FS_PROJINHERIT_FL";
        CASEFOLD = 0x4000_0000, "FS_CASEFOLD_FL";
    }

    /// Flags of `struct fsxattr` and `struct file_attr`.
    XFlags: u32, "FS_XFLAG_" {
        REALTIME = 0x1;
        PREALLOC = 0x2;
        IMMUTABLE = 0x8;
        APPEND = 0x10;
        SYNC = 0x20;
        NOATIME = 0x40;
        NODUMP = 0x80;
        RTINHERIT = 0x100;
        PROJINHERIT = 0x200;
        NOSYMLINKS = 0x400;
        EXTSIZE = 0x800;
        EXTSZINHERIT = 0x1000;
        NODEFRAG = 0x2000;
        FILESTREAM = 0x4000;
        DAX = 0x8000;
        COWEXTSIZE = 0x1_0000;
        HASATTR = 0x8000_0000;
    }
}

layout! {
    /// `struct user_desc`, of `modify_ldt`. `bits`: `seg_32bit`, two of `contents`, `read_exec_only`,
    /// `limit_in_pages`, `seg_not_present`, `useable`, `lm`, from the lowest up.
    struct UserDesc: 16 {
        0 entry_number: u32,
        4 base_addr: u32,
        8 limit: u32,
        12 bits: u32,
    }

    /// `struct acct_v3`: what process accounting writes. `etime` is an IEEE float's bits; times and sizes
    /// of 16 bits are `comp_t`: 13 bits, shifted left by three times the upper three.
    struct AcctV3: 64 {
        0 flag: u8,
        1 version: u8,
        2 tty: u16,
        4 exitcode: u32,
        8 uid: u32,
        12 gid: u32,
        16 pid: u32,
        20 ppid: u32,
        24 btime: u32,
        28 etime: u32,
        32 utime: u16,
        34 stime: u16,
        36 mem: u16,
        38 io: u16,
        40 rw: u16,
        42 minflt: u16,
        44 majflt: u16,
        46 swaps: u16,
        48 comm: [u8; 16],
    }

    /// `struct fsxattr`.
    struct Fsxattr: 28 {
        0 xflags: XFlags,
        4 extsize: u32,
        8 nextents: u32,
        12 projid: u32,
        16 cowextsize: u32,
        20 pad: [u8; 8],
    }

    /// `struct kexec_segment`.
    struct KexecSegment: 32 {
        0 buf: u64,
        8 bufsz: u64,
        16 mem: u64,
        24 memsz: u64,
    }

    /// `struct if_dqblk`, of `Q_GETQUOTA`.
    struct IfDqblk: 72 {
        0 bhardlimit: u64,
        8 bsoftlimit: u64,
        16 curspace: u64,
        24 ihardlimit: u64,
        32 isoftlimit: u64,
        40 curinodes: u64,
        48 btime: u64,
        56 itime: u64,
        64 valid: u32,
        68 pad: u32,
    }

    /// `struct file_clone_range`, of `FICLONERANGE`.
    struct FileCloneRange: 32 {
        0 src_fd: i64,
        8 src_offset: u64,
        16 src_length: u64,
        24 dest_offset: u64,
    }

    /// `struct fiemap` without its extents.
    struct Fiemap: 32 {
        0 start: u64,
        8 length: u64,
        16 flags: u32,
        20 mapped_extents: u32,
        24 extent_count: u32,
        28 reserved: u32,
    }

    /// `struct fiemap_extent`.
    struct FiemapExtent: 56 {
        0 logical: u64,
        8 physical: u64,
        16 length: u64,
        24 reserved64: [u64; 2],
        40 flags: u32,
        44 reserved: [u32; 3],
    }
}
