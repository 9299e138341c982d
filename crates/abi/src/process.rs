//! Making, waiting for and describing processes: `clone`, `wait`, pidfds, `uname`, `sysinfo`
//! (`linux/sched.h`, `linux/wait.h`, `linux/pidfd.h`). Limits and scheduling are in `sched.rs`.

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

    /// The same as `clone3`, `unshare` and `setns` mean it.
    pub const fn clone3(self) -> Clone3Flags {
        Clone3Flags(self)
    }
}

/// [`CloneFlags`] that print as `clone3`, `unshare` and `setns` mean them: no signal, `CLONE_NEWTIME`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Clone3Flags(pub CloneFlags);

impl core::fmt::Display for Clone3Flags {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let own = [(CloneFlags::NEWTIME.0, "CLONE_NEWTIME")];
        write_flags(f, self.0.0, own.into_iter().chain(CloneFlags::NAMES.iter().copied()), false)
    }
}

impl core::fmt::Debug for Clone3Flags {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        core::fmt::Display::fmt(self, f)
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

    /// `struct pidfd_info`, of `PIDFD_GET_INFO`. Its first version ends at offset 64.
    struct PidfdInfo: 72 {
        0 mask: PidfdInfoMask,
        8 cgroupid: u64,
        16 pid: u32,
        20 tgid: u32,
        24 ppid: u32,
        28 ruid: u32,
        32 rgid: u32,
        36 euid: u32,
        40 egid: u32,
        44 suid: u32,
        48 sgid: u32,
        52 fsuid: u32,
        56 fsgid: u32,
        60 exit_code: i32,
        64 coredump_mask: u32,
        68 coredump_signal: u32,
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
}

impl Utsname {
    /// Most bytes of each string (`__NEW_UTS_LEN`), without its zero.
    pub const MAX_LEN: usize = 64;
}

impl CloneArgs {
    /// The least size that `clone3` takes (`CLONE_ARGS_SIZE_VER0`), in bytes.
    pub const MIN_SIZE: usize = 64;
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

    /// Flags of `pidfd_open`.
    PidfdFlags: u32, "PIDFD_" {
        THREAD = 0o200;
        NONBLOCK = 0o4000;
    }

    /// What [`PidfdInfo`] holds.
    PidfdInfoMask: u64, "PIDFD_INFO_" {
        PID = 0x1;
        CREDS = 0x2;
        CGROUPID = 0x4;
        EXIT = 0x8;
        COREDUMP = 0x10;
    }

    /// Flags of `pidfd_send_signal`.
    PidfdSignalFlags: u32, "PIDFD_SIGNAL_" {
        THREAD = 1;
        THREAD_GROUP = 2;
        PROCESS_GROUP = 4;
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
        let time = CloneFlags::NEWTIME | CloneFlags::NEWUSER;
        assert_eq!(time.clone3().to_string(), "CLONE_NEWTIME|CLONE_NEWUSER");
    }
}
