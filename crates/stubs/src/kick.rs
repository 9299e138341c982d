//! Kicks: a signal of the host's to a guest thread that runs, a mark for one that does not.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use platform::Interrupter;

use crate::channel::Channel;
use crate::hand_over::Bell;
use crate::layout::{ARRIVED, PENDING};
use crate::protocol::Marks;
use crate::stub::KICK;

/// Kicks a guest thread.
pub(crate) struct Kick {
    tgid: i32,
    tid: i32,
    marks: Marks,
    channel: Arc<Channel>,
    /// Its process ends.
    ending: AtomicBool,
    /// Whether `tid` is a thread of ours still. Held while the signal is sent.
    bound: Mutex<bool>,
    bell: Arc<Bell>,
}

impl Interrupter for Kick {
    fn interrupt(&self) {
        if self.marks.kick() {
            self.signal();
        }
    }

    fn interrupt_to_end(&self) {
        self.ending.store(true, Ordering::SeqCst);
        self.interrupt();
        // Whatever its kernel thread waits for, it looks again how long.
        self.bell.ring_kick();
    }
}

impl Kick {
    /// For a thread of ours, which does not run yet.
    pub(crate) fn new(tgid: i32, tid: i32, channel: &Arc<Channel>, bell: &Arc<Bell>) -> Kick {
        Kick {
            tgid,
            tid,
            channel: Arc::clone(channel),
            marks: Marks::new(),
            ending: AtomicBool::new(false),
            bound: Mutex::new(true),
            bell: Arc::clone(bell),
        }
    }

    /// From now on nobody signals the tid.
    pub(crate) fn unbind(&self) {
        *self.bound.lock() = false;
    }

    /// Whether one has come that is not reported yet.
    pub(crate) fn is_pending(&self) -> bool {
        self.marks.is_pending()
    }

    /// Whether its process ends.
    pub(crate) fn is_ending(&self) -> bool {
        self.ending.load(Ordering::SeqCst)
    }

    fn signal(&self) {
        let bound = self.bound.lock();
        // One that has come back by itself meanwhile finds the kick before it runs again.
        if *bound && self.marks.is_running() && self.may_be_signalled() {
            // An error means that it has died.
            let _ = host::signal::send_to_thread(self.tgid, self.tid, KICK);
        }
        drop(bound);
        // The kernel thread waits with a limit from now on.
        self.bell.ring_kick();
    }

    /// Whether the thread can take a signal. One that has just been cloned still has its parent's stack, and no alternate one:
    /// the host would put the frame where its parent runs. It finds the kick before it goes on to the guest.
    fn may_be_signalled(&self) -> bool {
        let has_arrived = || self.channel.word(ARRIVED).load(Ordering::SeqCst) != 0;
        has_arrived() || {
            self.channel.word(PENDING).store(1, Ordering::SeqCst);
            has_arrived()
        }
    }

    /// The guest is about to run. `false`: a kick has come, and is reported by this.
    pub(crate) fn begin(&self) -> bool {
        self.marks.begin()
    }

    /// While it does not run: comes back when nobody sends it a signal any more, until it runs.
    pub(crate) fn settle(&self) {
        drop(self.bound.lock());
    }

    pub(crate) fn end(&self) {
        self.marks.end();
    }

    /// A kick is being reported. What was done before it happened-before this.
    pub(crate) fn reported(&self) {
        self.marks.reported();
    }
}
