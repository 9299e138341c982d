//! Terminals: `termios` as the kernel has it (36 bytes, not glibc's 60), its bits, window sizes
//! (`asm-generic/termbits.h`, `asm-generic/termios.h`). The ioctl numbers are in `ioctl.rs`.

use crate::macros::{flags, layout, names};

layout! {
    /// The kernel's `struct termios`, of `TCGETS`.
    struct Termios: 36 {
        0 iflag: InputFlags,
        4 oflag: OutputFlags,
        8 cflag: ControlFlags,
        12 lflag: LocalFlags,
        16 line: u8,
        17 cc: [u8; 19],
    }

    /// `struct termios2`, of `TCGETS2`, and the kernel's own `ktermios`.
    struct Termios2: 44 {
        0 iflag: InputFlags,
        4 oflag: OutputFlags,
        8 cflag: ControlFlags,
        12 lflag: LocalFlags,
        16 line: u8,
        17 cc: [u8; 19],
        36 ispeed: u32,
        40 ospeed: u32,
    }

    /// `struct termio`, of `TCGETA`.
    struct Termio: 18 {
        0 iflag: u16,
        2 oflag: u16,
        4 cflag: u16,
        6 lflag: u16,
        8 line: u8,
        9 cc: [u8; 8],
        17 pad: u8,
    }

    /// `struct winsize`.
    struct Winsize: 8 {
        0 row: u16,
        2 col: u16,
        4 xpixel: u16,
        6 ypixel: u16,
    }
}

flags! {
    /// `c_iflag`.
    InputFlags: u32, "" {
        IGNBRK = 0x1;
        BRKINT = 0x2;
        IGNPAR = 0x4;
        PARMRK = 0x8;
        INPCK = 0x10;
        ISTRIP = 0x20;
        INLCR = 0x40;
        IGNCR = 0x80;
        ICRNL = 0x100;
        IUCLC = 0x200;
        IXON = 0x400;
        IXANY = 0x800;
        IXOFF = 0x1000;
        IMAXBEL = 0x2000;
        IUTF8 = 0x4000;
    }

    /// `c_oflag`. Delays are fields of one or two bits, named here by their largest value.
    OutputFlags: u32, "" {
        OPOST = 0x1;
        OLCUC = 0x2;
        ONLCR = 0x4;
        OCRNL = 0x8;
        ONOCR = 0x10;
        ONLRET = 0x20;
        OFILL = 0x40;
        OFDEL = 0x80;
        NL1 = 0x100;
        CR3 = 0x600;
        CR1 = 0x200;
        CR2 = 0x400;
        /// Tabs become spaces (`XTABS`).
        TAB3 = 0x1800;
        TAB1 = 0x800;
        TAB2 = 0x1000;
        BS1 = 0x2000;
        VT1 = 0x4000;
        FF1 = 0x8000;
    }

    /// `c_cflag`. The speeds are fields ([`Baud`]).
    ControlFlags: u32, "" {
        CS8 = 0x30;
        CS6 = 0x10;
        CS7 = 0x20;
        CSTOPB = 0x40;
        CREAD = 0x80;
        PARENB = 0x100;
        PARODD = 0x200;
        HUPCL = 0x400;
        CLOCAL = 0x800;
        ADDRB = 0x2000_0000;
        CMSPAR = 0x4000_0000;
        CRTSCTS = 0x8000_0000;
    }

    /// `c_lflag`.
    LocalFlags: u32, "" {
        ISIG = 0x1;
        ICANON = 0x2;
        XCASE = 0x4;
        ECHO = 0x8;
        ECHOE = 0x10;
        ECHOK = 0x20;
        ECHONL = 0x40;
        NOFLSH = 0x80;
        TOSTOP = 0x100;
        ECHOCTL = 0x200;
        ECHOPRT = 0x400;
        ECHOKE = 0x800;
        FLUSHO = 0x1000;
        PENDIN = 0x4000;
        IEXTEN = 0x8000;
        EXTPROC = 0x1_0000;
    }

    /// Modem lines (`TIOCMGET`).
    ModemLines: u32, "TIOCM_" {
        LE = 0x1;
        DTR = 0x2;
        RTS = 0x4;
        ST = 0x8;
        SR = 0x10;
        CTS = 0x20;
        CAR = 0x40;
        RNG = 0x80;
        DSR = 0x100;
        OUT1 = 0x2000;
        OUT2 = 0x4000;
        LOOP = 0x8000;
    }

    /// The first byte that a master reads in packet mode; 0 is data.
    PacketFlags: u8, "TIOCPKT_" {
        FLUSHREAD = 1;
        FLUSHWRITE = 2;
        STOP = 4;
        START = 8;
        NOSTOP = 16;
        DOSTOP = 32;
        IOCTL = 64;
    }
}

names! {
    /// A speed: the `CBAUD` bits of `c_cflag`.
    Baud: u32, "B" {
        HANGUP = 0, "B0";
        B50 = 1, "B50";
        B75 = 2, "B75";
        B110 = 3, "B110";
        B134 = 4, "B134";
        B150 = 5, "B150";
        B200 = 6, "B200";
        B300 = 7, "B300";
        B600 = 8, "B600";
        B1200 = 9, "B1200";
        B1800 = 10, "B1800";
        B2400 = 11, "B2400";
        B4800 = 12, "B4800";
        B9600 = 13, "B9600";
        B19200 = 14, "B19200";
        B38400 = 15, "B38400";
        OTHER = 0x1000, "BOTHER";
        B57600 = 0x1001, "B57600";
        B115200 = 0x1002, "B115200";
        B230400 = 0x1003, "B230400";
        B460800 = 0x1004, "B460800";
        B500000 = 0x1005, "B500000";
        B576000 = 0x1006, "B576000";
        B921600 = 0x1007, "B921600";
        B1000000 = 0x1008, "B1000000";
        B1152000 = 0x1009, "B1152000";
        B1500000 = 0x100a, "B1500000";
        B2000000 = 0x100b, "B2000000";
        B2500000 = 0x100c, "B2500000";
        B3000000 = 0x100d, "B3000000";
        B3500000 = 0x100e, "B3500000";
        B4000000 = 0x100f, "B4000000";
    }

    /// Argument of `TCFLSH`.
    FlushQueue: i32, "TC" {
        IFLUSH = 0;
        OFLUSH = 1;
        IOFLUSH = 2;
    }

    /// Argument of `TCXONC`.
    FlowAction: i32, "TC" {
        OOFF = 0;
        OON = 1;
        IOFF = 2;
        ION = 3;
    }

    /// A line discipline (`TIOCSETD`).
    LineDiscipline: i32, "N_" {
        TTY = 0;
        SLIP = 1;
        MOUSE = 2;
        PPP = 3;
        HDLC = 13;
        NULL = 27;
    }
}

impl Baud {
    /// Bits per second, by the bits of `CBAUD`; `None` for `BOTHER` and unknown ones.
    pub const fn bits_per_second(self) -> Option<u32> {
        Some(match self {
            Baud::HANGUP => 0,
            Baud::B50 => 50,
            Baud::B75 => 75,
            Baud::B110 => 110,
            Baud::B134 => 134,
            Baud::B150 => 150,
            Baud::B200 => 200,
            Baud::B300 => 300,
            Baud::B600 => 600,
            Baud::B1200 => 1200,
            Baud::B1800 => 1800,
            Baud::B2400 => 2400,
            Baud::B4800 => 4800,
            Baud::B9600 => 9600,
            Baud::B19200 => 19_200,
            Baud::B38400 => 38_400,
            Baud::B57600 => 57_600,
            Baud::B115200 => 115_200,
            Baud::B230400 => 230_400,
            Baud::B460800 => 460_800,
            Baud::B500000 => 500_000,
            Baud::B576000 => 576_000,
            Baud::B921600 => 921_600,
            Baud::B1000000 => 1_000_000,
            Baud::B1152000 => 1_152_000,
            Baud::B1500000 => 1_500_000,
            Baud::B2000000 => 2_000_000,
            Baud::B2500000 => 2_500_000,
            Baud::B3000000 => 3_000_000,
            Baud::B3500000 => 3_500_000,
            Baud::B4000000 => 4_000_000,
            _ => return None,
        })
    }
}

impl ControlFlags {
    /// The bits of a character's size; 0 is five bits.
    pub const CSIZE: ControlFlags = ControlFlags::CS8;
    /// The bits of the output speed.
    pub const CBAUD: u32 = 0x100f;
    /// The bits of the input speed; 0 is the same as output.
    pub const CIBAUD: u32 = 0x100f_0000;
    /// Where they lie.
    pub const IBSHIFT: u32 = 16;

    /// The output speed.
    pub const fn baud(self) -> Baud {
        Baud(self.bits() & Self::CBAUD)
    }

    /// The input speed, as it is written there.
    pub const fn input_baud(self) -> Baud {
        Baud((self.bits() & Self::CIBAUD) >> Self::IBSHIFT)
    }

    /// The same with another output speed.
    pub const fn with_baud(self, baud: Baud) -> ControlFlags {
        ControlFlags::from_bits_retain((self.bits() & !Self::CBAUD) | (baud.0 & Self::CBAUD))
    }
}

impl OutputFlags {
    /// The bits of the delay of tabs (`TABDLY`).
    pub const TABDLY: OutputFlags = OutputFlags::TAB3;
    /// Tabs become spaces (`XTABS`).
    pub const XTABS: OutputFlags = OutputFlags::TAB3;
}

/// Indices into `c_cc`.
pub mod cc {
    /// `VINTR`: sends `SIGINT`.
    pub const VINTR: usize = 0;
    /// `VQUIT`: sends `SIGQUIT`.
    pub const VQUIT: usize = 1;
    /// `VERASE`: erases a character.
    pub const VERASE: usize = 2;
    /// `VKILL`: erases the line.
    pub const VKILL: usize = 3;
    /// `VEOF`: end of file.
    pub const VEOF: usize = 4;
    /// `VTIME`: timeout in 1/10 s, without `ICANON`.
    pub const VTIME: usize = 5;
    /// `VMIN`: least bytes of a read, without `ICANON`.
    pub const VMIN: usize = 6;
    /// `VSWTC`: unused.
    pub const VSWTC: usize = 7;
    /// `VSTART`: starts output.
    pub const VSTART: usize = 8;
    /// `VSTOP`: stops output.
    pub const VSTOP: usize = 9;
    /// `VSUSP`: sends `SIGTSTP`.
    pub const VSUSP: usize = 10;
    /// `VEOL`: ends a line too.
    pub const VEOL: usize = 11;
    /// `VREPRINT`: prints the line again.
    pub const VREPRINT: usize = 12;
    /// `VDISCARD`: toggles discarding output.
    pub const VDISCARD: usize = 13;
    /// `VWERASE`: erases a word.
    pub const VWERASE: usize = 14;
    /// `VLNEXT`: takes the next character as it is.
    pub const VLNEXT: usize = 15;
    /// `VEOL2`: ends a line too.
    pub const VEOL2: usize = 16;
}

impl Termios2 {
    /// What Linux starts a terminal with (`tty_std_termios`).
    pub const STANDARD: Termios2 = Termios2 {
        iflag: InputFlags::ICRNL.union(InputFlags::IXON),
        oflag: OutputFlags::OPOST.union(OutputFlags::ONLCR),
        cflag: ControlFlags::from_bits_retain(0xf)
            .union(ControlFlags::CS8)
            .union(ControlFlags::CREAD)
            .union(ControlFlags::HUPCL),
        lflag: LocalFlags::ISIG
            .union(LocalFlags::ICANON)
            .union(LocalFlags::ECHO)
            .union(LocalFlags::ECHOE)
            .union(LocalFlags::ECHOK)
            .union(LocalFlags::ECHOCTL)
            .union(LocalFlags::ECHOKE)
            .union(LocalFlags::IEXTEN),
        line: 0,
        cc: [3, 28, 127, 21, 4, 0, 1, 0, 17, 19, 26, 0, 18, 15, 23, 22, 0, 0, 0],
        ispeed: 38_400,
        ospeed: 38_400,
    };

    /// Its first 36 bytes.
    pub const fn to_termios(&self) -> Termios {
        let Termios2 { iflag, oflag, cflag, lflag, line, cc, .. } = *self;
        Termios { iflag, oflag, cflag, lflag, line, cc }
    }
}
