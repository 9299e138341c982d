//! Reading from the terminal: what a reader gets, or what it has to wait for. First a look (`peek`), then,
//! when the bytes are safe in the reader's memory, `commit`.

use crate::settings::Cc;
use crate::{Effects, LineDiscipline};
use alloc::vec::Vec;

/// Linux copies to the reader in pieces of this size, and `VMIN` is only looked at in the first piece: so a
/// read that wants more ends after one piece where `VMIN` is larger (`iterate_tty_read`).
const PIECE: usize = 64;

/// What a read finds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Read {
    /// These bytes, perhaps none at all: the read is over.
    Ready(Chunk),
    /// Not enough yet.
    Wait(Wait),
    /// The terminal was hung up: 0 for a new read, `EIO` for one that was already waiting.
    HungUp,
    /// All files of the slave are closed and nothing is left to read: `EIO`, until one is opened again.
    PeerClosed,
}

/// Bytes for a reader.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// The bytes; empty at the end of a file.
    pub bytes: Vec<u8>,
    /// Position of the first of them in the queue.
    pub(crate) position: u64,
    /// How many at the front are not from the queue (a packet's first byte).
    pub(crate) header: usize,
    /// How many in the queue follow that no reader gets (an EOF character).
    pub(crate) hidden: usize,
}

impl Chunk {
    /// The position up to which the queue is used up when so many bytes have reached the reader.
    pub(crate) fn end(&self, copied: usize) -> u64 {
        let hidden = if copied >= self.bytes.len() { self.hidden } else { 0 };
        let from_queue = copied.min(self.bytes.len()).saturating_sub(self.header);
        self.position.wrapping_add(from_queue.saturating_add(hidden) as u64)
    }
}

/// What a reader has to wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait {
    /// Bytes that are there already. Whatever ends the wait early (`O_NONBLOCK`, a signal, the timer), they
    /// are the result; only if there are none it is `EAGAIN`, `EINTR`, or 0 after the timer.
    pub ready: usize,
    /// What ends the wait besides data.
    pub timer: Timer,
}

/// The timer of a wait (`VTIME`). Units: tenths of a second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timer {
    /// None.
    Forever,
    /// Runs from the start of the call, however often it looks (`VMIN` is 0).
    FromCall(u8),
    /// Runs from when the last byte came: anew whenever `ready` has grown.
    FromLastByte(u8),
}

impl LineDiscipline {
    /// What a read of at most `max` bytes gets. Readers take turns: between this and `commit` no other
    /// may read.
    pub fn peek(&self, max: usize) -> Read {
        if max == 0 {
            return Read::Ready(self.chunk(0, 0));
        }
        if self.settings.line_mode() {
            return self
                .peek_now(max)
                .map_or(Read::Wait(Wait { ready: 0, timer: Timer::Forever }), Read::Ready);
        }
        let ready = self.input.len();
        // ICANON with EXTPROC: whatever is there.
        let min = if self.settings.icanon() { 1 } else { usize::from(self.settings.cc(Cc::Min)) };
        let tenths = if self.settings.icanon() { 0 } else { self.settings.cc(Cc::Time) };
        if ready == 0 && min == 0 && tenths == 0 {
            return Read::Ready(self.chunk(0, 0));
        }
        if ready >= min.max(1).min(max).min(PIECE) {
            return Read::Ready(self.raw_chunk(if min > PIECE { max.min(PIECE) } else { max }));
        }
        let timer = match (min, tenths) {
            (0, tenths) => Timer::FromCall(tenths),
            (_, 0) => Timer::Forever,
            _ if ready == 0 => Timer::Forever,
            (_, tenths) => Timer::FromLastByte(tenths),
        };
        Read::Wait(Wait { ready, timer })
    }

    /// What a read gets that cannot wait any longer; None if there is nothing.
    pub fn peek_now(&self, max: usize) -> Option<Chunk> {
        if self.settings.line_mode() {
            let line = self.input.next_line()?;
            let n = line.body.min(max);
            // A read that ends just before an EOF swallows it (`canon_skip_eof`); a read of nothing does not.
            let hidden = usize::from(line.is_eof && n == line.body && max > 0);
            return Some(self.chunk(n, hidden));
        }
        (self.input.len() > 0).then(|| self.raw_chunk(max))
    }

    fn raw_chunk(&self, max: usize) -> Chunk {
        let n = max.min(self.input.len());
        let chunk = self.chunk(n, 0);
        // A remote line editor says so by an EOF character that comes alone. Linux sees that at the last piece
        // of a longer read as well (`copy_from_read_buf`).
        let ends_file = self.settings.extproc()
            && self.settings.icanon()
            && n == self.input.len()
            && n % PIECE == 1
            && chunk.bytes.last().is_some_and(|&c| c == self.settings.cc(Cc::Eof));
        if ends_file { self.chunk(n.saturating_sub(1), 1) } else { chunk }
    }

    fn chunk(&self, n: usize, hidden: usize) -> Chunk {
        Chunk { bytes: self.input.copy(n), position: self.input.position(), header: 0, hidden }
    }

    /// Takes the first `copied` bytes of what `peek` gave out of the queue: they have reached the reader.
    /// What was flushed in the meantime is gone already.
    pub fn commit(&mut self, chunk: &Chunk, copied: usize, fx: &mut Effects) {
        self.output.hand_over();
        self.input.consume_to(chunk.end(copied));
        self.deliver(fx);
    }

    /// Whether `poll` finds something to read (`input_available_p`).
    pub fn is_readable(&self) -> bool {
        if self.settings.line_mode() {
            return self.input.has_line();
        }
        let min = if self.settings.cc(Cc::Time) == 0 { self.settings.cc(Cc::Min).max(1) } else { 1 };
        self.input.len() >= usize::from(min)
    }

    /// What `FIONREAD` says: bytes that reads could get.
    pub fn readable_bytes(&self) -> usize {
        if self.settings.line_mode() { self.input.line_bytes() } else { self.input.len() }
    }
}
