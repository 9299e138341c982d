//! Structures and arrays in guest memory.

use std::marker::PhantomData;

use abi::{Pollfd, UserAddr};

use super::{RegisterWords, SyscallArg};
use crate::syscall::show::{Phase, Printer, ShowStruct};

/// A pointer to a `T` that the call reads; may be null.
pub struct In<T>(pub UserAddr, PhantomData<fn() -> T>);
/// A pointer to a `T` that the call writes; may be null.
pub struct Out<T>(pub UserAddr, PhantomData<fn() -> T>);
/// A pointer to a `T` that the call reads and writes; may be null.
pub struct InOut<T>(pub UserAddr, PhantomData<fn() -> T>);

/// An array that the call reads: pointer and number of elements.
pub struct InArray<T> {
    pub addr: UserAddr,
    pub count: usize,
    element: PhantomData<fn() -> T>,
}
/// Room for an array that the call fills: pointer and number of elements. The result is how many it filled.
pub struct OutArray<T> {
    pub addr: UserAddr,
    pub count: usize,
    element: PhantomData<fn() -> T>,
}

macro_rules! pointers {
    ($($name:ident, shown after: $after:literal, hidden before: $hidden:literal;)*) => {$(
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
        impl<T: ShowStruct> SyscallArg for $name<T> {
            const SHOWN_AFTER: bool = $after;
            fn decode(words: &mut RegisterWords<'_>) -> Self {
                $name::new(UserAddr::decode(words))
            }
            fn show(&self, printer: &mut Printer<'_>, phase: Phase) {
                match phase {
                    Phase::After(Err(_)) | Phase::Before if $hidden => printer.address(self.0),
                    _ => printer.structure::<T>(self.0),
                }
            }
        }
    )*};
}
pointers! {
    In, shown after: false, hidden before: false;
    Out, shown after: true, hidden before: true;
    InOut, shown after: true, hidden before: false;
}

macro_rules! arrays {
    ($($name:ident, $after:literal;)*) => {$(
        impl<T> Clone for $name<T> {
            fn clone(&self) -> Self {
                *self
            }
        }
        impl<T> Copy for $name<T> {}
        impl<T: ShowStruct> SyscallArg for $name<T> {
            const REGISTERS: usize = 2;
            const SHOWN_AFTER: bool = $after;
            fn decode(words: &mut RegisterWords<'_>) -> Self {
                $name { addr: UserAddr::decode(words), count: usize::decode(words), element: PhantomData }
            }
            fn show(&self, printer: &mut Printer<'_>, phase: Phase) {
                match phase {
                    Phase::After(Ok(count)) if $after => printer.array::<T>(self.addr, count.min(self.count)),
                    _ if $after => printer.address(self.addr),
                    _ => printer.array::<T>(self.addr, self.count),
                }
                printer.text(format_args!(", {}", self.count));
            }
        }
    )*};
}
arrays! { InArray, false; OutArray, true; }

/// `struct pollfd`s: pointer and count. The call changes them in place.
#[derive(Clone, Copy, Debug)]
pub struct PollFds {
    pub addr: UserAddr,
    pub count: u32,
}

impl SyscallArg for PollFds {
    const REGISTERS: usize = 2;
    fn decode(words: &mut RegisterWords<'_>) -> Self {
        PollFds { addr: UserAddr::decode(words), count: u32::decode(words) }
    }
    fn show(&self, printer: &mut Printer<'_>, _: Phase) {
        printer.array::<Pollfd>(self.addr, usize::try_from(self.count).unwrap_or(usize::MAX));
        printer.text(format_args!(", {}", self.count));
    }
}

/// Strings, ended by a null pointer: `argv`.
#[derive(Clone, Copy, Debug)]
pub struct StringArray(pub UserAddr);

impl SyscallArg for StringArray {
    fn decode(words: &mut RegisterWords<'_>) -> Self {
        StringArray(UserAddr::decode(words))
    }
    fn show(&self, printer: &mut Printer<'_>, _: Phase) {
        printer.address(self.0);
    }
}

/// Strings, ended by a null pointer: `envp`. Only their number is shown.
#[derive(Clone, Copy, Debug)]
pub struct Environment(pub UserAddr);

impl SyscallArg for Environment {
    fn decode(words: &mut RegisterWords<'_>) -> Self {
        Environment(UserAddr::decode(words))
    }
    fn show(&self, printer: &mut Printer<'_>, _: Phase) {
        printer.address(self.0);
    }
}
