//! Why a signal came: the codes of `siginfo_t` (`asm-generic/siginfo.h`).

use crate::macros::names;
use crate::signal::Signal;

names! {
    /// Codes that any signal may have.
    SiCode: i32, "SI_" {
        USER = 0;
        KERNEL = 0x80;
        QUEUE = -1;
        TIMER = -2;
        MESGQ = -3;
        ASYNCIO = -4;
        SIGIO = -5;
        TKILL = -6;
        DETHREAD = -7;
        ASYNCNL = -60;
    }

    /// Codes of `SIGILL`.
    IllCode: i32, "ILL_" {
        ILLOPC = 1;
        ILLOPN = 2;
        ILLADR = 3;
        ILLTRP = 4;
        PRVOPC = 5;
        PRVREG = 6;
        COPROC = 7;
        BADSTK = 8;
        BADIADDR = 9;
    }

    /// Codes of `SIGFPE`.
    FpeCode: i32, "FPE_" {
        INTDIV = 1;
        INTOVF = 2;
        FLTDIV = 3;
        FLTOVF = 4;
        FLTUND = 5;
        FLTRES = 6;
        FLTINV = 7;
        FLTSUB = 8;
        FLTUNK = 14;
        CONDTRAP = 15;
    }

    /// Codes of `SIGSEGV`.
    SegvCode: i32, "SEGV_" {
        MAPERR = 1;
        ACCERR = 2;
        BNDERR = 3;
        PKUERR = 4;
        ACCADI = 5;
        ADIDERR = 6;
        ADIPERR = 7;
        MTEAERR = 8;
        MTESERR = 9;
        CPERR = 10;
    }

    /// Codes of `SIGBUS`.
    BusCode: i32, "BUS_" {
        ADRALN = 1;
        ADRERR = 2;
        OBJERR = 3;
        MCEERR_AR = 4;
        MCEERR_AO = 5;
    }

    /// Codes of `SIGTRAP`.
    TrapCode: i32, "TRAP_" {
        BRKPT = 1;
        TRACE = 2;
        BRANCH = 3;
        HWBKPT = 4;
        UNK = 5;
        PERF = 6;
    }

    /// Codes of `SIGCHLD`.
    ChldCode: i32, "CLD_" {
        EXITED = 1;
        KILLED = 2;
        DUMPED = 3;
        TRAPPED = 4;
        STOPPED = 5;
        CONTINUED = 6;
    }

    /// Codes of `SIGPOLL`, the same as `SIGIO`.
    PollCode: i32, "POLL_" {
        IN = 1;
        OUT = 2;
        MSG = 3;
        ERR = 4;
        PRI = 5;
        HUP = 6;
    }

    /// Codes of `SIGSYS`.
    SysCode: i32, "SYS_" {
        SECCOMP = 1;
        USER_DISPATCH = 2;
    }
}

/// The name of a code, which depends on the signal; `None` where Linux has none.
pub fn si_code_name(signal: Signal, code: i32) -> Option<&'static str> {
    let of_signal = match signal {
        Signal::ILL => IllCode(code).name(),
        Signal::FPE => FpeCode(code).name(),
        Signal::SEGV => SegvCode(code).name(),
        Signal::BUS => BusCode(code).name(),
        Signal::TRAP => TrapCode(code).name(),
        Signal::CHLD => ChldCode(code).name(),
        Signal::IO => PollCode(code).name(),
        Signal::SYS => SysCode(code).name(),
        _ => None,
    };
    of_signal.or_else(|| SiCode(code).name())
}
