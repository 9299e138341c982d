//! Signals: numbers, sets, actions, alternate stacks (`asm/signal.h`, `asm-generic/signal-defs.h`).
//! What a signal carries is in `siginfo.rs`, how it lies on a stack in `sigframe.rs`.

use crate::macros::{flags, layout, names};

names! {
    /// A signal number: 1 to 64 where it is valid, 0 where none is meant.
    custom Signal: i32, "SIG" {
        HUP = 1;
        INT = 2;
        QUIT = 3;
        ILL = 4;
        TRAP = 5;
        ABRT = 6;
        BUS = 7;
        FPE = 8;
        KILL = 9;
        USR1 = 10;
        SEGV = 11;
        USR2 = 12;
        PIPE = 13;
        ALRM = 14;
        TERM = 15;
        STKFLT = 16;
        CHLD = 17;
        CONT = 18;
        STOP = 19;
        TSTP = 20;
        TTIN = 21;
        TTOU = 22;
        URG = 23;
        XCPU = 24;
        XFSZ = 25;
        VTALRM = 26;
        PROF = 27;
        WINCH = 28;
        IO = 29;
        PWR = 30;
        SYS = 31;
    }
}

/// What a signal does to a process that set nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DefaultAction {
    /// End the process.
    Terminate,
    /// End it and write a core file.
    Core,
    /// Stop it.
    Stop,
    /// Nothing (of `SIGCONT` too: it has continued the process when it was sent).
    Ignore,
}

impl Signal {
    /// The first real-time signal, as the kernel counts (glibc keeps two for itself).
    pub const RTMIN: i32 = 32;
    /// The last signal (`_NSIG`).
    pub const MAX: i32 = 64;

    /// Whether it names a signal.
    pub const fn is_valid(self) -> bool {
        self.0 >= 1 && self.0 <= Self::MAX
    }

    /// Whether it is a real-time signal: queued, never merged.
    pub const fn is_realtime(self) -> bool {
        self.0 >= Self::RTMIN && self.0 <= Self::MAX
    }

    /// The set of it alone; empty where it is not valid.
    pub const fn mask(self) -> SigSet {
        if self.is_valid() { SigSet(1 << (self.0 - 1)) } else { SigSet::EMPTY }
    }

    /// What it does by default.
    pub const fn default_action(self) -> DefaultAction {
        if SigSet::DEFAULT_IGNORED.contains(self) {
            DefaultAction::Ignore
        } else if SigSet::DEFAULT_STOP.contains(self) {
            DefaultAction::Stop
        } else if SigSet::DEFAULT_CORE.contains(self) {
            DefaultAction::Core
        } else {
            DefaultAction::Terminate
        }
    }
}

impl core::fmt::Display for Signal {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None if self.0 == Self::RTMIN => f.write_str("SIGRTMIN"),
            None if self.is_realtime() => write!(f, "SIGRT_{}", self.0.saturating_sub(Self::RTMIN)),
            None => write!(f, "{}", self.0),
        }
    }
}

/// A set of signals, as the kernel keeps it (`sigset_t` of 8 bytes): bit `n - 1` is signal `n`.
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
pub struct SigSet(pub u64);

const fn set(signals: &[Signal]) -> SigSet {
    let mut bits = 0;
    let mut rest = signals;
    while let [signal, tail @ ..] = rest {
        bits |= signal.mask().0;
        rest = tail;
    }
    SigSet(bits)
}

impl SigSet {
    /// No signal.
    pub const EMPTY: SigSet = SigSet(0);
    /// All of them.
    pub const FULL: SigSet = SigSet(!0);
    /// What calls that take a set must give as its size, in bytes.
    pub const SIZE: usize = 8;
    /// Those that cannot be caught, blocked or ignored (`SIG_KERNEL_ONLY_MASK`).
    pub const UNBLOCKABLE: SigSet = set(&[Signal::KILL, Signal::STOP]);
    /// Those that an instruction of the thread itself raises: taken before all others
    /// (`SYNCHRONOUS_MASK`).
    pub const SYNCHRONOUS: SigSet =
        set(&[Signal::SEGV, Signal::BUS, Signal::ILL, Signal::TRAP, Signal::FPE, Signal::SYS]);
    /// Those that stop a process by default (`SIG_KERNEL_STOP_MASK`).
    pub const DEFAULT_STOP: SigSet = set(&[Signal::STOP, Signal::TSTP, Signal::TTIN, Signal::TTOU]);
    /// Those that do nothing by default (`SIG_KERNEL_IGNORE_MASK`).
    pub const DEFAULT_IGNORED: SigSet = set(&[Signal::CONT, Signal::CHLD, Signal::WINCH, Signal::URG]);
    /// Those that write a core file by default (`SIG_KERNEL_COREDUMP_MASK`).
    pub const DEFAULT_CORE: SigSet = set(&[
        Signal::QUIT,
        Signal::ILL,
        Signal::TRAP,
        Signal::ABRT,
        Signal::FPE,
        Signal::SEGV,
        Signal::BUS,
        Signal::SYS,
        Signal::XCPU,
        Signal::XFSZ,
    ]);

    /// Whether nothing is in it.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether this signal is in it.
    pub const fn contains(self, signal: Signal) -> bool {
        self.0 & signal.mask().0 != 0
    }

    /// Puts a signal in; an invalid one changes nothing.
    pub const fn insert(&mut self, signal: Signal) {
        self.0 |= signal.mask().0;
    }

    /// Takes a signal out.
    pub const fn remove(&mut self, signal: Signal) {
        self.0 &= !signal.mask().0;
    }

    /// What is in either.
    pub const fn union(self, other: SigSet) -> SigSet {
        SigSet(self.0 | other.0)
    }

    /// What is in both.
    pub const fn intersection(self, other: SigSet) -> SigSet {
        SigSet(self.0 & other.0)
    }

    /// What is in this and not in the other.
    pub const fn difference(self, other: SigSet) -> SigSet {
        SigSet(self.0 & !other.0)
    }

    /// What is not in it.
    pub const fn complement(self) -> SigSet {
        SigSet(!self.0)
    }

    /// Whether any is in both.
    pub const fn intersects(self, other: SigSet) -> bool {
        self.0 & other.0 != 0
    }

    /// How many are in it.
    pub const fn len(self) -> u32 {
        self.0.count_ones()
    }

    /// The lowest in it.
    pub const fn first(self) -> Option<Signal> {
        match self.0 {
            0 => None,
            bits => Some(Signal(bits.trailing_zeros().cast_signed().saturating_add(1))),
        }
    }

    /// The one that Linux delivers first of these (`next_signal`): raised by an instruction before all
    /// others, then by number.
    pub const fn next_to_deliver(self) -> Option<Signal> {
        match self.intersection(Self::SYNCHRONOUS).first() {
            Some(signal) => Some(signal),
            None => self.first(),
        }
    }

    /// All in it, lowest first.
    pub fn iter(self) -> impl Iterator<Item = Signal> {
        (1..=Signal::MAX).map(Signal).filter(move |signal| self.contains(*signal))
    }
}

impl FromIterator<Signal> for SigSet {
    fn from_iter<I: IntoIterator<Item = Signal>>(signals: I) -> SigSet {
        signals.into_iter().fold(SigSet::EMPTY, |set, signal| set.union(signal.mask()))
    }
}

impl core::fmt::Display for SigSet {
    /// As strace does: `[INT TERM RT_1]`, or `~[]` with what is missing where most are in it.
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let (shown, sign) = if self.len() > 32 { (self.complement(), "~") } else { (*self, "") };
        write!(f, "{sign}[")?;
        for (index, signal) in shown.iter().enumerate() {
            if index > 0 {
                f.write_str(" ")?;
            }
            match signal.name().and_then(|name| name.strip_prefix("SIG")) {
                Some(name) => f.write_str(name)?,
                None if signal.0 == Signal::RTMIN => f.write_str("RTMIN")?,
                None => write!(f, "RT_{}", signal.0.saturating_sub(Signal::RTMIN))?,
            }
        }
        f.write_str("]")
    }
}

impl core::fmt::Debug for SigSet {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        core::fmt::Display::fmt(self, f)
    }
}

names! {
    /// What `rt_sigprocmask` does with the set.
    SigmaskHow: i32, "SIG_" {
        BLOCK = 0;
        UNBLOCK = 1;
        SETMASK = 2;
    }
}

flags! {
    /// `sa_flags`.
    SaFlags: u64, "SA_" {
        NOCLDSTOP = 0x1;
        NOCLDWAIT = 0x2;
        SIGINFO = 0x4;
        /// Asked for, it is cleared in what `rt_sigaction` gives back: how programs find out whether a
        /// kernel clears unknown flags.
        UNSUPPORTED = 0x400;
        EXPOSE_TAGBITS = 0x800;
        /// `SA_RESTORER` of `asm/signal.h`: x86-64 kills a program that takes a signal without it.
        RESTORER = 0x0400_0000;
        ONSTACK = 0x0800_0000;
        RESTART = 0x1000_0000;
        NODEFER = 0x4000_0000;
        RESETHAND = 0x8000_0000;
    }

    /// `ss_flags` of [`Sigaltstack`].
    SsFlags: u32, "SS_" {
        ONSTACK = 1;
        DISABLE = 2;
        AUTODISARM = 0x8000_0000;
    }
}

impl SaFlags {
    /// The flags that `rt_sigaction` keeps (`UAPI_SA_FLAGS` with x86's own); others are cleared.
    pub const UAPI: SaFlags = SaFlags::KNOWN.difference(SaFlags::UNSUPPORTED);
}

layout! {
    /// The kernel's `struct sigaction` (not glibc's).
    struct Sigaction: 32 {
        /// [`Sigaction::DFL`], [`Sigaction::IGN`], or where the handler is.
        0 handler: u64,
        8 flags: SaFlags,
        16 restorer: u64,
        24 mask: SigSet,
    }

    /// `stack_t`, of `sigaltstack`.
    struct Sigaltstack: 24 {
        0 sp: u64,
        8 flags: SsFlags,
        12 pad: u32,
        16 size: u64,
    }
}

impl Sigaction {
    /// `SIG_DFL`.
    pub const DFL: u64 = 0;
    /// `SIG_IGN`.
    pub const IGN: u64 = 1;
}

impl Sigaltstack {
    /// The least size that Linux takes (`MINSIGSTKSZ`), in bytes. Where a signal frame of the processor
    /// is larger, `AT_MINSIGSTKSZ` says so.
    pub const MIN_SIZE: u64 = 2048;
    /// What `sigaltstack` gives when none is set.
    pub const DISABLED: Sigaltstack = Sigaltstack { sp: 0, flags: SsFlags::DISABLE, pad: 0, size: 0 };
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;

    #[test]
    fn invalid_signals_are_in_no_set() {
        for number in [0, -1, 65, i32::MAX, i32::MIN] {
            assert_eq!(Signal(number).mask(), SigSet::EMPTY);
            assert!(!SigSet::FULL.contains(Signal(number)));
        }
        assert_eq!(Signal(64).mask(), SigSet(1 << 63));
    }

    #[test]
    fn synchronous_signals_come_first() {
        let pending: SigSet = [Signal::HUP, Signal::SEGV, Signal::BUS].into_iter().collect();
        assert_eq!(pending.next_to_deliver(), Some(Signal::BUS));
        assert_eq!(SigSet(1 << 63).next_to_deliver(), Some(Signal(64)));
        assert_eq!(SigSet::EMPTY.next_to_deliver(), None);
    }

    #[test]
    fn sets_print_as_strace_prints_them() {
        let some: SigSet = [Signal::INT, Signal(33)].into_iter().collect();
        assert_eq!(some.to_string(), "[INT RT_1]");
        assert_eq!(SigSet::UNBLOCKABLE.complement().to_string(), "~[KILL STOP]");
        assert_eq!(Signal(34).to_string(), "SIGRT_2");
    }

    #[test]
    fn default_actions() {
        assert_eq!(Signal::CHLD.default_action(), DefaultAction::Ignore);
        assert_eq!(Signal::TTIN.default_action(), DefaultAction::Stop);
        assert_eq!(Signal::SEGV.default_action(), DefaultAction::Core);
        assert_eq!(Signal(40).default_action(), DefaultAction::Terminate);
    }
}
