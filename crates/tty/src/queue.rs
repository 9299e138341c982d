//! The queue of received characters that are waiting to be read: complete lines first, then the line that
//! is still being edited. Without line mode all of it is just bytes.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

/// What Linux holds for a reader (`N_TTY_BUF_SIZE`), bytes. One is kept free for a line's end.
pub(crate) const SIZE: usize = 4096;

/// What the end of a file is in the queue: this byte, ending a line (`__DISABLED_CHAR`). Once the queue is
/// read without line mode it is an ordinary NUL.
const END_OF_FILE: u8 = 0;

/// A complete line.
#[derive(Clone, Copy, Debug)]
struct Line {
    /// Bytes of it still in the queue, its delimiter included.
    len: usize,
    /// Ended by the EOF character, whose byte no reader gets.
    is_eof: bool,
}

#[derive(Debug, Default)]
pub(crate) struct InputQueue {
    bytes: VecDeque<u8>,
    lines: VecDeque<Line>,
    /// How many bytes belong to `lines`.
    complete: usize,
    /// How many bytes ever left at the front: the position of the first one.
    first: u64,
}

/// What the next line has for a reader.
pub(crate) struct NextLine {
    /// Bytes up to its end, the EOF byte not counted.
    pub(crate) body: usize,
    /// Whether an EOF byte follows them.
    pub(crate) is_eof: bool,
}

impl InputQueue {
    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether a complete line waits.
    pub(crate) fn has_line(&self) -> bool {
        !self.lines.is_empty()
    }

    /// What `FIONREAD` counts in line mode: the bytes of complete lines, without EOF bytes.
    pub(crate) fn line_bytes(&self) -> usize {
        self.complete.saturating_sub(self.lines.iter().filter(|line| line.is_eof).count())
    }

    /// Position of the first byte, for `consume_to`.
    pub(crate) fn position(&self) -> u64 {
        self.first
    }

    /// Whether nothing of the line in progress was typed yet.
    pub(crate) fn line_is_empty(&self) -> bool {
        self.bytes.len() <= self.complete
    }

    /// Adds a byte to the line in progress. Past the kernel's ring nothing is stored.
    pub(crate) fn push(&mut self, c: u8) {
        if self.bytes.len() < SIZE {
            self.bytes.push_back(c);
        }
    }

    /// Adds bytes that no reader will see as lines.
    pub(crate) fn extend(&mut self, bytes: impl Iterator<Item = u8>) {
        let room = SIZE.saturating_sub(self.bytes.len());
        self.bytes.extend(bytes.take(room));
    }

    /// Ends the line in progress with this delimiter.
    pub(crate) fn end_line(&mut self, delimiter: u8) {
        self.push(delimiter);
        self.complete_line(false);
    }

    /// Ends the line in progress with an EOF.
    pub(crate) fn end_file(&mut self) {
        self.push(END_OF_FILE);
        self.complete_line(true);
    }

    fn complete_line(&mut self, is_eof: bool) {
        let len = self.bytes.len().saturating_sub(self.complete);
        if len > 0 {
            self.lines.push_back(Line { len, is_eof });
            self.complete = self.bytes.len();
        }
    }

    /// Takes the last byte of the line in progress back.
    pub(crate) fn pop(&mut self) -> Option<u8> {
        if self.line_is_empty() { None } else { self.bytes.pop_back() }
    }

    /// Takes the whole line in progress back.
    pub(crate) fn drop_line(&mut self) {
        self.bytes.truncate(self.complete);
    }

    /// The line in progress, last byte first.
    pub(crate) fn line_backwards(&self) -> impl Iterator<Item = u8> + '_ {
        self.bytes.iter().skip(self.complete).rev().copied()
    }

    /// The line in progress.
    pub(crate) fn line(&self) -> impl Iterator<Item = u8> + '_ {
        self.bytes.iter().skip(self.complete).copied()
    }

    /// The first complete line.
    pub(crate) fn next_line(&self) -> Option<NextLine> {
        let line = self.lines.front()?;
        Some(NextLine { body: line.len.saturating_sub(usize::from(line.is_eof)), is_eof: line.is_eof })
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
        self.complete = self.complete.saturating_sub(n);
        let mut rest = n;
        while let Some(line) = self.lines.front_mut() {
            if line.len > rest {
                line.len = line.len.saturating_sub(rest);
                break;
            }
            rest = rest.saturating_sub(line.len);
            self.lines.pop_front();
        }
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        self.consume_to(u64::MAX);
        self.lines.clear();
        self.complete = 0;
    }

    /// Line mode was switched off: all is bytes now, an EOF a NUL.
    pub(crate) fn forget_lines(&mut self) {
        self.lines.clear();
        self.complete = 0;
    }

    /// Line mode was switched on: what waits is one line, ended by its last byte whatever that is
    /// (`n_tty_set_termios`).
    pub(crate) fn make_line(&mut self) {
        self.forget_lines();
        let is_eof = self.bytes.back() == Some(&END_OF_FILE);
        self.complete_line(is_eof);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(text: &[u8]) -> InputQueue {
        let mut queue = InputQueue::default();
        queue.extend(text.iter().copied());
        queue
    }

    #[test]
    fn lines_come_one_by_one() {
        let mut q = queue(b"ab");
        q.end_line(b'\n');
        q.push(b'c');
        q.end_file();
        q.push(b'd');
        assert_eq!((q.len(), q.line_bytes()), (6, 4));
        assert_eq!(q.next_line().map(|l| (l.body, l.is_eof)), Some((3, false)));
        q.consume_to(q.position() + 2);
        assert_eq!(q.next_line().map(|l| (l.body, l.is_eof)), Some((1, false)));
        q.consume_to(q.position() + 1);
        assert_eq!(q.next_line().map(|l| (l.body, l.is_eof)), Some((1, true)));
        q.consume_to(q.position() + 2);
        assert!(!q.has_line() && !q.line_is_empty());
        assert_eq!(q.pop(), Some(b'd'));
        assert_eq!(q.pop(), None);
    }

    #[test]
    fn consuming_is_by_position_so_a_flush_between_costs_nothing() {
        let mut q = queue(b"abc");
        let end = q.position() + 3;
        q.clear();
        q.extend(b"xyz".iter().copied());
        q.consume_to(end);
        assert_eq!(q.copy(9), b"xyz");
    }

    #[test]
    fn switching_line_mode_keeps_the_bytes() {
        let mut q = queue(b"ab");
        q.end_file();
        q.forget_lines();
        assert_eq!(q.copy(9), b"ab\0");
        q.make_line();
        assert_eq!(q.next_line().map(|l| (l.body, l.is_eof)), Some((2, true)));
        let mut q = queue(b"ab");
        q.make_line();
        assert_eq!(q.next_line().map(|l| (l.body, l.is_eof)), Some((2, false)));
        assert_eq!(q.pop(), None, "what became a line can no longer be edited");
    }

    #[test]
    fn it_never_grows_past_the_kernels_ring() {
        let mut q = queue(&[b'x'; 5000]);
        q.push(b'y');
        assert_eq!(q.len(), SIZE);
    }
}
