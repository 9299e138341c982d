//! A terminal's settings, with what the discipline asks of them for each character.

use crate::ctype;
use abi::{Baud, ControlFlags, InputFlags, LocalFlags, OutputFlags, Termios2, cc};

/// A special character.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub(crate) enum Cc {
    Interrupt = cc::VINTR,
    Quit = cc::VQUIT,
    Erase = cc::VERASE,
    Kill = cc::VKILL,
    Eof = cc::VEOF,
    Time = cc::VTIME,
    Min = cc::VMIN,
    Start = cc::VSTART,
    Stop = cc::VSTOP,
    Suspend = cc::VSUSP,
    Eol = cc::VEOL,
    Reprint = cc::VREPRINT,
    WordErase = cc::VWERASE,
    LiteralNext = cc::VLNEXT,
    Eol2 = cc::VEOL2,
}

/// A `cc` of this value is switched off (`_POSIX_VDISABLE`, `__DISABLED_CHAR`).
pub(crate) const DISABLED: u8 = 0;

#[derive(Clone, Debug)]
pub(crate) struct Settings {
    termios: Termios2,
    /// Characters that are more than input, one bit each.
    special: [u64; 4],
    /// Nothing is done with any character.
    is_plain: bool,
}

macro_rules! switches {
    ($($name:ident = $field:ident $flag:expr;)*) => {
        impl Settings {
            $(pub(crate) fn $name(&self) -> bool { self.termios.$field.contains($flag) })*
        }
    };
}

switches! {
    ignbrk = iflag InputFlags::IGNBRK;
    brkint = iflag InputFlags::BRKINT;
    ignpar = iflag InputFlags::IGNPAR;
    parmrk = iflag InputFlags::PARMRK;
    inpck = iflag InputFlags::INPCK;
    istrip = iflag InputFlags::ISTRIP;
    inlcr = iflag InputFlags::INLCR;
    igncr = iflag InputFlags::IGNCR;
    icrnl = iflag InputFlags::ICRNL;
    iuclc = iflag InputFlags::IUCLC;
    ixon = iflag InputFlags::IXON;
    ixany = iflag InputFlags::IXANY;
    iutf8 = iflag InputFlags::IUTF8;
    opost = oflag OutputFlags::OPOST;
    olcuc = oflag OutputFlags::OLCUC;
    onlcr = oflag OutputFlags::ONLCR;
    ocrnl = oflag OutputFlags::OCRNL;
    onocr = oflag OutputFlags::ONOCR;
    onlret = oflag OutputFlags::ONLRET;
    expands_tabs = oflag OutputFlags::XTABS;
    isig = lflag LocalFlags::ISIG;
    icanon = lflag LocalFlags::ICANON;
    echo = lflag LocalFlags::ECHO;
    echoe = lflag LocalFlags::ECHOE;
    echok = lflag LocalFlags::ECHOK;
    echonl = lflag LocalFlags::ECHONL;
    noflsh = lflag LocalFlags::NOFLSH;
    echoctl = lflag LocalFlags::ECHOCTL;
    echoprt = lflag LocalFlags::ECHOPRT;
    echoke = lflag LocalFlags::ECHOKE;
    iexten = lflag LocalFlags::IEXTEN;
    extproc = lflag LocalFlags::EXTPROC;
}

impl Settings {
    /// The settings of this `termios`, with what a pty's driver and the speeds make of it.
    pub(crate) fn new(mut termios: Termios2) -> Settings {
        // pty_set_termios: eight bits, no parity, always on. ADDRB is only the kernel's to set.
        termios.cflag.remove(ControlFlags::CSIZE | ControlFlags::PARENB | ControlFlags::ADDRB);
        termios.cflag.insert(ControlFlags::CS8 | ControlFlags::CREAD);
        let mut settings = Settings { termios, special: [0; 4], is_plain: false };
        settings.fix_speeds();
        settings.find_special();
        settings
    }

    pub(crate) fn termios(&self) -> &Termios2 {
        &self.termios
    }

    /// The speeds follow the bits in `c_cflag`, but where these say `BOTHER`
    /// (`tty_termios_baud_rate`, `tty_termios_input_baud_rate`).
    fn fix_speeds(&mut self) {
        let output = self.termios.cflag.baud();
        let input = self.termios.cflag.input_baud();
        if output != Baud::OTHER {
            self.termios.ospeed = output.bits_per_second().unwrap_or(0);
        }
        if input == Baud::HANGUP {
            self.termios.ispeed = self.termios.ospeed;
        } else if input != Baud::OTHER {
            self.termios.ispeed = input.bits_per_second().unwrap_or(0);
        }
    }

    /// Which characters mean something with these flags (`n_tty_set_termios`). It matters beyond speed:
    /// others are echoed without a look at what they are, so that without line mode a newline that nothing
    /// maps is shown as `^J`.
    fn find_special(&mut self) {
        let plain = InputFlags::ISTRIP
            | InputFlags::IUCLC
            | InputFlags::IGNCR
            | InputFlags::ICRNL
            | InputFlags::INLCR
            | InputFlags::IXON
            | InputFlags::PARMRK;
        self.is_plain = !self.termios.iflag.intersects(plain)
            && !self.termios.lflag.intersects(LocalFlags::ICANON | LocalFlags::ISIG | LocalFlags::ECHO);
        if self.igncr() || self.icrnl() {
            self.mark_special(b'\r');
        }
        if self.inlcr() || self.icanon() {
            self.mark_special(b'\n');
        }
        let mut groups: [(bool, &[Cc]); 5] = [
            (self.icanon(), &[Cc::Erase, Cc::Kill, Cc::Eof, Cc::Eol]),
            (self.icanon() && self.iexten(), &[Cc::WordErase, Cc::LiteralNext, Cc::Eol2]),
            (self.icanon() && self.iexten() && self.echo(), &[Cc::Reprint]),
            (self.ixon(), &[Cc::Start, Cc::Stop]),
            (self.isig(), &[Cc::Interrupt, Cc::Quit, Cc::Suspend]),
        ];
        for (is_on, group) in &mut groups {
            for &cc in group.iter().filter(|_| *is_on) {
                self.mark_special(self.cc(cc));
            }
        }
    }

    fn mark_special(&mut self, c: u8) {
        if c != DISABLED
            && let Some(word) = self.special.get_mut(usize::from(c >> 6))
        {
            *word |= 1 << (c & 63);
        }
    }

    /// Whether a character means something, as it came.
    pub(crate) fn is_special(&self, c: u8) -> bool {
        self.special.get(usize::from(c >> 6)).is_some_and(|word| word >> (c & 63) & 1 != 0)
    }

    /// Whether nothing is to be done with any character but to store it.
    pub(crate) fn is_plain(&self) -> bool {
        self.is_plain
    }

    /// The value of a special character, or of `VMIN` or `VTIME`.
    pub(crate) fn cc(&self, cc: Cc) -> u8 {
        self.termios.cc.get(cc as usize).copied().unwrap_or(DISABLED)
    }

    /// Whether a character is this special one. What is switched off is no character's.
    pub(crate) fn is(&self, c: u8, cc: Cc) -> bool {
        c != DISABLED && c == self.cc(cc)
    }

    /// Whether readers get lines. A remote end that edits lines itself (`EXTPROC`) sends bytes.
    pub(crate) fn line_mode(&self) -> bool {
        self.icanon() && !self.extproc()
    }

    /// Whether characters are changed before anything else.
    pub(crate) fn maps_first(&self) -> bool {
        self.istrip() || (self.iuclc() && self.iexten())
    }

    /// What `ISTRIP` and `IUCLC` make of a character.
    pub(crate) fn map_first(&self, c: u8) -> u8 {
        let c = if self.istrip() { c & 0x7f } else { c };
        if self.iuclc() && self.iexten() { ctype::to_lower(c) } else { c }
    }

    /// Whether a character is stored twice, so that it cannot be taken for an error mark.
    pub(crate) fn doubles(&self, c: u8) -> bool {
        c == 0xff && self.parmrk()
    }

    /// Whether a byte continues a character and so takes no column.
    pub(crate) fn is_continuation(&self, c: u8) -> bool {
        self.iutf8() && ctype::is_utf8_continuation(c)
    }

    /// Whether STOP and START are ^S and ^Q and in use: what packet mode tells a remote terminal.
    pub(crate) fn standard_flow(&self) -> bool {
        self.ixon() && self.cc(Cc::Stop) == 0x13 && self.cc(Cc::Start) == 0x11
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pty_keeps_eight_bits_and_follows_the_speed_bits() {
        let mut termios = Termios2::STANDARD;
        termios.cflag = ControlFlags::from_bits_retain(0x1002) | ControlFlags::CS6 | ControlFlags::PARENB;
        termios.cflag |= ControlFlags::ADDRB;
        (termios.ispeed, termios.ospeed) = (1, 2);
        let settings = Settings::new(termios);
        let got = settings.termios();
        assert_eq!(got.cflag.bits(), 0x1002 | 0x30 | 0x80);
        assert_eq!((got.ispeed, got.ospeed), (115_200, 115_200));
        termios.cflag = ControlFlags::from_bits_retain(0x1000);
        (termios.ispeed, termios.ospeed) = (1, 2);
        assert_eq!(Settings::new(termios).termios().ospeed, 2);
        assert_eq!(Settings::new(termios).termios().ispeed, 2);
        termios.cflag = ControlFlags::from_bits_retain(0x1000_1000);
        assert_eq!(Settings::new(termios).termios().ispeed, 1);
    }

    #[test]
    fn special_characters_depend_on_the_flags() {
        let mut termios = Termios2::STANDARD;
        assert!(
            [3, 28, 127, 21, 4, 17, 19, 26, 18, 23, 22, b'\r', b'\n']
                .iter()
                .all(|&c| Settings::new(termios).is_special(c))
        );
        assert!(!Settings::new(termios).is_special(0), "a disabled character is none");
        termios.lflag.remove(LocalFlags::IEXTEN);
        assert!([18, 23, 22].iter().all(|&c| !Settings::new(termios).is_special(c)));
        termios.lflag.remove(LocalFlags::ICANON);
        assert!([127, 21, 4, b'\n'].iter().all(|&c| !Settings::new(termios).is_special(c)));
        assert!(!Settings::new(termios).is_plain());
        termios.lflag = LocalFlags::empty();
        termios.iflag = InputFlags::IUTF8;
        assert!(Settings::new(termios).is_plain());
    }
}
