//! Locks with levels, waiting, and the error type that carries restarts.
//!
//! - [`Mutex`]: a mutex that carries its level in its type; debug builds check the order of `order.rs`.
//! - [`WaitQueue`], [`Waiter`], [`Parker`]: the one way in which a kernel thread blocks.
//! - [`SysError`]: an errno or a restart; restarts are made only by waits that were interrupted, and
//!   resolved only where a system call ends.
//! - [`SleepLock`]: a lock held across guest copies and host calls; taking it can be interrupted.
//!
//! Neighbours: below everything but `abi`.
#![forbid(unsafe_code)]

mod error;
mod mutex;
pub mod order;
mod sleep_lock;
mod wait;

pub use error::{Restart, SysError, SysResult};
pub use mutex::{Level, Mutex, MutexGuard, assert_no_lock_held};
pub use sleep_lock::{SleepLock, SleepLockGuard};
pub use wait::{Deadline, Interrupts, Parker, WaitEnd, WaitQueue, WaitToken, Waiter, Wake};
