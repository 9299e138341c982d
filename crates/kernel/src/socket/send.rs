//! Sending.

use std::sync::Arc;

use abi::{Errno, MsgFlags, PollCode, Ucred};
use sync::{Deadline, SysError, SysResult};
use vfs::{Caller, Ready, UserRead};

use super::address::validate;
use super::flight::Rights;
use super::inbox::{Charge, Message, Shut};
use super::unix::{Kind, Phase, Unix, waited};
use crate::task::CurrentTask;

/// What a send asks for, besides its bytes.
#[derive(Default)]
pub(super) struct Sending<'a> {
    pub flags: MsgFlags,
    pub nonblocking: bool,
    /// Where to; empty: to the peer.
    pub to: &'a [u8],
    pub rights: Option<Rights>,
    /// Given by the sender, and checked.
    pub credentials: Option<Ucred>,
}

/// Why a message was not taken.
enum Refusal {
    Errno(Errno),
    /// The socket is closed.
    Dead,
    /// There is no room.
    Full,
}

/// Bytes of a buffer's own book-keeping, and of what it lies in (Linux: `sk_buff`, `skb_shared_info`).
const BUFFER: usize = 256;
const BUFFER_TAIL: usize = 320;
const PAGE: usize = 4096;
/// The longest head of a stream's buffer and of a datagram's (SKB_MAX_HEAD(0), SKB_MAX_ALLOC).
const STREAM_HEAD: usize = PAGE - BUFFER_TAIL;
const DATAGRAM_HEAD: usize = 4 * PAGE - BUFFER_TAIL;
/// Bytes of a stream that one buffer holds beside its head.
const STREAM_PAGES: usize = 32768;

/// What Linux counts for a message of `len` bytes (`truesize`): the head in a power of two, then pages.
fn memory(len: usize, longest_head: usize) -> usize {
    let in_pages = len.saturating_sub(longest_head).next_multiple_of(PAGE).min(len);
    let head = (len - in_pages + BUFFER_TAIL).next_power_of_two();
    BUFFER + head + in_pages.next_multiple_of(PAGE)
}

/// Takes all of `len` bytes. `EFAULT`.
fn take(from: &mut dyn UserRead, len: usize) -> SysResult<Vec<u8>> {
    let mut bytes = vec![0; len];
    if from.take(&mut bytes) == len { Ok(bytes) } else { Err(Errno::EFAULT.into()) }
}

impl Unix {
    /// Sends; gives the bytes taken.
    pub(super) fn send(
        self: &Arc<Self>,
        task: &CurrentTask,
        from: &mut dyn UserRead,
        sending: Sending<'_>,
    ) -> SysResult<usize> {
        if sending.flags.contains(MsgFlags::OOB) {
            return Err(Errno::EOPNOTSUPP.into());
        }
        match self.kind {
            Kind::Stream => self.send_stream(task, from, sending),
            Kind::Datagram => self.send_datagram(task, from, sending),
            Kind::Seqpacket => {
                if let Some(errno) = self.inbox.lock().error.take() {
                    return Err(errno.into());
                }
                if self.phase() != Phase::Connected {
                    return Err(Errno::ENOTCONN.into());
                }
                self.send_datagram(task, from, Sending { to: &[], ..sending })
            }
        }
    }

    fn send_timeout(&self) -> (Deadline, bool) {
        let span = self.options.hot().send_timeout;
        (span.and_then(CurrentTask::deadline), span.is_some())
    }

    /// Takes memory for a message, waiting for it (Linux: `sock_alloc_send_pskb`).
    fn charge(
        self: &Arc<Self>,
        task: &CurrentTask,
        amount: usize,
        nonblocking: bool,
        deadline: (Deadline, bool),
    ) -> SysResult<Charge> {
        let check = |_: &CurrentTask| {
            {
                let mut inbox = self.inbox.lock();
                if let Some(errno) = inbox.error.take() {
                    return Some(Err(errno));
                }
                if inbox.shut.contains(Shut::WRITE) {
                    return Some(Err(Errno::EPIPE));
                }
            }
            self.try_charge(amount).map(Ok)
        };
        let charge = match nonblocking {
            true => check(task).ok_or(Errno::EAGAIN)?,
            false => task.wait(&[&self.writers], deadline.0, check).map_err(|end| waited(end, deadline.1))?,
        };
        Ok(charge?)
    }

    /// Linux: `unix_stream_sendmsg`.
    fn send_stream(
        self: &Arc<Self>,
        task: &CurrentTask,
        from: &mut dyn UserRead,
        sending: Sending<'_>,
    ) -> SysResult<usize> {
        let (phase, peer) = {
            let state = self.state.lock();
            (state.phase, state.peer.clone())
        };
        if !sending.to.is_empty() {
            let connected = phase == Phase::Connected;
            return Err(if connected { Errno::EISCONN } else { Errno::EOPNOTSUPP }.into());
        }
        let peer = peer.ok_or(Errno::ENOTCONN)?;
        let mut sent = 0;
        let is_shut = self.inbox.lock().shut.contains(Shut::WRITE);
        let stopped = match is_shut {
            true => Err((Errno::EPIPE.into(), true)),
            false => self.send_pieces(
                task,
                &peer,
                from,
                sending.nonblocking,
                sending.rights,
                sending.credentials,
                &mut sent,
            ),
        };
        match stopped {
            Ok(()) => Ok(sent),
            Err(_) if sent > 0 => Ok(sent),
            Err((error, broken)) => {
                if broken && !sending.flags.contains(MsgFlags::NOSIGNAL) {
                    task.broken_pipe();
                }
                Err(error)
            }
        }
    }

    /// Sends a stream's bytes in pieces. Errors come with whether they are a broken pipe's.
    #[allow(clippy::too_many_arguments, reason = "the parts of one send")]
    fn send_pieces(
        self: &Arc<Self>,
        task: &CurrentTask,
        peer: &Arc<Unix>,
        from: &mut dyn UserRead,
        nonblocking: bool,
        mut rights: Option<Rights>,
        credentials: Option<Ucred>,
        sent: &mut usize,
    ) -> Result<(), (SysError, bool)> {
        let deadline = self.send_timeout();
        while from.left() > 0 {
            let half = (self.options.hot().send_buffer / 2).saturating_sub(64);
            let size = from.left().min(half).min(STREAM_HEAD + STREAM_PAGES);
            let ready = self
                .charge(task, memory(size, STREAM_HEAD), nonblocking, deadline)
                .and_then(|charge| Ok((charge, take(from, size)?)));
            let (charge, bytes) = ready.map_err(|error| (error, false))?;
            let message = self.message(bytes, rights.take(), credentials, charge);
            match peer.deliver(self, task, message) {
                Ok(()) => *sent += size,
                Err((Refusal::Errno(errno), _)) => return Err((errno.into(), errno == Errno::EPIPE)),
                Err((Refusal::Dead | Refusal::Full, _)) => return Err((Errno::EPIPE.into(), true)),
            }
        }
        Ok(())
    }

    fn message(
        &self,
        bytes: Vec<u8>,
        rights: Option<Rights>,
        credentials: Option<Ucred>,
        charge: Charge,
    ) -> Message {
        let from = self.address();
        Message { data: Arc::new(bytes), start: 0, serial: 0, from, credentials, rights, _charge: charge }
    }

    /// Linux: `unix_dgram_sendmsg`.
    fn send_datagram(
        self: &Arc<Self>,
        task: &CurrentTask,
        from: &mut dyn UserRead,
        sending: Sending<'_>,
    ) -> SysResult<usize> {
        let is_addressed = !sending.to.is_empty();
        if is_addressed {
            validate(sending.to)?;
        }
        self.autobind_to_pass(task)?;
        let size = from.left();
        if size > self.options.hot().send_buffer.saturating_sub(32) {
            return Err(Errno::EMSGSIZE.into());
        }
        let deadline = self.send_timeout();
        let charge = self.charge(task, memory(size, DATAGRAM_HEAD), sending.nonblocking, deadline)?;
        let bytes = take(from, size)?;
        let mut message = self.message(bytes, sending.rights, sending.credentials, charge);
        loop {
            let other = match is_addressed {
                true => self.sockets.find(task, sending.to, self.kind)?,
                false => self.peer().ok_or(Errno::ENOTCONN)?,
            };
            let refusal;
            (refusal, message) = match other.deliver(self, task, message) {
                Ok(()) => return Ok(size),
                Err(refused) => refused,
            };
            match refusal {
                Refusal::Errno(errno) => return Err(errno.into()),
                Refusal::Dead if self.kind == Kind::Seqpacket => return Err(Errno::EPIPE.into()),
                Refusal::Dead if self.forget_peer(&other) => return Err(Errno::ECONNREFUSED.into()),
                Refusal::Dead if !is_addressed => return Err(Errno::ECONNRESET.into()),
                Refusal::Dead => {}
                Refusal::Full if sending.nonblocking => return Err(Errno::EAGAIN.into()),
                Refusal::Full => {
                    let has_room = |_: &CurrentTask| {
                        let inbox = other.inbox.lock();
                        (inbox.dead || inbox.shut.contains(Shut::READ) || !inbox.is_full()).then_some(())
                    };
                    task.wait(&[&other.room], deadline.0, has_room).map_err(|end| waited(end, deadline.1))?;
                }
            }
        }
    }

    /// The peer of a datagram socket is closed. `false`: it was not the peer.
    fn forget_peer(self: &Arc<Self>, peer: &Arc<Unix>) -> bool {
        {
            let mut state = self.state.lock();
            if !state.peer.as_ref().is_some_and(|own| Arc::ptr_eq(own, peer)) {
                return false;
            }
            state.peer = None;
            state.phase = Phase::Closed;
        }
        self.left(peer);
        true
    }

    /// Takes a message in.
    fn deliver(
        self: &Arc<Self>,
        sender: &Arc<Unix>,
        task: &CurrentTask,
        mut message: Message,
    ) -> Result<(), (Refusal, Message)> {
        let wanted = self.options.hot();
        // A connection that nobody has accepted yet may come to want them (Linux: `unix_maybe_add_creds`).
        let sender_wants = sender.options.hot().pass_credentials;
        let is_wanted = wanted.pass_credentials || sender_wants || self.file.get().is_none();
        if message.credentials.is_none() && is_wanted {
            message.credentials = Some(Ucred { pid: task.pid(), uid: task.cred.uid, gid: task.cred.gid });
        }
        let mut refused = None;
        {
            let mut flight = message.rights.is_some().then(|| self.sockets.flight.lock());
            let state = self.state.lock();
            let is_back = state.peer.as_ref().is_some_and(|peer| Arc::ptr_eq(peer, sender));
            let mut inbox = self.inbox.lock();
            let is_stream = self.kind == Kind::Stream;
            if !is_stream && state.peer.is_some() && !is_back {
                refused = Some(Refusal::Errno(Errno::EPERM));
            } else if inbox.dead {
                refused = Some(Refusal::Dead);
            } else if inbox.shut.contains(Shut::READ) {
                refused = Some(Refusal::Errno(Errno::EPIPE));
            } else if message.rights.is_some() && !wanted.pass_rights {
                refused = Some(Refusal::Errno(Errno::EPERM));
            } else if !is_stream && !is_back && !Arc::ptr_eq(self, sender) && inbox.is_full() {
                refused = Some(Refusal::Full);
            }
            if refused.is_none() {
                if let (Some(flight), Some(rights)) = (&mut flight, &message.rights) {
                    flight.enter(rights);
                }
                inbox.push(message);
                drop(inbox);
                drop(state);
                drop(flight);
                self.readers.wake(Ready::READABLE.bits());
                self.tell_owner(task, PollCode::IN);
                return Ok(());
            }
        }
        Err((refused.unwrap_or(Refusal::Dead), message))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_take_the_memory_that_linux_counts() {
        // SIOCOUTQ on Linux 6.18.
        let stream =
            [(1, 768), (192, 768), (193, 1280), (704, 1280), (1728, 2304), (1729, 4352), (3776, 4352)];
        let longer = [(3777, 4864), (8000, 8960), (20000, 20736), (32768, 33536), (36544, 37120)];
        for (len, counted) in stream.into_iter().chain(longer) {
            assert_eq!(memory(len, STREAM_HEAD), counted, "a stream's {len} bytes");
        }
        for (len, counted) in
            [(0, 768), (3776, 4352), (3777, 8448), (8000, 16640), (20000, 20736), (100_000, 102_656)]
        {
            assert_eq!(memory(len, DATAGRAM_HEAD), counted, "a datagram of {len} bytes");
        }
    }
}
