//! Structures and arrays in guest memory.

use std::marker::PhantomData;

use abi::{CloneFlags, UserAddr};
use platform::Pointee;

use super::{RegisterWords, SyscallArg};
use crate::syscall::show::{self, Phase, Printer, ShowStruct, Updated};

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
    ($($name:ident, output: $output:literal, brings: $brings:expr, $show:expr;)*) => {$(
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
            const IS_OUTPUT: bool = $output;
            const BRINGS: Option<Pointee> = $brings;
            fn decode(words: &mut RegisterWords<'_>) -> Self {
                $name::new(UserAddr::decode(words))
            }
            fn show(&self, printer: &mut Printer<'_>, _: Phase) {
                let show: fn(&mut Printer<'_>, UserAddr) = $show;
                show(printer, self.0);
            }
        }
    )*};
}
pointers! {
    In, output: false, brings: Some(Pointee::Bytes(size_of::<T>())), |printer, addr| printer.structure::<T>(addr);
    Out, output: true, brings: None, |printer, addr| printer.after(addr, |printer, _| printer.structure::<T>(addr));
    InOut, output: true, brings: Some(Pointee::Bytes(size_of::<T>())), show_updated::<T>;
}

/// A structure that the call reads and writes.
fn show_updated<T: ShowStruct>(printer: &mut Printer<'_>, addr: UserAddr) {
    match (T::UPDATED, printer.phase) {
        (Updated::AfterOnly, _) => printer.after(addr, |printer, _| printer.structure::<T>(addr)),
        (Updated::Arrow, Phase::Before) => {
            printer.deferred = true;
            printer.structure::<T>(addr);
        }
        (Updated::Arrow, Phase::After(result)) => {
            let before = printer.before.to_string();
            printer.out.push_str(&before);
            let start = printer.out.len();
            if result.is_ok() {
                printer.structure::<T>(addr);
                let after = printer.out.split_off(start);
                if after != before {
                    printer.text(format_args!(" => {after}"));
                }
            }
        }
        (Updated::Left, Phase::Before) => {
            printer.again = true;
            printer.structure::<T>(addr);
        }
        // A time that ran out is told by the result.
        (Updated::Left, Phase::After(Ok(1..))) if !addr.is_null() => {
            let start = printer.out.len();
            printer.structure::<T>(addr);
            let after = printer.out.split_off(start);
            printer.notes.push(format!("left {after}"));
        }
        (Updated::Left, Phase::After(_)) => {}
    }
}

macro_rules! arrays {
    ($($name:ident, $output:literal;)*) => {$(
        impl<T> Clone for $name<T> {
            fn clone(&self) -> Self {
                *self
            }
        }
        impl<T> Copy for $name<T> {}
        impl<T: ShowStruct> SyscallArg for $name<T> {
            const REGISTERS: usize = 2;
            const IS_OUTPUT: bool = $output;
            const BRINGS: Option<Pointee> =
                if $output { None } else { Some(Pointee::Elements(size_of::<T>())) };
            fn decode(words: &mut RegisterWords<'_>) -> Self {
                $name { addr: UserAddr::decode(words), count: usize::decode(words), element: PhantomData }
            }
            fn show(&self, printer: &mut Printer<'_>, _: Phase) {
                if $output {
                    printer.after(self.addr, |printer, filled| {
                        printer.array::<T>(self.addr, filled.min(self.count));
                    });
                } else {
                    printer.array::<T>(self.addr, self.count);
                }
                if !printer.deferred {
                    printer.text(format_args!(", {}", self.count));
                }
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
    const IS_OUTPUT: bool = true;
    const BRINGS: Option<Pointee> = Some(Pointee::Elements(size_of::<abi::Pollfd>()));
    fn decode(words: &mut RegisterWords<'_>) -> Self {
        PollFds { addr: UserAddr::decode(words), count: u32::decode(words) }
    }
    fn show(&self, printer: &mut Printer<'_>, _: Phase) {
        show::poll_fds(printer, self.addr, self.count);
    }
}

/// Strings, ended by a null pointer: `argv`.
#[derive(Clone, Copy, Debug)]
pub struct StringArray(pub UserAddr);

/// The pointers of such a list, up to `max`; whether there are more.
fn pointers_of(printer: &Printer<'_>, list: UserAddr, max: usize) -> Option<(Vec<UserAddr>, bool)> {
    let mut pointers = Vec::new();
    loop {
        let at = list.checked_add(pointers.len() as u64 * 8)?;
        match printer.value::<u64>(at)? {
            0 => return Some((pointers, false)),
            _ if pointers.len() == max => return Some((pointers, true)),
            pointer => pointers.push(UserAddr(pointer)),
        }
    }
}

impl SyscallArg for StringArray {
    fn decode(words: &mut RegisterWords<'_>) -> Self {
        StringArray(UserAddr::decode(words))
    }
    fn show(&self, printer: &mut Printer<'_>, _: Phase) {
        match pointers_of(printer, self.0, printer.max_string) {
            None => printer.address(self.0),
            Some((pointers, more)) => {
                printer.list(pointers.into_iter(), |printer, string| printer.c_string(string));
                if more {
                    printer.out.truncate(printer.out.len() - 1);
                    printer.out.push_str(", ...]");
                }
            }
        }
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
        const MANY: usize = 1 << 16;
        printer.address(self.0);
        if let Some((pointers, _)) = pointers_of(printer, self.0, MANY) {
            printer.text(format_args!(" /* {} vars */", pointers.len()));
        }
    }
}

/// Where `wait4` puts what became of a child.
#[derive(Clone, Copy, Debug)]
pub struct OutStatus(pub UserAddr);

impl SyscallArg for OutStatus {
    const IS_OUTPUT: bool = true;
    fn decode(words: &mut RegisterWords<'_>) -> Self {
        OutStatus(UserAddr::decode(words))
    }
    fn show(&self, printer: &mut Printer<'_>, _: Phase) {
        printer.after(self.0, |printer, pid| match printer.value::<i32>(self.0) {
            Some(status) if pid > 0 => show::wait_status(printer, status),
            _ => printer.address(self.0),
        });
    }
}

/// The registers of `clone`.
#[derive(Clone, Copy, Debug)]
pub struct CloneRegisters {
    pub flags: CloneFlags,
    pub stack: UserAddr,
    pub parent_tid: UserAddr,
    pub child_tid: UserAddr,
    pub tls: UserAddr,
}

impl SyscallArg for CloneRegisters {
    const REGISTERS: usize = 5;
    fn decode(words: &mut RegisterWords<'_>) -> Self {
        CloneRegisters {
            flags: CloneFlags::decode(words),
            stack: UserAddr::decode(words),
            parent_tid: UserAddr::decode(words),
            child_tid: UserAddr::decode(words),
            tls: UserAddr::decode(words),
        }
    }
    fn show(&self, printer: &mut Printer<'_>, _: Phase) {
        show::clone::registers(printer);
    }
}

/// `struct clone_args`: pointer and size.
#[derive(Clone, Copy, Debug)]
pub struct CloneStruct {
    pub addr: UserAddr,
    pub size: usize,
}

impl SyscallArg for CloneStruct {
    const REGISTERS: usize = 2;
    const IS_OUTPUT: bool = true;
    /// The child may look before the parent goes on.
    const ANSWERS: bool = false;
    fn decode(words: &mut RegisterWords<'_>) -> Self {
        CloneStruct { addr: UserAddr::decode(words), size: usize::decode(words) }
    }
    fn show(&self, printer: &mut Printer<'_>, _: Phase) {
        show::clone::structure(printer, self.addr, self.size);
    }
}
