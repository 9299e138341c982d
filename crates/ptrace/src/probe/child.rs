//! The harness of the probes: a function in a child process, with a deadline.
//!
//! # Safety
//! The child is a copy of one thread of a perhaps threaded process: the functions given make raw calls
//! only, and neither allocate nor lock.
#![allow(unsafe_code, reason = "fork, and raw calls in its child")]

use std::fmt;
use std::time::Duration;

use host::wait;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal};

/// A probe that takes longer hangs.
const DEADLINE: Duration = Duration::from_secs(5);
/// The exit status for an errno that does not fit.
const OTHER: i32 = 255;

/// How a probe ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Done,
    /// It failed with this errno.
    Failed(i32),
    /// It did not do what it should.
    Wrong,
    Killed(i32),
    Hung,
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Outcome::Done => f.write_str("works"),
            Outcome::Failed(errno) => f.write_str(abi::Errno::from_raw(*errno).message()),
            Outcome::Wrong => f.write_str("does not do what it should"),
            Outcome::Killed(signal) => write!(f, "killed by signal {signal}"),
            Outcome::Hung => f.write_str("hangs"),
        }
    }
}

/// The errno of a probe that found something to behave wrongly.
pub(super) const WRONG: i32 = OTHER;

/// Runs `probe` in a child process.
pub(super) fn in_child(probe: fn() -> Result<(), i32>) -> Outcome {
    in_child_for(probe, DEADLINE)
}

pub(super) fn in_child_for(probe: fn() -> Result<(), i32>, deadline: Duration) -> Outcome {
    match fork(probe) {
        Ok(pid) => ended(pid, deadline),
        Err(errno) => Outcome::Failed(errno),
    }
}

/// Forks a child that runs `probe`, dies with this thread, and exits with the errno.
pub(super) fn fork(probe: fn() -> Result<(), i32>) -> Result<i32, i32> {
    // SAFETY: the child keeps to what this module's head says.
    match unsafe { libc::fork() } {
        -1 => Err(errno()),
        0 => {
            // SAFETY: raw calls on integers and on a mask of this frame.
            unsafe {
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL, 0, 0, 0);
                let none = 0u64;
                libc::syscall(libc::SYS_rt_sigprocmask, libc::SIG_SETMASK, &raw const none, 0, 8);
                let status = match probe() {
                    Ok(()) => 0,
                    Err(errno @ 1..OTHER) => errno,
                    Err(_) => OTHER,
                };
                libc::_exit(status)
            }
        }
        pid => Ok(pid),
    }
}

/// Waits for the end of child `pid`, kills it if that does not come, and reaps it.
fn ended(pid: i32, deadline: Duration) -> Outcome {
    let limit =
        Timespec { tv_sec: deadline.as_secs().cast_signed(), tv_nsec: deadline.subsec_nanos().into() };
    let in_time = Pid::from_raw(pid)
        .and_then(|pid| rustix::process::pidfd_open(pid, PidfdFlags::empty()).ok())
        // Without pidfds there is no deadline.
        .is_none_or(|pidfd| poll(&mut [PollFd::new(&pidfd, PollFlags::IN)], Some(&limit)) != Ok(0));
    if !in_time && let Some(pid) = Pid::from_raw(pid) {
        let _ = rustix::process::kill_process(pid, Signal::KILL);
    }
    let info = wait::wait(pid, libc::WEXITED);
    match info {
        _ if !in_time => Outcome::Hung,
        Ok(Some(info)) if info.code == libc::CLD_EXITED => match info.status {
            0 => Outcome::Done,
            OTHER => Outcome::Wrong,
            errno => Outcome::Failed(errno),
        },
        Ok(Some(info)) => Outcome::Killed(info.status),
        Ok(None) | Err(_) => Outcome::Wrong,
    }
}

/// For children: waits for their own child by exit status, 0 or an errno.
pub(super) fn child_result(pid: i32) -> Result<(), i32> {
    let mut status = 0;
    // SAFETY: `status` is of this frame.
    if unsafe { libc::waitpid(pid, &mut status, 0) } != pid {
        return Err(errno());
    }
    match (libc::WIFEXITED(status), libc::WEXITSTATUS(status)) {
        (true, 0) => Ok(()),
        (true, errno) => Err(errno),
        (false, _) => Err(WRONG),
    }
}

/// This thread's last error.
pub(super) fn errno() -> i32 {
    // SAFETY: the C library's own thread-local.
    unsafe { *libc::__errno_location() }
}

/// A raw call's answer.
pub(super) fn check(result: libc::c_long) -> Result<libc::c_long, i32> {
    if result < 0 { Err(errno()) } else { Ok(result) }
}

/// Whether something behaved as it should.
pub(super) fn require(right: bool) -> Result<(), i32> {
    if right { Ok(()) } else { Err(WRONG) }
}

#[cfg(test)]
pub(super) fn crash() -> Result<(), i32> {
    // SAFETY: ends this child only.
    unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
    Ok(())
}

#[cfg(test)]
pub(super) fn hang() -> Result<(), i32> {
    loop {
        // SAFETY: waits for a signal.
        unsafe { libc::pause() };
    }
}
