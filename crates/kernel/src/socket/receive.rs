//! Receiving.

use std::ops::Range;
use std::sync::Arc;

use abi::{Errno, MsgFlags, Ucred};
use sync::{SysError, SysResult};
use vfs::{Caller, FileDescription, Ready, UserWrite};

use super::address::Address;
use super::flight::discard;
use super::inbox::{Message, Shut};
use super::unix::{Kind, Phase, Unix, waited};
use crate::task::{CurrentTask, wait_as};

/// What a receive asks for, besides room.
#[derive(Clone, Copy)]
pub(super) struct Receiving {
    pub flags: MsgFlags,
    pub nonblocking: bool,
}

/// What it got, besides bytes.
#[derive(Default)]
pub(super) struct Received {
    pub count: usize,
    /// `MSG_TRUNC`.
    pub flags: MsgFlags,
    /// The sender's name.
    pub from: Option<Arc<Address>>,
    /// Of the first message.
    pub credentials: Option<Ucred>,
    pub files: Vec<Arc<FileDescription>>,
    /// A message has been looked at.
    started: bool,
}

/// How a step goes on.
enum Step {
    Again,
    Done,
    Wait,
}

/// Part of a message, to be copied out before it is taken away.
struct Piece {
    data: Arc<Vec<u8>>,
    range: Range<usize>,
    serial: u64,
    from: Option<Arc<Address>>,
    credentials: Option<Ucred>,
    has_rights: bool,
}

impl Piece {
    fn of(message: &Message) -> Piece {
        Piece {
            data: message.data.clone(),
            range: message.start..message.data.len(),
            serial: message.serial,
            from: message.from.clone(),
            credentials: message.credentials,
            has_rights: message.rights.is_some(),
        }
    }

    /// Its first bytes, at most `room`.
    fn bytes(&self, room: usize) -> &[u8] {
        let rest = self.data.get(self.range.clone()).unwrap_or(&[]);
        rest.get(..room).unwrap_or(rest)
    }
}

impl Unix {
    pub(super) fn receive(
        &self,
        caller: &dyn Caller,
        to: &mut dyn UserWrite,
        how: Receiving,
    ) -> SysResult<Received> {
        if how.flags.contains(MsgFlags::OOB) {
            return Err(Errno::EOPNOTSUPP.into());
        }
        match self.kind {
            Kind::Stream if self.phase() != Phase::Connected => Err(Errno::EINVAL.into()),
            Kind::Stream => self.receive_stream(caller, to, how),
            Kind::Seqpacket if self.phase() != Phase::Connected => Err(Errno::ENOTCONN.into()),
            _ => self.receive_datagram(caller, to, how),
        }
    }

    /// Waits for messages behind that of this number, an error or the end.
    fn wait_for_more(
        &self,
        caller: &dyn Caller,
        how: Receiving,
        serial: u64,
        until: sync::Deadline,
    ) -> SysResult<()> {
        if how.nonblocking {
            return Err(Errno::EAGAIN.into());
        }
        let check = || {
            let inbox = self.inbox.lock();
            let ended = inbox.error.is_some() || inbox.shut.contains(Shut::READ);
            (ended || inbox.messages.back().is_some_and(|last| last.serial > serial)).then_some(())
        };
        wait_as(caller, &[&self.readers], until, check).map_err(|end| waited(end, until.is_some()))
    }

    /// Linux: `unix_stream_read_generic`.
    fn receive_stream(
        &self,
        caller: &dyn Caller,
        to: &mut dyn UserWrite,
        how: Receiving,
    ) -> SysResult<Received> {
        let until = self.options.hot().receive_timeout.and_then(CurrentTask::deadline);
        let wanted = to.room();
        let all = how.flags.contains(MsgFlags::WAITALL);
        let target = if all { wanted } else { wanted.min(self.options.hot().low_water) }.max(1);
        let mut got = Received::default();
        // Of the last message that a peek has shown.
        let mut seen = 0;
        let ended = loop {
            match self.receive_pieces(caller, to, how, target, &mut got, &mut seen) {
                Ok(Step::Again) => {}
                Ok(Step::Done) => break Ok(()),
                Ok(Step::Wait) => {
                    if let Err(error) = self.wait_for_more(caller, how, seen, until) {
                        break Err(error);
                    }
                }
                Err(error) => break Err(error),
            }
        };
        match ended {
            Err(error) if got.count == 0 => Err(error),
            _ => Ok(got),
        }
    }

    /// Receives what is there. `Wait`: more is wanted.
    fn receive_pieces(
        &self,
        caller: &dyn Caller,
        to: &mut dyn UserWrite,
        how: Receiving,
        target: usize,
        got: &mut Received,
        seen: &mut u64,
    ) -> SysResult<Step> {
        let _one_at_a_time = self.reading.lock(caller.waiter())?;
        loop {
            let piece = {
                let mut inbox = self.inbox.lock();
                match inbox.after(*seen).map(Piece::of) {
                    Some(piece) => piece,
                    None if got.count >= target => return Ok(Step::Done),
                    None => match inbox.error.take() {
                        Some(errno) => return Err(errno.into()),
                        None if inbox.shut.contains(Shut::READ) => return Ok(Step::Done),
                        None => return Ok(Step::Wait),
                    },
                }
            };
            if let Step::Done = self.receive_piece(to, how, got, seen, &piece)? {
                return Ok(Step::Done);
            }
        }
    }

    fn receive_piece(
        &self,
        to: &mut dyn UserWrite,
        how: Receiving,
        got: &mut Received,
        seen: &mut u64,
        piece: &Piece,
    ) -> SysResult<Step> {
        if !got.started {
            got.started = true;
            got.credentials = piece.credentials;
            got.from.clone_from(&piece.from);
        } else if self.options.hot().pass_credentials && got.credentials != piece.credentials {
            // Bytes of different senders are never given together.
            return Ok(Step::Done);
        }
        let bytes = piece.bytes(to.room());
        if to.put(bytes) < bytes.len() {
            // A piece that faulted is not taken at all, as on Linux.
            return if got.count == 0 { Err(Errno::EFAULT.into()) } else { Ok(Step::Done) };
        }
        got.count += bytes.len();
        let whole = bytes.len() == piece.range.len();
        if how.flags.contains(MsgFlags::PEEK) {
            self.copy_rights(piece, got);
            *seen = piece.serial;
        } else {
            self.consume(piece, bytes.len(), got);
        }
        let more = whole && !piece.has_rights && to.room() > 0;
        Ok(if more { Step::Again } else { Step::Done })
    }

    /// Takes bytes of the first message away, and what it carries.
    fn consume(&self, piece: &Piece, count: usize, got: &mut Received) {
        let mut flight = piece.has_rights.then(|| self.sockets.flight.lock());
        let (rights, gone) = {
            let mut inbox = self.inbox.lock();
            let Some(first) = inbox.messages.front_mut().filter(|first| first.serial == piece.serial) else {
                return;
            };
            let rights = first.rights.take();
            first.start += count;
            let is_empty = first.len() == 0;
            inbox.bytes -= count;
            (rights, is_empty.then(|| inbox.pop(piece.serial)))
        };
        if let (Some(flight), Some(rights)) = (&mut flight, &rights) {
            flight.leave(rights);
        }
        drop(flight);
        got.files.extend(rights.into_iter().flat_map(|rights| rights.files));
        drop(gone);
    }

    /// A peek gets new descriptors of what the message carries.
    fn copy_rights(&self, piece: &Piece, got: &mut Received) {
        if !piece.has_rights {
            return;
        }
        let _flight = self.sockets.flight.lock();
        let inbox = self.inbox.lock();
        let message = inbox.messages.iter().find(|message| message.serial == piece.serial);
        if let Some(rights) = message.and_then(|message| message.rights.as_ref()) {
            got.files.extend(rights.files.iter().cloned());
        }
    }

    /// Linux: `__unix_dgram_recvmsg`.
    fn receive_datagram(
        &self,
        caller: &dyn Caller,
        to: &mut dyn UserWrite,
        how: Receiving,
    ) -> SysResult<Received> {
        let until = self.options.hot().receive_timeout.and_then(CurrentTask::deadline);
        loop {
            if let Some(received) = self.receive_message(caller, to, how)? {
                return Ok(received);
            }
            let shut = self.inbox.lock().shut.contains(Shut::READ);
            if shut && (!how.nonblocking || self.kind == Kind::Seqpacket) {
                return Ok(Received::default());
            }
            self.wait_for_more(caller, how, 0, until)?;
        }
    }

    /// `None`: there is no message.
    fn receive_message(
        &self,
        caller: &dyn Caller,
        to: &mut dyn UserWrite,
        how: Receiving,
    ) -> SysResult<Option<Received>> {
        let _one_at_a_time = self.reading.lock(caller.waiter())?;
        let piece = {
            let mut inbox = self.inbox.lock();
            if let Some(errno) = inbox.error.take() {
                return Err(errno.into());
            }
            match inbox.messages.front() {
                Some(first) => Piece::of(first),
                None => return Ok(None),
            }
        };
        let bytes = piece.bytes(to.room());
        let copied = to.put(bytes);
        let mut got = Received { started: true, from: piece.from.clone(), ..Received::default() };
        got.credentials = piece.credentials;
        let peeks = how.flags.contains(MsgFlags::PEEK);
        if peeks {
            self.copy_rights(&piece, &mut got);
        } else {
            self.take_message(&piece, &mut got);
        }
        if copied < bytes.len() {
            // Linux: the datagram is lost, but for a peek.
            return Err(SysError::from(Errno::EFAULT));
        }
        let is_cut = bytes.len() < piece.range.len();
        got.flags.set(MsgFlags::TRUNC, is_cut);
        got.count = if how.flags.contains(MsgFlags::TRUNC) { piece.range.len() } else { copied };
        Ok(Some(got))
    }

    /// Takes a message away as a whole.
    fn take_message(&self, piece: &Piece, got: &mut Received) {
        let mut flight = piece.has_rights.then(|| self.sockets.flight.lock());
        let (message, hungry) = {
            let mut inbox = self.inbox.lock();
            let message = inbox.pop(piece.serial);
            let hungry = if inbox.is_full() { Vec::new() } else { inbox.take_hungry() };
            (message, hungry)
        };
        if let (Some(flight), Some(rights)) =
            (&mut flight, message.as_ref().and_then(|gone| gone.rights.as_ref()))
        {
            flight.leave(rights);
        }
        drop(flight);
        self.room.wake(Ready::WRITABLE.bits());
        for sender in hungry {
            sender.writers.wake(Ready::WRITABLE.bits());
        }
        let Some(mut message) = message else { return };
        if let Some(rights) = message.rights.take() {
            got.files = rights.files;
        }
        discard(vec![message]);
    }
}
