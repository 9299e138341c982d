//! Renames under way. Between the host's rename and the change of the file's place, others look for the file where it
//! was: they look again, so that guests do not see `ESTALE` for what guests do.

use std::sync::atomic::{AtomicU64, Ordering};

use abi::Errno;
use sync::SysResult;

/// Looks for a file before it is taken to be lost, however many renames go on meanwhile.
const TRIES: usize = 100;

/// Counts the renames of a file system.
#[derive(Default)]
pub(crate) struct Moves {
    started: AtomicU64,
    finished: AtomicU64,
}

impl Moves {
    /// Runs a rename, and what notes it; nothing in it looks for files.
    pub(crate) fn during<T>(&self, rename: impl FnOnce() -> T) -> T {
        struct Finish<'a>(&'a AtomicU64);
        impl Drop for Finish<'_> {
            fn drop(&mut self) {
                self.0.fetch_add(1, Ordering::SeqCst);
            }
        }
        self.started.fetch_add(1, Ordering::SeqCst);
        let _finish = Finish(&self.finished);
        rename()
    }

    /// Looks for a file; again, if it is not found while renames go on.
    pub(crate) fn past_them<T>(&self, look: impl Fn() -> SysResult<T>) -> SysResult<T> {
        for _ in 0..TRIES {
            let finished = self.finished.load(Ordering::SeqCst);
            let result = look();
            let lost = matches!(&result, Err(error) if error.errno() == Some(Errno::ESTALE));
            if !lost {
                return result;
            }
            let going_on = self.started.load(Ordering::SeqCst) != finished;
            if !going_on && self.finished.load(Ordering::SeqCst) == finished {
                return result;
            }
            std::thread::yield_now();
        }
        look()
    }
}
