//! The line discipline as a whole: settings, writing, flushing.

use crate::Effects;
use crate::echo::EchoQueue;
use crate::flow::PacketStatus;
use crate::input::Incoming;
use crate::output::Output;
use crate::queue::InputQueue;
use crate::settings::Settings;
use abi::{ControlFlags, Errno, FlushQueue, LocalFlags, PacketFlags, Termios2};

/// Linux's N_TTY between a terminal's programs and its device. See the crate's head for the directions.
#[derive(Debug)]
pub struct LineDiscipline {
    pub(crate) settings: Settings,
    pub(crate) incoming: Incoming,
    pub(crate) input: InputQueue,
    /// The next character is taken as it is (`VLNEXT`).
    pub(crate) literal_next: bool,
    /// Erased characters are being shown between `\` and `/` (`ECHOPRT`).
    pub(crate) erasing: bool,
    pub(crate) echo: EchoQueue,
    pub(crate) output: Output,
    /// `TCOOFF` is in force: no character starts output again.
    pub(crate) stopped_by_call: bool,
    pub(crate) packet: PacketStatus,
}

impl Default for LineDiscipline {
    fn default() -> LineDiscipline {
        LineDiscipline::new()
    }
}

impl LineDiscipline {
    /// A terminal as a pty's slave is when new: canonical mode with echo, 38400 baud.
    pub fn new() -> LineDiscipline {
        LineDiscipline {
            settings: Settings::new(initial_termios()),
            incoming: Incoming::default(),
            input: InputQueue::default(),
            literal_next: false,
            erasing: false,
            echo: EchoQueue::default(),
            output: Output::default(),
            stopped_by_call: false,
            packet: PacketStatus::default(),
        }
    }

    /// The settings in force.
    pub fn termios(&self) -> &Termios2 {
        self.settings.termios()
    }

    /// New settings, at once (`TCSETS`). `TCSETSW` is the same, for output never waits in a device here;
    /// for `TCSETSF` the caller first calls [`LineDiscipline::discard_input`].
    ///
    /// Values are taken as they are, but for what a pty's driver fixes: see [`LineDiscipline::termios`]
    /// afterwards.
    pub fn set_termios(&mut self, termios: &Termios2, fx: &mut Effects) {
        self.output.hand_over();
        let new = Settings::new(*termios);
        let old = core::mem::replace(&mut self.settings, new);
        self.report_settings(&old, fx);
        let changed = old.termios().lflag ^ self.settings.termios().lflag;
        if changed.intersects(LocalFlags::ICANON | LocalFlags::EXTPROC) {
            if self.settings.icanon() {
                self.input.make_line();
            } else {
                self.input.forget_lines();
            }
            self.erasing = false;
            self.literal_next = false;
        }
        if !self.settings.ixon() && old.ixon() && !self.stopped_by_call {
            self.start_output(fx);
            self.process_echo(fx);
        }
        self.deliver(fx);
        fx.wake_readers = true;
        fx.wake_writers = true;
    }

    /// What packet mode tells of new settings (`pty_set_termios`).
    fn report_settings(&mut self, old: &Settings, fx: &mut Effects) {
        let flow = self.settings.standard_flow();
        if flow != old.standard_flow() {
            let (is, was) = if flow {
                (PacketFlags::DOSTOP, PacketFlags::NOSTOP)
            } else {
                (PacketFlags::NOSTOP, PacketFlags::DOSTOP)
            };
            self.packet.report(is, was, fx);
        }
        if old.extproc() || self.settings.extproc() {
            self.packet.report(PacketFlags::IOCTL, PacketFlags::empty(), fx);
        }
    }

    /// Takes what a program writes. Returns how much of it the device had room for; for the rest the
    /// program has to wait.
    pub fn write(&mut self, bytes: &[u8], fx: &mut Effects) -> usize {
        self.output.hand_over();
        self.process_echo(fx);
        let before = self.output.len();
        let taken = if self.settings.opost() {
            self.output.put_processed(bytes, &self.settings)
        } else {
            self.output.put_raw(bytes)
        };
        fx.wake_device_readers |= self.output.len() > before;
        taken
    }

    /// Whether `poll` finds room to write.
    pub fn is_writable(&self) -> bool {
        self.output.room() > 0
    }

    /// `TCFLSH` on the terminal.
    ///
    /// # Errors
    /// `EINVAL` for any other queue.
    pub fn flush(&mut self, queue: FlushQueue, fx: &mut Effects) -> Result<(), Errno> {
        self.output.hand_over();
        match queue {
            FlushQueue::IFLUSH | FlushQueue::IOFLUSH => {
                self.incoming.clear();
                self.discard_input(fx);
                fx.wake_device_writers = true;
                if queue == FlushQueue::IOFLUSH {
                    self.flush_output(fx);
                }
            }
            FlushQueue::OFLUSH => self.flush_output(fx),
            _ => return Err(Errno::EINVAL),
        }
        Ok(())
    }

    /// Forgets the queue for readers, not what the device sent beyond it (`n_tty_flush_buffer`): what
    /// `TCSETSF` does before the new settings.
    pub fn discard_input(&mut self, fx: &mut Effects) {
        self.reset_input();
        self.packet.report(PacketFlags::FLUSHREAD, PacketFlags::empty(), fx);
        self.deliver(fx);
    }

    /// Forgets output that the device has not taken over.
    pub(crate) fn flush_output(&mut self, fx: &mut Effects) {
        self.output.flush();
        self.packet.report(PacketFlags::FLUSHWRITE, PacketFlags::empty(), fx);
        fx.wake_writers = true;
    }

    pub(crate) fn reset_input(&mut self) {
        self.input.clear();
        self.incoming.forget_seen();
        self.erasing = false;
    }

    /// A hang-up: the settings and the input of a new terminal. Output that the device may still take stays,
    /// and so does flow control.
    pub(crate) fn reset(&mut self) {
        let fresh = LineDiscipline::new();
        self.settings = fresh.settings;
        self.incoming.clear();
        self.reset_input();
        self.literal_next = false;
        self.echo.clear();
        self.packet.flags = PacketFlags::empty();
        (self.output.column, self.output.line_column) = (0, 0);
    }
}

/// What a new pty's slave has: the standard settings without `HUPCL`.
fn initial_termios() -> Termios2 {
    let mut termios = Termios2::STANDARD;
    termios.cflag.remove(ControlFlags::HUPCL);
    termios
}
