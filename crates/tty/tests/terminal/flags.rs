//! Each flag on and off: what is typed, what is read, what is shown.

use crate::Terminal;
use abi::{InputFlags as I, LocalFlags as L, OutputFlags as O, Termios2, cc};

/// Types the text with these settings and compares what is read, each read in brackets, and what is shown.
#[track_caller]
fn typing(change: impl FnOnce(&mut Termios2), text: &[u8], read: &str, shown: &str) {
    let mut terminal = Terminal::with(change);
    terminal.types(text);
    assert_eq!((terminal.lines().as_str(), terminal.screen().as_str()), (read, shown));
}

/// Prints the text with these output flags and compares what is shown.
#[track_caller]
fn printing(flags: O, text: &[u8], shown: &str) {
    let mut terminal = Terminal::with(|t| t.oflag = flags);
    terminal.prints(text);
    assert_eq!(terminal.screen(), shown);
}

fn without(flags: L) -> impl FnOnce(&mut Termios2) {
    move |t| t.lflag.remove(flags)
}

fn and(flags: L) -> impl FnOnce(&mut Termios2) {
    move |t| t.lflag.insert(flags)
}

fn input(flags: I) -> impl FnOnce(&mut Termios2) {
    move |t| t.iflag = flags
}

#[test]
fn icanon() {
    typing(|_| (), b"ab\x7fc\ndef", r"[ac\n]", r"ab\x08 \x08c\r\ndef");
    typing(without(L::ICANON), b"ab\x7fc\n", r"[ab\x7fc\n]", r"ab^?c^J");
}

#[test]
fn echo_and_echonl() {
    typing(without(L::ECHO), b"ab\n", r"[ab\n]", "");
    typing(|t| t.lflag = L::ICANON | L::ECHONL, b"ab\n", r"[ab\n]", r"\r\n");
}

#[test]
fn echoctl() {
    typing(|_| (), b"\x01\x7f\n", r"[\n]", r"^A\x08 \x08\x08 \x08\r\n");
    typing(|_| (), b"\x01\t\x7f\n", r"[\x01\n]", r"^A\t\x08\x08\x08\x08\x08\x08\r\n");
    typing(without(L::ECHOCTL), b"\x01\x7f\n", r"[\n]", r"\x01\r\n");
}

#[test]
fn echoe() {
    typing(without(L::ECHOE), b"ab\x7fc\n", r"[ac\n]", r"ab^?c\r\n");
}

#[test]
fn echoprt() {
    typing(and(L::ECHOPRT), b"abc\x7f\x7fx\n", r"[ax\n]", r"abc\\cb/x\r\n");
}

#[test]
fn echok_and_echoke() {
    typing(|_| (), b"ab\x15c\n", r"[c\n]", r"ab\x08 \x08\x08 \x08c\r\n");
    typing(without(L::ECHOKE), b"ab\x15c\n", r"[c\n]", r"ab^U\r\nc\r\n");
    typing(without(L::ECHOKE | L::ECHOK), b"ab\x15c\n", r"[c\n]", r"ab^Uc\r\n");
}

#[test]
fn iexten() {
    typing(|_| (), b"a b\x17c\x16\x7f\x12\n", r"[a c\x7f\n]", r"a b\x08 \x08c^\x08^?^R\r\na c^?\r\n");
    typing(without(L::IEXTEN), b"b\x17\x16\x12\n", r"[b\x17\x16\x12\n]", r"b^W^V^R\r\n");
}

#[test]
fn isig_and_noflsh() {
    typing(|_| (), b"ab\x03c\n", r"[c\n]", r"^Cc\r\n");
    typing(and(L::NOFLSH), b"ab\x03c\n", r"[abc\n]", r"ab^Cc\r\n");
    typing(without(L::ISIG), b"ab\x03c\n", r"[ab\x03c\n]", r"ab^Cc\r\n");
}

#[test]
fn extproc() {
    typing(and(L::EXTPROC), b"a\x7f\x03\n", r"[a\x7f\x03\n]", "");
}

#[test]
fn icrnl_inlcr_and_igncr() {
    typing(input(I::ICRNL), b"a\rb\n", r"[a\n][b\n]", r"a\r\nb\r\n");
    typing(input(I::empty()), b"a\rb\n", r"[a\rb\n]", r"a^Mb\r\n");
    typing(input(I::INLCR), b"a\nb", "", r"a^Mb");
    typing(input(I::IGNCR), b"a\rb\n", r"[ab\n]", r"ab\r\n");
    typing(input(I::IGNCR | I::ICRNL), b"a\rb\n", r"[ab\n]", r"ab\r\n");
}

#[test]
fn istrip_and_iuclc() {
    typing(input(I::ISTRIP), b"\xe1\n", r"[a\n]", r"a\r\n");
    typing(input(I::IUCLC), b"A\xc9\n", r"[a\xe9\n]", r"a\xe9\r\n");
    typing(|t| (t.iflag, t.lflag) = (I::IUCLC, L::ICANON), b"A\n", r"[A\n]", "");
}

#[test]
fn iutf8() {
    let text = "é\x7fx\n".as_bytes();
    typing(input(I::IUTF8), text, r"[x\n]", r"\xc3\xa9\x08 \x08x\r\n");
    typing(input(I::empty()), text, r"[\xc3x\n]", r"\xc3\xa9\x08 \x08x\r\n");
}

#[test]
fn parmrk() {
    typing(input(I::PARMRK), b"a\xffb\n", r"[a\xff\xffb\n]", r"a\xffb\r\n");
    typing(input(I::empty()), b"a\xffb\n", r"[a\xffb\n]", r"a\xffb\r\n");
}

#[test]
fn imaxbel_rings_no_bell() {
    let mut terminal = Terminal::with(|t| (t.iflag, t.lflag) = (I::IMAXBEL, L::ICANON));
    terminal.types(&[b'x'; 5000]);
    terminal.types(b"y\n");
    let line = terminal.reads(5000).expect("the line has come");
    assert_eq!((line.len(), line[4094], line[4095]), (4096, b'x', b'\n'));
    assert_eq!(terminal.screen(), "");
}

#[test]
fn ixon_and_ixany() {
    let held = |flags: I, text: &[u8]| {
        let mut terminal = Terminal::with(input(flags));
        terminal.types(b"\x13");
        let mut fx = tty::Effects::default();
        terminal.types(text);
        let n = terminal.pair.write_slave(b"out", &mut fx).expect("the master is open");
        (n, terminal.screen())
    };
    assert_eq!(held(I::IXON, b""), (0, String::new()));
    assert_eq!(held(I::IXON, b"a"), (0, String::new()));
    assert_eq!(held(I::IXON, b"a\x11"), (3, String::from("aout")));
    assert_eq!(held(I::IXON | I::IXANY, b"a"), (3, String::from("aout")));
    assert_eq!(held(I::IXANY, b""), (3, String::from("^Sout")));
}

#[test]
fn ixoff_means_nothing_to_a_pty() {
    let mut terminal = Terminal::with(|t| (t.iflag, t.lflag) = (I::IXOFF, L::empty()));
    terminal.types(&[b'x'; 9000]);
    assert_eq!(terminal.screen(), "");
}

#[test]
fn special_characters_can_be_changed_and_switched_off() {
    typing(|t| t.cc[cc::VERASE] = b'#', b"ab#\x7fc\n", r"[a\x7fc\n]", r"ab\x08 \x08^?c\r\n");
    typing(|t| t.cc[cc::VERASE] = 0, b"a\0\x7f\n", r"[a\x00\x7f\n]", r"a^@^?\r\n");
    typing(|t| (t.cc[cc::VEOL], t.cc[cc::VEOL2]) = (b';', b':'), b"a;b:c\n", r"[a;][b:][c\n]", r"a;b:c\r\n");
    typing(|t| t.cc[cc::VEOF] = b'.', b"a.\x04.", r"[a][\x04]", r"a^D");
}

#[test]
fn output_flags() {
    printing(O::empty(), b"a\tb\n", r"a\tb\n");
    printing(O::ONLCR, b"a\n", r"a\n");
    printing(O::OPOST, b"a\n", r"a\n");
    printing(O::OPOST | O::ONLCR, b"a\n", r"a\r\n");
    printing(O::OPOST | O::OCRNL, b"a\r", r"a\n");
    printing(O::OPOST | O::ONOCR, b"\ra\r\r", r"a\r");
    printing(O::OPOST | O::ONOCR | O::ONLRET, b"a\n\r", r"a\n");
    printing(O::OPOST | O::ONOCR, b"a\n\r", r"a\n\r");
    printing(O::OPOST | O::XTABS, b"ab\t\x08\tc", r"ab      \x08 c");
    printing(O::OPOST | O::TAB1, b"\t", r"\t");
    printing(O::OPOST | O::OLCUC, b"a\xe9\xf7", r"A\xc9\xf7");
    printing(
        O::OPOST | O::OFILL | O::NL1 | O::CR3 | O::BS1 | O::VT1 | O::FF1,
        b"a\n\r\x08\x0b\x0c",
        r"a\n\r\x08\x0b\x0c",
    );
}

#[test]
fn much_echo_is_shown_whole_and_bounded() {
    let mut terminal = Terminal::with(|t| t.oflag = O::empty());
    terminal.types(&[b'x'; 2000]);
    terminal.types(b"\x15");
    assert_eq!(terminal.screen(), "x".repeat(2000) + &r"\x08 \x08".repeat(2000));
    // Reprinted again and again: as much as the device has room for.
    terminal.types(&[b'x'; 2000]);
    terminal.types(&[0x12; 2000]);
    let shown = terminal.screen().len();
    assert!((18_000..40_000).contains(&shown), "{shown}");
}
