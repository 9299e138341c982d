//! Renames by guests: what is known of the place of a file stays true while they go on.
//!
//! A rename is two steps, the host's and the note of it in the file's node. Who looks for a file by its place between them
//! does not find it, and looks again behind the rename: so guests do not see `ESTALE` for what guests do. Who has found a
//! name, and is about to note it, does so only if no rename came in between: the rename's own note would be older.

use std::sync::atomic::{AtomicU64, Ordering};

use abi::Errno;
use sync::order::HostNames;
use sync::{Mutex, MutexGuard, SysResult};

/// Looks for a file before it is taken to be lost, however often it is moved just then.
const TRIES: usize = 100;

/// Counts the renames of a file system.
#[derive(Default)]
pub(crate) struct Moves {
    /// Held over each.
    names: Mutex<HostNames, ()>,
    started: AtomicU64,
    finished: AtomicU64,
}

/// How many renames had finished.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Moment(u64);

impl Moves {
    /// Runs a rename, and what notes it; nothing in it looks for files.
    pub(crate) fn during<T>(&self, rename: impl FnOnce() -> T) -> T {
        struct Finish<'a>(&'a AtomicU64);
        impl Drop for Finish<'_> {
            fn drop(&mut self) {
                self.0.fetch_add(1, Ordering::SeqCst);
            }
        }
        let _names = self.names.lock();
        self.started.fetch_add(1, Ordering::SeqCst);
        let _finish = Finish(&self.finished);
        rename()
    }

    pub(crate) fn now(&self) -> Moment {
        Moment(self.finished.load(Ordering::SeqCst))
    }

    /// Whether no rename has begun since, nor went on then.
    pub(crate) fn none_since(&self, moment: Moment) -> bool {
        self.started.load(Ordering::SeqCst) == moment.0
    }

    /// No rename begins while this is held. Nothing beside it looks for files.
    pub(crate) fn hold(&self) -> MutexGuard<'_, ()> {
        self.names.lock()
    }

    /// Looks for a file; again, if it is not found while renames go on.
    pub(crate) fn past_them<T>(&self, look: impl Fn() -> SysResult<T>) -> SysResult<T> {
        for _ in 0..TRIES {
            let before = self.now();
            let result = look();
            let lost = matches!(&result, Err(error) if error.errno() == Some(Errno::ESTALE));
            if !lost || self.none_since(before) {
                return result;
            }
            // Behind the one under way, however long its thread has not run.
            drop(self.hold());
        }
        look()
    }
}
