//! `membarrier`, for what the kernel asks for itself.
//!
//! # Safety
//! The call takes no pointers.
#![allow(unsafe_code, reason = "rustix lacks membarrier")]

use std::io;
use std::sync::OnceLock;

const QUERY: libc::c_int = 0;

fn membarrier(command: libc::c_int) -> io::Result<usize> {
    // SAFETY: numbers only.
    crate::check(unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) })
}

/// The commands that the host has (`MEMBARRIER_CMD_*`); 0: the call is not to be had.
pub fn commands() -> u32 {
    /// A fact about the host, which does not change.
    static KNOWN: OnceLock<u32> = OnceLock::new();
    *KNOWN.get_or_init(|| membarrier(QUERY).map_or(0, |commands| u32::try_from(commands).unwrap_or(0)))
}

/// Returns when every thread that ran on the host at its call has passed a memory barrier (`MEMBARRIER_CMD_GLOBAL`):
/// some milliseconds.
///
/// # Errors
/// `ENOSYS`, or `EINVAL` on hosts with CPUs without a tick.
pub fn global() -> io::Result<()> {
    const GLOBAL: libc::c_int = 1;
    membarrier(GLOBAL).map(drop)
}

/// The same for the threads of processes that registered for it (`MEMBARRIER_CMD_GLOBAL_EXPEDITED`): some microseconds.
///
/// # Errors
/// `ENOSYS`.
pub fn global_expedited() -> io::Result<()> {
    const GLOBAL_EXPEDITED: libc::c_int = 2;
    membarrier(GLOBAL_EXPEDITED).map(drop)
}
