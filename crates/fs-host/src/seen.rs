//! What the host has just said of a file whose name was looked up: the same operation need not ask again.
//!
//! One file for each thread: the one looked up last. Its attributes are told once, and nothing of it after a change by the
//! same operation.

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use vfs::Operation;

use crate::HostFs;
use crate::stat::{FileId, HostStat};

struct Seen {
    operation: u64,
    fs: usize,
    stat: HostStat,
    told: Cell<bool>,
}

thread_local! {
    static LAST: RefCell<Option<Seen>> = const { RefCell::new(None) };
}

fn key(fs: &Arc<HostFs>) -> usize {
    Arc::as_ptr(fs).addr()
}

/// Notes what was said.
pub(crate) fn note(fs: &Arc<HostFs>, stat: &HostStat) {
    let operation = Operation::current();
    LAST.with_borrow_mut(|last| {
        *last =
            operation.map(|operation| Seen { operation, fs: key(fs), stat: *stat, told: Cell::new(false) });
    });
}

/// What was said of that file, if this operation has looked it up, as `tell` tells it.
fn of<T>(fs: &Arc<HostFs>, id: FileId, tell: impl FnOnce(&Seen) -> Option<T>) -> Option<T> {
    let operation = Operation::current()?;
    LAST.with_borrow(|last| {
        let seen = last.as_ref()?;
        if seen.operation == operation && seen.fs == key(fs) && seen.stat.id == id {
            tell(seen)
        } else {
            None
        }
    })
}

/// What was said of that file, if this operation has looked it up. It is told once, as it was then.
pub(crate) fn take(fs: &Arc<HostFs>, id: FileId) -> Option<HostStat> {
    of(fs, id, |seen| (!seen.told.replace(true)).then_some(seen.stat))
}

/// The same, told already or not: for which file a name led to when it was looked up.
pub(crate) fn found(fs: &Arc<HostFs>, id: FileId) -> Option<HostStat> {
    of(fs, id, |seen| Some(seen.stat))
}

/// Something is about to change.
pub(crate) fn forget() {
    LAST.with_borrow_mut(|last| *last = None);
}
