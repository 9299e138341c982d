//! Flow control, by characters and by `TCXONC`, and what a master in packet mode is told.

use crate::settings::{Cc, DISABLED};
use crate::{Effects, LineDiscipline};
use abi::{Errno, FlowAction, PacketFlags};

/// What a master in packet mode has not yet been told.
#[derive(Debug)]
pub(crate) struct PacketStatus {
    /// Whether packet mode is on.
    pub(crate) enabled: bool,
    pub(crate) flags: PacketFlags,
}

impl Default for PacketStatus {
    fn default() -> PacketStatus {
        PacketStatus { enabled: false, flags: PacketFlags::empty() }
    }
}

impl PacketStatus {
    /// Something happened, which ends what an earlier event said.
    pub(crate) fn report(&mut self, flags: PacketFlags, ends: PacketFlags, fx: &mut Effects) {
        if self.enabled {
            self.flags.remove(ends);
            self.flags.insert(flags);
            fx.wake_device_readers = true;
        }
    }
}

impl LineDiscipline {
    /// Output goes on, unless `TCOOFF` stopped it (`start_tty`).
    pub(crate) fn start_output(&mut self, fx: &mut Effects) {
        if self.output.stopped && !self.stopped_by_call {
            self.output.stopped = false;
            self.packet.report(PacketFlags::START, PacketFlags::STOP, fx);
            fx.wake_writers = true;
        }
    }

    /// Output stops (`stop_tty`).
    pub(crate) fn stop_output(&mut self, fx: &mut Effects) {
        if !self.output.stopped {
            self.output.stopped = true;
            self.packet.report(PacketFlags::STOP, PacketFlags::START, fx);
        }
    }

    /// A START or STOP character, where `IXON` gives them a meaning; false for any other. One that was
    /// looked at ahead of its turn has been obeyed already.
    pub(crate) fn receive_flow(&mut self, c: u8, seen_ahead: bool, fx: &mut Effects) -> bool {
        if !self.settings.ixon() {
            return false;
        }
        if self.settings.is(c, Cc::Start) {
            if !seen_ahead {
                self.start_output(fx);
                self.process_echo(fx);
            }
            return true;
        }
        if self.settings.is(c, Cc::Stop) {
            if !seen_ahead {
                self.stop_output(fx);
            }
            return true;
        }
        false
    }

    /// Any character lets output go on with `IXANY`.
    pub(crate) fn restart_by_any(&mut self, fx: &mut Effects) {
        if self.output.stopped && !self.stopped_by_call && self.settings.ixon() && self.settings.ixany() {
            self.start_output(fx);
            self.process_echo(fx);
        }
    }

    /// `TCXONC` on the terminal: `TCOOFF` and `TCOON` stop and start output, `TCIOFF` and `TCION` send the
    /// STOP or START character to the device.
    ///
    /// # Errors
    /// `EINVAL` for any other action.
    pub fn flow(&mut self, action: FlowAction, fx: &mut Effects) -> Result<(), Errno> {
        match action {
            FlowAction::OOFF => {
                if !self.stopped_by_call {
                    self.stopped_by_call = true;
                    self.stop_output(fx);
                }
            }
            FlowAction::OON => {
                if self.stopped_by_call {
                    self.stopped_by_call = false;
                    self.start_output(fx);
                }
            }
            FlowAction::IOFF => self.send_past_stop(self.settings.cc(Cc::Stop), fx),
            FlowAction::ION => self.send_past_stop(self.settings.cc(Cc::Start), fx),
            _ => return Err(Errno::EINVAL),
        }
        Ok(())
    }

    /// Sends one character even while output is stopped by a STOP character (`tty_send_xchar`).
    fn send_past_stop(&mut self, c: u8, fx: &mut Effects) {
        if c == DISABLED {
            return;
        }
        let was_stopped = self.output.stopped;
        if was_stopped {
            self.start_output(fx);
        }
        if self.output.room() > 0 {
            self.output.put(c);
            fx.wake_device_readers = true;
        }
        if was_stopped {
            self.stop_output(fx);
        }
    }
}
