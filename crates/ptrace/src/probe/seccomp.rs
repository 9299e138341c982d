//! Probes of ways to intercept calls without ptrace.
//!
//! # Safety
//! As in `child`. The SIGSYS handler only stores to atomics.
#![allow(unsafe_code, reason = "raw calls in forked children, and a signal handler")]

use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};

use super::child::{check, child_result, fork, require};

const ALLOW: u8 = 0;
const BLOCK: u8 = 1;
/// What user dispatch looks at.
static SELECTOR: AtomicU8 = AtomicU8::new(ALLOW);
static TRAPPED: AtomicU32 = AtomicU32::new(0);

extern "C" fn on_sigsys(_signal: libc::c_int) {
    TRAPPED.fetch_add(1, Ordering::SeqCst);
    SELECTOR.store(ALLOW, Ordering::SeqCst);
}

fn handle_sigsys() -> Result<(), i32> {
    let handler: extern "C" fn(libc::c_int) = on_sigsys;
    // SAFETY: the handler keeps to what this module's head says.
    if unsafe { libc::signal(libc::SIGSYS, handler as *const () as libc::sighandler_t) } == libc::SIG_ERR {
        return Err(super::child::errno());
    }
    Ok(())
}

/// A filter that does `action` for getppid and lets all else pass.
fn program(action: u32) -> [libc::sock_filter; 4] {
    let statement = |code: u32, k: u32| libc::sock_filter { code: code as u16, jt: 0, jf: 0, k };
    [
        statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0),
        libc::sock_filter {
            code: (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16,
            jt: 0,
            jf: 1,
            k: libc::SYS_getppid as u32,
        },
        statement(libc::BPF_RET | libc::BPF_K, action),
        statement(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ALLOW),
    ]
}

/// Installs a filter; returns the call's result.
fn install(action: u32, flags: libc::c_ulong) -> Result<libc::c_long, i32> {
    let mut code = program(action);
    let program = libc::sock_fprog { len: code.len() as u16, filter: code.as_mut_ptr() };
    // SAFETY: the program lies in this frame.
    unsafe {
        check(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0).into())?;
        check(libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, flags, &raw const program))
    }
}

fn getppid() -> libc::c_long {
    // SAFETY: integers.
    unsafe { libc::syscall(libc::SYS_getppid) }
}

/// `SECCOMP_RET_TRAP` raises SIGSYS in the caller.
pub(super) fn trap() -> Result<(), i32> {
    handle_sigsys()?;
    install(libc::SECCOMP_RET_TRAP, 0)?;
    getppid();
    require(TRAPPED.load(Ordering::SeqCst) == 1)
}

/// `SECCOMP_RET_USER_NOTIF`: a child's call is answered by its parent.
pub(super) fn user_notif() -> Result<(), i32> {
    const RECV: libc::c_ulong = 0xc050_2100;
    const SEND: libc::c_ulong = 0xc018_2101;
    const ANSWER: i64 = 77;
    fn target() -> Result<(), i32> {
        require(getppid() == ANSWER)
    }
    let listener =
        install(libc::SECCOMP_RET_USER_NOTIF, libc::SECCOMP_FILTER_FLAG_NEW_LISTENER as libc::c_ulong)?;
    let pid = fork(target)?;
    // SAFETY: all zeroes is a valid seccomp_notif.
    let mut request: libc::seccomp_notif = unsafe { std::mem::zeroed() };
    // SAFETY: the host fills `request` and reads `answer`, both of this frame.
    unsafe {
        check(libc::ioctl(listener as libc::c_int, RECV as _, &raw mut request).into())?;
        let answer = libc::seccomp_notif_resp { id: request.id, val: ANSWER, error: 0, flags: 0 };
        check(libc::ioctl(listener as libc::c_int, SEND as _, &raw const answer).into())?;
    }
    child_result(pid)
}

/// Syscall user dispatch: calls raise SIGSYS while a byte says so.
pub(super) fn user_dispatch() -> Result<(), i32> {
    const PR_SET_SYSCALL_USER_DISPATCH: libc::c_int = 59;
    const ON: libc::c_ulong = 1;
    handle_sigsys()?;
    // SAFETY: the selector is a static byte.
    check(unsafe { libc::prctl(PR_SET_SYSCALL_USER_DISPATCH, ON, 0, 0, SELECTOR.as_ptr()) }.into())?;
    SELECTOR.store(BLOCK, Ordering::SeqCst);
    getppid();
    require(TRAPPED.load(Ordering::SeqCst) == 1)
}
