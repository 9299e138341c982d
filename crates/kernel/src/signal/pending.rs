//! A set of pending signals with what they carry.

use std::collections::VecDeque;

use abi::{SiCode, SigSet, Siginfo, Signal};

/// Signals sent and not taken yet. Ordinary ones merge; real-time ones queue.
#[derive(Default)]
pub struct PendingSignals {
    set: SigSet,
    queue: VecDeque<Siginfo>,
}

impl PendingSignals {
    pub fn set(&self) -> SigSet {
        self.set
    }

    /// Entries queued, which count against `RLIMIT_SIGPENDING`.
    pub fn queued(&self) -> usize {
        self.queue.len()
    }

    /// Adds a signal, unless it is an ordinary one that is pending already. Says whether it was added.
    pub fn add(&mut self, info: Siginfo) -> bool {
        if !info.signo.is_realtime() && self.set.contains(info.signo) {
            return false;
        }
        self.set.insert(info.signo);
        self.queue.push_back(info);
        true
    }

    /// Adds a signal beside others of its number, as each timer has a place of its own in the queue.
    pub fn add_beside(&mut self, info: Siginfo) {
        self.set.insert(info.signo);
        self.queue.push_back(info);
    }

    /// Marks a signal pending without its information: the queue is full (Linux does so for ordinary
    /// signals, and for real-time ones sent by `kill`).
    pub fn add_bare(&mut self, signal: Signal) {
        self.set.insert(signal);
    }

    /// Takes the next of these signals.
    pub fn take(&mut self, among: SigSet) -> Option<Siginfo> {
        let signal = self.set.intersection(among).next_to_deliver()?;
        let found = self.queue.iter().position(|info| info.signo == signal);
        let info = match found.and_then(|index| self.queue.remove(index)) {
            Some(info) => info,
            None => Siginfo::kill(signal, SiCode::USER, 0, 0),
        };
        if !self.queue.iter().any(|info| info.signo == signal) {
            self.set.remove(signal);
        }
        Some(info)
    }

    /// Puts one back that was taken last and could not be given to the guest.
    pub fn put_back(&mut self, info: Siginfo) {
        self.set.insert(info.signo);
        self.queue.push_front(info);
    }

    /// Drops all of these signals.
    pub fn remove(&mut self, which: SigSet) {
        self.set = self.set.difference(which);
        self.queue.retain(|info| !which.contains(info.signo));
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
        assert!(pending.add(info(10, 1)) && !pending.add(info(10, 2)));
        for value in 1..=3 {
            assert!(pending.add(info(40, value)));
        }
        assert!(pending.add(info(34, 9)));
        let order: Vec<_> = std::iter::from_fn(|| pending.take(SigSet::FULL))
            .map(|info| (info.signo.0, info.value()))
            .collect();
        assert_eq!(order, [(10, 1), (34, 9), (40, 1), (40, 2), (40, 3)]);
        assert!(pending.set().is_empty());
    }

    #[test]
    fn faults_come_first_and_blocked_ones_stay() {
        let mut pending = PendingSignals::default();
        pending.add(info(2, 0));
        pending.add(info(11, 0));
        assert_eq!(pending.take(SigSet::FULL).map(|info| info.signo), Some(Signal::SEGV));
        assert!(pending.take(Signal::INT.mask().complement()).is_none());
        assert_eq!(pending.take(SigSet::FULL).map(|info| info.signo), Some(Signal::INT));
    }
}
