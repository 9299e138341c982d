//! The argument of `ioctl`.

use abi::{FlowAction, FlushQueue, Ioctl, Termios, Termios2, UserAddr, Winsize};

use super::{Phase, Printer};

/// What a request's argument is.
enum Kind {
    /// None is shown.
    Nothing,
    Number,
    /// Read by the call.
    In(fn(&mut Printer<'_>, UserAddr)),
    /// Written by the call.
    Out(fn(&mut Printer<'_>, UserAddr)),
    Unknown,
}

fn kind(request: Ioctl) -> Kind {
    match request {
        Ioctl::TCGETS => Kind::Out(|printer, at| printer.structure::<Termios>(at)),
        Ioctl::TCSETS | Ioctl::TCSETSW | Ioctl::TCSETSF => {
            Kind::In(|printer, at| printer.structure::<Termios>(at))
        }
        Ioctl::TCGETS2 => Kind::Out(|printer, at| printer.structure::<Termios2>(at)),
        Ioctl::TCSETS2 | Ioctl::TCSETSW2 | Ioctl::TCSETSF2 => {
            Kind::In(|printer, at| printer.structure::<Termios2>(at))
        }
        Ioctl::TIOCGWINSZ => Kind::Out(|printer, at| printer.structure::<Winsize>(at)),
        Ioctl::TIOCSWINSZ => Kind::In(|printer, at| printer.structure::<Winsize>(at)),
        Ioctl::TIOCGPGRP
        | Ioctl::TIOCGSID
        | Ioctl::FIONREAD
        | Ioctl::TIOCOUTQ
        | Ioctl::TIOCGPTN
        | Ioctl::TIOCGETD
        | Ioctl::TIOCGPTLCK
        | Ioctl::FIGETBSZ => Kind::Out(|printer, at| printer.structure::<i32>(at)),
        Ioctl::TIOCSPGRP
        | Ioctl::TIOCSPTLCK
        | Ioctl::TIOCPKT
        | Ioctl::FIONBIO
        | Ioctl::FIOASYNC
        | Ioctl::TIOCSETD => Kind::In(|printer, at| printer.structure::<i32>(at)),
        Ioctl::TIOCSTI => Kind::In(|printer, at| printer.bytes(at, 1)),
        Ioctl::TIOCEXCL | Ioctl::TIOCNXCL | Ioctl::TIOCNOTTY | Ioctl::FIOCLEX | Ioctl::FIONCLEX => {
            Kind::Nothing
        }
        Ioctl::TIOCSCTTY | Ioctl::TCSBRK | Ioctl::TIOCGPTPEER | Ioctl::FICLONE => Kind::Number,
        _ => Kind::Unknown,
    }
}

/// `argument` behind the request.
pub(crate) fn argument(printer: &mut Printer<'_>, argument: u64) {
    let request = Ioctl(u32::try_from(printer.register_before(1) & 0xffff_ffff).unwrap_or(0));
    let word = u32::try_from(argument & 0xffff_ffff).unwrap_or(0).cast_signed();
    match (request, kind(request)) {
        (Ioctl::TCFLSH, _) => printer.text(format_args!("{}", FlushQueue(word))),
        (Ioctl::TCXONC, _) => printer.text(format_args!("{}", FlowAction(word))),
        (_, Kind::Nothing) => {}
        (_, Kind::Number) => printer.text(format_args!("{word}")),
        (_, Kind::In(show)) => show(printer, UserAddr(argument)),
        (_, Kind::Out(show)) => match printer.phase {
            Phase::Before => printer.deferred = true,
            Phase::After(Ok(_)) => show(printer, UserAddr(argument)),
            Phase::After(Err(_)) => printer.address(UserAddr(argument)),
        },
        (_, Kind::Unknown) => printer.text(format_args!("{argument:#x}")),
    }
}
