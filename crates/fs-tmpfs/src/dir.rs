//! A directory's entries, the newest first, at positions that do not change.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use vfs::Inode;

/// Where the entries begin: `.` and `..` come before.
pub(crate) const FIRST: u64 = 2;

/// Entries by name and by position. Each new entry gets a position higher than all before, and listing goes from
/// high to low, as Linux's tmpfs does it: so what is added while somebody lists is not listed, and what is
/// removed leaves all others where they were.
#[derive(Default)]
pub(crate) struct Entries {
    by_name: HashMap<Arc<[u8]>, u64>,
    by_position: BTreeMap<u64, Entry>,
    last: u64,
}

#[derive(Clone)]
pub(crate) struct Entry {
    pub(crate) name: Arc<[u8]>,
    pub(crate) inode: Arc<Inode>,
}

impl Entries {
    pub(crate) fn len(&self) -> usize {
        self.by_name.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }

    pub(crate) fn get(&self, name: &[u8]) -> Option<&Arc<Inode>> {
        self.by_name.get(name).and_then(|at| self.by_position.get(at)).map(|entry| &entry.inode)
    }

    /// Adds an entry, or replaces the one of this name: what it replaced.
    pub(crate) fn insert(&mut self, name: &[u8], inode: Arc<Inode>) -> Option<Arc<Inode>> {
        let replaced = self.remove(name);
        self.last = self.last.max(FIRST).saturating_add(1);
        let name: Arc<[u8]> = name.into();
        self.by_name.insert(name.clone(), self.last);
        self.by_position.insert(self.last, Entry { name, inode });
        replaced
    }

    pub(crate) fn remove(&mut self, name: &[u8]) -> Option<Arc<Inode>> {
        let at = self.by_name.remove(name)?;
        self.by_position.remove(&at).map(|entry| entry.inode)
    }

    /// Up to `count` entries from a position on, each with the position behind it.
    pub(crate) fn list(&self, from: u64, count: usize) -> Vec<(Entry, u64)> {
        let before = if from <= FIRST { u64::MAX } else { from };
        let entries = self.by_position.range(..before).rev().take(count);
        entries.map(|(at, entry)| (entry.clone(), *at)).collect()
    }

    /// Takes all entries out.
    pub(crate) fn drain(&mut self) -> impl Iterator<Item = Arc<Inode>> {
        self.by_name.clear();
        std::mem::take(&mut self.by_position).into_values().map(|entry| entry.inode)
    }
}
