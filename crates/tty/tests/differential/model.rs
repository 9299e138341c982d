//! A script's pty by this crate.

use crate::script::{Pty, ReadResult};
use abi::{Errno, FlowAction, FlushQueue, Termios2};
use tty::{Effects, PtyPair, Read};

pub(crate) struct Model {
    pair: PtyPair,
}

impl Model {
    pub(crate) fn new() -> Model {
        let mut pair = PtyPair::new();
        pair.set_locked(false);
        pair.open_slave().expect("an unlocked slave opens");
        Model { pair }
    }
}

fn counted(n: usize) -> Result<usize, i32> {
    if n == 0 { Err(Errno::EAGAIN.raw()) } else { Ok(n) }
}

impl Pty for Model {
    fn write_master(&mut self, bytes: &[u8]) -> Result<usize, i32> {
        counted(self.pair.write_master(bytes, &mut Effects::default()))
    }

    fn write_slave(&mut self, bytes: &[u8]) -> Result<usize, i32> {
        counted(self.pair.write_slave(bytes, &mut Effects::default()).map_err(Errno::raw)?)
    }

    fn read_slave(&mut self, max: usize) -> ReadResult {
        let chunk = match self.pair.peek_slave(max) {
            Read::Ready(chunk) => chunk,
            Read::Wait(_) => self.pair.line().peek_now(max).ok_or(Errno::EAGAIN.raw())?,
            Read::HungUp => return Ok(Vec::new()),
            Read::PeerClosed => return Err(Errno::EIO.raw()),
        };
        self.pair.line_mut().commit(&chunk, chunk.bytes.len(), &mut Effects::default());
        Ok(chunk.bytes)
    }

    fn read_master(&mut self, max: usize) -> ReadResult {
        match self.pair.peek_master(max) {
            Read::Ready(chunk) => {
                self.pair.commit_master(&chunk, chunk.bytes.len(), &mut Effects::default());
                Ok(chunk.bytes)
            }
            Read::PeerClosed => Err(Errno::EIO.raw()),
            Read::Wait(_) | Read::HungUp => Err(Errno::EAGAIN.raw()),
        }
    }

    fn set(&mut self, termios: &Termios2, flush: bool) {
        let mut fx = Effects::default();
        if flush {
            self.pair.line_mut().discard_input(&mut fx);
        }
        self.pair.line_mut().set_termios(termios, &mut fx);
    }

    fn flush(&mut self, master: bool, queue: FlushQueue) {
        let mut fx = Effects::default();
        let result = match master {
            true => self.pair.flush_master(queue, &mut fx),
            false => self.pair.line_mut().flush(queue, &mut fx),
        };
        result.expect("the queue exists");
    }

    fn flow(&mut self, master: bool, action: FlowAction) {
        let mut fx = Effects::default();
        let result = match master {
            true => self.pair.flow_master(action, &mut fx),
            false => self.pair.line_mut().flow(action, &mut fx),
        };
        result.expect("the action exists");
    }

    fn set_packet_mode(&mut self, on: bool) {
        self.pair.set_packet_mode(on);
    }

    fn counts(&mut self) -> (u64, u64) {
        (self.pair.line().readable_bytes() as u64, self.pair.master_readable_bytes() as u64)
    }

    fn poll(&mut self) -> (u16, u16) {
        (self.pair.poll_slave().bits(), self.pair.poll_master().bits())
    }

    fn settings(&mut self) -> String {
        let t = self.pair.line().termios();
        let bits = (t.iflag.bits(), t.oflag.bits(), t.cflag.bits(), t.lflag.bits());
        format!("{bits:x?} {:?} {} {}", &t.cc[..17], t.ispeed, t.ospeed)
    }

    fn close_slave(&mut self) {
        self.pair.close_slave(&mut Effects::default());
    }

    fn open_slave(&mut self) {
        self.pair.open_slave().expect("the slave opens again");
    }
}
