//! How sockets find each other: pairs, `listen`, `connect`, `accept`.

use std::collections::VecDeque;
use std::sync::Arc;

use abi::{Errno, PollCode, Ucred};
use sync::SysResult;
use vfs::Ready;

use super::address::{is_unspecified, validate};
use super::flight::discard;
use super::inbox::Shut;
use super::unix::{Backlog, Identity, Kind, Phase, Unix, waited};
use crate::task::CurrentTask;

/// Most connections that wait at a listener (`net.core.somaxconn`).
const SOMAXCONN: usize = abi::SOMAXCONN as usize;

/// Two sockets, connected with each other.
pub(super) fn pair(task: &CurrentTask, kind: Kind) -> [Arc<Unix>; 2] {
    let sockets = &task.kernel().sockets;
    let (one, other) = (Unix::new(sockets, kind), Unix::new(sockets, kind));
    for (end, peer) in [(&one, &other), (&other, &one)] {
        let mut state = end.state.lock();
        state.phase = Phase::Connected;
        state.peer = Some(peer.clone());
        state.peer_identity = Some(Identity::of(task));
    }
    [one, other]
}

/// How an attempt to connect ends.
enum Attempt {
    Done,
    /// The listener's backlog is full.
    Full,
    /// The listener has gone: look who has its name now.
    Gone,
}

impl Unix {
    /// Linux: `unix_listen`.
    pub(super) fn listen(self: &Arc<Self>, task: &CurrentTask, limit: i32) -> SysResult<()> {
        if !self.kind.connects() {
            return Err(Errno::EOPNOTSUPP.into());
        }
        let limit = usize::try_from(limit).unwrap_or(SOMAXCONN).min(SOMAXCONN);
        let identity = Identity::of(task);
        {
            let mut backlog = self.backlog.lock();
            let mut state = self.state.lock();
            if state.address.is_none() || state.phase == Phase::Connected {
                return Err(Errno::EINVAL.into());
            }
            state.phase = Phase::Listening;
            state.peer_identity = Some(identity.clone());
            match &mut *backlog {
                Some(backlog) => (backlog.limit, backlog.identity) = (limit, identity),
                None => *backlog = Some(Backlog { pending: VecDeque::new(), limit, identity }),
            }
        }
        self.room.wake(0);
        Ok(())
    }

    /// `connect` of a stream or seqpacket socket (Linux: `unix_stream_connect`).
    pub(super) fn connect_stream(
        self: &Arc<Self>,
        task: &CurrentTask,
        raw: &[u8],
        nonblocking: bool,
    ) -> SysResult<()> {
        validate(raw)?;
        self.autobind_to_pass(task)?;
        let span = self.options.hot().send_timeout;
        let deadline = span.and_then(CurrentTask::deadline);
        loop {
            let listener = self.sockets.find(task, raw, self.kind)?;
            match self.connect_to(task, &listener)? {
                Attempt::Done => return Ok(()),
                Attempt::Gone => {}
                Attempt::Full if nonblocking => return Err(Errno::EAGAIN.into()),
                Attempt::Full => {
                    let no_longer_full = |_: &CurrentTask| {
                        let shut = {
                            let inbox = listener.inbox.lock();
                            inbox.dead || inbox.shut.contains(Shut::READ)
                        };
                        let full = listener.backlog.lock().as_ref().is_some_and(Backlog::is_full);
                        (shut || !full).then_some(())
                    };
                    task.wait(&[&listener.room], deadline, no_longer_full)
                        .map_err(|end| waited(end, span.is_some()))?;
                }
            }
        }
    }

    fn connect_to(self: &Arc<Self>, task: &CurrentTask, listener: &Arc<Unix>) -> SysResult<Attempt> {
        let accepted = Unix::new(&self.sockets, self.kind);
        accepted.options.inherit(&listener.options);
        let name = listener.address();
        {
            let mut backlog = listener.backlog.lock();
            {
                let inbox = listener.inbox.lock();
                if inbox.dead {
                    return Ok(Attempt::Gone);
                }
                if inbox.shut.contains(Shut::READ) {
                    return Err(Errno::ECONNREFUSED.into());
                }
            }
            let backlog = backlog.as_mut().ok_or(Errno::ECONNREFUSED)?;
            if backlog.is_full() {
                return Ok(Attempt::Full);
            }
            {
                // Nobody else knows it: the one lock of this level that is held.
                let mut state = accepted.state.lock();
                state.phase = Phase::Connected;
                state.address = name;
                state.peer = Some(self.clone());
                state.peer_identity = Some(Identity::of(task));
            }
            let mut state = self.state.lock();
            match state.phase {
                Phase::Closed => {}
                Phase::Connected => return Err(Errno::EISCONN.into()),
                Phase::Listening => return Err(Errno::EINVAL.into()),
            }
            state.phase = Phase::Connected;
            state.peer = Some(accepted.clone());
            state.peer_identity = Some(backlog.identity.clone());
            backlog.pending.push_back(accepted);
        }
        listener.readers.wake(Ready::READABLE.bits());
        listener.tell_owner(task, PollCode::IN);
        self.wake_all();
        Ok(Attempt::Done)
    }

    /// `accept`: the next connection (Linux: `unix_accept`).
    pub(super) fn accept(self: &Arc<Self>, task: &CurrentTask, nonblocking: bool) -> SysResult<Arc<Unix>> {
        if !self.kind.connects() {
            return Err(Errno::EOPNOTSUPP.into());
        }
        if self.phase() != Phase::Listening {
            return Err(Errno::EINVAL.into());
        }
        let next = || self.backlog.lock().as_mut().and_then(|backlog| backlog.pending.pop_front());
        let is_shut = || self.inbox.lock().shut.contains(Shut::READ);
        let check = |_: &CurrentTask| match next() {
            Some(connection) => Some(Ok(connection)),
            // Linux tells of a shutdown of the listener so.
            None => is_shut().then_some(Err(Errno::EINVAL)),
        };
        let span = self.options.hot().receive_timeout;
        let found = match nonblocking {
            true => check(task).ok_or(Errno::EAGAIN)?,
            false => task
                .wait(&[&self.readers], span.and_then(CurrentTask::deadline), check)
                .map_err(|end| waited(end, span.is_some()))?,
        };
        self.room.wake(0);
        Ok(found?)
    }

    /// `connect` of a datagram socket: from now on it sends there, and hears nobody else. `AF_UNSPEC` ends that
    /// (Linux: `unix_dgram_connect`).
    pub(super) fn connect_datagram(self: &Arc<Self>, task: &CurrentTask, raw: &[u8]) -> SysResult<()> {
        if raw.len() < 2 {
            return Err(Errno::EINVAL.into());
        }
        if is_unspecified(raw) {
            return self.change_peer(None);
        }
        validate(raw)?;
        self.autobind_to_pass(task)?;
        loop {
            let other = self.sockets.find(task, raw, self.kind)?;
            if other.inbox.lock().dead {
                continue;
            }
            if !other.hears(self) {
                return Err(Errno::EPERM.into());
            }
            return self.change_peer(Some(other));
        }
    }

    /// Linux: `unix_may_send`.
    pub(super) fn hears(&self, sender: &Arc<Unix>) -> bool {
        self.state.lock().peer.as_ref().is_none_or(|peer| Arc::ptr_eq(peer, sender))
    }

    fn change_peer(self: &Arc<Self>, new: Option<Arc<Unix>>) -> SysResult<()> {
        let old = {
            let mut state = self.state.lock();
            state.phase = if new.is_some() { Phase::Connected } else { Phase::Closed };
            std::mem::replace(&mut state.peer, new.clone())
        };
        if let Some(old) = old
            && !new.is_some_and(|new| Arc::ptr_eq(&new, &old))
        {
            self.left(&old);
        }
        self.writers.wake(Ready::WRITABLE.bits());
        Ok(())
    }

    /// A datagram socket has another peer, or none: what came from the old one goes (Linux: `unix_dgram_disconnected`).
    pub(super) fn left(self: &Arc<Self>, old: &Arc<Unix>) {
        let messages = {
            let mut flight = self.sockets.flight.lock();
            let messages = self.inbox.lock().take_all();
            messages
                .iter()
                .filter_map(|message| message.rights.as_ref())
                .for_each(|rights| flight.leave(rights));
            messages
        };
        if messages.is_empty() {
            return;
        }
        self.room.wake(0);
        let was_mutual = old.state.lock().peer.as_ref().is_some_and(|peer| Arc::ptr_eq(peer, self));
        if was_mutual {
            let told = {
                let mut inbox = old.inbox.lock();
                let told = !inbox.dead;
                if told {
                    inbox.error = Some(Errno::ECONNRESET);
                }
                told
            };
            if told {
                old.wake_all();
            }
        }
        discard(messages);
    }

    /// What `SO_PEERCRED` tells.
    pub(super) fn peer_credentials(&self) -> Ucred {
        let nobody = Ucred { pid: 0, uid: u32::MAX, gid: u32::MAX };
        self.state.lock().peer_identity.as_ref().map_or(nobody, |identity| identity.cred)
    }
}
