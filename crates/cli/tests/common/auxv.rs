//! Starts a program that is told of another processor: its auxiliary vector is changed before its first instruction.
//!
//! # Safety
//! ptrace(2) on a child of ours that has stopped at its start.
#![allow(unsafe_code, reason = "ptrace on a child")]

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};

/// `AT_HWCAP2`: on x86, bit 1 says that FSGSBASE may be used.
const HWCAP2: u64 = 26;
const WORD: u64 = 8;

/// Starts it without FSGSBASE, as far as the host tells it.
pub(crate) fn start_without_fsgsbase(command: &mut Command) -> Child {
    let traced = || {
        // SAFETY: no memory is involved.
        match unsafe { libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    };
    // SAFETY: one system call.
    unsafe { command.pre_exec(traced) };
    let child = command.spawn().unwrap();
    let pid = i32::try_from(child.id()).unwrap();
    let mut status = 0;
    // SAFETY: a child of ours, an integer of ours.
    assert_eq!(unsafe { libc::waitpid(pid, &raw mut status, 0) }, pid);
    assert!(libc::WIFSTOPPED(status), "it stops at its start: {status:x}");
    let at = place_of(pid, HWCAP2).expect("the host tells of the processor");
    // SAFETY: a word of a stopped child.
    unsafe {
        assert_eq!(libc::ptrace(libc::PTRACE_POKEDATA, pid, at, 0), 0);
        assert_eq!(libc::ptrace(libc::PTRACE_DETACH, pid, 0, 0), 0);
    }
    child
}

/// Where the value of an entry lies: behind the arguments and the environment on the stack.
fn place_of(pid: i32, entry: u64) -> Option<u64> {
    // SAFETY: reads a word of a stopped child.
    let word = |at: u64| unsafe { libc::ptrace(libc::PTRACE_PEEKDATA, pid, at, 0) }.cast_unsigned();
    let offset = std::mem::offset_of!(libc::user_regs_struct, rsp);
    // SAFETY: reads a register of a stopped child.
    let stack = unsafe { libc::ptrace(libc::PTRACE_PEEKUSER, pid, offset, 0) }.cast_unsigned();
    let mut at = stack + WORD * (2 + word(stack));
    while word(at) != 0 {
        at += WORD;
    }
    at += WORD;
    while word(at) != 0 {
        if word(at) == entry {
            return Some(at + WORD);
        }
        at += 2 * WORD;
    }
    None
}
