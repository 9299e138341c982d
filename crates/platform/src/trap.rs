//! Why a guest thread stopped.

use abi::UserAddr;

/// Why [`Context::run`](crate::Context::run) or [`Context::step`](crate::Context::step) returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trap {
    /// The guest asks for a system call. It goes on behind the `syscall` instruction; what
    /// [`Context::set_result`](crate::Context::set_result) was given is in its `rax` then.
    Syscall(SyscallEntry),
    /// The guest's own instruction failed: a page fault, a division by zero, a breakpoint, …
    Exception(Exception),
    /// [`Context::step`](crate::Context::step) has run one instruction, which did nothing of the above.
    Stepped,
    /// An [`Interrupter`](crate::Interrupter) kicked, or something else asks to look again. May be spurious.
    Interrupted,
    /// The guest's host process, or this thread of it, is gone, unasked.
    Died(ExitStatus),
}

/// A system call as the guest made it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SyscallEntry {
    /// The number in `rax`, all 64 bits: Linux looks at the lower 32 (`x32` numbers have bit 30).
    pub number: u64,
    /// `rdi, rsi, rdx, r10, r8, r9`.
    pub args: [u64; 6],
    /// Whether it came by the 64-bit `syscall` instruction. Others (`int 0x80`, …) get `ENOSYS`.
    pub native: bool,
}

/// A fault or trap that the host reported of the guest's code, as a signal would tell it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exception {
    /// The signal that Linux sends: SIGSEGV, SIGBUS, SIGFPE, SIGILL or SIGTRAP.
    pub signal: i32,
    /// The host's `si_code`.
    pub code: i32,
    /// The host's `si_addr`.
    pub addr: UserAddr,
    /// The processor's number of the exception, as signal frames show it.
    pub trap: u64,
    /// The error code that the processor gave with it.
    pub error_code: u64,
}

impl Exception {
    /// With the trap number and error code that the signal alone tells: of a page fault, a read's; of the
    /// floating-point units, x87's.
    pub fn of_signal(signal: i32, code: i32, addr: UserAddr) -> Exception {
        const SI_KERNEL: i32 = 0x80;
        const SEGV_ACCERR: i32 = 2;
        const FPE_INTDIV: i32 = 1;
        let (trap, error_code) = match (abi::Signal(signal), code) {
            (abi::Signal::SEGV, SI_KERNEL) => (13, 0),
            (abi::Signal::SEGV, SEGV_ACCERR) => (14, 5),
            (abi::Signal::SEGV | abi::Signal::BUS, _) => (14, 4),
            (abi::Signal::ILL, _) => (6, 0),
            (abi::Signal::TRAP, SI_KERNEL) => (3, 0),
            (abi::Signal::TRAP, _) => (1, 0),
            (abi::Signal::FPE, code) if code != FPE_INTDIV => (16, 0),
            _ => (0, 0),
        };
        Exception { signal, code, addr, trap, error_code }
    }
}

/// How a host process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExitStatus {
    Exited(i32),
    Killed(i32),
}
