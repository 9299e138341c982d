//! What a system call fails with.

use abi::Errno;

/// Result of a system call or a part of one.
pub type SysResult<T> = Result<T, SysError>;

/// A failed system call: an error for the guest, or a wait that a signal ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SysError {
    Errno(Errno),
    /// A signal is to be handled first; whether the call then starts again is decided where system calls end
    /// (the kernel's `task/run.rs`). Never reaches a guest.
    Restart(Restart),
}

/// How an interrupted call goes on (Linux: `ERESTARTSYS` and its kin). Only waits make one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Restart(Kind);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// ERESTARTSYS: again if no handler runs or it has SA_RESTART, else EINTR.
    Sys,
    /// ERESTARTNOHAND: again only if no handler runs.
    NoHandler,
    /// ERESTARTNOINTR: again in any case.
    Always,
    /// ERESTART_RESTARTBLOCK: by `restart_syscall`, with what the task keeps, if no handler runs.
    Block,
}

impl Restart {
    pub(crate) const SYS: Restart = Restart(Kind::Sys);

    /// The same interruption for calls which start again only when no handler runs (poll, select, sigsuspend, …).
    pub fn no_handler(self) -> Restart {
        Restart(Kind::NoHandler)
    }

    /// The same interruption for calls that always start again (fork).
    pub fn always(self) -> Restart {
        Restart(Kind::Always)
    }

    /// The same interruption for calls with a relative time-out, which go on by `restart_syscall`.
    pub fn block(self) -> Restart {
        Restart(Kind::Block)
    }

    /// Whether the call starts again after a handler has run that was installed with (`sa_restart`) or
    /// without SA_RESTART.
    pub fn after_handler(self, sa_restart: bool) -> bool {
        match self.0 {
            Kind::Sys => sa_restart,
            Kind::Always => true,
            Kind::NoHandler | Kind::Block => false,
        }
    }

    /// Linux's name and words for it, as a trace shows them.
    pub fn linux_name(self) -> (&'static str, &'static str) {
        match self.0 {
            Kind::Sys => ("ERESTARTSYS", "To be restarted if SA_RESTART is set"),
            Kind::NoHandler => ("ERESTARTNOHAND", "To be restarted if no handler"),
            Kind::Always => ("ERESTARTNOINTR", "To be restarted"),
            Kind::Block => ("ERESTART_RESTARTBLOCK", "Interrupted by signal"),
        }
    }

    /// Whether it goes on by `restart_syscall` when no handler runs.
    pub fn is_block(self) -> bool {
        self.0 == Kind::Block
    }
}

impl From<Errno> for SysError {
    fn from(errno: Errno) -> SysError {
        SysError::Errno(errno)
    }
}

impl SysError {
    /// The errno, if it is one.
    pub fn errno(self) -> Option<Errno> {
        match self {
            SysError::Errno(errno) => Some(errno),
            SysError::Restart(_) => None,
        }
    }

    /// Applies `change` to a restart; leaves errors as they are.
    pub fn map_restart(self, change: impl FnOnce(Restart) -> Restart) -> SysError {
        match self {
            SysError::Restart(restart) => SysError::Restart(change(restart)),
            errno => errno,
        }
    }
}

impl std::fmt::Display for SysError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            SysError::Errno(errno) => write!(f, "{errno}"),
            SysError::Restart(restart) => write!(f, "interrupted ({restart:?})"),
        }
    }
}

impl std::error::Error for SysError {}
