//! What has come in at a socket and was not received yet.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Weak};

use abi::{Errno, Ucred};

use super::address::Address;
use super::flight::Rights;
use super::unix::Unix;

bitflags::bitflags! {
    /// What a socket has been shut down for (Linux: `sk_shutdown`).
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub(super) struct Shut: u8 {
        const READ = 1;
        const WRITE = 2;
    }
}

/// Datagrams that wait at a socket at most, but for one more (`net.unix.max_dgram_qlen`).
const MAX_DATAGRAMS: usize = 10;

/// A message, or bytes of a stream that were sent together.
pub(super) struct Message {
    /// Shared with a reader that copies it out.
    pub data: Arc<Vec<u8>>,
    /// Bytes received already.
    pub start: usize,
    /// Where it is in the order of messages that came in; given when it does.
    pub serial: u64,
    /// The sender's name.
    pub from: Option<Arc<Address>>,
    /// Kept only where one of both sides wanted it.
    pub credentials: Option<Ucred>,
    pub rights: Option<Rights>,
    /// Given back when the message is dropped.
    pub _charge: Charge,
}

impl Message {
    pub(super) fn len(&self) -> usize {
        self.data.len() - self.start
    }
}

/// Memory that a message takes of its sender's share.
pub(super) struct Charge {
    sender: Arc<Unix>,
    amount: usize,
}

impl Charge {
    pub(super) fn new(sender: Arc<Unix>, amount: usize) -> Charge {
        Charge { sender, amount }
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.sender.uncharge(self.amount);
    }
}

/// What has come in.
#[derive(Default)]
pub(super) struct Inbox {
    pub messages: VecDeque<Message>,
    /// Bytes in all messages.
    pub bytes: usize,
    pub shut: Shut,
    /// Told once (Linux: `sk_err`).
    pub error: Option<Errno>,
    /// The socket is closed (Linux: SOCK_DEAD).
    pub dead: bool,
    next_serial: u64,
    /// Those who poll for room here, by their address in memory.
    hungry: BTreeMap<usize, Weak<Unix>>,
}

impl Inbox {
    pub(super) fn push(&mut self, mut message: Message) {
        self.next_serial += 1;
        message.serial = self.next_serial;
        self.bytes += message.len();
        self.messages.push_back(message);
    }

    /// The first message behind that of this number.
    pub(super) fn after(&self, serial: u64) -> Option<&Message> {
        self.messages.iter().find(|message| message.serial > serial)
    }

    /// Takes the first message away, if it is that of this number.
    pub(super) fn pop(&mut self, serial: u64) -> Option<Message> {
        let message = self.messages.pop_front_if(|first| first.serial == serial)?;
        self.bytes -= message.len();
        Some(message)
    }

    pub(super) fn take_all(&mut self) -> Vec<Message> {
        self.bytes = 0;
        self.messages.drain(..).collect()
    }

    /// Linux: `unix_recvq_full`. For datagrams and their like.
    pub(super) fn is_full(&self) -> bool {
        self.messages.len() > MAX_DATAGRAMS
    }

    /// Remembers somebody who polls for room.
    pub(super) fn remember_hungry(&mut self, sender: &Arc<Unix>) {
        // Those that are gone make room now and then, so that many senders stay linear.
        if self.hungry.len().is_power_of_two() {
            self.hungry.retain(|_, known| known.strong_count() > 0);
        }
        self.hungry.insert(Arc::as_ptr(sender).addr(), Arc::downgrade(sender));
    }

    /// Those who are to be told that there is room.
    pub(super) fn take_hungry(&mut self) -> Vec<Arc<Unix>> {
        std::mem::take(&mut self.hungry).values().filter_map(Weak::upgrade).collect()
    }
}
