//! Signals to host threads, and this process's own dispositions.
//!
//! # Safety
//! No handler is installed here, only `SIG_DFL` and `SIG_IGN`; sending a signal touches no memory. What runs
//! before std is set up fills plain data.
#![allow(unsafe_code, reason = "tgkill and sigaction are raw calls")]

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::check;

/// Bit n - 1: signal n was ignored when this process began.
static IGNORED: AtomicU64 = AtomicU64::new(0);

/// Looks at what the caller left ignored, before Rust's runtime changes it.
pub(crate) fn look() {
    let mut ignored = 0;
    for signal in 1..=64 {
        // SAFETY: all zeroes is a valid sigaction; the call only asks, and refuses libc's own signals.
        let is_ignored = unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            let asked = libc::sigaction(signal, std::ptr::null(), &raw mut action);
            asked == 0 && action.sa_sigaction == libc::SIG_IGN
        };
        if is_ignored {
            ignored |= 1 << (signal - 1);
        }
    }
    IGNORED.store(ignored, Ordering::Relaxed);
}

/// The signals that were ignored when this process began (bit n - 1: signal n): Rust's runtime ignores SIGPIPE later.
pub fn ignored_at_start() -> u64 {
    IGNORED.load(Ordering::Relaxed)
}

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
    // SAFETY: all zeroes is a valid sigaction: SIG_DFL, which is no handler of ours, and an empty mask.
    let result = unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_flags = libc::SA_NOCLDSTOP;
        libc::sigaction(libc::SIGCHLD, &raw const action, std::ptr::null_mut())
    };
    check(result.into()).map(drop)
}

/// Ignores `signal` in this process: what would send it gives an error instead.
///
/// # Errors
/// `EINVAL` for a signal that cannot be ignored.
pub fn ignore(signal: i32) -> io::Result<()> {
    dispose(signal, libc::SIG_IGN)
}

/// Sets `signal` to its default action in this process.
///
/// # Errors
/// `EINVAL` for a signal that cannot be changed.
pub fn set_default(signal: i32) -> io::Result<()> {
    dispose(signal, libc::SIG_DFL)
}

fn dispose(signal: i32, how: libc::sighandler_t) -> io::Result<()> {
    // SAFETY: `how` is SIG_IGN or SIG_DFL, no handler of ours.
    match unsafe { libc::signal(signal, how) } {
        libc::SIG_ERR => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}
