//! What the caller has to do after an operation: the crate itself knows neither tasks nor wait queues.

use abi::Signal;
use alloc::vec::Vec;

/// What an operation asks of its caller. Operations add to it, so one value can collect several.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Effects {
    /// To be sent to the terminal's foreground process group, in this order, each at most once. A changed
    /// window size goes to the foreground group of the master's terminal as well, where that is another
    /// one (`pty_resize`).
    pub signals: Vec<Signal>,
    /// Wake those who read from the terminal, or poll it for reading.
    pub wake_readers: bool,
    /// Wake those who write to the terminal, or poll it for writing.
    pub wake_writers: bool,
    /// Wake those who read from the device: the master has data, a packet status or a hang-up.
    pub wake_device_readers: bool,
    /// Wake those who write to the device: there is room for input again.
    pub wake_device_writers: bool,
    /// The terminal was hung up: its session gets `SIGHUP` and `SIGCONT`, every open file of it is dead.
    pub hang_up: bool,
}

impl Effects {
    pub(crate) fn signal(&mut self, signal: Signal) {
        if !self.signals.contains(&signal) {
            self.signals.push(signal);
        }
    }

    pub(crate) fn wake_all(&mut self) {
        self.wake_readers = true;
        self.wake_writers = true;
        self.wake_device_readers = true;
        self.wake_device_writers = true;
    }

    /// Whether nothing is to be done.
    pub fn is_empty(&self) -> bool {
        *self == Effects::default()
    }
}
