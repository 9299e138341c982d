//! Limits and scheduling: `rlimit`, `sched_setattr`, priorities, `personality`
//! (`asm-generic/resource.h`, `linux/sched/types.h`, `linux/ioprio.h`, `linux/personality.h`).

use crate::macros::{flags, layout, names, write_flags};

layout! {
    /// `struct rlimit64`, and `struct rlimit` of x86-64.
    struct Rlimit: 16 {
        0 cur: u64,
        8 max: u64,
    }

    /// `struct sched_param`.
    struct SchedParam: 4 {
        0 priority: i32,
    }

    /// `struct sched_attr`; its first version ends at offset 48.
    struct SchedAttr: 56 {
        0 size: u32,
        4 policy: SchedPolicy,
        8 flags: SchedFlags,
        16 nice: i32,
        20 priority: u32,
        24 runtime: u64,
        32 deadline: u64,
        40 period: u64,
        48 util_min: u32,
        52 util_max: u32,
    }
}

impl Rlimit {
    /// No limit (`RLIM_INFINITY`).
    pub const INFINITY: u64 = !0;
}

flags! {
    /// `sched_attr.sched_flags`.
    SchedFlags: u64, "SCHED_FLAG_" {
        RESET_ON_FORK = 0x1;
        RECLAIM = 0x2;
        DL_OVERRUN = 0x4;
        KEEP_POLICY = 0x8;
        KEEP_PARAMS = 0x10;
        UTIL_CLAMP_MIN = 0x20;
        UTIL_CLAMP_MAX = 0x40;
    }

    /// `personality`: behaviour bits above the type in the lowest eight.
    custom Personality: u32, "" {
        UNAME26 = 0x002_0000;
        ADDR_NO_RANDOMIZE = 0x004_0000;
        FDPIC_FUNCPTRS = 0x008_0000;
        MMAP_PAGE_ZERO = 0x010_0000;
        ADDR_COMPAT_LAYOUT = 0x020_0000;
        READ_IMPLIES_EXEC = 0x040_0000;
        ADDR_LIMIT_32BIT = 0x080_0000;
        SHORT_INODE = 0x100_0000;
        WHOLE_SECONDS = 0x200_0000;
        STICKY_TIMEOUTS = 0x400_0000;
        ADDR_LIMIT_3GB = 0x800_0000;
    }
}

impl Personality {
    /// Linux without any of them.
    pub const LINUX: Personality = Personality(0);
    /// What asks for the present one without a change.
    pub const QUERY: Personality = Personality(0xffff_ffff);
    /// What a set-id program starts without (`PER_CLEAR_ON_SETID`).
    pub const CLEAR_ON_SETID: Personality = Personality(0x040_0000 | 0x004_0000 | 0x020_0000 | 0x010_0000);

    /// The type.
    pub const fn kind(self) -> PersonalityKind {
        PersonalityKind(self.0 & 0xff)
    }
}

names! {
    /// The type of a [`Personality`] (`PER_MASK` bits), without the behaviour that Linux's names of the
    /// same kind bring along.
    PersonalityKind: u32, "PER_" {
        LINUX = 0;
        SVR4 = 1;
        SVR3 = 2;
        SCOSVR3 = 3;
        WYSEV386 = 4;
        ISCR4 = 5;
        BSD = 6;
        XENIX = 7;
        LINUX32 = 8;
        IRIX32 = 9;
        IRIXN32 = 10;
        IRIX64 = 11;
        RISCOS = 12;
        SOLARIS = 13;
        UW7 = 14;
        OSF4 = 15;
        HPUX = 16;
    }
}

impl core::fmt::Display for Personality {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        if *self == Self::QUERY {
            return f.write_str("0xffffffff");
        }
        self.kind().fmt(f)?;
        let names = Self::NAMES.iter().map(|&(bits, name)| (u64::from(bits), name));
        write_flags(f, u64::from(self.0 & !0xff), names, true)
    }
}

names! {
    /// A resource that has a limit.
    Resource: i32, "RLIMIT_" {
        CPU = 0;
        FSIZE = 1;
        DATA = 2;
        STACK = 3;
        CORE = 4;
        RSS = 5;
        NPROC = 6;
        NOFILE = 7;
        MEMLOCK = 8;
        AS = 9;
        LOCKS = 10;
        SIGPENDING = 11;
        MSGQUEUE = 12;
        NICE = 13;
        RTPRIO = 14;
        RTTIME = 15;
    }

    /// A scheduling policy; `sched_setscheduler` takes [`SchedPolicy::RESET_ON_FORK`] beside it.
    custom SchedPolicy: u32, "SCHED_" {
        NORMAL = 0, "SCHED_OTHER";
        FIFO = 1;
        RR = 2;
        BATCH = 3;
        IDLE = 5;
        DEADLINE = 6;
        EXT = 7;
    }

    /// Whose priority `getpriority` and `setpriority` mean.
    PriorityWhich: i32, "PRIO_" {
        PROCESS = 0;
        PGRP = 1;
        USER = 2;
    }

    /// Whose I/O priority `ioprio_set` means.
    IoprioWho: i32, "IOPRIO_WHO_" {
        PROCESS = 1;
        PGRP = 2;
        USER = 3;
    }

    /// The class of an I/O priority: its bits from 13 up.
    IoprioClass: i32, "IOPRIO_CLASS_" {
        NONE = 0;
        RT = 1;
        BE = 2;
        IDLE = 3;
        INVALID = 7;
    }
}

impl Resource {
    /// How many there are (`RLIM_NLIMITS`).
    pub const COUNT: usize = 16;
}

impl SchedPolicy {
    /// The flag `SCHED_RESET_ON_FORK`.
    pub const RESET_ON_FORK: u32 = 0x4000_0000;

    /// The policy without the flag.
    pub const fn without_flag(self) -> SchedPolicy {
        SchedPolicy(self.0 & !Self::RESET_ON_FORK)
    }
}

impl core::fmt::Display for SchedPolicy {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self.without_flag().name() {
            Some(name) => f.write_str(name)?,
            None => write!(f, "{:#x}", self.without_flag().0)?,
        }
        if *self != self.without_flag() { f.write_str("|SCHED_RESET_ON_FORK") } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;

    #[test]
    fn mixed_words_print_both_parts() {
        assert_eq!(SchedPolicy(0x4000_0001).to_string(), "SCHED_FIFO|SCHED_RESET_ON_FORK");
        assert_eq!(SchedPolicy(4).to_string(), "0x4");
        assert_eq!(Personality::from_bits_retain(0x004_0008).to_string(), "PER_LINUX32|ADDR_NO_RANDOMIZE");
        assert_eq!(Personality::QUERY.to_string(), "0xffffffff");
    }
}
