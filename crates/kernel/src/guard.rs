//! Panics on the kernel's own threads (timers, host events), which serve all guests: what one guest brought about must not
//! end them. Panics on a task's thread are that process's end, see `task/run.rs`.

use std::panic::AssertUnwindSafe;

/// Does one piece of work. A panic in it is reported; the thread goes on with the next.
pub(crate) fn guarded(thread: &str, work: impl FnOnce()) {
    if std::panic::catch_unwind(AssertUnwindSafe(work)).is_err() {
        tracing::error!(thread, "oops: the kernel failed on a thread of its own, which goes on");
    }
}
