//! The older forms of the settings, as `ioctl` takes and gives them: `struct termios` without speeds
//! (`TCSETS`) and System V's `struct termio` (`TCGETA`, `TCSETA`).

use abi::{ControlFlags, InputFlags, LocalFlags, OutputFlags, Termio, Termios, Termios2};

/// How many special characters `struct termio` has (`NCC`).
const TERMIO_CHARACTERS: usize = 8;

/// The settings in force with all that `TCSETS` gives.
pub fn with_termios(current: &Termios2, new: &Termios) -> Termios2 {
    let Termios { iflag, oflag, cflag, lflag, line, cc } = *new;
    Termios2 { iflag, oflag, cflag, lflag, line, cc, ..*current }
}

/// The settings in force with all that `TCSETA` gives: the lower halves of the flags, eight characters.
pub fn with_termio(current: &Termios2, new: &Termio) -> Termios2 {
    let join = |old: u32, new: u16| old & 0xffff_0000 | u32::from(new);
    let mut termios = *current;
    termios.iflag = InputFlags::from_bits_retain(join(current.iflag.bits(), new.iflag));
    termios.oflag = OutputFlags::from_bits_retain(join(current.oflag.bits(), new.oflag));
    termios.cflag = ControlFlags::from_bits_retain(join(current.cflag.bits(), new.cflag));
    termios.lflag = LocalFlags::from_bits_retain(join(current.lflag.bits(), new.lflag));
    termios.line = new.line;
    termios.cc.iter_mut().zip(new.cc).for_each(|(old, new)| *old = new);
    termios
}

/// What `TCGETA` gives.
pub fn to_termio(termios: &Termios2) -> Termio {
    let low = |flags: u32| u16::try_from(flags & 0xffff).unwrap_or(0);
    let mut termio = Termio {
        iflag: low(termios.iflag.bits()),
        oflag: low(termios.oflag.bits()),
        cflag: low(termios.cflag.bits()),
        lflag: low(termios.lflag.bits()),
        line: termios.line,
        cc: [0; TERMIO_CHARACTERS],
        pad: 0,
    };
    termio.cc.iter_mut().zip(termios.cc).for_each(|(new, old)| *new = old);
    termio
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_termio_changes_only_what_it_has() {
        let mut current = Termios2::STANDARD;
        current.lflag.insert(LocalFlags::EXTPROC);
        current.cc[11] = b'!';
        let mut termio = to_termio(&current);
        assert_eq!((termio.iflag, termio.lflag, termio.cc), (0x500, 0x8a3b, [3, 28, 127, 21, 4, 0, 1, 0]));
        termio.lflag = 2;
        termio.cc[0] = 7;
        let new = with_termio(&current, &termio);
        assert_eq!(new.lflag, LocalFlags::EXTPROC | LocalFlags::ICANON);
        assert_eq!((new.cc[0], new.cc[11], new.ospeed), (7, b'!', 38_400));
        assert_eq!(with_termios(&current, &new.to_termios()), new);
    }
}
