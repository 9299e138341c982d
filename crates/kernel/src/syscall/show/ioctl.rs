//! The argument of `ioctl`.

use abi::Ioctl;

use super::Printer;
use crate::fs::ioctl::row;

/// `argument` behind the request.
pub(crate) fn argument(printer: &mut Printer<'_>, argument: u64) {
    let request = Ioctl(u32::try_from(printer.register_before(1) & 0xffff_ffff).unwrap_or(0));
    match row(request) {
        Some(row) => row.argument.show(printer, argument),
        None => printer.text(format_args!("{argument:#x}")),
    }
}
