//! The calling process: fork, blocked signals, inherited descriptors.
//!
//! # Safety
//! Forks only while there is one thread; signal sets are plain data that the calls fill.
#![allow(unsafe_code, reason = "fork, sigwait, close_range and malloc_trim have no safe wrapper")]

use std::io;

use crate::check;

/// Which side of a fork one is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fork {
    Parent { child: i32 },
    Child,
}

/// Forks the calling process, which must have no other threads (checked).
///
/// # Errors
/// `EBUSY` with other threads; else what the host says.
pub fn fork() -> io::Result<Fork> {
    let threads = std::fs::read_dir("/proc/self/task")?.count();
    if threads != 1 {
        return Err(io::Error::from_raw_os_error(libc::EBUSY));
    }
    // SAFETY: with one thread the child is a whole copy of the process: no lock is held by a thread
    // that is not there.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => Ok(Fork::Child),
        child => Ok(Fork::Parent { child }),
    }
}

/// Blocks these signals in the calling thread and those it starts.
pub fn block_signals(signals: &[i32]) {
    // SAFETY: plain data, initialised by sigemptyset before use.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        for signal in signals {
            libc::sigaddset(&raw mut set, *signal);
        }
        libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut());
    }
}

/// Waits for one of these signals, which are blocked; returns it.
pub fn wait_for_signal(signals: &[i32]) -> i32 {
    // SAFETY: as above; `sigwait` writes one integer.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        for signal in signals {
            libc::sigaddset(&raw mut set, *signal);
        }
        let mut signal = 0;
        loop {
            if libc::sigwait(&raw const set, &raw mut signal) == 0 {
                return signal;
            }
        }
    }
}

/// Closes all descriptors from `first` on.
///
/// # Errors
/// `ENOSYS` on hosts before Linux 5.9.
pub fn close_from(first: u32) -> io::Result<()> {
    // SAFETY: closes descriptors by number; the caller owns none at or above `first` yet.
    check(unsafe { libc::syscall(libc::SYS_close_range, first, u32::MAX, 0) }).map(|_| ())
}

/// Gives what the heap has free back to the host.
pub fn trim_heap() {
    // SAFETY: takes no pointer, and locks the allocator by itself.
    unsafe { libc::malloc_trim(0) };
}
