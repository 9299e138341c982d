//! Signals to host threads, and this process's own dispositions.
//!
//! # Safety
//! No handler is installed here, only `SIG_DFL` and `SIG_IGN`; sending a signal touches no memory.
#![allow(unsafe_code, reason = "tgkill and sigaction are raw calls")]

use std::io;

use crate::check;

/// Sends `signal` (0: only checks) to thread `tid` of process `tgid`; never to a recycled thread of
/// another process, which `tkill` could hit.
///
/// # Errors
/// `ESRCH` if there is no such thread in it, `EPERM`.
pub fn send_to_thread(tgid: i32, tid: i32, signal: i32) -> io::Result<()> {
    // SAFETY: integers only.
    check(unsafe { libc::syscall(libc::SYS_tgkill, tgid, tid, signal) }).map(drop)
}

/// Gives SIGCHLD its default action in this process, and has the host not raise it for stops of children
/// and tracees, of which a tracer sees many. (Ignored, it would have children reaped by themselves.)
///
/// # Errors
/// None on Linux.
pub fn quiet_sigchld() -> io::Result<()> {
    // SAFETY: all zeroes is a valid sigaction: SIG_DFL, an empty mask.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_flags = libc::SA_NOCLDSTOP;
    // SAFETY: SIG_DFL is no handler of ours; the old action is not asked for.
    check(unsafe { libc::sigaction(libc::SIGCHLD, &action, std::ptr::null_mut()) }.into()).map(drop)
}

/// Ignores `signal` in this process: what would send it gives an error instead.
///
/// # Errors
/// `EINVAL` for a signal that cannot be ignored.
pub fn ignore(signal: i32) -> io::Result<()> {
    // SAFETY: SIG_IGN is no handler of ours.
    match unsafe { libc::signal(signal, libc::SIG_IGN) } {
        libc::SIG_ERR => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// Sets `signal` to its default action in this process.
///
/// # Errors
/// `EINVAL` for a signal that cannot be changed.
pub fn set_default(signal: i32) -> io::Result<()> {
    // SAFETY: SIG_DFL is no handler of ours.
    match unsafe { libc::signal(signal, libc::SIG_DFL) } {
        libc::SIG_ERR => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}
