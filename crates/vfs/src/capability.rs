//! Capabilities (`linux/capability.h`).

/// A capability's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capability(pub u32);

macro_rules! capabilities {
    ($($name:ident = $number:literal;)*) => {
        impl Capability { $(#[doc = concat!("`CAP_", stringify!($name), "`")] pub const $name: Capability = Capability($number);)* }
    };
}

capabilities! {
    CHOWN = 0; DAC_OVERRIDE = 1; DAC_READ_SEARCH = 2; FOWNER = 3; FSETID = 4; KILL = 5; SETGID = 6; SETUID = 7;
    SETPCAP = 8; LINUX_IMMUTABLE = 9; NET_BIND_SERVICE = 10; NET_BROADCAST = 11; NET_ADMIN = 12; NET_RAW = 13;
    IPC_LOCK = 14; IPC_OWNER = 15; SYS_MODULE = 16; SYS_RAWIO = 17; SYS_CHROOT = 18; SYS_PTRACE = 19;
    SYS_PACCT = 20; SYS_ADMIN = 21; SYS_BOOT = 22; SYS_NICE = 23; SYS_RESOURCE = 24; SYS_TIME = 25;
    SYS_TTY_CONFIG = 26; MKNOD = 27; LEASE = 28; AUDIT_WRITE = 29; AUDIT_CONTROL = 30; SETFCAP = 31;
    MAC_OVERRIDE = 32; MAC_ADMIN = 33; SYSLOG = 34; WAKE_ALARM = 35; BLOCK_SUSPEND = 36; AUDIT_READ = 37;
    PERFMON = 38; BPF = 39; CHECKPOINT_RESTORE = 40;
}

impl Capability {
    /// The highest that Linux 6.18 knows (`CAP_LAST_CAP`).
    pub const LAST: Capability = Capability::CHECKPOINT_RESTORE;

    pub fn is_valid(self) -> bool {
        self.0 <= Self::LAST.0
    }
}

/// A set of capabilities, in the bits of `capget`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CapSet(pub u64);

impl CapSet {
    pub const EMPTY: CapSet = CapSet(0);
    pub const ALL: CapSet = CapSet((1 << (Capability::LAST.0 + 1)) - 1);

    pub fn has(self, which: Capability) -> bool {
        which.is_valid() && self.0 & (1 << which.0) != 0
    }
    pub fn with(self, which: Capability) -> CapSet {
        CapSet(self.0 | if which.is_valid() { 1 << which.0 } else { 0 })
    }
    pub fn without(self, which: Capability) -> CapSet {
        CapSet(self.0 & !if which.is_valid() { 1 << which.0 } else { 0 })
    }
    pub fn and(self, other: CapSet) -> CapSet {
        CapSet(self.0 & other.0)
    }
    pub fn or(self, other: CapSet) -> CapSet {
        CapSet(self.0 | other.0)
    }
    pub fn is_subset_of(self, other: CapSet) -> bool {
        self.0 & !other.0 == 0
    }
}
