//! A socket: its state, what it is ready for, its end.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use abi::{Errno, PollCode, ShutdownHow, SocketKind, Ucred};
use sync::{Mutex, SleepLock, SysResult, WaitEnd, WaitQueue, order};
use vfs::{FileDescription, Ready};

use super::Sockets;
use super::address::Address;
use super::flight::discard;
use super::inbox::{Charge, Inbox, Shut};
use super::options::Options;
use crate::fs::async_io::tell_owner;
use crate::task::{CurrentTask, ThreadGroup};

/// A socket's type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Kind {
    Stream,
    Datagram,
    Seqpacket,
}

impl Kind {
    /// `ESOCKTNOSUPPORT` for what AF_UNIX does not have; raw sockets are datagram ones, as on Linux.
    pub(super) fn new(kind: SocketKind) -> SysResult<Kind> {
        match kind {
            SocketKind::STREAM => Ok(Kind::Stream),
            SocketKind::DGRAM | SocketKind::RAW => Ok(Kind::Datagram),
            SocketKind::SEQPACKET => Ok(Kind::Seqpacket),
            _ => Err(Errno::ESOCKTNOSUPPORT.into()),
        }
    }

    pub(super) fn number(self) -> SocketKind {
        match self {
            Kind::Stream => SocketKind::STREAM,
            Kind::Datagram => SocketKind::DGRAM,
            Kind::Seqpacket => SocketKind::SEQPACKET,
        }
    }

    /// Whether sockets of this type listen and are accepted.
    pub(super) fn connects(self) -> bool {
        self != Kind::Datagram
    }
}

/// Linux: `sk_state`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Closed,
    Listening,
    Connected,
}

/// Who made the other end (Linux: `sk_peer_cred`, `sk_peer_pid`).
#[derive(Clone)]
pub(super) struct Identity {
    /// Process, effective user and group.
    pub cred: Ucred,
    pub groups: Arc<[u32]>,
    pub process: Arc<ThreadGroup>,
}

impl Identity {
    pub(super) fn of(task: &CurrentTask) -> Identity {
        Identity {
            cred: Ucred { pid: task.pid(), uid: task.cred.euid, gid: task.cred.egid },
            groups: task.cred.groups.clone(),
            process: task.group().clone(),
        }
    }
}

/// What a socket is connected to.
pub(super) struct State {
    pub phase: Phase,
    pub address: Option<Arc<Address>>,
    /// Broken by the end of this socket, not of the peer.
    pub peer: Option<Arc<Unix>>,
    pub peer_identity: Option<Identity>,
}

/// What a listening socket has.
pub(super) struct Backlog {
    pub pending: VecDeque<Arc<Unix>>,
    /// As `listen` was told: there is room for one more than that.
    pub limit: usize,
    /// Who called `listen`.
    pub identity: Identity,
}

impl Backlog {
    pub(super) fn is_full(&self) -> bool {
        self.pending.len() > self.limit
    }
}

/// A socket.
pub struct Unix {
    pub(super) sockets: Arc<Sockets>,
    pub(super) kind: Kind,
    pub(super) state: Mutex<order::Socket, State>,
    pub(super) backlog: Mutex<order::SocketBacklog, Option<Backlog>>,
    pub(super) inbox: Mutex<order::Buffer, Inbox>,
    pub(super) options: Options,
    /// Held while bytes are copied out.
    pub(super) reading: SleepLock,
    /// Held while it gets a name.
    pub(super) binding: SleepLock,
    pub(super) readers: WaitQueue,
    pub(super) writers: WaitQueue,
    /// Those who wait for room in its inbox or backlog.
    pub(super) room: WaitQueue,
    /// Memory of its messages that nobody has received yet (Linux: `sk_wmem_alloc`).
    sent: AtomicUsize,
    /// Its open file, once it has one: whose owner gets SIGIO.
    pub(super) file: OnceLock<Weak<FileDescription>>,
}

impl Unix {
    pub(super) fn new(sockets: &Arc<Sockets>, kind: Kind) -> Arc<Unix> {
        Arc::new(Unix {
            sockets: sockets.clone(),
            kind,
            state: Mutex::new(State { phase: Phase::Closed, address: None, peer: None, peer_identity: None }),
            backlog: Mutex::default(),
            inbox: Mutex::default(),
            options: Options::default(),
            reading: SleepLock::new(),
            binding: SleepLock::new(),
            readers: WaitQueue::new(),
            writers: WaitQueue::new(),
            room: WaitQueue::new(),
            sent: AtomicUsize::new(0),
            file: OnceLock::new(),
        })
    }

    pub(super) fn phase(&self) -> Phase {
        self.state.lock().phase
    }

    pub(super) fn peer(&self) -> Option<Arc<Unix>> {
        self.state.lock().peer.clone()
    }

    pub(super) fn address(&self) -> Option<Arc<Address>> {
        self.state.lock().address.clone()
    }

    /// Memory of its messages in flight, in bytes.
    pub(super) fn sent(&self) -> usize {
        self.sent.load(Ordering::SeqCst)
    }

    /// Takes memory for a message if there is any left: the last one may go beyond the limit, as on Linux.
    pub(super) fn try_charge(self: &Arc<Self>, amount: usize) -> Option<Charge> {
        let limit = self.options.hot().send_buffer;
        let step = |used: usize| (used < limit).then_some(used.saturating_add(amount));
        self.sent.fetch_update(Ordering::SeqCst, Ordering::SeqCst, step).ok()?;
        Some(Charge::new(self.clone(), amount))
    }

    /// Gives memory back (Linux: `sock_wfree`).
    pub(super) fn uncharge(&self, amount: usize) {
        self.sent.fetch_sub(amount, Ordering::SeqCst);
        if self.is_roomy() {
            self.writers.wake(Ready::WRITABLE.bits());
        }
    }

    /// Linux: `unix_writable`. A quarter at most is in use.
    fn is_roomy(&self) -> bool {
        self.sent().saturating_mul(4) <= self.options.hot().send_buffer
    }

    /// Tells everybody that its state changed (Linux: `sk_state_change`).
    pub(super) fn wake_all(&self) {
        self.readers.wake(0);
        self.writers.wake(0);
        self.room.wake(0);
    }

    /// Sends SIGIO to the owner of its open file (Linux: `sk_wake_async`). No lock is held.
    pub(super) fn tell_owner(&self, task: &CurrentTask, code: PollCode) {
        if let Some(file) = self.file.get().and_then(Weak::upgrade) {
            tell_owner(task.kernel(), &file, code);
        }
    }

    /// Linux: `unix_poll`, `unix_dgram_poll`.
    pub(super) fn poll(self: &Arc<Self>) -> Ready {
        let (phase, peer) = {
            let state = self.state.lock();
            (state.phase, state.peer.clone())
        };
        let mut ready = Ready::empty();
        if self.backlog.lock().as_ref().is_some_and(|backlog| !backlog.pending.is_empty()) {
            ready |= Ready::READABLE;
        }
        {
            let inbox = self.inbox.lock();
            ready.set(Ready::ERR, inbox.error.is_some());
            ready.set(
                Ready::HUP,
                inbox.shut == Shut::all() || (self.kind.connects() && phase == Phase::Closed),
            );
            if inbox.shut.contains(Shut::READ) {
                ready |= Ready::READABLE | Ready::RDHUP;
            }
            if !inbox.messages.is_empty() {
                ready |= Ready::READABLE;
            }
        }
        let full = self.kind != Kind::Stream && peer.is_some_and(|peer| self.waits_for(&peer));
        if phase != Phase::Listening && self.is_roomy() && !full {
            ready |= Ready::WRITABLE | Ready::WRBAND;
        }
        ready
    }

    /// Whether the peer, not connected back, has a full inbox; then it is remembered to wake this socket's writers.
    fn waits_for(self: &Arc<Self>, peer: &Arc<Unix>) -> bool {
        let peer_state = peer.state.lock();
        if peer_state.peer.as_ref().is_some_and(|back| Arc::ptr_eq(back, self)) {
            return false;
        }
        let mut inbox = peer.inbox.lock();
        let full = inbox.is_full() && !inbox.dead;
        if full {
            inbox.remember_hungry(self);
        }
        full
    }

    /// Linux: `unix_shutdown`.
    pub(super) fn shutdown(&self, task: &CurrentTask, how: ShutdownHow) -> SysResult<()> {
        let (own, other) = match how {
            ShutdownHow::RD => (Shut::READ, Shut::WRITE),
            ShutdownHow::WR => (Shut::WRITE, Shut::READ),
            ShutdownHow::RDWR => (Shut::all(), Shut::all()),
            _ => return Err(Errno::EINVAL.into()),
        };
        self.inbox.lock().shut |= own;
        if let Some(peer) = self.peer().filter(|_| self.kind.connects()) {
            peer.inbox.lock().shut |= other;
            peer.wake_all();
            match how {
                ShutdownHow::RDWR => peer.tell_owner(task, PollCode::HUP),
                ShutdownHow::WR => peer.tell_owner(task, PollCode::IN),
                _ => {}
            }
        }
        self.wake_all();
        Ok(())
    }

    /// Its open file is closed (Linux: `unix_release_sock`).
    pub(super) fn release(self: &Arc<Self>) {
        self.end(false);
        self.sockets.collect();
    }

    /// `unaccepted`: a connection in the backlog of a listener that ends.
    fn end(self: &Arc<Self>, unaccepted: bool) {
        let (peer, address) = {
            let mut state = self.state.lock();
            state.phase = Phase::Closed;
            (state.peer.take(), state.address.clone())
        };
        if let Some(address) = address {
            self.sockets.forget(&address, self);
        }
        let pending = self.backlog.lock().take();
        let messages = {
            let mut flight = self.sockets.flight.lock();
            let mut inbox = self.inbox.lock();
            inbox.dead = true;
            inbox.shut = Shut::all();
            let messages = inbox.take_all();
            messages
                .iter()
                .filter_map(|message| message.rights.as_ref())
                .for_each(|rights| flight.leave(rights));
            messages
        };
        let hungry = self.inbox.lock().take_hungry();
        if let Some(peer) = peer.filter(|_| self.kind.connects()) {
            {
                let mut inbox = peer.inbox.lock();
                inbox.shut = Shut::all();
                if unaccepted || !messages.is_empty() {
                    inbox.error = Some(Errno::ECONNRESET);
                }
            }
            peer.wake_all();
        }
        self.wake_all();
        for sender in hungry {
            sender.writers.wake(Ready::WRITABLE.bits());
        }
        for connection in pending.into_iter().flat_map(|backlog| backlog.pending) {
            connection.end(true);
        }
        discard(messages);
    }
}

/// How a wait with a time-out of the socket's ends (Linux: `sock_intr_errno`): it does not start again.
pub(super) fn waited(end: WaitEnd, timed: bool) -> sync::SysError {
    match end {
        WaitEnd::TimedOut => Errno::EAGAIN.into(),
        WaitEnd::Interrupted(_) if timed => Errno::EINTR.into(),
        end @ WaitEnd::Interrupted(_) => end.into(),
    }
}
