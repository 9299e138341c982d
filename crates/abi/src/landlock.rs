//! Security modules: landlock and the `lsm_*` calls (`linux/landlock.h`, `linux/lsm.h`).

use crate::macros::{flags, layout, names};

flags! {
    /// Flags of `landlock_create_ruleset`.
    LandlockCreateFlags: u32, "LANDLOCK_CREATE_RULESET_" {
        VERSION = 1;
        ERRATA = 2;
    }

    /// Flags of `landlock_restrict_self`.
    LandlockRestrictFlags: u32, "LANDLOCK_RESTRICT_SELF_" {
        LOG_SAME_EXEC_OFF = 1;
        LOG_NEW_EXEC_ON = 2;
        LOG_SUBDOMAINS_OFF = 4;
    }

    /// Rights on files.
    LandlockAccessFs: u64, "LANDLOCK_ACCESS_FS_" {
        EXECUTE = 0x1;
        WRITE_FILE = 0x2;
        READ_FILE = 0x4;
        READ_DIR = 0x8;
        REMOVE_DIR = 0x10;
        REMOVE_FILE = 0x20;
        MAKE_CHAR = 0x40;
        MAKE_DIR = 0x80;
        MAKE_REG = 0x100;
        MAKE_SOCK = 0x200;
        MAKE_FIFO = 0x400;
        MAKE_BLOCK = 0x800;
        MAKE_SYM = 0x1000;
        REFER = 0x2000;
        TRUNCATE = 0x4000;
        IOCTL_DEV = 0x8000;
    }

    /// Rights on the network.
    LandlockAccessNet: u64, "LANDLOCK_ACCESS_NET_" {
        BIND_TCP = 1;
        CONNECT_TCP = 2;
    }

    /// What a domain is cut off from.
    LandlockScope: u64, "LANDLOCK_SCOPE_" {
        ABSTRACT_UNIX_SOCKET = 1;
        SIGNAL = 2;
    }

    /// Flags of `lsm_get_self_attr`.
    LsmFlags: u32, "LSM_FLAG_" {
        SINGLE = 1;
    }
}

names! {
    /// The kind of a rule.
    LandlockRuleType: u32, "LANDLOCK_RULE_" {
        PATH_BENEATH = 1;
        NET_PORT = 2;
    }

    /// An attribute of a thread (`lsm_get_self_attr`).
    LsmAttr: u32, "LSM_ATTR_" {
        UNDEF = 0;
        CURRENT = 100;
        EXEC = 101;
        FSCREATE = 102;
        KEYCREATE = 103;
        PREV = 104;
        SOCKCREATE = 105;
    }

    /// A security module.
    LsmId: u32, "LSM_ID_" {
        UNDEF = 0;
        CAPABILITY = 100;
        SELINUX = 101;
        SMACK = 102;
        TOMOYO = 103;
        APPARMOR = 104;
        YAMA = 105;
        LOADPIN = 106;
        SAFESETID = 107;
        LOCKDOWN = 108;
        BPF = 109;
        LANDLOCK = 110;
        IMA = 111;
        EVM = 112;
        IPE = 113;
    }
}

layout! {
    /// `struct landlock_ruleset_attr`; its first version ends at offset 8, its second at 16.
    struct LandlockRulesetAttr: 24 {
        0 handled_access_fs: LandlockAccessFs,
        8 handled_access_net: LandlockAccessNet,
        16 scoped: LandlockScope,
    }

    /// `struct landlock_net_port_attr`.
    struct LandlockNetPortAttr: 16 {
        0 allowed_access: LandlockAccessNet,
        8 port: u64,
    }

    /// The fixed part of `struct lsm_ctx`; `ctx_len` bytes follow.
    struct LsmCtx: 32 {
        0 id: u64,
        8 flags: u64,
        16 len: u64,
        24 ctx_len: u64,
    }
}

/// `struct landlock_path_beneath_attr`: packed, 12 bytes.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    Default,
    zerocopy::FromBytes,
    zerocopy::IntoBytes,
    zerocopy::Immutable,
    zerocopy::KnownLayout,
)]
#[repr(C, packed)]
pub struct LandlockPathBeneathAttr {
    /// What is allowed beneath.
    pub allowed_access: LandlockAccessFs,
    /// The directory or file.
    pub parent_fd: i32,
}

const _: () = assert!(size_of::<LandlockPathBeneathAttr>() == 12);
