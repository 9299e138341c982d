//! A set of pending signals with what they carry.

use std::collections::VecDeque;

use abi::{SiCode, SigSet, Siginfo, Signal};

use crate::users::Held;

/// Signals sent and not taken yet. Ordinary ones merge; real-time ones queue.
#[derive(Default)]
pub struct PendingSignals {
    set: SigSet,
    queue: VecDeque<Entry>,
}

/// A queued signal, and the share of its user's count that it takes.
struct Entry {
    info: Siginfo,
    _share: Option<Held>,
}

impl PendingSignals {
    pub fn set(&self) -> SigSet {
        self.set
    }

    /// Whether adding a signal would change nothing: it is an ordinary one that is pending already.
    pub fn merges(&self, signal: Signal) -> bool {
        !signal.is_realtime() && self.set.contains(signal)
    }

    /// Adds a signal, unless it is an ordinary one that is pending already; `share` is what it counts as. Says whether
    /// it was added.
    pub fn add(&mut self, info: Siginfo, share: Option<Held>) -> bool {
        if self.merges(info.signo) {
            return false;
        }
        self.set.insert(info.signo);
        self.queue.push_back(Entry { info, _share: share });
        true
    }

    /// Adds a signal beside others of its number, as each timer has a place of its own in the queue.
    pub fn add_beside(&mut self, info: Siginfo) {
        self.set.insert(info.signo);
        self.queue.push_back(Entry { info, _share: None });
    }

    /// Marks a signal pending without its information: the queue is full (Linux does so for ordinary
    /// signals, and for real-time ones sent by `kill`).
    pub fn add_bare(&mut self, signal: Signal) {
        self.set.insert(signal);
    }

    /// Takes the next of these signals.
    pub fn take(&mut self, among: SigSet) -> Option<Siginfo> {
        let signal = self.set.intersection(among).next_to_deliver()?;
        let found = self.queue.iter().position(|entry| entry.info.signo == signal);
        let info = match found.and_then(|index| self.queue.remove(index)) {
            Some(entry) => entry.info,
            None => Siginfo::kill(signal, SiCode::USER, 0, 0),
        };
        if !self.queue.iter().any(|entry| entry.info.signo == signal) {
            self.set.remove(signal);
        }
        Some(info)
    }

    /// Puts one back that was taken last and could not be given to the guest.
    pub fn put_back(&mut self, info: Siginfo) {
        self.set.insert(info.signo);
        self.queue.push_front(Entry { info, _share: None });
    }

    /// Drops all of these signals.
    pub fn remove(&mut self, which: SigSet) {
        self.set = self.set.difference(which);
        self.queue.retain(|entry| !which.contains(entry.info.signo));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info(signal: i32, value: u64) -> Siginfo {
        Siginfo::queue(Signal(signal), SiCode::QUEUE, 1, 0, value)
    }

    #[test]
    fn ordinary_signals_merge_and_realtime_ones_queue_in_order() {
        let mut pending = PendingSignals::default();
        assert!(pending.add(info(10, 1), None) && !pending.add(info(10, 2), None));
        for value in 1..=3 {
            assert!(pending.add(info(40, value), None));
        }
        assert!(pending.add(info(34, 9), None));
        let order: Vec<_> = std::iter::from_fn(|| pending.take(SigSet::FULL))
            .map(|info| (info.signo.0, info.value()))
            .collect();
        assert_eq!(order, [(10, 1), (34, 9), (40, 1), (40, 2), (40, 3)]);
        assert!(pending.set().is_empty());
    }

    #[test]
    fn faults_come_first_and_blocked_ones_stay() {
        let mut pending = PendingSignals::default();
        pending.add(info(2, 0), None);
        pending.add(info(11, 0), None);
        assert_eq!(pending.take(SigSet::FULL).map(|info| info.signo), Some(Signal::SEGV));
        assert!(pending.take(Signal::INT.mask().complement()).is_none());
        assert_eq!(pending.take(SigSet::FULL).map(|info| info.signo), Some(Signal::INT));
    }
}
