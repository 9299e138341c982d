//! Probes of ptrace: a child traces a child of its own.
//!
//! # Safety
//! As in `child`: raw calls only, on integers and on what lies in the frame.
#![allow(unsafe_code, reason = "raw calls in forked children")]

use std::mem::offset_of;

use platform::Registers;

use super::child::{check, child_result, errno, fork, require};
use crate::sys::{self, Resume};

/// What a tracer answers to the tracee's call.
const ANSWER: i64 = 77;
const PTRACE_SYSEMU: libc::c_uint = 31;
const PTRACE_SYSEMU_SINGLESTEP: libc::c_uint = 32;

/// Stops until traced, then calls getppid, which must give [`ANSWER`].
fn tracee() -> Result<(), i32> {
    // SAFETY: raw calls on integers.
    unsafe {
        check(libc::raise(libc::SIGSTOP).into())?;
        require(libc::syscall(libc::SYS_getppid) == ANSWER)
    }
}

/// A child that has stopped and is traced now.
fn traced() -> Result<i32, i32> {
    let pid = fork(tracee)?;
    let mut status = 0;
    // SAFETY: `status` is of this frame.
    check(unsafe { libc::waitpid(pid, &mut status, libc::WUNTRACED) }.into())?;
    require(libc::WIFSTOPPED(status))?;
    raw(sys::seize(pid))?;
    // It is in a group stop; so seized, it goes on when told, and SIGCONT lets it out.
    // SAFETY: integers.
    check(unsafe { libc::kill(pid, libc::SIGCONT) }.into())?;
    raw(sys::interrupt(pid))?;
    next(pid)?;
    Ok(pid)
}

fn raw<T>(result: std::io::Result<T>) -> Result<T, i32> {
    result.map_err(|error| error.raw_os_error().unwrap_or(libc::EIO))
}

/// The next stop's status.
fn next(pid: i32) -> Result<i32, i32> {
    let mut status = 0;
    // SAFETY: `status` is of this frame.
    check(unsafe { libc::waitpid(pid, &mut status, libc::__WALL) }.into())?;
    require(libc::WIFSTOPPED(status))?;
    Ok(status)
}

/// Goes on to the stop at the tracee's getppid.
fn to_getppid(pid: i32) -> Result<(), i32> {
    loop {
        raw(sys::resume(pid, Resume::Syscall))?;
        if libc::WSTOPSIG(next(pid)?) == libc::SIGTRAP | 0x80 {
            let info = raw(sys::syscall_info(pid))?;
            if info.op == sys::INFO_ENTRY && info.number == libc::SYS_getppid.cast_unsigned() {
                return Ok(());
            }
        }
    }
}

fn answer(pid: i32) -> Result<(), i32> {
    raw(sys::set_register(pid, offset_of!(Registers, rax), ANSWER.cast_unsigned()))?;
    raw(sys::resume(pid, Resume::Native))?;
    child_result(pid)
}

/// `PTRACE_SYSCALL`: a call is replaced and answered.
pub(super) fn syscall() -> Result<(), i32> {
    let pid = traced()?;
    to_getppid(pid)?;
    let number = libc::SYS_getpid.cast_unsigned();
    raw(sys::set_register(pid, offset_of!(Registers, orig_rax), number))?;
    raw(sys::resume(pid, Resume::Syscall))?;
    require(libc::WSTOPSIG(next(pid)?) == libc::SIGTRAP | 0x80)?;
    answer(pid)
}

/// `PTRACE_SYSEMU`: a call is not executed, and answered.
pub(super) fn sysemu() -> Result<(), i32> {
    intercept(PTRACE_SYSEMU)
}

/// `PTRACE_SYSEMU_SINGLESTEP`: at a call it stops as `SYSEMU` does.
pub(super) fn sysemu_singlestep() -> Result<(), i32> {
    intercept(PTRACE_SYSEMU_SINGLESTEP)
}

fn intercept(request: libc::c_uint) -> Result<(), i32> {
    let pid = traced()?;
    // What the C library calls on the way is to be executed: step to the instruction.
    while !at_getppid(pid)? {
        go_on(pid, libc::PTRACE_SINGLESTEP)?;
    }
    let stop = go_on(pid, request)?;
    require(libc::WSTOPSIG(stop) == libc::SIGTRAP | 0x80)?;
    let info = raw(sys::syscall_info(pid))?;
    require(info.op == sys::INFO_ENTRY && info.number == libc::SYS_getppid.cast_unsigned())?;
    answer(pid)
}

fn at_getppid(pid: i32) -> Result<bool, i32> {
    let regs = raw(sys::registers(pid))?;
    if regs.rax != libc::SYS_getppid.cast_unsigned() {
        return Ok(false);
    }
    let mut word = 0u64;
    // SAFETY: the host writes one word of this frame.
    let read = unsafe {
        libc::syscall(libc::SYS_ptrace, libc::PTRACE_PEEKTEXT as libc::c_long, pid, regs.rip, &raw mut word)
    };
    check(read)?;
    Ok(word & 0xffff == 0x050f)
}

/// Resumes by `request`; returns the next stop.
fn go_on(pid: i32, request: libc::c_uint) -> Result<i32, i32> {
    // SAFETY: integers.
    check(unsafe { libc::syscall(libc::SYS_ptrace, request as libc::c_long, pid, 0, 0) })?;
    next(pid)
}

/// `process_vm_readv` and `process_vm_writev` of a child.
pub(super) fn read_memory() -> Result<(), i32> {
    static WORD: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
    fn target() -> Result<(), i32> {
        WORD.store(41, std::sync::atomic::Ordering::SeqCst);
        // SAFETY: integers.
        check(unsafe { libc::raise(libc::SIGSTOP) }.into())?;
        require(WORD.load(std::sync::atomic::Ordering::SeqCst) == 42)
    }
    let pid = fork(target)?;
    let mut status = 0;
    // SAFETY: `status` is of this frame.
    check(unsafe { libc::waitpid(pid, &mut status, libc::WUNTRACED) }.into())?;
    let mut word = [0u8; 8];
    let at = WORD.as_ptr().addr() as u64;
    let copied = host::vm::read_process(pid, &[(at, 8)], &mut word);
    require(raw(copied)? == 8 && u64::from_ne_bytes(word) == 41)?;
    raw(host::vm::write_process(pid, &42u64.to_ne_bytes(), &[(at, 8)]))?;
    // SAFETY: integers.
    if unsafe { libc::kill(pid, libc::SIGCONT) } != 0 {
        return Err(errno());
    }
    child_result(pid)
}
