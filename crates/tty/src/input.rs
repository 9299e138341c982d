//! Input: what the device sends, until it is in the queue for readers.

use crate::settings::Cc;
use crate::{Effects, LineDiscipline, queue};
use abi::{PacketFlags, Signal};
use alloc::collections::VecDeque;

/// What a pty's slave may have waiting before its line discipline takes it, bytes (8 KiB of flip buffers,
/// accounted as two bytes to one).
const LIMIT: usize = 16384;

/// What the device sent and the queue had no room for yet.
#[derive(Debug, Default)]
pub(crate) struct Incoming {
    bytes: VecDeque<u8>,
    /// So many of them were looked at for START and STOP already.
    seen: usize,
}

impl Incoming {
    pub(crate) fn room(&self) -> usize {
        LIMIT.saturating_sub(self.bytes.len())
    }

    pub(crate) fn clear(&mut self) {
        *self = Incoming::default();
    }

    /// What was seen ahead counts as unseen again: a flush of the queue forgets the count.
    pub(crate) fn forget_seen(&mut self) {
        self.seen = 0;
    }
}

/// An error that a device reports in place of a character.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineError {
    /// A break condition.
    Break,
    /// This character came with wrong parity or framing.
    Parity(u8),
}

impl LineDiscipline {
    /// Takes what the device sends, in one batch as far as there is room. Returns how much was taken; the
    /// sender of the rest has to wait.
    pub fn receive(&mut self, bytes: &[u8], fx: &mut Effects) -> usize {
        self.output.hand_over();
        let n = bytes.len().min(self.incoming.room());
        self.incoming.bytes.extend(bytes.iter().take(n));
        self.deliver(fx);
        n
    }

    /// How much the device could send now.
    pub fn receive_room(&self) -> usize {
        self.incoming.room()
    }

    /// Takes one character ahead of all that waits (`TIOCSTI`).
    pub fn insert(&mut self, c: u8, fx: &mut Effects) {
        self.output.hand_over();
        if self.make_room() > 0 {
            self.receive_batch(core::iter::once(c), 0, fx);
        }
    }

    /// Takes an error (`n_tty_receive_break`, `n_tty_receive_parity_error`). A pty has none; this is for
    /// devices with a line.
    pub fn receive_error(&mut self, error: LineError, fx: &mut Effects) {
        self.output.hand_over();
        if self.make_room() == 0 {
            return;
        }
        match error {
            LineError::Break if self.settings.ignbrk() => return,
            LineError::Break if self.settings.brkint() => return self.signal(Signal::INT, fx),
            LineError::Break if self.settings.parmrk() => self.input.extend([0xff, 0, 0].into_iter()),
            LineError::Break => self.input.push(0),
            LineError::Parity(_) if self.settings.ignpar() => return,
            LineError::Parity(c) if self.settings.parmrk() => self.input.extend([0xff, 0, c].into_iter()),
            LineError::Parity(_) if self.settings.inpck() => self.input.push(0),
            LineError::Parity(c) => self.input.push(c),
        }
        fx.wake_readers = true;
    }

    /// Moves on what waits, as far as the queue has room (`n_tty_receive_buf_common`). To be called
    /// whenever there may be room.
    pub(crate) fn deliver(&mut self, fx: &mut Effects) {
        while !self.incoming.bytes.is_empty() {
            let n = self.incoming.bytes.len().min(self.make_room());
            if n == 0 {
                break;
            }
            let batch: alloc::vec::Vec<u8> = self.incoming.bytes.drain(..n).collect();
            let seen = self.incoming.seen.min(n);
            self.incoming.seen = self.incoming.seen.saturating_sub(seen);
            self.receive_batch(batch.into_iter(), seen, fx);
            fx.wake_device_writers = true;
        }
        self.look_ahead(fx);
    }

    /// How many characters the queue takes.
    ///
    /// While no complete line waits canonical mode takes characters without limit, one at a time, since an
    /// erasing or line-ending one may come; what is too much replaces the queue's last byte.
    fn make_room(&mut self) -> usize {
        let free = queue::SIZE.saturating_sub(self.input.len());
        // With PARMRK one character may become three bytes.
        let free = if self.settings.parmrk() { free.div_ceil(3) } else { free };
        let room = free.saturating_sub(1);
        if room > 0 || !self.settings.icanon() || self.input.has_line() {
            return room;
        }
        if free == 0 {
            self.input.pop();
        }
        1
    }

    /// START and STOP work at once, even where what was sent before them has to wait
    /// (`n_tty_lookahead_flow_ctrl`).
    fn look_ahead(&mut self, fx: &mut Effects) {
        let skip = self.incoming.seen;
        self.incoming.seen = self.incoming.bytes.len();
        if self.settings.ixon() {
            let unseen: alloc::vec::Vec<u8> = self.incoming.bytes.iter().skip(skip).copied().collect();
            for c in unseen {
                self.receive_flow(c, false, fx);
            }
        }
    }

    /// One batch, which there is room for. The first `seen` characters were looked at ahead.
    fn receive_batch(&mut self, batch: impl Iterator<Item = u8>, seen: usize, fx: &mut Effects) {
        if self.settings.is_plain() || (self.settings.extproc() && !self.settings.maps_first()) {
            self.input.extend(batch);
        } else {
            for (index, c) in batch.enumerate() {
                self.receive_char(c, index < seen, fx);
            }
            self.flush_echo(fx);
        }
        if !self.settings.line_mode() && self.input.len() > 0 {
            fx.wake_readers = true;
        }
    }

    fn receive_char(&mut self, c: u8, seen_ahead: bool, fx: &mut Effects) {
        let c = self.settings.map_first(c);
        if self.literal_next {
            self.literal_next = false;
            self.receive_ordinary(c, fx);
        } else if self.settings.extproc() {
            self.input.push(c);
        } else if self.settings.is_special(c) {
            self.receive_special(c, seen_ahead, fx);
        } else {
            self.receive_ordinary(c, fx);
        }
    }

    fn receive_ordinary(&mut self, c: u8, fx: &mut Effects) {
        self.restart_by_any(fx);
        if self.settings.echo() {
            self.finish_erasing();
            self.echo_line_char(c);
            self.commit_echo(fx);
        }
        self.store(c);
    }

    fn receive_special(&mut self, c: u8, seen_ahead: bool, fx: &mut Effects) {
        if self.receive_flow(c, seen_ahead, fx) {
            return;
        }
        if let Some(signal) = self.signal_of(c) {
            return self.receive_signal(signal, c, fx);
        }
        self.restart_by_any(fx);
        let c = match c {
            b'\r' if self.settings.igncr() => return,
            b'\r' if self.settings.icrnl() => b'\n',
            b'\n' if self.settings.inlcr() => b'\r',
            c => c,
        };
        if self.settings.icanon() && self.receive_canonical(c, fx) {
            return;
        }
        if self.settings.echo() {
            self.finish_erasing();
            if c == b'\n' {
                self.echo_raw(c);
            } else {
                self.echo_line_char(c);
            }
            self.commit_echo(fx);
        }
        self.store(c);
    }

    fn store(&mut self, c: u8) {
        if self.settings.doubles(c) {
            self.input.push(c);
        }
        self.input.push(c);
    }

    fn signal_of(&self, c: u8) -> Option<Signal> {
        if !self.settings.isig() {
            return None;
        }
        [(Cc::Interrupt, Signal::INT), (Cc::Quit, Signal::QUIT), (Cc::Suspend, Signal::TSTP)]
            .into_iter()
            .find_map(|(cc, signal)| self.settings.is(c, cc).then_some(signal))
    }

    fn receive_signal(&mut self, signal: Signal, c: u8, fx: &mut Effects) {
        self.signal(signal, fx);
        if self.settings.ixon() {
            self.start_output(fx);
        }
        if self.settings.echo() {
            self.echo_char(c);
            self.commit_echo(fx);
        } else {
            self.process_echo(fx);
        }
    }

    /// Signals the foreground group, and without `NOFLSH` forgets input, echo and output (`isig`).
    fn signal(&mut self, signal: Signal, fx: &mut Effects) {
        fx.signal(signal);
        if !self.settings.noflsh() {
            self.echo.clear();
            self.flush_output(fx);
            self.reset_input();
            self.packet.report(PacketFlags::FLUSHREAD, PacketFlags::empty(), fx);
        }
    }
}
