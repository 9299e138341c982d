//! The Linux x86-64 ABI as data: numbers, structures, flags and error numbers, as the uapi headers of
//! Linux 6.18 give them. No system calls, no policy, no `unsafe`; `no_std`, so that code inside guest
//! processes may use it.
//!
//! Neighbours: everything above uses it; it uses nothing of ours.
#![no_std]
#![forbid(unsafe_code)]

mod addr;
mod errno;

pub use addr::{GUEST_TOP, PAGE_SIZE, UserAddr};
pub use errno::Errno;
