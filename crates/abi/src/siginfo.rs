//! What a signal carries: `siginfo_t`, with one constructor for each of its layouts
//! (`asm-generic/siginfo.h`). The codes are in `si_code.rs`.

use crate::macros::layout;
use crate::si_code::{BusCode, ChldCode, PollCode, SegvCode, SiCode, SysCode, si_code_name};
use crate::signal::Signal;

layout! {
    /// `siginfo_t`, 128 bytes. Which layout `fields` has follows from signal and code; the constructors
    /// and readers below know each.
    struct Siginfo: 128 {
        0 signo: Signal,
        4 errno: i32,
        8 code: i32,
        12 pad: u32,
        /// The union at offset 16.
        16 fields: [u64; 14],
    }
}

/// Two fields of 32 bits, the first at the lower address.
const fn pair(low: u32, high: u32) -> u64 {
    low as u64 | (high as u64) << 32
}

const fn low(word: u64) -> u32 {
    (word & 0xffff_ffff) as u32
}

const fn high(word: u64) -> u32 {
    (word >> 32) as u32
}

/// Words of the union that Linux itself keeps (`struct kernel_siginfo` has 48 bytes).
const KEPT_WORDS: usize = 4;

/// The highest code that a signal with codes of its own may have (Linux: `sig_sicodes`); others have those of SIGPOLL.
const fn highest_code(signo: Signal) -> i32 {
    match signo {
        Signal::ILL => 11,
        Signal::FPE => 15,
        Signal::SEGV => 10,
        Signal::BUS => 5,
        Signal::SYS => 2,
        _ => 6,
    }
}

impl Siginfo {
    /// Whether Linux knows which of its layouts this one has (`known_siginfo_layout`).
    const fn has_known_layout(&self) -> bool {
        match self.code {
            code if code == SiCode::KERNEL.0 || code == SiCode::ASYNCNL.0 => true,
            1.. => self.code <= highest_code(self.signo),
            code => code >= SiCode::DETHREAD.0,
        }
    }

    /// One that a guest made, as far as Linux keeps it. `None`: its layout is unknown and what is not kept is not zero
    /// (Linux: `copy_siginfo_from_user`, E2BIG).
    pub fn given(mut self) -> Option<Siginfo> {
        let (_, rest) = self.fields.split_at_mut(KEPT_WORDS);
        let loses = rest.iter().any(|word| *word != 0);
        rest.fill(0);
        if loses && !self.has_known_layout() { None } else { Some(self) }
    }

    const fn with(signo: Signal, code: i32, first: [u64; 4]) -> Siginfo {
        let [a, b, c, d] = first;
        Siginfo { signo, errno: 0, code, pad: 0, fields: [a, b, c, d, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0] }
    }

    /// Sent by a process (`kill`, `tgkill`) or by the kernel without more to say (`SI_KERNEL`, zeros).
    pub const fn kill(signo: Signal, code: SiCode, pid: i32, uid: u32) -> Siginfo {
        Siginfo::with(signo, code.0, [pair(pid.cast_unsigned(), uid), 0, 0, 0])
    }

    /// Sent with a value (`sigqueue`, message queues).
    pub const fn queue(signo: Signal, code: SiCode, pid: i32, uid: u32, value: u64) -> Siginfo {
        Siginfo::with(signo, code.0, [pair(pid.cast_unsigned(), uid), value, 0, 0])
    }

    /// Sent by a timer of `timer_create`.
    pub const fn timer(signo: Signal, timer_id: i32, overrun: i32, value: u64) -> Siginfo {
        let first = pair(timer_id.cast_unsigned(), overrun.cast_unsigned());
        Siginfo::with(signo, SiCode::TIMER.0, [first, value, 0, 0])
    }

    /// A child ended, stopped or went on (`SIGCHLD`). `status` is an exit code or a signal; the times are
    /// clock ticks of 1/100 s.
    pub const fn child(code: ChldCode, pid: i32, uid: u32, status: i32, utime: i64, stime: i64) -> Siginfo {
        let first = pair(pid.cast_unsigned(), uid);
        let status = status.cast_unsigned() as u64;
        Siginfo::with(Signal::CHLD, code.0, [first, status, utime.cast_unsigned(), stime.cast_unsigned()])
    }

    /// A fault at an address (`SIGSEGV`, `SIGBUS`, `SIGILL`, `SIGFPE`, `SIGTRAP`).
    pub const fn fault(signo: Signal, code: i32, addr: u64) -> Siginfo {
        Siginfo::with(signo, code, [addr, 0, 0, 0])
    }

    /// A memory error (`BUS_MCEERR_*`): its extent is `1 << addr_lsb` bytes.
    pub const fn memory_error(code: BusCode, addr: u64, addr_lsb: u16) -> Siginfo {
        Siginfo::with(Signal::BUS, code.0, [addr, addr_lsb as u64, 0, 0])
    }

    /// A protection key forbade the access (`SEGV_PKUERR`).
    pub const fn pkey(addr: u64, pkey: u32) -> Siginfo {
        Siginfo::with(Signal::SEGV, SegvCode::PKUERR.0, [addr, 0, pkey as u64, 0])
    }

    /// A descriptor became ready (`SIGIO`, `F_SETSIG`).
    pub const fn poll(signo: Signal, code: PollCode, band: i64, fd: i32) -> Siginfo {
        Siginfo::with(signo, code.0, [band.cast_unsigned(), fd.cast_unsigned() as u64, 0, 0])
    }

    /// seccomp trapped a call (`SIGSYS`); `errno` is the filter's data.
    pub const fn sys(code: SysCode, call_addr: u64, syscall: i32, arch: u32, errno: i32) -> Siginfo {
        let mut info =
            Siginfo::with(Signal::SYS, code.0, [call_addr, pair(syscall.cast_unsigned(), arch), 0, 0]);
        info.errno = errno;
        info
    }

    const fn word(&self, index: usize) -> u64 {
        let [a, b, c, d, ..] = self.fields;
        match index {
            0 => a,
            1 => b,
            2 => c,
            _ => d,
        }
    }

    /// A word of the union; 0 beyond the fourth.
    pub const fn word_at(&self, index: usize) -> u64 {
        if index < 4 { self.word(index) } else { 0 }
    }

    /// `si_pid`, of kill, queue and child.
    pub const fn pid(&self) -> i32 {
        low(self.word(0)).cast_signed()
    }

    /// `si_uid`, of kill, queue and child.
    pub const fn uid(&self) -> u32 {
        high(self.word(0))
    }

    /// Replaces `si_pid`, such as with what a receiver in another pid namespace sees.
    pub const fn set_pid(&mut self, pid: i32) {
        let [first, ..] = &mut self.fields;
        *first = pair(pid.cast_unsigned(), high(*first));
    }

    /// Replaces `si_uid`.
    pub const fn set_uid(&mut self, uid: u32) {
        let [first, ..] = &mut self.fields;
        *first = pair(low(*first), uid);
    }

    /// `si_tid`, of a timer.
    pub const fn timer_id(&self) -> i32 {
        low(self.word(0)).cast_signed()
    }

    /// `si_overrun`, of a timer.
    pub const fn overrun(&self) -> i32 {
        high(self.word(0)).cast_signed()
    }

    /// `si_value`, of queue and timer.
    pub const fn value(&self) -> u64 {
        self.word(1)
    }

    /// `si_status`, of child.
    pub const fn status(&self) -> i32 {
        low(self.word(1)).cast_signed()
    }

    /// `si_utime`, of child.
    pub const fn utime(&self) -> i64 {
        self.word(2).cast_signed()
    }

    /// `si_stime`, of child.
    pub const fn stime(&self) -> i64 {
        self.word(3).cast_signed()
    }

    /// `si_addr`, of faults; `si_call_addr` of seccomp.
    pub const fn addr(&self) -> u64 {
        self.word(0)
    }

    /// `si_pkey`, of `SEGV_PKUERR`.
    pub const fn pkey_number(&self) -> u32 {
        low(self.word(2))
    }

    /// `si_band`, of poll.
    pub const fn band(&self) -> i64 {
        self.word(0).cast_signed()
    }

    /// `si_fd`, of poll.
    pub const fn fd(&self) -> i32 {
        low(self.word(1)).cast_signed()
    }

    /// `si_syscall`, of seccomp.
    pub const fn syscall(&self) -> i32 {
        low(self.word(1)).cast_signed()
    }

    /// `si_arch`, of seccomp.
    pub const fn arch(&self) -> u32 {
        high(self.word(1))
    }

    /// Whether a process gave the code itself (`SI_FROMUSER`).
    pub const fn is_from_user(&self) -> bool {
        self.code <= 0
    }

    /// Which layout it has (`siginfo_layout`).
    pub const fn layout(&self) -> SiLayout {
        let code = self.code;
        if code > SiCode::USER.0 && code < SiCode::KERNEL.0 {
            let (limit, layout) = match self.signo {
                Signal::ILL => (11, SiLayout::Fault),
                Signal::FPE => (15, SiLayout::Fault),
                Signal::SEGV if code == SegvCode::PKUERR.0 => (10, SiLayout::FaultPkey),
                Signal::SEGV => (10, SiLayout::Fault),
                Signal::BUS if code >= BusCode::MCEERR_AR.0 && code <= BusCode::MCEERR_AO.0 => {
                    (5, SiLayout::FaultMce)
                }
                Signal::BUS => (5, SiLayout::Fault),
                Signal::TRAP => (6, SiLayout::Fault),
                Signal::CHLD => (6, SiLayout::Child),
                Signal::SYS => (2, SiLayout::Sys),
                _ => (0, SiLayout::Kill),
            };
            if code <= limit {
                layout
            } else if code <= PollCode::HUP.0 {
                SiLayout::Poll
            } else {
                SiLayout::Kill
            }
        } else if code == SiCode::TIMER.0 {
            SiLayout::Timer
        } else if code == SiCode::SIGIO.0 {
            SiLayout::Poll
        } else if code < 0 && code != SiCode::TKILL.0 {
            SiLayout::Queue
        } else {
            SiLayout::Kill
        }
    }
}

/// The layouts of [`Siginfo`]'s union.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SiLayout {
    /// Sender's pid and uid.
    Kill,
    /// Timer id, overrun, value.
    Timer,
    /// Band and descriptor.
    Poll,
    /// Address.
    Fault,
    /// Address and the extent of a memory error.
    FaultMce,
    /// Address and protection key.
    FaultPkey,
    /// Pid, uid, status, times.
    Child,
    /// Pid, uid, value (`SIL_RT`).
    Queue,
    /// Call address, number, architecture.
    Sys,
}

impl core::fmt::Display for Siginfo {
    /// As strace does: `{si_signo=SIGCHLD, si_code=CLD_EXITED, si_pid=7, …}`.
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{{si_signo={}, si_code=", self.signo)?;
        match si_code_name(self.signo, self.code) {
            Some(name) => f.write_str(name)?,
            None => write!(f, "{}", self.code)?,
        }
        if self.errno != 0 {
            write!(f, ", si_errno={}", self.errno)?;
        }
        match self.layout() {
            SiLayout::Kill if self.code == SiCode::KERNEL.0 => {}
            SiLayout::Kill => write!(f, ", si_pid={}, si_uid={}", self.pid(), self.uid())?,
            SiLayout::Queue => {
                write!(f, ", si_pid={}, si_uid={}, si_value={:#x}", self.pid(), self.uid(), self.value())?;
            }
            SiLayout::Timer => {
                write!(f, ", si_timerid={:#x}, si_overrun={}", self.timer_id(), self.overrun())?;
                write!(f, ", si_value={:#x}", self.value())?;
            }
            SiLayout::Poll => write!(f, ", si_band={}, si_fd={}", self.band(), self.fd())?,
            SiLayout::Fault | SiLayout::FaultMce => write!(f, ", si_addr={:#x}", self.addr())?,
            SiLayout::FaultPkey => write!(f, ", si_addr={:#x}, si_pkey={}", self.addr(), self.pkey_number())?,
            SiLayout::Child => {
                write!(f, ", si_pid={}, si_uid={}, si_status=", self.pid(), self.uid())?;
                match ChldCode(self.code) {
                    ChldCode::EXITED => write!(f, "{}", self.status())?,
                    _ => write!(f, "{}", Signal(self.status()))?,
                }
                write!(f, ", si_utime={}, si_stime={}", self.utime(), self.stime())?;
            }
            SiLayout::Sys => {
                write!(f, ", si_call_addr={:#x}, si_syscall={}", self.addr(), self.syscall())?;
                write!(f, ", si_arch={:#x}", self.arch())?;
            }
        }
        f.write_str("}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;
    use zerocopy::IntoBytes;

    fn at(info: &Siginfo, offset: usize) -> u32 {
        u32::from_le_bytes(info.as_bytes()[offset..offset + 4].try_into().unwrap())
    }

    #[test]
    fn fields_lie_where_the_kernel_puts_them() {
        let kill = Siginfo::kill(Signal::TERM, SiCode::USER, 77, 1000);
        assert_eq!((at(&kill, 0), at(&kill, 8), at(&kill, 16), at(&kill, 20)), (15, 0, 77, 1000));
        let queue = Siginfo::queue(Signal(40), SiCode::QUEUE, 77, 1000, 0x1_0000_0002);
        assert_eq!((at(&queue, 24), at(&queue, 28)), (2, 1));
        let timer = Siginfo::timer(Signal::ALRM, 3, 9, 5);
        assert_eq!((at(&timer, 16), at(&timer, 20), at(&timer, 24)), (3, 9, 5));
        let child = Siginfo::child(ChldCode::KILLED, 77, 1000, 9, 11, 12);
        assert_eq!((at(&child, 24), at(&child, 32), at(&child, 40)), (9, 11, 12));
        assert_eq!(
            (child.pid(), child.uid(), child.status(), child.utime(), child.stime()),
            (77, 1000, 9, 11, 12)
        );
        let pkey = Siginfo::pkey(0x1000, 5);
        assert_eq!((at(&pkey, 16), at(&pkey, 32)), (0x1000, 5));
        let poll = Siginfo::poll(Signal::IO, PollCode::IN, 65, 7);
        assert_eq!((at(&poll, 16), at(&poll, 24)), (65, 7));
        let sys = Siginfo::sys(SysCode::SECCOMP, 0x40_0000, 39, 0xc000_003e, 2);
        assert_eq!((at(&sys, 4), at(&sys, 16), at(&sys, 24), at(&sys, 28)), (2, 0x40_0000, 39, 0xc000_003e));
        let mce = Siginfo::memory_error(BusCode::MCEERR_AO, 0x2000, 12);
        assert_eq!((at(&mce, 16), at(&mce, 24)), (0x2000, 12));
    }

    #[test]
    fn layouts_follow_from_signal_and_code() {
        assert_eq!(Siginfo::fault(Signal::SEGV, 1, 0).layout(), SiLayout::Fault);
        assert_eq!(Siginfo::pkey(0, 1).layout(), SiLayout::FaultPkey);
        assert_eq!(Siginfo::kill(Signal::SEGV, SiCode::USER, 1, 0).layout(), SiLayout::Kill);
        assert_eq!(Siginfo::kill(Signal::SEGV, SiCode::TKILL, 1, 0).layout(), SiLayout::Kill);
        assert_eq!(Siginfo::queue(Signal::SEGV, SiCode::QUEUE, 1, 0, 0).layout(), SiLayout::Queue);
        assert_eq!(Siginfo::poll(Signal(40), PollCode::IN, 1, 0).layout(), SiLayout::Poll);
        assert_eq!(Siginfo::timer(Signal(40), 0, 0, 0).layout(), SiLayout::Timer);
    }

    #[test]
    fn infos_print_as_strace_prints_them() {
        let child = Siginfo::child(ChldCode::KILLED, 7, 0, 9, 1, 2).to_string();
        let text = "{si_signo=SIGCHLD, si_code=CLD_KILLED, si_pid=7, si_uid=0, si_status=SIGKILL, si_utime=1, si_stime=2}";
        assert_eq!(child, text);
        let fault = Siginfo::fault(Signal::SEGV, SegvCode::MAPERR.0, 16).to_string();
        assert_eq!(fault, "{si_signo=SIGSEGV, si_code=SEGV_MAPERR, si_addr=0x10}");
        let kernel = Siginfo::kill(Signal::SEGV, SiCode::KERNEL, 0, 0).to_string();
        assert_eq!(kernel, "{si_signo=SIGSEGV, si_code=SI_KERNEL}");
    }
}
