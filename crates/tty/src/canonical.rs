//! Canonical mode: what the editing and line-ending characters do to the line in progress.

use crate::ctype;
use crate::echo::Echo;
use crate::settings::Cc;
use crate::{Effects, LineDiscipline};

/// How much an editing character takes back.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Erase {
    Char,
    Word,
    Line,
}

impl LineDiscipline {
    /// Handles a character that canonical mode knows; false if it is input like any other.
    pub(crate) fn receive_canonical(&mut self, c: u8, fx: &mut Effects) -> bool {
        let is = |cc| self.settings.is(c, cc);
        let extended = self.settings.iexten();
        if is(Cc::Erase) {
            self.erase(Erase::Char);
            self.commit_echo(fx);
        } else if is(Cc::WordErase) && (extended || is(Cc::Kill)) {
            self.erase(Erase::Word);
            self.commit_echo(fx);
        } else if is(Cc::Kill) {
            self.kill();
            self.commit_echo(fx);
        } else if extended && is(Cc::LiteralNext) {
            self.next_is_literal(fx);
        } else if extended && self.settings.echo() && is(Cc::Reprint) {
            self.reprint(c);
            self.commit_echo(fx);
        } else if c == b'\n' {
            if self.settings.echo() || self.settings.echonl() {
                self.echo_raw(b'\n');
                self.commit_echo(fx);
            }
            self.input.end_line(c);
            fx.wake_readers = true;
        } else if is(Cc::Eof) {
            self.input.end_file();
            fx.wake_readers = true;
        } else if is(Cc::Eol) || (extended && is(Cc::Eol2)) {
            if self.settings.echo() {
                self.echo_line_char(c);
                self.commit_echo(fx);
            }
            if self.settings.doubles(c) {
                self.input.push(c);
            }
            self.input.end_line(c);
            fx.wake_readers = true;
        } else {
            return false;
        }
        true
    }

    fn next_is_literal(&mut self, fx: &mut Effects) {
        self.literal_next = true;
        if self.settings.echo() {
            self.finish_erasing();
            if self.settings.echoctl() {
                self.echo_raw(b'^');
                self.echo_raw(b'\x08');
                self.commit_echo(fx);
            }
        }
    }

    fn reprint(&mut self, c: u8) {
        self.finish_erasing();
        self.echo_char(c);
        self.echo_raw(b'\n');
        let line: alloc::vec::Vec<u8> = self.input.line().collect();
        line.into_iter().for_each(|c| self.echo_char(c));
    }

    /// The KILL character: away with the line, shown by erasing it if `ECHOE`, `ECHOK` and `ECHOKE` are all
    /// set, else by the character itself.
    fn kill(&mut self) {
        if self.input.line_is_empty() {
            return;
        }
        if !self.settings.echo() {
            self.input.drop_line();
            return;
        }
        if self.settings.echoe() && self.settings.echok() && self.settings.echoke() {
            return self.erase(Erase::Line);
        }
        self.input.drop_line();
        self.finish_erasing();
        self.echo_char(self.settings.cc(Cc::Kill));
        if self.settings.echok() {
            self.echo_raw(b'\n');
        }
    }

    /// Takes characters back from the end of the line and shows it (`eraser`).
    fn erase(&mut self, what: Erase) {
        if self.input.line_is_empty() {
            return;
        }
        let mut seen_word = false;
        while let Some((c, len)) = self.last_character() {
            if what == Erase::Word {
                // A word is letters, digits and underscores, with whatever follows it (BSD's ALTWERASE).
                let in_word = ctype::is_alphanumeric(c) || c == b'_';
                if !in_word && seen_word {
                    break;
                }
                seen_word |= in_word;
            }
            let mut bytes = alloc::vec::Vec::with_capacity(len);
            (0..len).for_each(|_| bytes.extend(self.input.pop()));
            if self.settings.echo() {
                self.show_erased(c, &bytes, what);
            }
            if what == Erase::Char {
                break;
            }
        }
        if self.settings.echo() && self.input.line_is_empty() {
            self.finish_erasing();
        }
    }

    /// The first byte and the length of the line's last character, which is several bytes only with
    /// `IUTF8`. None: nothing is left, or only bytes that continue a character which is not there.
    fn last_character(&self) -> Option<(u8, usize)> {
        let mut len: usize = 0;
        for c in self.input.line_backwards() {
            len = len.saturating_add(1);
            if !self.settings.is_continuation(c) {
                return Some((c, len));
            }
        }
        None
    }

    /// Echoes that a character was erased. `c` is its first byte, `reversed` all of it, last byte first.
    fn show_erased(&mut self, c: u8, reversed: &[u8], what: Erase) {
        let settings = &self.settings;
        if settings.echoprt() {
            if !self.erasing {
                self.echo_raw(b'\\');
                self.erasing = true;
            }
            self.echo_char(c);
            for &next in reversed.iter().rev().skip(1) {
                self.echo_raw(next);
                self.echo_move(Echo::MoveBack);
            }
        } else if what == Erase::Char && !settings.echoe() {
            self.echo_char(self.settings.cc(Cc::Erase));
        } else if c == b'\t' {
            let item = self.tab_erasure();
            self.echo_move(item);
        } else {
            let columns = match (ctype::is_control(c), settings.echoctl()) {
                (true, true) => 2,
                (true, false) => 0,
                (false, _) => 1,
            };
            for _ in 0..columns {
                b"\x08 \x08".iter().for_each(|&c| self.echo_raw(c));
            }
        }
    }

    /// How to go back over a tab that stood at the line's end: depends on the columns used since the tab
    /// before it, or since the line's start.
    fn tab_erasure(&self) -> Echo {
        let mut columns: u32 = 0;
        for c in self.input.line_backwards() {
            if c == b'\t' {
                return Echo::EraseTab { columns: columns & 7, after_tab: true };
            }
            if ctype::is_control(c) {
                if self.settings.echoctl() {
                    columns = columns.wrapping_add(2);
                }
            } else if !self.settings.is_continuation(c) {
                columns = columns.wrapping_add(1);
            }
        }
        Echo::EraseTab { columns: columns & 7, after_tab: false }
    }
}
