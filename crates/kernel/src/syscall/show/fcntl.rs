//! The argument of `fcntl`, and its results.

use abi::FcntlCmd;

use super::{Phase, Printer};
use crate::fs::fcntl::row;

/// `argument` behind the command.
pub(crate) fn argument(printer: &mut Printer<'_>, argument: u64) {
    let cmd = FcntlCmd(u32::try_from(printer.register_before(1) & 0xffff_ffff).unwrap_or(0));
    match row(cmd) {
        Some(row) => {
            row.argument.show(printer, argument);
            if let Some(names) = row.result {
                flags_result(printer, names);
            }
        }
        None => printer.text(format_args!("{argument:#x}")),
    }
}

/// `0x8002 (flags O_RDWR|…)` in place of the result.
fn flags_result(printer: &mut Printer<'_>, names: fn(u32) -> String) {
    match printer.phase {
        Phase::Before => printer.again = true,
        Phase::After(Ok(value)) => {
            let bits = u32::try_from(value).unwrap_or(0);
            let names = Some(names(bits)).filter(|names| !names.is_empty());
            printer.result = names.map(|names| format!("{bits:#x} (flags {names})"));
        }
        Phase::After(Err(_)) => {}
    }
}
