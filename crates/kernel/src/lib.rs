//! The kernel: tasks, signals, memory, exec, time, the run loop, the table of system calls and its handlers.
//!
//! A newcomer follows a system call through three files: `task/run.rs`, `syscall/table.rs`, the handler's file.
//!
//! Neighbours: `platform` runs guest code, `vfs` keeps files; `cli` puts a kernel together and starts it. The
//! kernel knows platforms and file systems only by their traits.
#![forbid(unsafe_code)]
#![deny(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

mod budget;
pub mod coredump;
pub mod cred;
pub mod exec;
pub mod fs;
pub mod futex;
mod guard;
pub mod host_events;
pub mod kernel;
pub mod mm;
pub mod prctl;
pub mod profile;
mod random;
pub mod resource;
pub mod sched;
pub mod signal;
pub mod socket;
pub mod stats;
pub mod syscall;
pub mod system;
pub mod task;
pub mod time;
pub mod tty;
pub mod users;
