//! A seccomp filter for the calling process, and what becomes of calls that it refuses.
//!
//! # Safety
//! The program is an array that lives for the length of the call. The signal handler touches its own frame only, and
//! makes one raw `write`.
#![allow(unsafe_code, reason = "seccomp, and the handler of SIGSYS")]

use std::io;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::check;

/// One instruction: code, jump if true, jump if false, constant.
pub type Instruction = (u16, u8, u8, u32);

/// `SECCOMP_SET_MODE_FILTER`; `SECCOMP_FILTER_FLAG_TSYNC`, `_SPEC_ALLOW`.
const SET_MODE_FILTER: libc::c_uint = 1;
const ALL_THREADS: libc::c_ulong = 1;
const SPEC_ALLOW: libc::c_ulong = 4;

/// Whom a filter is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Threads {
    All,
    /// The calling one, and those that it starts.
    Own,
}

/// Puts a filter in force. The calling thread has given up new privileges.
///
/// # Errors
/// What the host says; `ESRCH` if a thread has a filter that others do not have.
pub fn install(program: &[Instruction], threads: Threads) -> io::Result<()> {
    let filter: Vec<libc::sock_filter> =
        program.iter().map(|&(code, jt, jf, k)| libc::sock_filter { code, jt, jf, k }).collect();
    let len = u16::try_from(filter.len()).map_err(io::Error::other)?;
    let program = libc::sock_fprog { len, filter: filter.as_ptr().cast_mut() };
    let flags = if threads == Threads::All { ALL_THREADS | SPEC_ALLOW } else { SPEC_ALLOW };
    // SAFETY: see above; the host copies the program.
    let result = unsafe { libc::syscall(libc::SYS_seccomp, SET_MODE_FILTER, flags, &raw const program) };
    match check(result)? {
        0 => Ok(()),
        // The thread that could not follow.
        _ => Err(io::Error::from_raw_os_error(libc::ESRCH)),
    }
}

/// From now on a call that a filter traps (`SECCOMP_RET_TRAP`) fails with `EPERM`, and a line on stderr tells the first few.
///
/// # Errors
/// What the host says.
pub fn report_refused() -> io::Result<()> {
    // SAFETY: plain data, and a handler that does what the module's head says.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = refused as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_NODEFER | libc::SA_ONSTACK;
        check(libc::sigaction(libc::SIGSYS, &raw const action, std::ptr::null_mut()).into()).map(drop)
    }
}

/// How many refused calls are told, and have been.
const MOST_TOLD: u32 = 16;
static TOLD: AtomicU32 = AtomicU32::new(0);

/// The handler.
extern "C" fn refused(_: libc::c_int, _: *mut libc::siginfo_t, context: *mut libc::c_void) {
    const BEFORE: &[u8] = b"umlaut: refused to the kernel's own process: host call ";
    const DIGITS: usize = 20;
    // SAFETY: the host passes its frame, which is ours until the handler returns.
    let context = unsafe { &mut *context.cast::<libc::ucontext_t>() };
    let registers = &mut context.uc_mcontext.gregs;
    let mut line = [0u8; BEFORE.len() + 2 * DIGITS + 3];
    let mut len = 0;
    let mut push = |byte: u8| {
        if let Some(place) = line.get_mut(len) {
            *place = byte;
            len += 1;
        }
    };
    BEFORE.iter().for_each(|byte| push(*byte));
    // In a trap rax is still the call's number.
    let [number, second] =
        [libc::REG_RAX, libc::REG_RSI].map(|index| registers.get(index.unsigned_abs() as usize).copied());
    for (value, last) in [(number, b' '), (second, b'\n')] {
        let mut value = value.unwrap_or(0).cast_unsigned();
        let mut digits = [b'0'; DIGITS];
        let mut first = DIGITS - 1;
        for (at, digit) in digits.iter_mut().enumerate().rev() {
            *digit = b'0' + u8::try_from(value % 10).unwrap_or(0);
            value /= 10;
            first = at;
            if value == 0 {
                break;
            }
        }
        digits.iter().skip(first).for_each(|byte| push(*byte));
        push(last);
    }
    if let Some(result) = registers.get_mut(libc::REG_RAX.unsigned_abs() as usize) {
        *result = -i64::from(libc::EPERM);
    }
    if TOLD.fetch_add(1, Ordering::Relaxed) >= MOST_TOLD {
        return;
    }
    // SAFETY: writes bytes of this frame; the number of the error stays as it was.
    unsafe {
        let errno = libc::__errno_location();
        let saved = *errno;
        libc::write(2, line.as_ptr().cast(), len);
        *errno = saved;
    }
}
