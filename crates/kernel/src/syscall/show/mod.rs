//! Printing arguments and results in strace's manner.
//!
//! [`Printer`] is where an argument is printed to, with what it may look at; [`Show`] is how a value prints. Structures
//! field by field: `time.rs`, `files.rs`, `signals.rs`, `processes.rs`, `events.rs`, `sockets.rs`, `terminals.rs`,
//! `rare.rs`. What only another argument gives a meaning: `ioctl.rs`, `fcntl.rs`, `prctl.rs`, `futex.rs`, `clone.rs`.

pub(super) mod clone;
mod events;
pub(super) mod fcntl;
mod files;
mod form;
pub(super) mod futex;
pub(super) mod ioctl;
pub(super) mod prctl;
mod printer;
mod processes;
mod rare;
pub(super) mod result;
mod signals;
mod sockets;
mod structure;
mod terminals;
#[cfg(test)]
mod tests;
mod time;

use abi::{Errno, UserAddr};
use zerocopy::{FromBytes, IntoBytes};

pub(super) use events::{fd_set, poll_fds};
pub(super) use files::device;
pub use form::Form;
pub use printer::Printer;
pub(super) use processes::{capabilities, wait_status};
pub(super) use signals::siginfo;
pub(super) use sockets::{
    address as socket_address, address_out as socket_address_out, option as socket_option,
    option_name as socket_option_name, option_out as socket_option_out,
};
use structure::shown;

/// When an argument is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    Before,
    /// The call gave this: a count (or other value), or an error.
    After(Result<usize, Errno>),
}

/// Reads guest memory for the trace; a fault prints the address instead.
pub trait TraceMemory {
    /// Copies as much as there is; returns the bytes copied.
    fn read(&self, from: UserAddr, into: &mut [u8]) -> usize;
}

/// How a value that the call both reads and writes is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Updated {
    /// `before => after`, if it changed.
    Arrow,
    /// What was there before; what is there after a success as a note behind the result, `left …`.
    Left,
    /// Only what is there after.
    AfterOnly,
}

/// How a value in guest memory prints.
pub trait Show {
    /// Plain numbers behind a pointer stand in brackets: `[5]`.
    const IS_NUMBER: bool = false;
    const UPDATED: Updated = Updated::Arrow;
    fn show(&self, printer: &mut Printer<'_>);
}

/// A value in guest memory that can be read and printed.
pub trait ShowStruct {
    /// Its size in bytes.
    const SIZE: u64;
    const IS_NUMBER: bool;
    const UPDATED: Updated;
    /// Prints the one at `addr`, which is not null; `None`: it could not be read.
    fn show_at(addr: UserAddr, printer: &mut Printer<'_>) -> Option<()>;
}

impl<T: Show + FromBytes + IntoBytes> ShowStruct for T {
    const SIZE: u64 = size_of::<T>() as u64;
    const IS_NUMBER: bool = <T as Show>::IS_NUMBER;
    const UPDATED: Updated = <T as Show>::UPDATED;

    fn show_at(addr: UserAddr, printer: &mut Printer<'_>) -> Option<()> {
        printer.value::<T>(addr)?.show(printer);
        Some(())
    }
}

macro_rules! numbers {
    ($($type:ty)*) => {$(
        impl Show for $type {
            const IS_NUMBER: bool = true;
            fn show(&self, printer: &mut Printer<'_>) {
                printer.text(format_args!("{self}"));
            }
        }
    )*};
}
numbers! { i32 u32 i64 u64 }

impl<T: Show, const N: usize> Show for [T; N] {
    fn show(&self, printer: &mut Printer<'_>) {
        printer.list(self.iter(), |printer, value| value.show(printer));
    }
}
