//! fanotify (`linux/fanotify.h`).

use crate::macros::{flags, layout, names};

flags! {
    /// Flags of `fanotify_init`; the class is a field of two bits, 0 being `FAN_CLASS_NOTIF`.
    FanInitFlags: u32, "FAN_" {
        CLOEXEC = 0x1;
        NONBLOCK = 0x2;
        CLASS_CONTENT = 0x4;
        CLASS_PRE_CONTENT = 0x8;
        UNLIMITED_QUEUE = 0x10;
        UNLIMITED_MARKS = 0x20;
        ENABLE_AUDIT = 0x40;
        REPORT_PIDFD = 0x80;
        REPORT_TID = 0x100;
        REPORT_FID = 0x200;
        REPORT_DIR_FID = 0x400;
        REPORT_NAME = 0x800;
        REPORT_TARGET_FID = 0x1000;
        REPORT_FD_ERROR = 0x2000;
        REPORT_MNT = 0x4000;
    }

    /// Flags of `fanotify_mark`; without one of the types it marks an inode.
    FanMarkFlags: u32, "FAN_MARK_" {
        ADD = 0x1;
        REMOVE = 0x2;
        DONT_FOLLOW = 0x4;
        ONLYDIR = 0x8;
        MNTNS = 0x110;
        MOUNT = 0x10;
        IGNORED_MASK = 0x20;
        IGNORED_SURV_MODIFY = 0x40;
        FLUSH = 0x80;
        FILESYSTEM = 0x100;
        EVICTABLE = 0x200;
        IGNORE = 0x400;
    }

    /// What fanotify watches for, and reports.
    FanMask: u64, "FAN_" {
        ACCESS = 0x1;
        MODIFY = 0x2;
        ATTRIB = 0x4;
        CLOSE_WRITE = 0x8;
        CLOSE_NOWRITE = 0x10;
        OPEN = 0x20;
        MOVED_FROM = 0x40;
        MOVED_TO = 0x80;
        CREATE = 0x100;
        DELETE = 0x200;
        DELETE_SELF = 0x400;
        MOVE_SELF = 0x800;
        OPEN_EXEC = 0x1000;
        Q_OVERFLOW = 0x4000;
        FS_ERROR = 0x8000;
        OPEN_PERM = 0x1_0000;
        ACCESS_PERM = 0x2_0000;
        OPEN_EXEC_PERM = 0x4_0000;
        PRE_ACCESS = 0x10_0000;
        MNT_ATTACH = 0x100_0000;
        MNT_DETACH = 0x200_0000;
        EVENT_ON_CHILD = 0x800_0000;
        RENAME = 0x1000_0000;
        ONDIR = 0x4000_0000;
    }

    /// An answer to a permission event.
    FanResponse: u32, "FAN_" {
        ALLOW = 0x1;
        DENY = 0x2;
        AUDIT = 0x10;
        INFO = 0x20;
    }
}

names! {
    /// The kind of a record that follows an event.
    FanInfoType: u8, "FAN_EVENT_INFO_TYPE_" {
        FID = 1;
        DFID_NAME = 2;
        DFID = 3;
        PIDFD = 4;
        ERROR = 5;
        RANGE = 6;
        MNT = 7;
        OLD_DFID_NAME = 10;
        NEW_DFID_NAME = 12;
    }
}

layout! {
    /// `struct fanotify_event_metadata`.
    struct FanotifyEventMetadata: 24 {
        0 event_len: u32,
        4 vers: u8,
        5 reserved: u8,
        6 metadata_len: u16,
        8 mask: FanMask,
        16 fd: i32,
        20 pid: i32,
    }

    /// `struct fanotify_response`.
    struct FanotifyResponse: 8 {
        0 fd: i32,
        4 response: FanResponse,
    }
}
