//! The one argument of second-level calls (`fcntl`, `ioctl`), whose meaning is the command's.

use abi::UserAddr;

use super::{Phase, Printer};

/// What a command's argument is. Names are as in C, for the documents.
#[derive(Clone, Copy)]
pub enum Form {
    /// It has none.
    Nothing,
    Int,
    /// A number that prints by names.
    Named(&'static str, fn(&mut Printer<'_>, u32)),
    /// Read by the call.
    In(&'static str, fn(&mut Printer<'_>, UserAddr)),
    /// Written by the call.
    Out(&'static str, fn(&mut Printer<'_>, UserAddr)),
}

impl Form {
    /// Its type.
    pub fn name(&self) -> &'static str {
        match self {
            Form::Nothing => "",
            Form::Int => "int",
            Form::Named(name, _) | Form::In(name, _) | Form::Out(name, _) => name,
        }
    }

    pub(super) fn show(&self, printer: &mut Printer<'_>, argument: u64) {
        let word = u32::try_from(argument & 0xffff_ffff).unwrap_or(0);
        let addr = UserAddr(argument);
        match self {
            Form::Nothing => {}
            Form::Int => printer.text(format_args!("{}", word.cast_signed())),
            Form::Named(_, show) => show(printer, word),
            Form::In(_, show) => show(printer, addr),
            Form::Out(_, show) => match printer.phase {
                Phase::Before => printer.deferred = true,
                Phase::After(Ok(_)) => show(printer, addr),
                Phase::After(Err(_)) => printer.address(addr),
            },
        }
    }
}
