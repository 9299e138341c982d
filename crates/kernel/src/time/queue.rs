//! The timer thread: one thread sleeps until the next timer of all is due.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};
use std::time::Instant;

use sync::{Mutex, WaitQueue, Waiter, order};

use crate::guard::guarded;

/// Stack of the timer thread, in bytes.
const STACK: usize = if cfg!(debug_assertions) { 512 << 10 } else { 128 << 10 };

/// Something that happens at a time.
pub trait Expire: Send + Sync {
    /// The time has come. Called on the timer thread, without locks; must not block.
    fn expire(self: Arc<Self>);
}

/// When a timer is due; numbers tell those of one moment apart.
type Due = (Instant, u64);

/// The timers of a kernel that are armed.
#[derive(Default)]
pub struct TimerQueue {
    inner: Mutex<order::Timers, Inner>,
    /// Woken when another timer has become the first.
    changed: WaitQueue,
}

#[derive(Default)]
struct Inner {
    due: BTreeMap<Due, Weak<dyn Expire>>,
    last: u64,
    has_thread: bool,
    /// The kernel is gone: nothing expires any more.
    closed: bool,
}

/// An armed timer; dropping it disarms it. It may be going off at this very moment.
pub struct Armed {
    queue: Arc<TimerQueue>,
    due: Due,
}

impl TimerQueue {
    /// Has `who` told at `at` (at once, if that is past), once.
    pub fn arm(self: &Arc<Self>, at: Instant, who: Weak<dyn Expire>) -> Armed {
        let (due, is_first, starts) = {
            let mut inner = self.inner.lock();
            inner.last += 1;
            let due = (at, inner.last);
            inner.due.insert(due, who);
            let is_first = inner.due.keys().next() == Some(&due);
            (due, is_first, !std::mem::replace(&mut inner.has_thread, true))
        };
        if starts {
            self.start_thread();
        } else if is_first {
            self.changed.wake(0);
        }
        Armed { queue: self.clone(), due }
    }

    /// Ends the thread; armed timers do not go off.
    pub(crate) fn close(&self) {
        self.inner.lock().closed = true;
        self.changed.wake(0);
    }

    fn is_closed(&self) -> bool {
        self.inner.lock().closed
    }

    fn start_thread(self: &Arc<Self>) {
        let queue = self.clone();
        let thread = std::thread::Builder::new().name("timers".into()).stack_size(STACK);
        if let Err(error) = thread.spawn(move || queue.run()) {
            tracing::error!(%error, "no thread for timers: they wait for the next that is set");
            self.inner.lock().has_thread = false;
        }
    }

    fn run(&self) {
        let waiter = Waiter::new();
        while !self.is_closed() {
            if let Some(who) = self.take_due() {
                if let Some(who) = who.upgrade() {
                    guarded("timers", || who.expire());
                }
                continue;
            }
            let first = self.first();
            let changed = || (self.is_closed() || self.first() != first).then_some(());
            // Nobody interrupts it; a time-out is what it waits for.
            let _ = waiter.wait(&[&self.changed], first.map(|(at, _)| at), changed);
        }
    }

    fn first(&self) -> Option<Due> {
        self.inner.lock().due.keys().next().copied()
    }

    fn take_due(&self) -> Option<Weak<dyn Expire>> {
        let mut inner = self.inner.lock();
        let first = inner.due.first_entry()?;
        (first.key().0 <= Instant::now()).then(|| first.remove())
    }
}

impl Drop for Armed {
    fn drop(&mut self) {
        let gone = self.queue.inner.lock().due.remove(&self.due);
        drop(gone);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;
    use std::time::Duration;

    struct Tell(mpsc::Sender<u32>, u32);

    impl Expire for Tell {
        fn expire(self: Arc<Self>) {
            self.0.send(self.1).unwrap();
        }
    }

    struct Panic;

    impl Expire for Panic {
        #[allow(clippy::panic, reason = "that is what it is for")]
        fn expire(self: Arc<Self>) {
            panic!("as a timer that fails would");
        }
    }

    #[test]
    fn a_timer_that_panics_leaves_the_others_their_thread() {
        let queue = Arc::new(TimerQueue::default());
        let (tell, told) = mpsc::channel();
        let (bad, good): (Arc<dyn Expire>, Arc<dyn Expire>) = (Arc::new(Panic), Arc::new(Tell(tell, 7)));
        let start = Instant::now();
        let _kept = [
            queue.arm(start, Arc::downgrade(&bad)),
            queue.arm(start + Duration::from_millis(20), Arc::downgrade(&good)),
        ];
        assert_eq!(told.recv_timeout(Duration::from_secs(10)), Ok(7));
    }

    #[test]
    fn timers_go_off_in_order_and_disarmed_ones_do_not() {
        let queue = Arc::new(TimerQueue::default());
        let (tell, told) = mpsc::channel();
        let targets: Vec<Arc<dyn Expire>> =
            (0..4).map(|n| Arc::new(Tell(tell.clone(), n)) as Arc<dyn Expire>).collect();
        let start = Instant::now();
        let arm = |index: usize, millis| {
            queue.arm(start + Duration::from_millis(millis), Arc::downgrade(&targets[index]))
        };
        let _kept = [arm(0, 60), arm(1, 20), arm(3, 0)];
        drop(arm(2, 30));
        let order: Vec<u32> = (0..3).map(|_| told.recv_timeout(Duration::from_secs(10)).unwrap()).collect();
        assert_eq!(order, [3, 1, 0]);
        assert!(start.elapsed() >= Duration::from_millis(60));
        assert!(told.try_recv().is_err());
    }
}
