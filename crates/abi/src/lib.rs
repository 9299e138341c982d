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
mod auxv;
mod cred;
mod dirent;
mod errno;
mod futex;
mod ioctl;
mod ipc;
mod misc;
mod mm;
mod mount;
mod open;
mod poll;
mod prctl;
mod process;
mod sigframe;
mod siginfo;
mod signal;
mod socket;
mod stat;
mod syscall;
mod time;
mod tty;

pub use addr::{GUEST_TOP, PAGE_SIZE, UserAddr};
pub use auxv::*;
pub use cred::*;
pub use dirent::*;
pub use errno::Errno;
pub use futex::*;
pub use ioctl::*;
pub use ipc::*;
pub use misc::*;
pub use mm::*;
pub use mount::*;
pub use open::*;
pub use poll::*;
pub use prctl::*;
pub use process::*;
pub use sigframe::*;
pub use siginfo::*;
pub use signal::*;
pub use socket::*;
pub use stat::*;
pub use syscall::*;
pub use time::*;
pub use tty::*;
