//! The console's other side: the host's terminal, on which umlaut itself is a job of the user's shell.
//!
//! While umlaut is in the background there, its guests are too, whatever group is in the foreground inside.

use std::sync::Arc;

use abi::{Errno, SiCode, Sigaction, Siginfo, Signal};
use sync::{SysError, SysResult};

use crate::task::CurrentTask;
use crate::tty::Terminal;

/// The host's terminal that the console stands for.
pub trait HostTerminal: Send + Sync {
    /// Whether another job has the terminal.
    fn is_in_background(&self) -> bool;
    /// A program uses it: from now on what is typed is for the console, while umlaut is in the foreground.
    fn claim(&self);
    /// Does what the host does to a background process that reads (`SIGTTIN`) or changes settings (`SIGTTOU`): all of
    /// umlaut is stopped; returns when it has been continued.
    ///
    /// # Errors
    /// `EIO`: nobody would continue it.
    fn stop(&self, signal: Signal) -> Result<(), Errno>;
}

impl Terminal {
    /// Says what it stands for; the first word holds.
    pub fn stand_for(&self, host: Box<dyn HostTerminal>) {
        let _ = self.host.set(host);
    }

    /// Somebody uses it who may.
    pub(super) fn claim_host(&self) {
        if let Some(host) = self.host.get() {
            host.claim();
        }
    }
}

/// What a program gets that is in the foreground inside, but not outside. The main program's group is stopped as the
/// host would stop it, and umlaut with it; for other groups, and shells that ignore the signal, all of umlaut is.
pub(super) fn check(terminal: &Arc<Terminal>, task: &CurrentTask, own: i32, signal: Signal) -> SysResult<()> {
    let Some(host) = terminal.host.get().filter(|host| host.is_in_background()) else { return Ok(()) };
    let ignored = task.task.blocked().contains(signal) || task.handlers.get(signal).handler == Sigaction::IGN;
    if ignored && signal == Signal::TTOU {
        return Ok(());
    }
    if !ignored && task.kernel().is_job_outside(own) {
        let info = Siginfo::kill(signal, SiCode::KERNEL, 0, 0);
        // It reaches the caller's process at least, if not this thread of it.
        let _ = task.kernel().tasks.lock().send_to_process_group(own, info);
        return Err(SysError::Restart(task.leave_for_signals()?));
    }
    Ok(host.stop(signal)?)
}
