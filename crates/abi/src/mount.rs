//! Mounting (`linux/mount.h`) and what `statmount` and `listmount` tell.

use crate::macros::{flags, layout, names};

flags! {
    /// Flags of `mount`.
    MountFlags: u64, "MS_" {
        RDONLY = 0x1;
        NOSUID = 0x2;
        NODEV = 0x4;
        NOEXEC = 0x8;
        SYNCHRONOUS = 0x10;
        REMOUNT = 0x20;
        MANDLOCK = 0x40;
        DIRSYNC = 0x80;
        NOSYMFOLLOW = 0x100;
        NOATIME = 0x400;
        NODIRATIME = 0x800;
        BIND = 0x1000;
        MOVE = 0x2000;
        REC = 0x4000;
        SILENT = 0x8000;
        POSIXACL = 0x1_0000;
        UNBINDABLE = 0x2_0000;
        PRIVATE = 0x4_0000;
        SLAVE = 0x8_0000;
        SHARED = 0x10_0000;
        RELATIME = 0x20_0000;
        KERNMOUNT = 0x40_0000;
        I_VERSION = 0x80_0000;
        STRICTATIME = 0x100_0000;
        LAZYTIME = 0x200_0000;
    }

    /// Flags of `umount2`.
    UmountFlags: u32, "" {
        FORCE = 1, "MNT_FORCE";
        DETACH = 2, "MNT_DETACH";
        EXPIRE = 4, "MNT_EXPIRE";
        NOFOLLOW = 8, "UMOUNT_NOFOLLOW";
    }

    /// Flags of `open_tree`; those of the `AT_` kind may stand beside them.
    OpenTreeFlags: u32, "" {
        CLONE = 1, "OPEN_TREE_CLONE";
        CLOEXEC = 0o2000000, "OPEN_TREE_CLOEXEC";
        SYMLINK_NOFOLLOW = 0x100, "AT_SYMLINK_NOFOLLOW";
        NO_AUTOMOUNT = 0x800, "AT_NO_AUTOMOUNT";
        EMPTY_PATH = 0x1000, "AT_EMPTY_PATH";
        RECURSIVE = 0x8000, "AT_RECURSIVE";
    }

    /// Flags of `move_mount`.
    MoveMountFlags: u32, "MOVE_MOUNT_" {
        F_SYMLINKS = 0x1;
        F_AUTOMOUNTS = 0x2;
        F_EMPTY_PATH = 0x4;
        T_SYMLINKS = 0x10;
        T_AUTOMOUNTS = 0x20;
        T_EMPTY_PATH = 0x40;
        SET_GROUP = 0x100;
        BENEATH = 0x200;
    }

    /// Flags of `fsopen`.
    FsopenFlags: u32, "FSOPEN_" {
        CLOEXEC = 1;
    }

    /// Flags of `fspick`.
    FspickFlags: u32, "FSPICK_" {
        CLOEXEC = 1;
        SYMLINK_NOFOLLOW = 2;
        NO_AUTOMOUNT = 4;
        EMPTY_PATH = 8;
    }

    /// Flags of `fsmount`.
    FsmountFlags: u32, "FSMOUNT_" {
        CLOEXEC = 1;
    }

    /// Attributes of a mount (`fsmount`, `mount_setattr`). Two bits are the choice of access times, 0 being
    /// `MOUNT_ATTR_RELATIME`.
    MountAttrFlags: u64, "MOUNT_ATTR_" {
        RDONLY = 0x1;
        NOSUID = 0x2;
        NODEV = 0x4;
        NOEXEC = 0x8;
        ATIME = 0x70, "MOUNT_ATTR__ATIME";
        NOATIME = 0x10;
        STRICTATIME = 0x20;
        NODIRATIME = 0x80;
        IDMAP = 0x10_0000;
        NOSYMFOLLOW = 0x20_0000;
    }

    /// What `statmount` shall tell.
    StatmountMask: u64, "STATMOUNT_" {
        SB_BASIC = 0x1;
        MNT_BASIC = 0x2;
        PROPAGATE_FROM = 0x4;
        MNT_ROOT = 0x8;
        MNT_POINT = 0x10;
        FS_TYPE = 0x20;
        MNT_NS_ID = 0x40;
        MNT_OPTS = 0x80;
        FS_SUBTYPE = 0x100;
        SB_SOURCE = 0x200;
        OPT_ARRAY = 0x400;
        OPT_SEC_ARRAY = 0x800;
        SUPPORTED_MASK = 0x1000;
        MNT_UIDMAP = 0x2000;
        MNT_GIDMAP = 0x4000;
    }

    /// Flags of `listmount`.
    ListmountFlags: u32, "LISTMOUNT_" {
        REVERSE = 1;
    }
}

impl MountFlags {
    /// Old programs set these bits at the top: they do not count (`MS_MGC_VAL`, `MS_MGC_MSK`).
    pub const MAGIC: u64 = 0xc0ed_0000;
    /// The bits that must equal [`MountFlags::MAGIC`] to be cut off.
    pub const MAGIC_MASK: u64 = 0xffff_0000;

    /// The flags without the old magic number (`path_mount`).
    pub const fn without_magic(self) -> MountFlags {
        if self.0 & Self::MAGIC_MASK == Self::MAGIC { MountFlags(self.0 & !Self::MAGIC_MASK) } else { self }
    }
}

names! {
    /// What `fsconfig` does.
    FsconfigCmd: u32, "FSCONFIG_" {
        SET_FLAG = 0;
        SET_STRING = 1;
        SET_BINARY = 2;
        SET_PATH = 3;
        SET_PATH_EMPTY = 4;
        SET_FD = 5;
        CMD_CREATE = 6;
        CMD_RECONFIGURE = 7;
        CMD_CREATE_EXCL = 8;
    }
}

layout! {
    /// `struct mount_attr`, of `mount_setattr`.
    struct MountAttr: 32 {
        0 attr_set: MountAttrFlags,
        8 attr_clr: MountAttrFlags,
        16 propagation: u64,
        24 userns_fd: u64,
    }

    /// `struct mnt_id_req`, of `statmount` and `listmount`. Its first version ends at offset 24.
    struct MntIdReq: 32 {
        0 size: u32,
        4 mnt_ns_fd: u32,
        8 mnt_id: u64,
        /// The mask of `statmount`; the last id seen of `listmount`.
        16 param: u64,
        24 mnt_ns_id: u64,
    }

    /// `struct statmount`; strings follow, and its string fields are offsets into them.
    struct Statmount: 512 {
        0 size: u32,
        4 mnt_opts: u32,
        8 mask: StatmountMask,
        16 sb_dev_major: u32,
        20 sb_dev_minor: u32,
        24 sb_magic: u64,
        32 sb_flags: u32,
        36 fs_type: u32,
        40 mnt_id: u64,
        48 mnt_parent_id: u64,
        56 mnt_id_old: u32,
        60 mnt_parent_id_old: u32,
        64 mnt_attr: MountAttrFlags,
        72 mnt_propagation: u64,
        80 mnt_peer_group: u64,
        88 mnt_master: u64,
        96 propagate_from: u64,
        104 mnt_root: u32,
        108 mnt_point: u32,
        112 mnt_ns_id: u64,
        120 fs_subtype: u32,
        124 sb_source: u32,
        128 opt_num: u32,
        132 opt_array: u32,
        136 opt_sec_num: u32,
        140 opt_sec_array: u32,
        144 supported_mask: StatmountMask,
        152 mnt_uidmap_num: u32,
        156 mnt_uidmap: u32,
        160 mnt_gidmap_num: u32,
        164 mnt_gidmap: u32,
        168 spare: [u64; 43],
    }
}

/// For `listmount`: the root of the mount namespace.
pub const LSMT_ROOT: u64 = !0;
