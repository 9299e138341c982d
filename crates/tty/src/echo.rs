//! Echo. Characters to be echoed wait in a queue of their own, since the device may have no room and since
//! a signal character takes back what its batch has not yet shown. What moves the cursor is decided when it
//! is shown, when the column is known.

use crate::ctype;
use crate::{Effects, LineDiscipline};
use alloc::collections::VecDeque;

/// So many bytes waiting are shown at once, without waiting for the end of the batch.
const BLOCK: usize = 256;
/// With so many bytes waiting that cannot be shown the oldest are forgotten.
const DISCARD: usize = RING - (BLOCK + 32);
/// Bytes of Linux's queue. Linux: one batch that echoes more, as when a long line is reprinted again and again,
/// overwrites what was not yet shown. Ours: that is shown first.
const RING: usize = 4096;

/// Something to show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Echo {
    /// A character, through `OPOST` where that is on.
    Char(u8),
    /// A control character as `^X`.
    Control(u8),
    /// The cursor moved back without output: a continuation byte was shown.
    MoveBack,
    /// The line in progress begins at the cursor.
    LineStart,
    /// Go back over a tab that is being erased. `columns` since the last tab, or since the start of the
    /// line, modulo 8.
    EraseTab { columns: u32, after_tab: bool },
}

impl Echo {
    /// Bytes that Linux's queue needs for it: its limits count them.
    fn cost(self) -> usize {
        match self {
            Echo::Char(0xff) | Echo::Control(_) | Echo::MoveBack | Echo::LineStart => 2,
            Echo::Char(_) => 1,
            Echo::EraseTab { .. } => 3,
        }
    }
}

#[derive(Debug, Default)]
pub(crate) struct EchoQueue {
    items: VecDeque<Echo>,
    /// What the queue holds, and how much of it ends a character's whole echo, and how much is to be shown
    /// now: bytes from its front.
    len: usize,
    mark: usize,
    commit: usize,
}

impl EchoQueue {
    fn push(&mut self, item: Echo) {
        self.items.push_back(item);
        self.len = self.len.saturating_add(item.cost());
    }

    fn pop(&mut self) {
        if let Some(item) = self.items.pop_front() {
            self.len = self.len.saturating_sub(item.cost());
            self.mark = self.mark.saturating_sub(item.cost());
            self.commit = self.commit.saturating_sub(item.cost());
        }
    }

    pub(crate) fn clear(&mut self) {
        *self = EchoQueue::default();
    }
}

impl LineDiscipline {
    /// Queues a character as it is.
    pub(crate) fn echo_raw(&mut self, c: u8) {
        self.echo.push(Echo::Char(c));
    }

    /// Queues a character, a control character as `^X` if `ECHOCTL` says so.
    pub(crate) fn echo_char(&mut self, c: u8) {
        let caret = self.settings.echoctl() && ctype::is_control(c) && c != b'\t';
        self.echo.push(if caret { Echo::Control(c) } else { Echo::Char(c) });
    }

    /// Queues something that moves the cursor.
    pub(crate) fn echo_move(&mut self, item: Echo) {
        self.echo.push(item);
    }

    /// Queues a character of the line in progress, noting the column where the line began.
    pub(crate) fn echo_line_char(&mut self, c: u8) {
        if self.input.line_is_empty() {
            self.echo.push(Echo::LineStart);
        }
        self.echo_char(c);
    }

    /// Ends the display of erased characters (`ECHOPRT`).
    pub(crate) fn finish_erasing(&mut self) {
        if self.erasing {
            self.erasing = false;
            self.echo_raw(b'/');
        }
    }

    /// One character's echo is complete: it is shown at the end of the batch, or now if a block of them
    /// has come together (`commit_echoes`).
    pub(crate) fn commit_echo(&mut self, fx: &mut Effects) {
        self.echo.mark = self.echo.len;
        let is_block = self.echo.len >= BLOCK && self.echo.len % BLOCK <= self.echo.commit % BLOCK;
        if !is_block && self.echo.len < RING {
            return;
        }
        self.echo.commit = self.echo.len;
        self.show_echo(fx);
    }

    /// Shows what is complete (`process_echoes`): before a program's output, or when output goes on.
    pub(crate) fn process_echo(&mut self, fx: &mut Effects) {
        if self.echo.mark > 0 {
            self.echo.commit = self.echo.mark;
            self.show_echo(fx);
        }
    }

    /// Shows all at the end of a batch (`flush_echoes`).
    pub(crate) fn flush_echo(&mut self, fx: &mut Effects) {
        if (self.settings.echo() || self.settings.echonl()) && self.echo.commit != self.echo.len {
            self.echo.commit = self.echo.len;
            self.show_echo(fx);
        }
    }

    /// Gives the device what it has room for, then sees to it that the queue stays bounded.
    fn show_echo(&mut self, fx: &mut Effects) {
        while self.echo.commit > 0
            && let Some(&item) = self.echo.items.front()
            && self.show(item)
        {
            self.echo.pop();
            fx.wake_device_readers = true;
        }
        while self.echo.commit >= DISCARD {
            self.echo.pop();
        }
    }

    /// Shows one item whole; false if there is no room for it.
    fn show(&mut self, item: Echo) -> bool {
        let room = self.output.room();
        match item {
            Echo::Char(0xff) => {
                if room == 0 {
                    return false;
                }
                self.output.put(0xff);
                self.output.column = self.output.column.wrapping_add(1);
            }
            Echo::Char(c) if self.settings.opost() => {
                return self.output.put_one_processed(c, &self.settings);
            }
            Echo::Char(c) => {
                if room == 0 {
                    return false;
                }
                self.output.put(c);
            }
            Echo::Control(c) => {
                if room < 2 {
                    return false;
                }
                self.output.put(b'^');
                self.output.put(c ^ 0o100);
                self.output.column = self.output.column.wrapping_add(2);
            }
            Echo::MoveBack => self.output.move_back(),
            Echo::LineStart => self.output.line_column = self.output.column,
            Echo::EraseTab { columns, after_tab } => {
                let from = if after_tab { columns } else { columns.wrapping_add(self.output.line_column) };
                let back = 8 - (from & 7);
                if room < back as usize {
                    return false;
                }
                for _ in 0..back {
                    self.output.put(b'\x08');
                    self.output.move_back();
                }
            }
        }
        true
    }
}
