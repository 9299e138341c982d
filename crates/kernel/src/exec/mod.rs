//! `execve`: a new image in a process.
//!
//! `program.rs` finds what is to run (scripts and their interpreters, credentials), `elf.rs` reads
//! its headers, `image.rs` lays it out, `stack.rs` writes arguments, environment and auxiliary vector,
//! `replace.rs` makes the change: in place where INVARIANTS 3.1 allows it, else in a fresh host process.

mod elf;
mod image;
mod program;
mod replace;
mod stack;
pub mod syscalls;

pub use program::ExecArguments;
