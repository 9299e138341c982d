//! The calling process: fork, blocked signals, inherited descriptors.
//!
//! # Safety
//! Forks only while there is one thread; signal sets are plain data that the calls fill.
#![allow(
    unsafe_code,
    reason = "fork, sigwaitinfo, fcntl, tcgetpgrp, close_range, mallopt and malloc_trim have no safe wrapper"
)]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

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

/// Waits for one of these signals, which are blocked; returns it, and whether the host's kernel sent it (as a terminal
/// does) rather than a process.
pub fn wait_for_signal(signals: &[i32]) -> (i32, bool) {
    // SAFETY: as above; `sigwaitinfo` fills plain data.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        for signal in signals {
            libc::sigaddset(&raw mut set, *signal);
        }
        let mut info: libc::siginfo_t = std::mem::zeroed();
        loop {
            let signal = libc::sigwaitinfo(&raw const set, &raw mut info);
            if signal > 0 {
                return (signal, info.si_code == libc::SI_KERNEL);
            }
        }
    }
}

/// Has SIGIO sent to this process whenever `fd` becomes readable; it should be blocked, since it ends who does not expect it.
///
/// # Errors
/// What the host says.
pub fn signal_when_readable(fd: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: integers.
    unsafe {
        check(libc::fcntl(fd.as_raw_fd(), libc::F_SETOWN, libc::getpid()).into())?;
        check(libc::fcntl(fd.as_raw_fd(), libc::F_SETFL, libc::O_ASYNC | libc::O_NONBLOCK).into()).map(drop)
    }
}

/// What this process is to a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Its group is the one that may read and change the terminal.
    Foreground,
    /// Another group is: who reads is stopped by SIGTTIN, who changes settings by SIGTTOU.
    Background,
    /// It is not the controlling terminal: the host checks nothing.
    Uncontrolled,
}

/// What the calling process is to terminal `fd`. Groups outside of our pid namespace all look like 0.
pub fn standing(fd: BorrowedFd<'_>) -> Standing {
    // SAFETY: takes integers.
    let (foreground, own) = unsafe { (libc::tcgetpgrp(fd.as_raw_fd()), libc::getpgrp()) };
    match foreground {
        -1 => Standing::Uncontrolled,
        group if group == own => Standing::Foreground,
        _ => Standing::Background,
    }
}

/// Whether the calling process's group is orphaned: nobody would continue it (Linux: `will_become_orphaned_pgrp`).
/// Looked at are the ancestors only; one outside of our pid namespace counts as gone.
pub fn is_orphaned() -> bool {
    let Some([mut parent, own, session]) = relations("self") else { return true };
    while parent > 1 {
        let Some([its_parent, its_group, its_session]) = relations(&parent.to_string()) else { break };
        if its_session != session {
            break;
        }
        if its_group != own {
            return false;
        }
        parent = its_parent;
    }
    true
}

/// A process's parent, group and session.
fn relations(process: &str) -> Option<[i32; 3]> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name may contain anything; the state follows it.
    let mut numbers = stat.rsplit(')').next()?.split_whitespace().skip(1).map(str::parse::<i32>);
    let mut next = || numbers.next()?.ok();
    Some([next()?, next()?, next()?])
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

/// Has the C library's allocator serve all threads from one place. Otherwise each of the first threads reserves 64 MiB of
/// addresses for itself, which a limit on them (`RLIMIT_AS`) does not bear.
pub fn share_heap() {
    const ONE: libc::c_int = 1;
    // SAFETY: a switch of the allocator's; what it has given out stays as it is.
    unsafe { libc::mallopt(libc::M_ARENA_MAX, ONE) };
}
