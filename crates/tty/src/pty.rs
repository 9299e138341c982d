//! A pseudo-terminal: the master, where a terminal emulator sits, and the slave, a terminal.
//!
//! Reads come in two steps, look and commit, as everywhere here. What stands between a file and its end of
//! the pair (job control, `O_NONBLOCK`, waiting) is the kernel's.

use crate::output::MASTER_QUEUE;
use crate::{Chunk, Effects, LineDiscipline, Read, Timer, Wait};
use abi::{Errno, FlowAction, FlushQueue, PacketFlags, PollFlags, Signal, Winsize};

/// The characters that `TCIOFF` and `TCION` send on the master's side: its own settings are never changed,
/// since `TCSETS` on a master changes the slave's.
const MASTER_STOP: u8 = 0x13;
const MASTER_START: u8 = 0x11;

/// A master and its slave.
#[derive(Debug)]
pub struct PtyPair {
    line: LineDiscipline,
    is_locked: bool,
    size: Winsize,
    master_is_open: bool,
    /// `TCOOFF` on the master: what it writes has to wait.
    master_is_stopped: bool,
    /// How many open files the slave has.
    slaves: usize,
    /// All files of the slave were closed: the master reads `EIO`. Not so before the first was opened.
    slave_has_left: bool,
    /// How often the slave was hung up.
    hang_ups: u64,
}

impl Default for PtyPair {
    fn default() -> PtyPair {
        PtyPair::new()
    }
}

impl PtyPair {
    /// A pair as opening `/dev/ptmx` makes it: the master open, the slave locked.
    pub fn new() -> PtyPair {
        PtyPair {
            line: LineDiscipline::new(),
            is_locked: true,
            size: Winsize::default(),
            master_is_open: true,
            master_is_stopped: false,
            slaves: 0,
            slave_has_left: false,
            hang_ups: 0,
        }
    }

    /// The slave's line discipline: its settings are both ends', and reading and writing it is reading and
    /// writing the slave.
    pub fn line(&self) -> &LineDiscipline {
        &self.line
    }

    /// The same, to change it.
    pub fn line_mut(&mut self) -> &mut LineDiscipline {
        &mut self.line
    }

    // Opening, closing, hanging up.

    /// Opens the slave. Returns what tells a file opened now from those that a later hang-up kills:
    /// give it to [`PtyPair::is_hung_up`].
    ///
    /// # Errors
    /// `EIO` while it is locked, or once the master is closed.
    pub fn open_slave(&mut self) -> Result<u64, Errno> {
        if self.is_locked || !self.master_is_open {
            return Err(Errno::EIO);
        }
        self.slaves = self.slaves.saturating_add(1);
        self.slave_has_left = false;
        Ok(self.hang_ups)
    }

    /// Closes one file of the slave. With the last one the master's readers get `EIO` when they have read
    /// all; what waits for a reader of the slave stays for the next to open it.
    pub fn close_slave(&mut self, fx: &mut Effects) {
        self.slaves = self.slaves.saturating_sub(1);
        if self.slaves == 0 {
            self.slave_has_left = true;
            fx.wake_all();
        }
    }

    /// Closes the master: the slave is hung up for good.
    pub fn close_master(&mut self, fx: &mut Effects) {
        self.master_is_open = false;
        self.line.packet.enabled = false;
        self.hang_up(fx);
    }

    /// Hangs the slave up (`TIOCVHANGUP`, `vhangup`): its files are dead, its settings and input gone.
    pub fn hang_up(&mut self, fx: &mut Effects) {
        self.hang_ups = self.hang_ups.wrapping_add(1);
        self.line.reset();
        fx.hang_up = true;
        fx.wake_all();
    }

    /// Whether a file of the slave was hung up. For such a file: read gives 0, write `EIO`, ioctl `EIO`
    /// (`TIOCSPGRP` `ENOTTY`), poll [`PtyPair::HUNG_UP`].
    pub fn is_hung_up(&self, opened: u64) -> bool {
        opened != self.hang_ups
    }

    /// What `poll` says of a hung-up file of the slave.
    pub const HUNG_UP: PollFlags = PollFlags::IN
        .union(PollFlags::OUT)
        .union(PollFlags::ERR)
        .union(PollFlags::HUP)
        .union(PollFlags::RDNORM)
        .union(PollFlags::WRNORM);

    // The slave.

    /// What a read of the slave gets: as [`LineDiscipline::peek`], and it notices a master that left.
    pub fn peek_slave(&self, max: usize) -> Read {
        if self.master_is_open { self.line.peek(max) } else { Read::HungUp }
    }

    /// Writes to the slave. Returns how much there was room for; for the rest the writer has to wait.
    ///
    /// # Errors
    /// `EIO` once the master is closed.
    pub fn write_slave(&mut self, bytes: &[u8], fx: &mut Effects) -> Result<usize, Errno> {
        if self.master_is_open { Ok(self.line.write(bytes, fx)) } else { Err(Errno::EIO) }
    }

    /// What `poll` says of the slave.
    pub fn poll_slave(&self) -> PollFlags {
        if !self.master_is_open {
            return Self::HUNG_UP;
        }
        let mut events = PollFlags::empty();
        events.set(PollFlags::IN | PollFlags::RDNORM, self.line.is_readable());
        events.set(PollFlags::OUT | PollFlags::WRNORM, self.line.is_writable());
        events
    }

    // The master.

    /// What a read of the master gets. In packet mode its first byte says what follows: 0 and data, or what
    /// happened (`TIOCPKT`).
    pub fn peek_master(&self, max: usize) -> Read {
        let packet = &self.line.packet;
        let waits = self.line.output.len();
        if max == 0 {
            return Read::Ready(self.master_chunk(0, None));
        }
        if packet.enabled && !packet.flags.is_empty() {
            return Read::Ready(self.master_chunk(0, Some(packet.flags.bits())));
        }
        if waits == 0 {
            return match self.slave_has_left {
                true => Read::PeerClosed,
                false => Read::Wait(Wait { ready: 0, timer: Timer::Forever }),
            };
        }
        let header = packet.enabled.then_some(0);
        let n = max.saturating_sub(usize::from(packet.enabled)).min(waits).min(MASTER_QUEUE);
        Read::Ready(self.master_chunk(n, header))
    }

    fn master_chunk(&self, n: usize, header: Option<u8>) -> Chunk {
        let mut bytes = self.line.output.copy(n);
        if let Some(first) = header {
            bytes.insert(0, first);
        }
        let header = usize::from(header.is_some());
        Chunk { bytes, position: self.line.output.position(), header, hidden: 0 }
    }

    /// Takes the first `copied` bytes of what `peek_master` gave out of the queue: they have reached the
    /// reader.
    pub fn commit_master(&mut self, chunk: &Chunk, copied: usize, fx: &mut Effects) {
        if copied > 0
            && chunk.header > 0
            && let Some(&told) = chunk.bytes.first()
        {
            self.line.packet.flags.remove(PacketFlags::from_bits_retain(told));
        }
        let before = self.line.output.len();
        self.line.output.consume_to(chunk.end(copied));
        fx.wake_writers |= self.line.output.len() < before;
    }

    /// Writes to the master: input for the slave. Returns how much there was room for; for the rest the
    /// writer has to wait. It works without a slave too.
    pub fn write_master(&mut self, bytes: &[u8], fx: &mut Effects) -> usize {
        if self.master_is_stopped { 0 } else { self.line.receive(bytes, fx) }
    }

    /// What `poll` says of the master.
    pub fn poll_master(&self) -> PollFlags {
        let packet = &self.line.packet;
        let told = packet.enabled && !packet.flags.is_empty();
        let mut events = PollFlags::empty();
        events.set(PollFlags::IN | PollFlags::RDNORM, told || self.line.output.len() > 0);
        events.set(PollFlags::PRI, told);
        events.set(PollFlags::HUP, self.slave_has_left);
        let has_room = !self.master_is_stopped && self.line.receive_room() > 0;
        events.set(PollFlags::OUT | PollFlags::WRNORM, has_room);
        events
    }

    /// What `FIONREAD` says on the master: what its own queue holds.
    pub fn master_readable_bytes(&self) -> usize {
        self.line.output.len().min(MASTER_QUEUE)
    }

    /// `TCFLSH` on the master: its input is what the slave's programs wrote.
    ///
    /// # Errors
    /// `EINVAL` for any other queue.
    pub fn flush_master(&mut self, queue: FlushQueue, fx: &mut Effects) -> Result<(), Errno> {
        if !matches!(queue, FlushQueue::IFLUSH | FlushQueue::OFLUSH | FlushQueue::IOFLUSH) {
            return Err(Errno::EINVAL);
        }
        if queue != FlushQueue::OFLUSH {
            self.line.output.clear();
            fx.wake_writers = true;
        }
        if queue != FlushQueue::IFLUSH {
            self.line.incoming.clear();
            fx.wake_device_writers = true;
        }
        Ok(())
    }

    /// `TCXONC` on the master: stops and starts what it writes, or sends the slave a STOP or START.
    ///
    /// # Errors
    /// `EINVAL` for any other action.
    pub fn flow_master(&mut self, action: FlowAction, fx: &mut Effects) -> Result<(), Errno> {
        match action {
            FlowAction::OOFF => self.master_is_stopped = true,
            FlowAction::OON => {
                self.master_is_stopped = false;
                fx.wake_device_writers = true;
            }
            FlowAction::IOFF => _ = self.write_master(&[MASTER_STOP], fx),
            FlowAction::ION => _ = self.write_master(&[MASTER_START], fx),
            _ => return Err(Errno::EINVAL),
        }
        Ok(())
    }

    /// Signals the slave's foreground group (`TIOCSIG` on the master).
    ///
    /// # Errors
    /// `EINVAL` for a signal that no character sends.
    pub fn signal(&self, signal: Signal, fx: &mut Effects) -> Result<(), Errno> {
        if !matches!(signal, Signal::INT | Signal::QUIT | Signal::TSTP) {
            return Err(Errno::EINVAL);
        }
        fx.signal(signal);
        Ok(())
    }

    /// Whether the master is in packet mode (`TIOCGPKT`).
    pub fn packet_mode(&self) -> bool {
        self.line.packet.enabled
    }

    /// Switches packet mode (`TIOCPKT`). What happened before it was on is not told.
    pub fn set_packet_mode(&mut self, on: bool) {
        let packet = &mut self.line.packet;
        if on && !packet.enabled {
            packet.flags = PacketFlags::empty();
        }
        packet.enabled = on;
    }

    // Both ends.

    /// Whether the slave cannot be opened (`TIOCGPTLCK`).
    pub fn is_locked(&self) -> bool {
        self.is_locked
    }

    /// Locks or unlocks the slave (`TIOCSPTLCK`, what `unlockpt` does).
    pub fn set_locked(&mut self, is_locked: bool) {
        self.is_locked = is_locked;
    }

    /// The window size, of both ends (`TIOCGWINSZ`).
    pub fn size(&self) -> Winsize {
        self.size
    }

    /// A new window size (`TIOCSWINSZ`); `SIGWINCH` if it is another one.
    pub fn set_size(&mut self, size: Winsize, fx: &mut Effects) {
        if self.size != size {
            self.size = size;
            fx.signal(Signal::WINCH);
        }
    }
}
