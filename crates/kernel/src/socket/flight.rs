//! Descriptors in flight: in messages that nobody has received.
//!
//! A socket whose every reference is in flight, in inboxes of such sockets, can be reached by nobody: they would keep
//! each other for ever. [`Sockets::collect`] finds them (Linux: `unix_gc`) and empties their inboxes. All that moves
//! descriptors into and out of inboxes does so with the lock on [`Flight`] held, so that it sees them all at once.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::{Arc, Weak};

use abi::Errno;
use sync::SysResult;
use vfs::{Capability, FileDescription};

use super::Sockets;
use super::file::SocketFile;
use super::inbox::Message;
use super::unix::Unix;
use crate::resource::NOFILE;
use crate::task::CurrentTask;
use crate::users::{Counted, Held};

/// Descriptors in flight in the whole kernel, whoever sends them: what no privilege exceeds.
const MOST_IN_FLIGHT: usize = 1 << 18;
/// With so many sockets in flight at most, each closed socket is a reason to look for unreachable ones; with more, as
/// many closed or sent ones as a part of them, so that the look costs each of them little.
const FEW_SOCKETS: usize = 64;
/// With so many in flight, sending one more is a reason too.
const MANY_SOCKETS: usize = 1024;

/// Descriptors that a message carries.
pub(super) struct Rights {
    pub files: Vec<Arc<FileDescription>>,
    /// Counted as the sender's.
    _share: Held,
}

impl Rights {
    /// `ETOOMANYREFS` beyond what a user may have in flight.
    pub(super) fn new(task: &CurrentTask, files: Vec<Arc<FileDescription>>) -> SysResult<Rights> {
        let count = files.len();
        let share = task.kernel().users.hold(task.cred.uid, Counted::InFlight, count);
        let privileged =
            task.cred.capable(Capability::SYS_RESOURCE) || task.cred.capable(Capability::SYS_ADMIN);
        let sockets = &task.kernel().sockets;
        let is_too_much = || {
            let before = share.total().saturating_sub(count);
            let over_own = !privileged && before as u64 > task.limit(NOFILE);
            over_own || sockets.flight.lock().total > MOST_IN_FLIGHT
        };
        sockets.collect_if_many();
        if is_too_much() {
            // Not at each attempt of one who has too much, for a look is long.
            let changed = sockets.flight.lock().changes > 0;
            if changed {
                sockets.collect_now();
            }
            if is_too_much() {
                return Err(Errno::ETOOMANYREFS.into());
            }
        }
        Ok(Rights { files, _share: share })
    }
}

/// All descriptors in flight.
#[derive(Default)]
pub(super) struct Flight {
    total: usize,
    /// The sockets among them, by where their open files lie in memory.
    sockets: HashMap<usize, Flying>,
    /// Sockets closed or sent since the last look for unreachable ones.
    changes: usize,
}

struct Flying {
    socket: Arc<Unix>,
    /// Not an `Arc`: references are counted.
    file: Weak<FileDescription>,
    /// How often it is in flight.
    count: usize,
}

fn key(file: &Arc<FileDescription>) -> usize {
    Arc::as_ptr(file).addr()
}

impl Flight {
    /// They are being put into an inbox.
    pub(super) fn enter(&mut self, rights: &Rights) {
        self.total += rights.files.len();
        for file in &rights.files {
            let Some(socket) = file.downcast::<SocketFile>() else { continue };
            let new = || Flying { socket: socket.socket().clone(), file: Arc::downgrade(file), count: 0 };
            self.sockets.entry(key(file)).or_insert_with(new).count += 1;
            self.changes += 1;
        }
    }

    /// They have been taken out of one.
    pub(super) fn leave(&mut self, rights: &Rights) {
        self.total = self.total.saturating_sub(rights.files.len());
        for file in &rights.files {
            if let Some(flying) = self.sockets.get_mut(&key(file)) {
                flying.count -= 1;
                if flying.count == 0 {
                    self.sockets.remove(&key(file));
                }
            }
        }
    }

    /// The sockets that nobody can reach.
    ///
    /// Candidates are those held by inboxes alone: nobody else can come by a reference while the lock is held. Each
    /// that is also in the inbox of a socket which is no candidate can be received, and so can all in its own inbox.
    fn unreachable(&self) -> HashMap<usize, Arc<Unix>> {
        let alone = self.sockets.iter().filter(|(_, flying)| flying.file.strong_count() == flying.count);
        let mut candidates: HashMap<usize, Arc<Unix>> =
            alone.map(|(key, flying)| (*key, flying.socket.clone())).collect();
        let mut from_candidates: HashMap<usize, usize> = HashMap::new();
        for socket in candidates.values() {
            each_carried(socket, &mut |file| *from_candidates.entry(file).or_default() += 1);
        }
        let count = |key: &usize| self.sockets.get(key).map_or(0, |flying| flying.count);
        let mut reachable: Vec<usize> = candidates
            .keys()
            .filter(|key| from_candidates.get(key).copied().unwrap_or(0) < count(key))
            .copied()
            .collect();
        while let Some(next) = reachable.pop() {
            if let Some(socket) = candidates.remove(&next) {
                each_carried(&socket, &mut |file| reachable.push(file));
            }
        }
        candidates
    }
}

/// The sockets in whose inboxes messages for this one lie: itself, or the connections to it that wait.
fn inboxes(socket: &Arc<Unix>) -> Vec<Arc<Unix>> {
    let mut all = vec![socket.clone()];
    if let Some(backlog) = &*socket.backlog.lock() {
        all.extend(backlog.pending.iter().cloned());
    }
    all
}

fn each_carried(socket: &Arc<Unix>, see: &mut dyn FnMut(usize)) {
    for holder in inboxes(socket) {
        let inbox = holder.inbox.lock();
        let carried = inbox.messages.iter().filter_map(|message| message.rights.as_ref());
        carried.flat_map(|rights| &rights.files).for_each(|file| see(key(file)));
    }
}

impl Sockets {
    /// A socket was closed: looks for unreachable ones, if enough have been closed to pay for it.
    pub(super) fn collect(&self) {
        let due = {
            let mut flight = self.flight.lock();
            flight.changes += 1;
            let count = flight.sockets.len();
            count > 0 && (count <= FEW_SOCKETS || flight.changes > count / 8)
        };
        if due {
            self.collect_now();
        }
    }

    /// Descriptors are about to be sent: the same when there are many (Linux: `wait_for_unix_gc`).
    fn collect_if_many(&self) {
        let due = {
            let flight = self.flight.lock();
            let count = flight.sockets.len();
            count > MANY_SOCKETS && flight.changes > count / 2
        };
        if due {
            self.collect_now();
        }
    }

    /// Drops what only unreachable sockets hold: they are closed by it.
    pub(super) fn collect_now(&self) {
        let mut dropped = Vec::new();
        {
            let mut flight = self.flight.lock();
            flight.changes = 0;
            let unreachable = flight.unreachable();
            for socket in unreachable.values().flat_map(inboxes) {
                let mut inbox = socket.inbox.lock();
                let (carry, rest): (Vec<Message>, Vec<Message>) =
                    inbox.take_all().into_iter().partition(|message| message.rights.is_some());
                inbox.bytes = rest.iter().map(Message::len).sum();
                inbox.messages = rest.into();
                dropped.extend(carry);
            }
            dropped
                .iter()
                .filter_map(|message| message.rights.as_ref())
                .for_each(|rights| flight.leave(rights));
        }
        discard(dropped);
    }
}

/// Drops messages. What they carry may be the last reference to a socket, whose messages are dropped then, and so on:
/// one after the other here, not one within the other, for the chain may be as long as a guest likes. No lock is held.
pub(super) fn discard(messages: Vec<Message>) {
    thread_local! {
        static DYING: RefCell<Option<Vec<Message>>> = const { RefCell::new(None) };
    }
    let is_nested = DYING.with_borrow_mut(|dying| match dying {
        Some(more) => {
            more.extend(messages);
            true
        }
        None => {
            *dying = Some(messages);
            false
        }
    });
    if is_nested {
        return;
    }
    loop {
        let next = DYING.with_borrow_mut(|dying| dying.as_mut().and_then(Vec::pop));
        if next.is_none() {
            break;
        }
        drop(next);
    }
    DYING.set(None);
}
