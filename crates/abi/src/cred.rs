//! Credentials: capabilities and secure bits (`linux/capability.h`, `linux/securebits.h`).

use crate::macros::{flags, layout, names};

names! {
    /// A capability.
    Capability: u32, "CAP_" {
        CHOWN = 0;
        DAC_OVERRIDE = 1;
        DAC_READ_SEARCH = 2;
        FOWNER = 3;
        FSETID = 4;
        KILL = 5;
        SETGID = 6;
        SETUID = 7;
        SETPCAP = 8;
        LINUX_IMMUTABLE = 9;
        NET_BIND_SERVICE = 10;
        NET_BROADCAST = 11;
        NET_ADMIN = 12;
        NET_RAW = 13;
        IPC_LOCK = 14;
        IPC_OWNER = 15;
        SYS_MODULE = 16;
        SYS_RAWIO = 17;
        SYS_CHROOT = 18;
        SYS_PTRACE = 19;
        SYS_PACCT = 20;
        SYS_ADMIN = 21;
        SYS_BOOT = 22;
        SYS_NICE = 23;
        SYS_RESOURCE = 24;
        SYS_TIME = 25;
        SYS_TTY_CONFIG = 26;
        MKNOD = 27;
        LEASE = 28;
        AUDIT_WRITE = 29;
        AUDIT_CONTROL = 30;
        SETFCAP = 31;
        MAC_OVERRIDE = 32;
        MAC_ADMIN = 33;
        SYSLOG = 34;
        WAKE_ALARM = 35;
        BLOCK_SUSPEND = 36;
        AUDIT_READ = 37;
        PERFMON = 38;
        BPF = 39;
        CHECKPOINT_RESTORE = 40;
    }
}

impl Capability {
    /// The last one (`CAP_LAST_CAP`).
    pub const LAST: u32 = 40;

    /// Whether Linux has it (`cap_valid`).
    pub const fn is_valid(self) -> bool {
        self.0 <= Self::LAST
    }
}

/// A set of capabilities: bit `n` is capability `n`.
#[derive(
    Clone,
    Copy,
    PartialEq,
    Eq,
    Hash,
    Default,
    zerocopy::FromBytes,
    zerocopy::IntoBytes,
    zerocopy::Immutable,
    zerocopy::KnownLayout,
)]
#[repr(transparent)]
pub struct CapSet(pub u64);

impl CapSet {
    /// None.
    pub const EMPTY: CapSet = CapSet(0);
    /// All that Linux has (`CAP_VALID_MASK`).
    pub const FULL: CapSet = CapSet((1 << (Capability::LAST + 1)) - 1);

    /// Whether this capability is in it.
    pub const fn contains(self, capability: Capability) -> bool {
        capability.is_valid() && (self.0 >> capability.0) & 1 != 0
    }

    /// This with a capability; an invalid one changes nothing.
    pub const fn with(self, capability: Capability) -> CapSet {
        if capability.is_valid() { CapSet(self.0 | 1 << capability.0) } else { self }
    }

    /// This without a capability.
    pub const fn without(self, capability: Capability) -> CapSet {
        if capability.is_valid() { CapSet(self.0 & !(1 << capability.0)) } else { self }
    }

    /// What is in either.
    pub const fn union(self, other: CapSet) -> CapSet {
        CapSet(self.0 | other.0)
    }

    /// What is in both.
    pub const fn intersection(self, other: CapSet) -> CapSet {
        CapSet(self.0 & other.0)
    }

    /// What is in this and not in the other.
    pub const fn difference(self, other: CapSet) -> CapSet {
        CapSet(self.0 & !other.0)
    }

    /// Whether all of it is in the other.
    pub const fn is_subset(self, other: CapSet) -> bool {
        self.0 & !other.0 == 0
    }

    /// Its two words, low and high, as [`CapUserData`] has them.
    pub const fn words(self) -> [u32; 2] {
        [(self.0 & 0xffff_ffff) as u32, (self.0 >> 32) as u32]
    }

    /// From two words, low and high.
    pub const fn from_words(low: u32, high: u32) -> CapSet {
        CapSet(low as u64 | (high as u64) << 32)
    }
}

impl core::fmt::Display for CapSet {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let names = Capability::NAMES.iter().map(|&(number, name)| (1u64 << number, name));
        crate::macros::write_flags(f, self.0, names, false)
    }
}

impl core::fmt::Debug for CapSet {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        core::fmt::Display::fmt(self, f)
    }
}

layout! {
    /// `struct __user_cap_header_struct`.
    struct CapUserHeader: 8 {
        0 version: CapVersion,
        4 pid: i32,
    }

    /// `struct __user_cap_data_struct`: versions 2 and 3 have two, low words first.
    struct CapUserData: 12 {
        0 effective: u32,
        4 permitted: u32,
        8 inheritable: u32,
    }

    /// `struct vfs_ns_cap_data`: the value of `security.capability` in its third version. The second ends
    /// before `rootid`, the first after the first pair of words.
    struct VfsNsCapData: 24 {
        0 magic_etc: u32,
        4 data: [u32; 4],
        20 rootid: u32,
    }
}

names! {
    /// Which form of `capget` and `capset`.
    CapVersion: u32, "_LINUX_CAPABILITY_VERSION_" {
        V1 = 0x1998_0330, "_LINUX_CAPABILITY_VERSION_1";
        V2 = 0x2007_1026, "_LINUX_CAPABILITY_VERSION_2";
        V3 = 0x2008_0522, "_LINUX_CAPABILITY_VERSION_3";
    }
}

flags! {
    /// Secure bits (`PR_SET_SECUREBITS`).
    SecureBits: u32, "SECBIT_" {
        NOROOT = 0x1;
        NOROOT_LOCKED = 0x2;
        NO_SETUID_FIXUP = 0x4;
        NO_SETUID_FIXUP_LOCKED = 0x8;
        KEEP_CAPS = 0x10;
        KEEP_CAPS_LOCKED = 0x20;
        NO_CAP_AMBIENT_RAISE = 0x40;
        NO_CAP_AMBIENT_RAISE_LOCKED = 0x80;
        EXEC_RESTRICT_FILE = 0x100;
        EXEC_RESTRICT_FILE_LOCKED = 0x200;
        EXEC_DENY_INTERACTIVE = 0x400;
        EXEC_DENY_INTERACTIVE_LOCKED = 0x800;
    }
}

/// Most supplementary groups of a process.
pub const NGROUPS_MAX: usize = 65_536;
/// The user or group that stands for one without a mapping.
pub const OVERFLOW_ID: u32 = 65_534;

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;

    #[test]
    fn sets_hold_the_41_capabilities_of_linux() {
        assert_eq!(CapSet::FULL.0, 0x1ff_ffff_ffff);
        assert!(!CapSet(!0).contains(Capability(41)));
        assert!(!CapSet(!0).contains(Capability(u32::MAX)));
        assert_eq!(CapSet::EMPTY.with(Capability(64)), CapSet::EMPTY);
        let some = CapSet::EMPTY.with(Capability::BPF).with(Capability::CHOWN);
        assert_eq!(some.to_string(), "CAP_CHOWN|CAP_BPF");
        let [low, high] = some.words();
        assert_eq!(CapSet::from_words(low, high), some);
    }
}
