//! Making, waiting for and describing processes: `clone`, `wait`, `uname`, resource limits, scheduling
//! (`linux/sched.h`, `linux/wait.h`, `asm-generic/resource.h`, `linux/sched/types.h`).

use crate::macros::{flags, layout, names, write_flags};
use crate::signal::Signal;

flags! {
    /// Flags of `clone`, `clone3`, `unshare` and `setns`. In `clone` the lowest eight bits are the signal
    /// that the parent gets ([`CloneFlags::exit_signal`]); in `clone3` bit 7 is `CLONE_NEWTIME`, and two
    /// flags lie above 32 bits.
    custom CloneFlags: u64, "CLONE_" {
        VM = 0x100;
        FS = 0x200;
        FILES = 0x400;
        SIGHAND = 0x800;
        PIDFD = 0x1000;
        PTRACE = 0x2000;
        VFORK = 0x4000;
        PARENT = 0x8000;
        THREAD = 0x1_0000;
        NEWNS = 0x2_0000;
        SYSVSEM = 0x4_0000;
        SETTLS = 0x8_0000;
        PARENT_SETTID = 0x10_0000;
        CHILD_CLEARTID = 0x20_0000;
        DETACHED = 0x40_0000;
        UNTRACED = 0x80_0000;
        CHILD_SETTID = 0x100_0000;
        NEWCGROUP = 0x200_0000;
        NEWUTS = 0x400_0000;
        NEWIPC = 0x800_0000;
        NEWUSER = 0x1000_0000;
        NEWPID = 0x2000_0000;
        NEWNET = 0x4000_0000;
        IO = 0x8000_0000;
        CLEAR_SIGHAND = 0x1_0000_0000;
        INTO_CGROUP = 0x2_0000_0000;
    }
}

impl CloneFlags {
    /// In `clone3`, `unshare` and `setns` only: a time namespace.
    pub const NEWTIME: CloneFlags = CloneFlags(0x80);
    /// The bits of the exit signal in `clone`'s flags (`CSIGNAL`).
    pub const SIGNAL_MASK: u64 = 0xff;

    /// The signal that `clone`'s flags name; 0 for none.
    pub const fn exit_signal(self) -> Signal {
        Signal((self.0 & Self::SIGNAL_MASK) as i32)
    }

    /// The flags of `clone` without the signal.
    pub const fn without_signal(self) -> CloneFlags {
        CloneFlags(self.0 & !Self::SIGNAL_MASK)
    }

    /// Writes them as `clone3` and `unshare` mean them: no signal, `CLONE_NEWTIME`.
    pub fn fmt_clone3(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let own = [(Self::NEWTIME.0, "CLONE_NEWTIME")];
        write_flags(f, self.0, own.into_iter().chain(Self::NAMES.iter().copied()), false)
    }
}

impl core::fmt::Display for CloneFlags {
    /// As `clone` means them: the exit signal last.
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let flags = self.without_signal();
        let signal = self.exit_signal();
        if flags.0 != 0 || signal.0 == 0 {
            write_flags(f, flags.0, Self::NAMES.iter().copied(), false)?;
        }
        match (signal.0, flags.0) {
            (0, _) => Ok(()),
            (_, 0) => signal.fmt(f),
            _ => write!(f, "|{signal}"),
        }
    }
}

layout! {
    /// `struct clone_args`, of `clone3`. Programs may give its first 64, 80 or all 88 bytes.
    struct CloneArgs: 88 {
        0 flags: CloneFlags,
        8 pidfd: u64,
        16 child_tid: u64,
        24 parent_tid: u64,
        32 exit_signal: u64,
        40 stack: u64,
        48 stack_size: u64,
        56 tls: u64,
        64 set_tid: u64,
        72 set_tid_size: u64,
        80 cgroup: u64,
    }

    /// `struct new_utsname`, of `uname`: six strings, zeros after each.
    struct Utsname: 390 {
        0 sysname: [u8; 65],
        65 nodename: [u8; 65],
        130 release: [u8; 65],
        195 version: [u8; 65],
        260 machine: [u8; 65],
        325 domainname: [u8; 65],
    }

    /// `struct sysinfo`.
    struct Sysinfo: 112 {
        /// Seconds.
        0 uptime: i64,
        /// In units of 1/65536.
        8 loads: [u64; 3],
        32 totalram: u64,
        40 freeram: u64,
        48 sharedram: u64,
        56 bufferram: u64,
        64 totalswap: u64,
        72 freeswap: u64,
        80 procs: u16,
        82 pad: u16,
        84 pad1: u32,
        88 totalhigh: u64,
        96 freehigh: u64,
        /// The size of the unit of all these, in bytes.
        104 mem_unit: u32,
        108 pad2: u32,
    }

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

impl Utsname {
    /// Most bytes of each string (`__NEW_UTS_LEN`), without its zero.
    pub const MAX_LEN: usize = 64;
}

impl CloneArgs {
    /// The least size that `clone3` takes (`CLONE_ARGS_SIZE_VER0`), in bytes.
    pub const MIN_SIZE: usize = 64;
}

impl Rlimit {
    /// No limit (`RLIM_INFINITY`).
    pub const INFINITY: u64 = !0;
}

flags! {
    /// Options of `wait4` and `waitid`.
    WaitOptions: u32, "W" {
        NOHANG = 0x1;
        UNTRACED = 0x2;
        EXITED = 0x4;
        CONTINUED = 0x8;
        NOWAIT = 0x0100_0000;
        NOTHREAD = 0x2000_0000, "__WNOTHREAD";
        ALL = 0x4000_0000, "__WALL";
        CLONE = 0x8000_0000, "__WCLONE";
    }

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

    /// Flags of `pidfd_open`.
    PidfdFlags: u32, "PIDFD_" {
        THREAD = 0o200;
        NONBLOCK = 0o4000;
    }

    /// Flags of `pidfd_send_signal`.
    PidfdSignalFlags: u32, "PIDFD_SIGNAL_" {
        THREAD = 1;
        THREAD_GROUP = 2;
        PROCESS_GROUP = 4;
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
    /// Whom `waitid` waits for.
    WaitIdType: i32, "P_" {
        ALL = 0;
        PID = 1;
        PGID = 2;
        PIDFD = 3;
    }

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

    /// A scheduling policy, without `SCHED_RESET_ON_FORK` (0x4000_0000).
    SchedPolicy: u32, "SCHED_" {
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

/// How a child changed, as `wait4` reports it in its status word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitStatus {
    /// It called `exit` with this code, 0 to 255.
    Exited(u8),
    /// A signal ended it.
    Killed {
        /// Which.
        signal: Signal,
        /// Whether a core file was written.
        core: bool,
    },
    /// A signal stopped it, or a ptrace event, whose number lies above the signal.
    Stopped {
        /// Which; with `0x80` in a system call stop under `PTRACE_O_TRACESYSGOOD`.
        signal: u8,
        /// The ptrace event, 0 for none.
        event: u16,
    },
    /// `SIGCONT` continued it.
    Continued,
}

impl WaitStatus {
    /// The status word.
    pub const fn encode(self) -> i32 {
        match self {
            WaitStatus::Exited(code) => (code as i32) << 8,
            WaitStatus::Killed { signal, core } => (signal.0 & 0x7f) | if core { 0x80 } else { 0 },
            WaitStatus::Stopped { signal, event } => {
                (((event as u32) << 16) | ((signal as u32) << 8) | 0x7f).cast_signed()
            }
            WaitStatus::Continued => 0xffff,
        }
    }

    /// What a status word says.
    pub const fn decode(status: i32) -> WaitStatus {
        let bits = status.cast_unsigned();
        let second = ((bits >> 8) & 0xff) as u8;
        match bits & 0x7f {
            _ if bits == 0xffff => WaitStatus::Continued,
            0 => WaitStatus::Exited(second),
            0x7f => WaitStatus::Stopped { signal: second, event: (bits >> 16) as u16 },
            signal => WaitStatus::Killed { signal: Signal(signal.cast_signed()), core: bits & 0x80 != 0 },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;

    #[test]
    fn wait_status_words() {
        let each = [
            (WaitStatus::Exited(3), 0x300),
            (WaitStatus::Killed { signal: Signal::SEGV, core: true }, 0x8b),
            (WaitStatus::Killed { signal: Signal::KILL, core: false }, 9),
            (WaitStatus::Stopped { signal: 19, event: 0 }, 0x137f),
            (WaitStatus::Stopped { signal: 5, event: 4 }, 0x4_057f),
            (WaitStatus::Continued, 0xffff),
        ];
        for (status, word) in each {
            assert_eq!(status.encode(), word);
            assert_eq!(WaitStatus::decode(word), status);
        }
    }

    #[test]
    fn clone_flags_print_with_their_signal() {
        let fork = CloneFlags::CHILD_CLEARTID | CloneFlags::CHILD_SETTID | CloneFlags::from_bits_retain(17);
        assert_eq!(fork.to_string(), "CLONE_CHILD_CLEARTID|CLONE_CHILD_SETTID|SIGCHLD");
        assert_eq!(CloneFlags::from_bits_retain(17).to_string(), "SIGCHLD");
        assert_eq!(CloneFlags::empty().to_string(), "0");
    }
}
