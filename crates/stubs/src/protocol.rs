//! Hand-over and kicks: the steps on their words, without the host calls in between.
//!
//! `tests/model.rs` builds this file once more, with loom's atomics in `crate::atomic`, and plays it with a stub and a host
//! of its own in all orders. Neighbours: `hand_over` (sleeping and waking), `kick` (the signal), `stub/hand_over.s` (the
//! other side).

use crate::atomic::{AtomicBool, AtomicU32, Ordering, fence};

pub(crate) const EMPTY: u32 = 0;
pub(crate) const POSTED: u32 = 1;
pub(crate) const SLEEPING: u32 = 2;

/// Posts on `theirs`. `true`: its reader sleeps, and is to be woken. What was posted on `ours`, which the caller reads, is
/// taken by that: its writer is silent until it has seen the post.
pub(crate) fn post(ours: &AtomicU32, theirs: &AtomicU32) -> bool {
    ours.store(EMPTY, Ordering::Relaxed);
    theirs.swap(POSTED, Ordering::AcqRel) == SLEEPING
}

/// Whether something was posted on the word that the caller reads.
pub(crate) fn is_posted(word: &AtomicU32) -> bool {
    word.load(Ordering::Acquire) == POSTED
}

/// Says on a word that its reader goes to sleep, for as long as it says so. `false`: look again. Whatever else is there (a
/// guest's scribble too) becomes the mark of a sleeper; only the sleeper ever writes it.
pub(crate) fn mark_sleeping(word: &AtomicU32) -> bool {
    let found = word.load(Ordering::Acquire);
    found == SLEEPING
        || found != POSTED
            && word.compare_exchange(found, SLEEPING, Ordering::AcqRel, Ordering::Acquire).is_ok()
}

/// What a kick and the kernel's thread of its guest tell each other.
pub(crate) struct Marks {
    /// A kick was not reported yet.
    pending: AtomicBool,
    /// The guest runs, or blocks on the kernel's order: a signal is needed.
    running: AtomicBool,
}

impl Marks {
    /// Of a guest that does not run yet.
    pub(crate) fn new() -> Marks {
        Marks { pending: AtomicBool::new(false), running: AtomicBool::new(false) }
    }

    /// A kick. `true`: the guest is to be signalled.
    pub(crate) fn kick(&self) -> bool {
        if self.pending.swap(true, Ordering::SeqCst) {
            return false;
        }
        // Pairs with the fence in `begin`: either it sees the kick, or we see it running.
        fence(Ordering::SeqCst);
        self.running.load(Ordering::Relaxed)
    }

    /// Whether a kick has come that is not reported yet.
    pub(crate) fn is_pending(&self) -> bool {
        self.pending.load(Ordering::SeqCst)
    }

    /// Whether the guest runs: asked by who kicks it, again.
    pub(crate) fn is_running(&self) -> bool {
        self.running.load(Ordering::Acquire)
    }

    /// The guest is about to run. `false`: a kick has come, and is reported by this.
    pub(crate) fn begin(&self) -> bool {
        self.running.store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        if self.pending.load(Ordering::Relaxed) {
            self.running.store(false, Ordering::Relaxed);
            self.reported();
            return false;
        }
        true
    }

    /// The guest has handed over.
    pub(crate) fn end(&self) {
        self.running.store(false, Ordering::Release);
    }

    /// A kick is being reported. What was done before it happened-before this.
    pub(crate) fn reported(&self) {
        self.pending.swap(false, Ordering::AcqRel);
    }
}
