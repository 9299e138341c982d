//! What each user holds of objects that cost the kernel memory (Linux: `struct user_struct`).

use std::collections::BTreeMap;
use std::sync::Arc;

use sync::{Mutex, order};

/// Something that is counted by user.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Counted {
    /// Slots of pipes, a page each.
    PipePages,
    /// Files watched by epolls.
    EpollWatches,
    /// Descriptors in flight in sockets' messages.
    InFlight,
    /// Signals queued, and timers of `timer_create`, which have a place in the queue each.
    Signals,
}

/// The counts of all users.
#[derive(Default)]
pub struct UserCounts {
    held: Mutex<order::Leaf, BTreeMap<(u32, Counted), usize>>,
}

/// A share of a user's count; given back when dropped.
pub struct Held {
    counts: Arc<UserCounts>,
    uid: u32,
    what: Counted,
    amount: usize,
}

impl UserCounts {
    /// Counts `amount` more for this user (real uid).
    pub fn hold(self: &Arc<Self>, uid: u32, what: Counted, amount: usize) -> Held {
        let held = Held { counts: self.clone(), uid, what, amount };
        self.change(uid, what, 0, amount);
        held
    }

    /// A user's whole count.
    pub fn total(&self, uid: u32, what: Counted) -> usize {
        self.held.lock().get(&(uid, what)).copied().unwrap_or(0)
    }

    /// Takes `old` off and puts `new` on; gives the user's whole count.
    fn change(&self, uid: u32, what: Counted, old: usize, new: usize) -> usize {
        let mut held = self.held.lock();
        let count = held.entry((uid, what)).or_default();
        *count = count.saturating_sub(old).saturating_add(new);
        let now = *count;
        if now == 0 {
            held.remove(&(uid, what));
        }
        now
    }
}

impl Held {
    /// The user's whole count, this share included.
    pub fn total(&self) -> usize {
        self.counts.change(self.uid, self.what, 0, 0)
    }

    /// Makes the share larger or smaller; gives the user's whole count.
    pub fn resize(&mut self, amount: usize) -> usize {
        let old = std::mem::replace(&mut self.amount, amount);
        self.counts.change(self.uid, self.what, old, amount)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.counts.change(self.uid, self.what, self.amount, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_add_up_by_user_and_kind_and_go_when_dropped() {
        let counts = Arc::new(UserCounts::default());
        let mut first = counts.hold(7, Counted::PipePages, 16);
        let second = counts.hold(7, Counted::PipePages, 2);
        let other = counts.hold(8, Counted::PipePages, 100);
        let watch = counts.hold(7, Counted::EpollWatches, 1);
        assert_eq!((first.total(), other.total(), watch.total()), (18, 100, 1));
        assert_eq!(first.resize(4), 6);
        drop(second);
        assert_eq!(first.total(), 4);
        drop((first, other, watch));
        assert!(counts.held.lock().is_empty());
    }
}
