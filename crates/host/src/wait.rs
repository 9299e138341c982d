//! Waiting for children and tracees by `waitid`, with the flags that rustix lacks (`__WALL`).
//!
//! There is no way to wait for "any child": that would steal other threads' ptrace stops.
//!
//! # Safety
//! The host writes one `siginfo_t` that is ours.
#![allow(unsafe_code, reason = "waitid fills a siginfo_t, whose fields are a union")]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::time::Duration;

/// What [`wait`] found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitInfo {
    /// `CLD_EXITED`, `CLD_KILLED`, `CLD_DUMPED`, `CLD_STOPPED`, `CLD_TRAPPED`, `CLD_CONTINUED`.
    pub code: i32,
    /// The exit status, or the signal; for `CLD_TRAPPED` with the ptrace event above bit 8.
    pub status: i32,
}

/// What a process has used (`struct rusage`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    pub user: Duration,
    pub system: Duration,
    /// In KiB.
    pub max_resident: u64,
    pub minor_faults: u64,
    pub major_faults: u64,
    pub voluntary_switches: u64,
    pub involuntary_switches: u64,
}

impl From<&libc::rusage> for Usage {
    fn from(usage: &libc::rusage) -> Usage {
        let count = |value: libc::c_long| u64::try_from(value).unwrap_or(0);
        let time = |time: libc::timeval| {
            Duration::from_secs(count(time.tv_sec)) + Duration::from_micros(count(time.tv_usec))
        };
        Usage {
            user: time(usage.ru_utime),
            system: time(usage.ru_stime),
            max_resident: count(usage.ru_maxrss),
            minor_faults: count(usage.ru_minflt),
            major_faults: count(usage.ru_majflt),
            voluntary_switches: count(usage.ru_nvcsw),
            involuntary_switches: count(usage.ru_nivcsw),
        }
    }
}

/// What this process has used, all its threads, ended ones too.
pub fn own_usage() -> Usage {
    usage_of(libc::RUSAGE_SELF)
}

/// What the children have used that this process has reaped, and those that they have.
pub fn children_usage() -> Usage {
    usage_of(libc::RUSAGE_CHILDREN)
}

fn usage_of(whose: libc::c_int) -> Usage {
    // SAFETY: all zeroes are a valid rusage.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: `usage` is ours to be written. It cannot fail for these two.
    unsafe { libc::getrusage(whose, &raw mut usage) };
    Usage::from(&usage)
}

/// `waitid(P_PID, pid, …, options | __WALL)`, again after `EINTR`. `options` are `WEXITED`, `WSTOPPED`,
/// `WNOHANG`, `WNOWAIT` of `libc`. `None` with `WNOHANG` if there is nothing to tell.
///
/// # Errors
/// `ECHILD`: not a child or tracee of this process, or no event of the kinds asked for can come any more.
pub fn wait(pid: i32, options: i32) -> io::Result<Option<WaitInfo>> {
    wait_id(libc::P_PID, pid.cast_unsigned(), options)
}

/// The same by pidfd.
///
/// # Errors
/// As [`wait`].
pub fn wait_pidfd(pidfd: BorrowedFd<'_>, options: i32) -> io::Result<Option<WaitInfo>> {
    wait_id(libc::P_PIDFD, pidfd.as_raw_fd().cast_unsigned(), options)
}

/// Reaps `pid`, waiting until it has ended; gives what it and those it waited for have used.
///
/// # Errors
/// As [`wait`].
pub fn reap_with_usage(pid: i32) -> io::Result<Usage> {
    end_with_usage(pid).map(|(_, usage)| usage)
}

/// The same with how it ended.
///
/// # Errors
/// As [`wait`].
pub fn end_with_usage(pid: i32) -> io::Result<(WaitInfo, Usage)> {
    loop {
        // SAFETY: all zeroes are a valid siginfo_t and rusage.
        let (mut info, mut usage) =
            unsafe { (std::mem::zeroed::<libc::siginfo_t>(), std::mem::zeroed::<libc::rusage>()) };
        let options = libc::WEXITED | libc::__WALL;
        // SAFETY: both are ours to be written. The C library's waitid does not pass a rusage.
        let result = unsafe {
            libc::syscall(libc::SYS_waitid, libc::P_PID, pid, &raw mut info, options, &raw mut usage)
        };
        if result == 0 {
            // SAFETY: waitid has filled the SIGCHLD fields.
            let status = unsafe { info.si_status() };
            return Ok((WaitInfo { code: info.si_code, status }, Usage::from(&usage)));
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

fn wait_id(kind: libc::idtype_t, id: u32, options: i32) -> io::Result<Option<WaitInfo>> {
    loop {
        // SAFETY: all zeroes is a valid siginfo_t.
        let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
        // SAFETY: `info` is ours to be written.
        let result = unsafe { libc::waitid(kind, id, &mut info, options | libc::__WALL) };
        if result == 0 {
            // SAFETY: waitid fills the SIGCHLD fields, or leaves the zeroes.
            let (found, status) = unsafe { (info.si_pid(), info.si_status()) };
            return Ok((found != 0).then_some(WaitInfo { code: info.si_code, status }));
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}
