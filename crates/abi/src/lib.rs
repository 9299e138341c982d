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
mod errno;
mod mm;
mod open;
mod sigframe;
mod siginfo;
mod signal;
mod stat;
mod time;

pub use addr::{GUEST_TOP, PAGE_SIZE, UserAddr};
pub use errno::Errno;
pub use mm::*;
pub use open::*;
pub use sigframe::*;
pub use siginfo::*;
pub use signal::*;
pub use stat::*;
pub use time::*;
