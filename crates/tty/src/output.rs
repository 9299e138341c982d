//! Output: what programs write and what is echoed, after `OPOST`, until the device takes it. Keeps the
//! cursor's column, which erasing and tabs go by.

use crate::ctype;
use crate::settings::Settings;
use alloc::collections::VecDeque;
use alloc::vec::Vec;

/// What waits at a pty's master in its own line discipline: not to be taken back by a flush, bytes.
pub(crate) const MASTER_QUEUE: usize = 4095;

/// What a pty's master may have waiting before writers of the slave have to wait, bytes: its line
/// discipline's queue and, behind that, its flip buffers (8 KiB accounted as two bytes to one).
pub(crate) const LIMIT: usize = MASTER_QUEUE + 16384;

#[derive(Debug, Default)]
pub(crate) struct Output {
    bytes: VecDeque<u8>,
    /// How many bytes ever left at the front: the position of the first one.
    first: u64,
    /// Position up to which the master's own queue has taken the bytes over; what an operation puts is taken
    /// over after it.
    taken_over: u64,
    /// Cursor column, as far as the discipline can know it.
    pub(crate) column: u32,
    /// Where the line in progress began: a program may have written a prompt before it.
    pub(crate) line_column: u32,
    /// Stopped by a STOP character or `TCOOFF`.
    pub(crate) stopped: bool,
}

impl Output {
    /// How many bytes it takes now.
    pub(crate) fn room(&self) -> usize {
        if self.stopped { 0 } else { LIMIT.saturating_sub(self.bytes.len()) }
    }

    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Position of the first byte, for `consume_to`.
    pub(crate) fn position(&self) -> u64 {
        self.first
    }

    /// A copy of the first `n` bytes.
    pub(crate) fn copy(&self, n: usize) -> Vec<u8> {
        self.bytes.iter().take(n).copied().collect()
    }

    /// Consumes all bytes before a position; what left in the meantime is not consumed twice.
    pub(crate) fn consume_to(&mut self, position: u64) {
        let n =
            usize::try_from(position.saturating_sub(self.first)).unwrap_or(usize::MAX).min(self.bytes.len());
        self.bytes.drain(..n);
        self.first = self.first.wrapping_add(n as u64);
    }

    /// The master's queue takes over what there is, as far as it has room: an operation begins.
    pub(crate) fn hand_over(&mut self) {
        self.taken_over = self.first.wrapping_add(self.bytes.len().min(MASTER_QUEUE) as u64);
    }

    /// Forgets all that the master's queue has not taken over.
    pub(crate) fn flush(&mut self) {
        let kept = self.taken_over.saturating_sub(self.first);
        self.bytes.truncate(usize::try_from(kept).unwrap_or(usize::MAX));
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        self.consume_to(u64::MAX);
    }

    /// One byte as it is; nothing happens without room.
    pub(crate) fn put(&mut self, c: u8) {
        if self.room() > 0 {
            self.bytes.push_back(c);
        }
    }

    /// As many bytes as there is room for, as they are. Returns how many.
    pub(crate) fn put_raw(&mut self, bytes: &[u8]) -> usize {
        let n = bytes.len().min(self.room());
        self.bytes.extend(bytes.iter().take(n));
        n
    }

    /// Bytes through `OPOST`, until there is no room for what one of them becomes. Returns how many of
    /// them were taken.
    pub(crate) fn put_processed(&mut self, bytes: &[u8], settings: &Settings) -> usize {
        let mut taken: usize = 0;
        for &c in bytes {
            if !self.put_one_processed(c, settings) {
                break;
            }
            taken = taken.saturating_add(1);
        }
        taken
    }

    /// One byte through `OPOST` (`do_output_char`). False: no room, nothing was put.
    pub(crate) fn put_one_processed(&mut self, c: u8, settings: &Settings) -> bool {
        let room = self.room();
        if room == 0 {
            return false;
        }
        match c {
            b'\n' => {
                if settings.onlret() {
                    self.column = 0;
                }
                if settings.onlcr() {
                    if room < 2 {
                        return false;
                    }
                    self.column = 0;
                    self.put(b'\r');
                }
                self.line_column = self.column;
                self.put(b'\n');
            }
            b'\r' => {
                if settings.onocr() && self.column == 0 {
                    return true;
                }
                let becomes_newline = settings.ocrnl();
                if !becomes_newline || settings.onlret() {
                    self.column = 0;
                    self.line_column = 0;
                }
                self.put(if becomes_newline { b'\n' } else { b'\r' });
            }
            b'\t' => {
                let spaces = 8 - (self.column & 7);
                if settings.expands_tabs() {
                    if room < spaces as usize {
                        return false;
                    }
                    (0..spaces).for_each(|_| self.put(b' '));
                } else {
                    self.put(b'\t');
                }
                self.column = self.column.wrapping_add(spaces);
            }
            b'\x08' => {
                self.move_back();
                self.put(c);
            }
            _ if ctype::is_control(c) => self.put(c),
            _ => {
                let c = if settings.olcuc() { ctype::to_upper(c) } else { c };
                if !settings.is_continuation(c) {
                    self.column = self.column.wrapping_add(1);
                }
                self.put(c);
            }
        }
        true
    }

    /// The cursor went one column back.
    pub(crate) fn move_back(&mut self) {
        self.column = self.column.saturating_sub(1);
    }
}
