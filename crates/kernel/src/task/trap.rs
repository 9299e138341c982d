//! What the guest's own instructions raise.

use abi::{Siginfo, Signal};
use platform::{Event, Exception, ExitStatus};

use crate::profile::What;
use crate::task::run::LastFault;
use crate::task::{CurrentTask, GroupExit};

/// The processor's number of a page fault.
const PAGE_FAULT: u64 = 14;

impl CurrentTask {
    /// Turns a host's report of a fault into the signal that Linux sends.
    pub(super) fn exception(&mut self, exception: &Exception) {
        self.counters.add(Event::Fault, 1);
        let signal = Signal(exception.signal);
        self.profile_moment(What::Fault(signal));
        // Linux keeps the address of the last page fault (`thread.cr2`) over other exceptions.
        let address = if exception.trap == PAGE_FAULT { exception.addr.0 } else { self.last_fault.address };
        self.last_fault =
            LastFault { address, trap_number: exception.trap, error_code: exception.error_code };
        self.force_signal(Siginfo::fault(signal, exception.code, exception.addr.0));
    }

    /// The host process is gone, unasked: the guest process ends as by SIGKILL.
    pub(super) fn died(&mut self, status: ExitStatus) {
        tracing::debug!(pid = self.pid(), ?status, "host process died");
        self.exit_group(GroupExit::Signal { signal: Signal::KILL, core: false });
    }
}
