//! Typed arguments. Decoding registers never fails and never touches memory; the handler validates.

use std::marker::PhantomData;

use abi::{FromRegister, UserAddr};

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
}

/// A type that an argument of a row may have.
pub trait SyscallArg: Sized {
    /// Registers that it takes: a buffer is pointer and length.
    const REGISTERS: usize = 1;
    fn decode(words: &mut RegisterWords<'_>) -> Self;
    /// Prints it as strace does. Called before the call and, for arguments that
    /// [are shown after it](SyscallArg::SHOWN_AFTER), again when the result is known.
    fn show(&self, printer: &mut Printer<'_>, phase: Phase);
    /// Whether it holds what the call gave back, and so is printed when that is known.
    const SHOWN_AFTER: bool = false;
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
            Fd::CWD => printer.text(format_args!("AT_FDCWD")),
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
        printer.text(format_args!("{:#05o}", self.0));
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

/// A string in guest memory, ended by a zero byte.
#[derive(Clone, Copy, Debug)]
pub struct UserCStr(pub UserAddr);

impl SyscallArg for UserCStr {
    fn decode(words: &mut RegisterWords<'_>) -> Self {
        UserCStr(UserAddr::decode(words))
    }
    fn show(&self, printer: &mut Printer<'_>, _: Phase) {
        printer.c_string(self.0);
    }
}

/// Bytes in guest memory that the call reads: pointer and length.
#[derive(Clone, Copy, Debug)]
pub struct InBuf {
    pub addr: UserAddr,
    pub len: usize,
}

impl SyscallArg for InBuf {
    const REGISTERS: usize = 2;
    fn decode(words: &mut RegisterWords<'_>) -> Self {
        InBuf { addr: UserAddr::decode(words), len: usize::decode(words) }
    }
    fn show(&self, printer: &mut Printer<'_>, _: Phase) {
        printer.bytes(self.addr, self.len);
        printer.text(format_args!(", {}", self.len));
    }
}

/// Room in guest memory that the call fills: pointer and length.
#[derive(Clone, Copy, Debug)]
pub struct OutBuf {
    pub addr: UserAddr,
    pub len: usize,
}

impl SyscallArg for OutBuf {
    const REGISTERS: usize = 2;
    const SHOWN_AFTER: bool = true;
    fn decode(words: &mut RegisterWords<'_>) -> Self {
        OutBuf { addr: UserAddr::decode(words), len: usize::decode(words) }
    }
    fn show(&self, printer: &mut Printer<'_>, phase: Phase) {
        match phase {
            Phase::After(Ok(count)) => printer.bytes(self.addr, self.len.min(count)),
            _ => printer.address(self.addr),
        }
        printer.text(format_args!(", {}", self.len));
    }
}

/// A vector of buffers: pointer to `struct iovec` and count.
#[derive(Clone, Copy, Debug)]
pub struct IoVec {
    pub addr: UserAddr,
    pub count: usize,
}

impl SyscallArg for IoVec {
    const REGISTERS: usize = 2;
    fn decode(words: &mut RegisterWords<'_>) -> Self {
        IoVec { addr: UserAddr::decode(words), count: usize::decode(words) }
    }
    fn show(&self, printer: &mut Printer<'_>, _: Phase) {
        printer.io_vec(self.addr, self.count);
        printer.text(format_args!(", {}", self.count));
    }
}

/// A pointer to a `T` that the call reads; may be null.
pub struct In<T>(pub UserAddr, PhantomData<fn() -> T>);
/// A pointer to a `T` that the call writes; may be null.
pub struct Out<T>(pub UserAddr, PhantomData<fn() -> T>);
/// A pointer to a `T` that the call reads and writes; may be null.
pub struct InOut<T>(pub UserAddr, PhantomData<fn() -> T>);

macro_rules! pointers {
    ($($name:ident, $after:literal;)*) => {$(
        impl<T> $name<T> {
            pub const fn new(addr: UserAddr) -> Self {
                $name(addr, PhantomData)
            }
            pub const fn is_null(self) -> bool {
                self.0.is_null()
            }
        }
        impl<T> Clone for $name<T> {
            fn clone(&self) -> Self {
                *self
            }
        }
        impl<T> Copy for $name<T> {}
        impl<T: show::ShowStruct> SyscallArg for $name<T> {
            const SHOWN_AFTER: bool = $after;
            fn decode(words: &mut RegisterWords<'_>) -> Self {
                $name::new(UserAddr::decode(words))
            }
            fn show(&self, printer: &mut Printer<'_>, phase: Phase) {
                match phase {
                    Phase::After(Err(_)) if $after => printer.address(self.0),
                    Phase::Before if $after => printer.address(self.0),
                    _ => printer.structure::<T>(self.0),
                }
            }
        }
    )*};
}
use crate::syscall::show;
pointers! { In, false; Out, true; InOut, true; }
