//! The Linux x86-64 ABI as data: numbers, structures, flags and error numbers, as the uapi headers of
//! Linux 6.18 give them. No system calls, no policy, no `unsafe`; `no_std`, so that code inside guest
//! processes may use it.
//!
//! Flag words keep unknown bits, enumerations take any value, structures any bytes: decoding never fails.
//! All of them print with Linux's names.
//!
//! Neighbours: everything above uses it; it uses nothing of ours.
#![no_std]
#![forbid(unsafe_code)]

#[cfg(test)]
extern crate std;

mod macros;

mod addr;
mod aio;
mod auxv;
mod cred;
mod dirent;
mod errno;
mod fanotify;
mod file_ops;
mod futex;
mod io_uring;
mod ioctl;
mod ipc;
mod key;
mod landlock;
mod misc;
mod mm;
mod mount;
mod netdev;
mod open;
mod perf;
mod poll;
mod prctl;
mod process;
mod ptrace;
mod register;
mod sched;
mod seccomp;
mod si_code;
mod sigframe;
mod siginfo;
mod signal;
mod socket;
mod sockopt;
mod stat;
mod syscall;
mod time;
mod tty;
mod uffd;

pub use addr::{GUEST_TOP, PAGE_SIZE, UserAddr};
pub use aio::*;
pub use auxv::*;
pub use cred::*;
pub use dirent::*;
pub use errno::Errno;
pub use fanotify::*;
pub use file_ops::*;
pub use futex::*;
pub use io_uring::*;
pub use ioctl::*;
pub use ipc::*;
pub use key::*;
pub use landlock::*;
pub use misc::*;
pub use mm::*;
pub use mount::*;
pub use netdev::*;
pub use open::*;
pub use perf::*;
pub use poll::*;
pub use prctl::*;
pub use process::*;
pub use ptrace::*;
pub use register::FromRegister;
pub use sched::*;
pub use seccomp::*;
pub use si_code::*;
pub use sigframe::*;
pub use siginfo::*;
pub use signal::*;
pub use socket::*;
pub use sockopt::*;
pub use stat::*;
pub use syscall::*;
pub use time::*;
pub use tty::*;
pub use uffd::*;
