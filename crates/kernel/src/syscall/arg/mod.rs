//! Typed arguments. Decoding registers never fails and never touches memory; the handler validates.
//!
//! Here are the trait and plain numbers; `pointers.rs` has structures and arrays in guest memory, `buffers.rs`
//! strings and bytes, `dependent.rs` what only other arguments give a meaning.

mod buffers;
mod dependent;
mod pointers;

pub use buffers::*;
pub use dependent::*;
pub use pointers::*;

use abi::FromRegister;
use platform::Pointee;

use crate::syscall::show::{Phase, Printer};

/// The six argument registers, taken from the left.
pub struct RegisterWords<'a> {
    rest: std::slice::Iter<'a, u64>,
}

impl<'a> RegisterWords<'a> {
    pub fn new(words: &'a [u64; 6]) -> Self {
        RegisterWords { rest: words.iter() }
    }

    /// The next register. Rows with more than six do not compile, so there always is one.
    pub fn next_word(&mut self) -> u64 {
        self.rest.next().copied().unwrap_or(0)
    }

    /// How many have been taken.
    pub fn taken(&self) -> usize {
        6 - self.rest.len()
    }
}

/// A type that an argument of a row may have.
pub trait SyscallArg: Sized {
    /// Registers that it takes: a buffer is pointer and length.
    const REGISTERS: usize = 1;
    fn decode(words: &mut RegisterWords<'_>) -> Self;
    /// Prints it as strace does; nothing, if it is not to be seen. Called before the call, and again when the result
    /// is known if it then set `deferred` or `again`.
    fn show(&self, printer: &mut Printer<'_>, phase: Phase);
    /// Whether it holds what the call gives back.
    const IS_OUTPUT: bool = false;
    /// What its first register points at, where a platform may bring that along with the call.
    const BRINGS: Option<Pointee> = None;
    /// Whether what the call writes there may be written when the guest goes on, and not before.
    const ANSWERS: bool = Self::IS_OUTPUT;
}

impl<T: FromRegister> SyscallArg for T {
    fn decode(words: &mut RegisterWords<'_>) -> Self {
        T::from_register(words.next_word())
    }
    fn show(&self, printer: &mut Printer<'_>, _: Phase) {
        printer.text(format_args!("{self}"));
    }
}

/// A descriptor's number, as given: perhaps not one, perhaps `AT_FDCWD`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fd(pub i32);

impl Fd {
    /// The current directory, in `*at` calls.
    pub const CWD: Fd = Fd(-100);
}

impl SyscallArg for Fd {
    fn decode(words: &mut RegisterWords<'_>) -> Self {
        Fd(i32::decode(words))
    }
    fn show(&self, printer: &mut Printer<'_>, _: Phase) {
        match *self {
            Fd::CWD => printer.out.push_str("AT_FDCWD"),
            Fd(number) => printer.text(format_args!("{number}")),
        }
    }
}

/// A process, thread or group id, as given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Pid(pub i32);

impl SyscallArg for Pid {
    fn decode(words: &mut RegisterWords<'_>) -> Self {
        Pid(i32::decode(words))
    }
    fn show(&self, printer: &mut Printer<'_>, _: Phase) {
        printer.text(format_args!("{}", self.0));
    }
}

/// A number that is printed in octal: a mode, an umask.
#[derive(Clone, Copy, Debug)]
pub struct Octal(pub u32);

impl SyscallArg for Octal {
    fn decode(words: &mut RegisterWords<'_>) -> Self {
        Octal(u32::decode(words))
    }
    fn show(&self, printer: &mut Printer<'_>, _: Phase) {
        printer.text(format_args!("0{:02o}", self.0));
    }
}

/// A number that is printed in hexadecimal.
#[derive(Clone, Copy, Debug)]
pub struct Hex(pub u64);

impl SyscallArg for Hex {
    fn decode(words: &mut RegisterWords<'_>) -> Self {
        Hex(words.next_word())
    }
    fn show(&self, printer: &mut Printer<'_>, _: Phase) {
        printer.text(format_args!("{:#x}", self.0));
    }
}
