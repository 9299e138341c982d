//! Typed wait results: why a tracee stopped, told without reaping it.
//!
//! A stop is waited for by tid on the tracer's thread, never for "any child". Tracer and real parent are
//! threads of one process, so an ordinary wait would reap a dead leader while its address space is still
//! referred to, and its pid could be reused. So waits do not ask for exits: a dead tracee answers `ECHILD`
//! (`kernel/exit.c`, `wait_consider_task`: a zombie ptracee clears `notask_error` only for `WEXITED`).

use host::wait::{self, WaitInfo};
use platform::ExitStatus;

/// Why a tracee stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// Entry to or exit from a system call.
    Syscall,
    /// About to get a signal.
    Signal(i32),
    /// `PTRACE_EVENT_STOP`: interrupted by us, or a stop of the whole process.
    Event,
    /// It made a process, a thread or an exec natively, which no guest may.
    Escaped,
    /// It has died.
    Dead,
}

const SYSCALL: i32 = libc::SIGTRAP | 0x80;

/// Waits for the next stop of `tid`, a tracee of this thread.
pub(crate) fn next(tid: i32) -> Stop {
    match wait::wait(tid, libc::WSTOPPED) {
        Ok(Some(info)) => classify(info),
        Ok(None) | Err(_) => Stop::Dead,
    }
}

fn classify(info: WaitInfo) -> Stop {
    match (info.status & 0xff, info.status >> 8) {
        (SYSCALL, 0) => Stop::Syscall,
        (_, libc::PTRACE_EVENT_STOP) => Stop::Event,
        (signal, 0) => Stop::Signal(signal),
        _ => Stop::Escaped,
    }
}

/// How dead `tid` ended, without reaping it. A leader whose threads are not all gone yet does not tell: it
/// was killed then, since leaders do not exit by themselves.
pub(crate) fn exit_status(tid: i32) -> ExitStatus {
    match wait::wait(tid, libc::WEXITED | libc::WNOWAIT | libc::WNOHANG) {
        Ok(Some(WaitInfo { code: libc::CLD_EXITED, status })) => ExitStatus::Exited(status),
        Ok(Some(WaitInfo { status, .. })) => ExitStatus::Killed(status & 0x7f),
        Ok(None) | Err(_) => ExitStatus::Killed(libc::SIGKILL),
    }
}

/// Reaps dead `tid`, waiting until it is dead.
pub(crate) fn reap(tid: i32) {
    // An error is ECHILD: nothing left to reap.
    let _ = wait::wait(tid, libc::WEXITED);
}
