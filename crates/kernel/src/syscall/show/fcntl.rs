//! The argument of `fcntl`, and its results.

use abi::{FOwnerEx, FcntlCmd, FdFlags, Flock, OpenFlags, SealFlags, Signal, UserAddr};

use super::{Phase, Printer};

/// `argument` behind the command.
pub(crate) fn argument(printer: &mut Printer<'_>, argument: u64) {
    let cmd = FcntlCmd(u32::try_from(printer.register_before(1) & 0xffff_ffff).unwrap_or(0));
    let word = u32::try_from(argument & 0xffff_ffff).unwrap_or(0);
    let addr = UserAddr(argument);
    match cmd {
        FcntlCmd::GETFD => flags_result(printer, |bits| {
            if bits == 0 { None } else { Some(FdFlags::from_bits_retain(bits).to_string()) }
        }),
        FcntlCmd::GETFL => flags_result(printer, |bits| Some(OpenFlags::from_bits_retain(bits).to_string())),
        FcntlCmd::GET_SEALS => {
            flags_result(printer, |bits| Some(SealFlags::from_bits_retain(bits).to_string()));
        }
        FcntlCmd::GETOWN | FcntlCmd::GETSIG | FcntlCmd::GETLEASE | FcntlCmd::GETPIPE_SZ => {}
        FcntlCmd::GETLK | FcntlCmd::OFD_GETLK => {
            printer.after(addr, |printer, _| printer.structure::<Flock>(addr))
        }
        FcntlCmd::SETLK | FcntlCmd::SETLKW | FcntlCmd::OFD_SETLK | FcntlCmd::OFD_SETLKW => {
            printer.structure::<Flock>(addr);
        }
        FcntlCmd::GETOWN_EX => printer.after(addr, |printer, _| printer.structure::<FOwnerEx>(addr)),
        FcntlCmd::SETOWN_EX => printer.structure::<FOwnerEx>(addr),
        FcntlCmd::SETFD => printer.text(format_args!("{}", FdFlags::from_bits_retain(word))),
        FcntlCmd::SETFL => printer.text(format_args!("{}", OpenFlags::from_bits_retain(word))),
        FcntlCmd::ADD_SEALS => printer.text(format_args!("{}", SealFlags::from_bits_retain(word))),
        FcntlCmd::SETSIG => printer.text(format_args!("{}", Signal(word.cast_signed()))),
        FcntlCmd::DUPFD | FcntlCmd::DUPFD_CLOEXEC | FcntlCmd::SETOWN | FcntlCmd::SETPIPE_SZ => {
            printer.text(format_args!("{}", word.cast_signed()));
        }
        FcntlCmd::DUPFD_QUERY => printer.text(format_args!("{}", word.cast_signed())),
        _ => printer.text(format_args!("{argument:#x}")),
    }
}

/// `0x8002 (flags O_RDWR|…)` in place of the result.
fn flags_result(printer: &mut Printer<'_>, names: impl Fn(u32) -> Option<String>) {
    match printer.phase {
        Phase::Before => printer.again = true,
        Phase::After(Ok(value)) => {
            let bits = u32::try_from(value).unwrap_or(0);
            printer.result = names(bits).map(|names| format!("{bits:#x} (flags {names})"));
        }
        Phase::After(Err(_)) => {}
    }
}
