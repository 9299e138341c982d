//! What the guest's own instructions raise.

use abi::{SegvCode, SiCode, Siginfo, Signal};
use platform::{Event, Exception, ExitStatus};

use crate::profile::What;
use crate::task::run::LastFault;
use crate::task::{CurrentTask, GroupExit};

/// x86 exception numbers, as signal frames show them.
const DIVIDE_ERROR: u64 = 0;
const DEBUG: u64 = 1;
const BREAKPOINT: u64 = 3;
const INVALID_OPCODE: u64 = 6;
const GENERAL_PROTECTION: u64 = 13;
const PAGE_FAULT: u64 = 14;
const X87: u64 = 16;
const SIMD: u64 = 19;

impl CurrentTask {
    /// Turns a host's report of a fault into the signal that Linux sends.
    pub(super) fn exception(&mut self, exception: &Exception) {
        self.counters.add(Event::Fault, 1);
        let signal = Signal(exception.signal);
        self.profile_moment(What::Fault(signal));
        self.last_fault = describe(signal, exception);
        self.force_signal(Siginfo::fault(signal, exception.code, exception.addr.0));
    }

    /// The host process is gone, unasked: the guest process ends as by SIGKILL.
    pub(super) fn died(&mut self, status: ExitStatus) {
        tracing::debug!(pid = self.pid(), ?status, "host process died");
        self.exit_group(GroupExit::Signal { signal: Signal::KILL, core: false });
    }
}

fn describe(signal: Signal, exception: &Exception) -> LastFault {
    let trap_number = match signal {
        Signal::SEGV if exception.code == SiCode::KERNEL.0 => GENERAL_PROTECTION,
        Signal::SEGV | Signal::BUS => PAGE_FAULT,
        Signal::ILL => INVALID_OPCODE,
        Signal::TRAP if exception.code == SiCode::KERNEL.0 => BREAKPOINT,
        Signal::TRAP => DEBUG,
        Signal::FPE if exception.code == abi::FpeCode::INTDIV.0 => DIVIDE_ERROR,
        Signal::FPE if exception.code == abi::FpeCode::FLTINV.0 => SIMD,
        Signal::FPE => X87,
        _ => 0,
    };
    // The host does not tell tracers the error code: user mode, and whether the page was there.
    let error_code = match trap_number {
        PAGE_FAULT if exception.code == SegvCode::ACCERR.0 => 5,
        PAGE_FAULT => 4,
        _ => 0,
    };
    let address = if trap_number == PAGE_FAULT { exception.addr.0 } else { 0 };
    LastFault { address, trap_number, error_code }
}
