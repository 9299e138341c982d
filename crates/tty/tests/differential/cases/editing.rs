//! Echo and the editing of lines.

use super::*;

#[test]
fn lines_and_echo() {
    typing(|_| (), &[b"hello\n", b"one\ntwo\nthr", b"ee\r"]);
    typing(|t| t.lflag.remove(L::ECHO), &[b"hello\n", b"x\x7fy\x15z\n"]);
    typing(|t| t.lflag.remove(L::ECHOCTL), &[b"a\x01b\x1b\x7f\x7f\tc\n"]);
    typing(|_| (), &[b"a\x01b\x1b[A\tc\x80\xff\n"]);
}

#[test]
fn echonl_echoes_newlines_only() {
    typing(|t| (t.lflag.remove(L::ECHO), t.lflag.insert(L::ECHONL)).0, &[b"secret\n", b"more", b"\r"]);
}

#[test]
fn erase_takes_one_character() {
    for flags in [L::empty(), L::ECHOE, L::ECHOPRT, L::ECHOE | L::ECHOPRT] {
        typing(
            |t| (t.lflag.remove(L::ECHOE), t.lflag.insert(flags)).0,
            &[b"abc\x7f\x7fd\x7f\x7f\x7f\x7fx\n", b"\x01\x02\x7f\x7f\x7f", b"a\tb\x7f\x7f\x7fz\n"],
        );
    }
}

#[test]
fn erase_goes_back_over_tabs() {
    let tabs: [&[u8]; 6] = [
        b"\t\x7f\n",
        b"a\tb\t\x7f\x7f\x7f\n",
        b"1234567\t\x7f\n",
        b"12345678\t\x7f\n",
        b"\x01\t\x7f\n",
        b"\t\t\t\x15\n",
    ];
    typing(|_| (), &tabs);
    typing(|t| t.lflag.remove(L::ECHOCTL), &tabs);
    typing(|t| t.oflag.insert(O::XTABS), &tabs);
    typing(|t| t.oflag.remove(O::OPOST), &tabs);
    let prompt = |text: &[u8]| {
        vec![printed(text), typed("x\ty\t"), typed("\x7f\x7f\x7f\x7f"), typed("\t\x15"), Op::Screen]
    };
    for text in [&b"prompt> "[..], b"$ ", b"\t$ ", b"line\nab", b"back\x08\x08", b"\xc3\xa9 ", b"\x1b[1mx"] {
        same(&prompt(text));
        let mut script = vec![set(|t| t.iflag.insert(I::IUTF8))];
        script.extend(prompt(text));
        same(&script);
    }
}

#[test]
fn erase_takes_whole_utf8_characters() {
    let texts: [&[u8]; 4] = [
        "aéx€\u{1F600}\x7f\x7f\x7f\x7fz\n".as_bytes(),
        "é\t€\t\x7f\x7f\x7f\n".as_bytes(),
        b"\x80\x80\x7f\n",
        "wörd nöch\x17\x17\n".as_bytes(),
    ];
    typing(|t| t.iflag.insert(I::IUTF8), &texts);
    typing(|_| (), &texts);
    typing(|t| (t.iflag.insert(I::IUTF8), t.lflag.insert(L::ECHOPRT)).0, &texts);
}

#[test]
fn werase_takes_a_word() {
    let texts: [&[u8]; 4] =
        [b"one two_3  \x17x\n", b"a/b.c\x17\x17y\n", b"   \x17z\n", b"\xe9t\xe9 \xd7\x17q\n"];
    typing(|_| (), &texts);
    typing(|t| t.lflag.remove(L::ECHOE), &texts);
    typing(|t| t.lflag.insert(L::ECHOPRT), &texts);
    typing(|t| t.lflag.remove(L::IEXTEN), &texts);
}

#[test]
fn kill_takes_the_line() {
    for flags in
        [L::empty(), L::ECHOK, L::ECHOKE, L::ECHOE, L::ECHOK | L::ECHOKE, L::ECHOK | L::ECHOKE | L::ECHOE]
    {
        let change =
            |t: &mut Termios2| (t.lflag.remove(L::ECHOK | L::ECHOKE | L::ECHOE), t.lflag.insert(flags)).0;
        typing(change, &[b"abc\tdef\x01\x15", b"x\x15y\n", b"\x15"]);
        typing(|t| (change(t), t.lflag.insert(L::ECHOPRT)).0, &[b"abc\x7f\x15", b"x\x15y\n"]);
    }
}

#[test]
fn kill_may_be_the_same_character_as_werase() {
    typing(|t| (t.cc[cc::VKILL] = 23, t.lflag.remove(L::IEXTEN)).0, &[b"one two\x17x\n"]);
    typing(|t| t.cc[cc::VKILL] = 23, &[b"one two\x17x\n"]);
    typing(|t| t.cc[cc::VKILL] = 0x7f, &[b"one two\x7fx\n"]);
}

#[test]
fn reprint_shows_the_line_again() {
    typing(|_| (), &[b"done\npart\x01\x12", b"\x12x\n"]);
    typing(|t| t.lflag.insert(L::ECHOPRT), &[b"part\x7f\x7f\x12x\n"]);
    typing(|t| t.lflag.remove(L::ECHO), &[b"part\x12x\n"]);
}

#[test]
fn lnext_quotes_one_character() {
    let texts: [&[u8]; 4] = [b"\x16\x03\x16\x7f\x16\x04\n", b"a\x16", b"\nb\n", b"\x16\x16\x16\r\n"];
    typing(|_| (), &texts);
    typing(|t| t.lflag.remove(L::ECHOCTL), &texts);
    typing(|t| t.lflag.remove(L::IEXTEN), &texts);
    typing(|t| t.lflag.insert(L::ECHOPRT), &[b"abc\x7f\x16\x7f\n"]);
    typing(|t| t.iflag.insert(I::ISTRIP | I::IUCLC), &[b"\x16\xc1\x16A\n"]);
}

#[test]
fn eof_ends_a_read() {
    typing(|_| (), &[b"\x04"]);
    typing(|_| (), &[b"abc\x04", b"\x04\x04def\n\x04"]);
    let reads = |text: &[u8], sizes: &[usize]| {
        let mut script = vec![typed(text)];
        sizes.iter().for_each(|&n| script.extend([Op::Read(n), Op::Counts, Op::Poll]));
        same(&script);
    };
    reads(b"abc\x04d\n", &[2, 2, 2, 9]);
    reads(b"abc\x04d\n", &[3, 9]);
    reads(b"abc\x04", &[3, 9]);
    reads(b"abc\x04\x04\n", &[3, 9, 9]);
    reads(b"abcdef\nxy\n", &[3, 3, 3, 1, 1, 1]);
    let mut long = vec![b'x'; 64];
    long.push(4);
    reads(&long, &[64, 9]);
    reads(&long, &[100, 9]);
    long.insert(0, b'y');
    reads(&long, &[64, 9, 9]);
    reads(&long, &[65, 9, 9]);
}

#[test]
fn eol_characters_end_a_line() {
    let change = |t: &mut Termios2| (t.cc[cc::VEOL], t.cc[cc::VEOL2]) = (b'!', b'?');
    typing(change, &[b"one!two?three\n"]);
    typing(|t| (change(t), t.lflag.remove(L::IEXTEN)).0, &[b"one!two?three\n"]);
    typing(|t| (t.cc[cc::VEOL] = 0xff, t.iflag.insert(I::PARMRK)).0, &[b"one\xfftwo\n"]);
}
