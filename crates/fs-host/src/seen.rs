//! What the host has just said of a file whose name was looked up: the same operation need not ask again.
//!
//! One file for each thread: the one looked up last. It is told once, and not after a change by the same operation.

use std::cell::Cell;
use std::sync::Arc;

use vfs::Operation;

use crate::HostFs;
use crate::stat::{FileId, HostStat};

#[derive(Clone, Copy)]
struct Seen {
    operation: u64,
    fs: usize,
    stat: HostStat,
}

thread_local! {
    static LAST: Cell<Option<Seen>> = const { Cell::new(None) };
}

fn key(fs: &Arc<HostFs>) -> usize {
    Arc::as_ptr(fs).addr()
}

/// Notes what was said.
pub(crate) fn note(fs: &Arc<HostFs>, stat: &HostStat) {
    let seen = Operation::current().map(|operation| Seen { operation, fs: key(fs), stat: *stat });
    LAST.set(seen);
}

/// What was said of that file, if this operation has looked it up.
pub(crate) fn take(fs: &Arc<HostFs>, id: FileId) -> Option<HostStat> {
    let operation = Operation::current()?;
    let seen = LAST.take()?;
    (seen.operation == operation && seen.fs == key(fs) && seen.stat.id == id).then_some(seen.stat)
}

/// Something is about to change.
pub(crate) fn forget() {
    LAST.set(None);
}
