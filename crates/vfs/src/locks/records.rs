//! The record locks of one file: a list in which one owner's locks never overlap.

use super::{LockKind, LockRange};

/// Who holds a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Owner {
    Process(u64),
    Description(u64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) owner: Owner,
    pub(super) pid: i32,
    pub(super) kind: LockKind,
    pub(super) range: LockRange,
}

/// Ordered by start.
#[derive(Default)]
pub(super) struct Records {
    list: Vec<Record>,
}

impl Records {
    pub(super) fn len(&self) -> usize {
        self.list.len()
    }

    /// The first lock of another owner that `want` cannot be held beside.
    pub(super) fn conflict(&self, want: &Record) -> Option<&Record> {
        self.list.iter().find(|other| {
            other.owner != want.owner && other.kind.conflicts(want.kind) && other.range.overlaps(want.range)
        })
    }

    /// Sets the owner's lock on the range of `want`, or takes it away: what it held there before is replaced,
    /// neighbours of the same kind become one. Whether others may get more now. Growing by a neighbour cuts nothing
    /// else, since one owner's locks never overlap.
    pub(super) fn set(&mut self, mut want: Record, unlock: bool) -> bool {
        let mut rest = Vec::new();
        let mut weaker = false;
        self.list.retain(|held| {
            if held.owner != want.owner {
                return true;
            }
            if !unlock && held.kind == want.kind && held.range.touches(want.range) {
                want.range = want.range.union(held.range);
                return false;
            }
            if !held.range.overlaps(want.range) {
                return true;
            }
            weaker |= unlock || held.kind == LockKind::Exclusive;
            let parts = held.range.without(want.range).into_iter().flatten();
            rest.extend(parts.map(|range| Record { range, ..*held }));
            false
        });
        self.list.extend(rest);
        if !unlock {
            self.list.push(want);
        }
        self.list.sort_by_key(|record| record.range.start());
        weaker
    }

    /// Takes all locks of an owner away; whether there were any.
    pub(super) fn remove_owner(&mut self, owner: Owner) -> bool {
        let before = self.list.len();
        self.list.retain(|record| record.owner != owner);
        self.list.len() < before
    }

    #[cfg(test)]
    pub(super) fn of_owner(&self, owner: Owner) -> Vec<(LockRange, LockKind)> {
        let own = self.list.iter().filter(|record| record.owner == owner);
        own.map(|record| (record.range, record.kind)).collect()
    }
}
