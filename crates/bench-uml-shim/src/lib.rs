//! A library to be preloaded into User-Mode Linux, for `umlaut bench --rivals`.
//!
//! Linux takes an XSAVE area by `PTRACE_SETREGSET` only in full size, and on CPUs with AMX that is 11 KiB: more than
//! User-Mode Linux 6.1 has room for, so that it panics on its first process. This `ptrace` shows it as much as fits
//! and adds the rest, all zeroes (tiles in their initial state: nobody may use them without asking), when it writes.
//! `crates/bench/build.rs` compiles it by rustc alone.
//!
//! # Safety
//! The caller is a C program that follows ptrace(2): where a request takes an `iovec`, there is one. It has one thread.
#![allow(unsafe_code, reason = "stands in for a function of the C library")]

use std::ffi::{c_long, c_void};
use std::ptr::addr_of_mut;

/// `struct iovec`.
#[repr(C)]
struct IoVec {
    base: *mut c_void,
    length: usize,
}

const SYS_PTRACE: c_long = 101;
const PEEKS: std::ops::RangeInclusive<c_long> = 1..=3;
const GETREGSET: c_long = 0x4204;
const SETREGSET: c_long = 0x4205;
const NT_X86_XSTATE: usize = 0x202;

const LARGEST: usize = 65536;
static mut READ: [u8; LARGEST] = [0; LARGEST];
/// Nothing beyond the room of User-Mode Linux is ever written.
static mut WRITE: [u8; LARGEST] = [0; LARGEST];
/// What Linux gave.
static mut FULL: usize = 0;

unsafe extern "C" {
    fn syscall(number: c_long, ...) -> c_long;
    fn __errno_location() -> *mut i32;
}

/// # Safety
/// As for ptrace(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ptrace(
    request: c_long,
    pid: i32,
    address: *mut c_void,
    data: *mut c_void,
) -> c_long {
    // In C it is an enum, whose upper half may be anything.
    let request = request & 0xffff_ffff;
    if (request == GETREGSET || request == SETREGSET) && address.addr() == NT_X86_XSTATE {
        // SAFETY: the request has an iovec.
        return unsafe { xstate(request, pid, address, data.cast()) };
    }
    let mut word: c_long = 0;
    let peek = PEEKS.contains(&request);
    let data = if peek { addr_of_mut!(word).cast() } else { data };
    // SAFETY: passed on as it came; a peek's word is ours.
    let answer = unsafe { syscall(SYS_PTRACE, request, pid, address, data) };
    if peek && answer >= 0 {
        // SAFETY: the C library's own.
        unsafe { *__errno_location() = 0 };
        return word;
    }
    answer
}

/// # Safety
/// `theirs` has room for what it says.
unsafe fn xstate(request: c_long, pid: i32, address: *mut c_void, theirs: *mut IoVec) -> c_long {
    // SAFETY: one thread, so that the statics are ours alone; no copy is longer than either side.
    unsafe {
        if request == GETREGSET {
            let mut ours = IoVec { base: addr_of_mut!(READ).cast(), length: LARGEST };
            let answer = syscall(SYS_PTRACE, request, pid, address, addr_of_mut!(ours));
            if answer >= 0 {
                FULL = ours.length;
                (*theirs).length = (*theirs).length.min(FULL);
                std::ptr::copy_nonoverlapping(
                    ours.base.cast::<u8>(),
                    (*theirs).base.cast(),
                    (*theirs).length,
                );
            }
            return answer;
        }
        let length = (*theirs).length.min(FULL);
        std::ptr::copy_nonoverlapping((*theirs).base.cast::<u8>(), addr_of_mut!(WRITE).cast(), length);
        let mut ours = IoVec { base: addr_of_mut!(WRITE).cast(), length: FULL };
        syscall(SYS_PTRACE, request, pid, address, addr_of_mut!(ours))
    }
}
