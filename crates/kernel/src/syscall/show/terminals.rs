//! Terminals.

use abi::{Termios, Termios2, Winsize};

use super::{Printer, Show, shown};

shown! {
    Winsize { ws_row: n row, ws_col: n col, ws_xpixel: n xpixel, ws_ypixel: n ypixel }
}

impl Show for Termios {
    fn show(&self, printer: &mut Printer<'_>) {
        printer.text(format_args!(
            "{{c_iflag={}, c_oflag={}, c_cflag={}|{}, c_lflag={}, ...}}",
            self.iflag,
            self.oflag,
            self.cflag.baud(),
            without_speed(self.cflag),
            self.lflag
        ));
    }
}

impl Show for Termios2 {
    fn show(&self, printer: &mut Printer<'_>) {
        printer.text(format_args!(
            "{{c_iflag={}, c_oflag={}, c_cflag={}|{}, c_lflag={}, ..., c_ispeed={}, c_ospeed={}}}",
            self.iflag,
            self.oflag,
            self.cflag.baud(),
            without_speed(self.cflag),
            self.lflag,
            self.ispeed,
            self.ospeed
        ));
    }
}

fn without_speed(flags: abi::ControlFlags) -> abi::ControlFlags {
    flags & abi::ControlFlags::KNOWN
}
