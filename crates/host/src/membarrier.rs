//! `membarrier` for all threads of the host.
//!
//! # Safety
//! The call takes no pointers.
#![allow(unsafe_code, reason = "rustix lacks membarrier")]

use std::io;
use std::sync::OnceLock;

const QUERY: libc::c_int = 0;
const GLOBAL: libc::c_int = 1;

fn membarrier(command: libc::c_int) -> io::Result<usize> {
    // SAFETY: numbers only.
    crate::check(unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) })
}

/// Whether the host has [`global`].
pub fn has_global() -> bool {
    /// A fact about the host, which does not change.
    static KNOWN: OnceLock<bool> = OnceLock::new();
    *KNOWN.get_or_init(|| membarrier(QUERY).is_ok_and(|commands| commands & 1 != 0))
}

/// Returns when every thread that ran on the host at its call has passed a memory barrier (`MEMBARRIER_CMD_GLOBAL`):
/// some milliseconds.
///
/// # Errors
/// `ENOSYS`, or `EINVAL` on hosts with CPUs without a tick.
pub fn global() -> io::Result<()> {
    membarrier(GLOBAL).map(drop)
}
