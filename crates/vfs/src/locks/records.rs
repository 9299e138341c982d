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
    pub(super) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

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

    /// The pieces of `range` with what all owners together hold on each.
    pub(super) fn together(&self, range: LockRange) -> Vec<(LockRange, Option<LockKind>)> {
        // Where a lock begins, and where one has ended; behind the largest offset nothing is.
        let mut edges: Vec<(i64, LockKind, bool)> = Vec::new();
        for record in self.list.iter().filter(|record| record.range.overlaps(range)) {
            edges.push((record.range.start().max(range.start()), record.kind, true));
            edges.extend(record.range.end().checked_add(1).map(|behind| (behind, record.kind, false)));
        }
        edges.sort_by_key(|(at, ..)| *at);
        let mut pieces: Vec<(LockRange, Option<LockKind>)> = Vec::new();
        let (mut from, mut shared, mut exclusive) = (range.start(), 0usize, 0usize);
        let kind_of = |shared: usize, exclusive: usize| match (shared, exclusive) {
            (0, 0) => None,
            (_, 0) => Some(LockKind::Shared),
            _ => Some(LockKind::Exclusive),
        };
        for (at, kind, begins) in edges {
            let piece = at.checked_sub(1).and_then(|last| LockRange::between(from, last.min(range.end())));
            pieces.extend(piece.map(|piece| (piece, kind_of(shared, exclusive))));
            from = from.max(at);
            let count = if kind == LockKind::Shared { &mut shared } else { &mut exclusive };
            *count = if begins { count.saturating_add(1) } else { count.saturating_sub(1) };
        }
        pieces.extend(LockRange::between(from, range.end()).map(|piece| (piece, kind_of(shared, exclusive))));
        pieces
    }

    /// From the first to the last byte on which the owner holds something.
    pub(super) fn extent(&self, owner: Owner) -> Option<LockRange> {
        let own = || self.list.iter().filter(|record| record.owner == owner).map(|record| record.range);
        LockRange::between(own().map(LockRange::start).min()?, own().map(LockRange::end).max()?)
    }

    #[cfg(test)]
    pub(super) fn of_owner(&self, owner: Owner) -> Vec<(LockRange, LockKind)> {
        let own = self.list.iter().filter(|record| record.owner == owner);
        own.map(|record| (record.range, record.kind)).collect()
    }
}
