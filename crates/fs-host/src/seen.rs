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

/// What `tell` makes of what was said of that file, if this operation has looked it up. It neither looks up nor changes anything.
fn of<T>(fs: &Arc<HostFs>, id: FileId, tell: impl FnOnce(&Seen) -> Option<T>) -> Option<T> {
    let operation = Operation::current()?;
    LAST.with_borrow(|last| {
        let seen = last.as_ref()?;
        let is_it = seen.operation == operation && seen.fs == key(fs) && seen.stat.id == id;
        if is_it { tell(seen) } else { None }
    })
}

/// The state of that file, as it was then: told once.
pub(crate) fn once<T>(fs: &Arc<HostFs>, id: FileId, tell: impl FnOnce(&HostStat) -> Option<T>) -> Option<T> {
    of(fs, id, |seen| if seen.told.replace(true) { None } else { tell(&seen.stat) })
}

/// Which file a name led to when it was looked up: told always.
pub(crate) fn found<T>(fs: &Arc<HostFs>, id: FileId, tell: impl FnOnce(&HostStat) -> Option<T>) -> Option<T> {
    of(fs, id, |seen| tell(&seen.stat))
}

/// Something is about to change.
pub(crate) fn forget() {
    LAST.with_borrow_mut(|last| *last = None);
}
