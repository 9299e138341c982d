//! proc: the kernel's tasks and state as files, in the formats that real programs parse.
//!
//! The tree is data: tables of [`Entry`] for the root (`system.rs`, `sysctl.rs`) and for a process (`pid/`). An
//! inode names a place in it ([`Place`]); a file's text is made when it is read from its start.
//!
//! sysfs, as far as programs look at it, is made of the same parts (`sysfs.rs`).
//!
//! Main types: [`ProcFs`], [`Entry`]. Neighbours: knows the `kernel` (its tasks, mounts, counters); `cli` mounts it.
//!
//! Lock levels: `FileSystem` (the table of inodes), `File` (a text being read); none is held while text is made.
#![forbid(unsafe_code)]
#![deny(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

mod dir;
mod entry;
mod fd;
mod file;
mod fs;
mod node;
mod pid;
mod sysctl;
mod sysfs;
mod system;

pub use fs::ProcFs;
