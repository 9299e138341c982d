//! Settings, and the mapping of characters on their way in and out.

use super::*;

#[test]
fn a_new_pty_has_the_standard_settings() {
    same(&[Op::Settings, Op::Poll, Op::Counts]);
}

#[test]
fn control_modes_are_fixed_by_the_driver() {
    same(&[
        set(|t| t.cflag = ControlFlags::from_bits_retain(0xf) | ControlFlags::CS7 | ControlFlags::PARENB),
        Op::Settings,
        set(|t| t.cflag |= ControlFlags::CSTOPB | ControlFlags::CRTSCTS | ControlFlags::CLOCAL),
        Op::Settings,
        set(|t| t.iflag = I::all()),
        set(|t| t.lflag = L::all() - L::EXTPROC),
        Op::Settings,
    ]);
}

#[test]
fn carriage_returns_and_newlines_map() {
    for flags in [I::empty(), I::ICRNL, I::INLCR, I::IGNCR, I::ICRNL | I::INLCR, I::IGNCR | I::INLCR] {
        for lflag in [L::ICANON | L::ECHO | L::ECHOCTL, L::ECHO | L::ECHOCTL, L::ECHO, L::empty()] {
            typing(|t| (t.iflag, t.lflag) = (flags, lflag), &[b"a\rb\nc\r\nd\n\re\n"]);
        }
    }
}

#[test]
fn characters_are_stripped_and_lowered() {
    let texts: [&[u8]; 2] = [b"AbC\xc4\xe4\xd7\xdf\n", b"\xe1\xff\x83\n"];
    typing(|t| t.iflag.insert(I::ISTRIP), &texts);
    typing(|t| t.iflag.insert(I::IUCLC), &texts);
    typing(|t| (t.iflag.insert(I::IUCLC), t.lflag.remove(L::IEXTEN)).0, &texts);
    typing(|t| (raw(t), t.iflag.insert(I::ISTRIP)).0, &texts);
}

#[test]
fn parmrk_doubles_ff() {
    typing(|t| t.iflag.insert(I::PARMRK), &[b"a\xff\xfeb\x16\xff\n", b"\xff\x7f\n"]);
    typing(|t| (t.iflag.insert(I::PARMRK | I::ISTRIP), ()).1, &[b"a\xffb\n"]);
    typing(|t| (raw(t), t.iflag.insert(I::PARMRK)).0, &[b"a\xffb"]);
}

#[test]
fn output_is_processed() {
    let texts: [&[u8]; 3] =
        [b"a\nb\r\nc\rd\n\r\r\n", b"\tx\t12345678\t\x08\x08\ty\n", b"\x1b[0mAb\xc3\xa9\xe4\x7f\x01\t.\n"];
    let flags = [
        O::empty(),
        O::OPOST,
        O::OPOST | O::ONLCR,
        O::OPOST | O::OCRNL,
        O::OPOST | O::OCRNL | O::ONLRET,
        O::OPOST | O::ONOCR,
        O::OPOST | O::ONLRET | O::ONOCR,
        O::OPOST | O::ONLCR | O::OCRNL | O::ONOCR,
        O::OPOST | O::XTABS,
        O::OPOST | O::XTABS | O::ONLCR,
        O::OPOST | O::TAB1,
        O::OPOST | O::OLCUC | O::XTABS,
        O::OPOST | O::OFILL | O::NL1 | O::CR3 | O::BS1 | O::VT1 | O::FF1,
    ];
    for flags in flags {
        printing(|t| t.oflag = flags, &texts);
        printing(|t| (t.oflag = flags, t.iflag.insert(I::IUTF8)).0, &texts);
    }
}
