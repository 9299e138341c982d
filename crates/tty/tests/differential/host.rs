//! A script's pty by the host.

use crate::script::{Pty, ReadResult};
use abi::{FlowAction, FlushQueue, Termios2};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::OwnedFd;
use rustix::fs::{OFlags, fcntl_setfl};
use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{
    Action, ControlModes, InputModes, LocalModes, OptionalActions, OutputModes, QueueSelector,
    SpecialCodeIndex as S, tcflow, tcflush, tcgetattr, tcsetattr,
};
use std::time::Duration;

/// The special characters in the order of `c_cc`.
const CODES: [S; 17] = [
    S::VINTR,
    S::VQUIT,
    S::VERASE,
    S::VKILL,
    S::VEOF,
    S::VTIME,
    S::VMIN,
    S::VSWTC,
    S::VSTART,
    S::VSTOP,
    S::VSUSP,
    S::VEOL,
    S::VREPRINT,
    S::VDISCARD,
    S::VWERASE,
    S::VLNEXT,
    S::VEOL2,
];

pub(crate) struct Host {
    master: OwnedFd,
    slave: Option<OwnedFd>,
    /// How long to wait where Linux gives no way to know that data has arrived.
    patience: Duration,
}

impl Host {
    pub(crate) fn new(patience: Duration) -> Host {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("the host has ptys");
        grantpt(&master).expect("grantpt");
        unlockpt(&master).expect("unlockpt");
        fcntl_setfl(&master, OFlags::NONBLOCK).expect("fcntl");
        let mut host = Host { master, slave: None, patience };
        host.open_slave();
        host
    }

    fn slave(&self) -> &OwnedFd {
        self.slave.as_ref().expect("the slave is open")
    }

    /// Waits until what was written has arrived at the other end. Polling an end that has nothing to read
    /// waits for the work that brings it data, and `FIONREAD` for work that is being done; an end that has
    /// something to read gives no sign.
    fn settle(&self) {
        let ends: Vec<&OwnedFd> = self.slave.iter().chain([&self.master]).collect();
        let had_data = ends.iter().any(|end| events(end) & PollFlags::IN.bits() != 0);
        for end in &ends {
            events(end);
            rustix::io::ioctl_fionread(end).expect("FIONREAD");
        }
        if had_data || self.slave.is_none() {
            std::thread::sleep(self.patience);
        }
    }
}

fn events(end: &OwnedFd) -> u16 {
    let mut fds = [PollFd::new(end, PollFlags::all())];
    poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).expect("poll");
    fds[0].revents().bits()
}

fn read(end: &OwnedFd, max: usize) -> ReadResult {
    let mut bytes = vec![0; max];
    let n = rustix::io::read(end, &mut bytes).map_err(rustix::io::Errno::raw_os_error)?;
    bytes.truncate(n);
    Ok(bytes)
}

fn write(end: &OwnedFd, bytes: &[u8]) -> Result<usize, i32> {
    rustix::io::write(end, bytes).map_err(rustix::io::Errno::raw_os_error)
}

impl Pty for Host {
    fn write_master(&mut self, bytes: &[u8]) -> Result<usize, i32> {
        let result = write(&self.master, bytes);
        self.settle();
        result
    }

    fn write_slave(&mut self, bytes: &[u8]) -> Result<usize, i32> {
        let result = write(self.slave(), bytes);
        self.settle();
        result
    }

    fn read_slave(&mut self, max: usize) -> ReadResult {
        let result = read(self.slave(), max);
        self.settle();
        result
    }

    fn read_master(&mut self, max: usize) -> ReadResult {
        read(&self.master, max)
    }

    fn set(&mut self, termios: &Termios2, flush: bool) {
        let mut new = tcgetattr(self.slave()).expect("tcgetattr");
        new.input_modes = InputModes::from_bits_retain(termios.iflag.bits());
        new.output_modes = OutputModes::from_bits_retain(termios.oflag.bits());
        new.control_modes = ControlModes::from_bits_retain(termios.cflag.bits());
        new.local_modes = LocalModes::from_bits_retain(termios.lflag.bits());
        CODES.iter().zip(termios.cc).for_each(|(code, value)| new.special_codes[*code] = value);
        let actions = if flush { OptionalActions::Flush } else { OptionalActions::Now };
        tcsetattr(self.slave(), actions, &new).expect("tcsetattr");
        self.settle();
    }

    fn flush(&mut self, master: bool, queue: FlushQueue) {
        let selector = match queue {
            FlushQueue::IFLUSH => QueueSelector::IFlush,
            FlushQueue::OFLUSH => QueueSelector::OFlush,
            _ => QueueSelector::IOFlush,
        };
        tcflush(if master { &self.master } else { self.slave() }, selector).expect("tcflush");
        self.settle();
    }

    fn flow(&mut self, master: bool, action: FlowAction) {
        let action = match action {
            FlowAction::OOFF => Action::OOff,
            FlowAction::OON => Action::OOn,
            FlowAction::IOFF => Action::IOff,
            _ => Action::IOn,
        };
        tcflow(if master { &self.master } else { self.slave() }, action).expect("tcflow");
        self.settle();
    }

    #[allow(unsafe_code, reason = "rustix has no wrapper for TIOCPKT")]
    fn set_packet_mode(&mut self, on: bool) {
        use rustix::ioctl::{Setter, ioctl};
        // SAFETY: TIOCPKT (0x5420) reads one int through its argument, which is what `Setter` passes.
        unsafe { ioctl(&self.master, Setter::<0x5420, i32>::new(i32::from(on))) }.expect("TIOCPKT");
    }

    fn counts(&mut self) -> (u64, u64) {
        let count = |end: &OwnedFd| rustix::io::ioctl_fionread(end).expect("FIONREAD");
        (count(self.slave()), count(&self.master))
    }

    fn poll(&mut self) -> (u16, u16) {
        (events(self.slave()), events(&self.master))
    }

    fn settings(&mut self) -> String {
        let t = tcgetattr(self.slave()).expect("tcgetattr");
        let bits =
            (t.input_modes.bits(), t.output_modes.bits(), t.control_modes.bits(), t.local_modes.bits());
        let codes: Vec<u8> = CODES.iter().map(|code| t.special_codes[*code]).collect();
        format!("{bits:x?} {codes:?} {} {}", t.input_speed(), t.output_speed())
    }

    fn close_slave(&mut self) {
        self.slave = None;
        self.settle();
    }

    fn open_slave(&mut self) {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY;
        let slave = ioctl_tiocgptpeer(&self.master, flags).expect("the slave opens");
        fcntl_setfl(&slave, OFlags::NONBLOCK).expect("fcntl");
        self.slave = Some(slave);
        self.settle();
    }
}
