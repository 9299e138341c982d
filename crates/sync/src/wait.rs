//! Waiting: the one way in which a kernel thread blocks.
//!
//! A wait is: register on the wait queues, check, sleep; woken by the event, a deadline (absolute from entry),
//! an interrupt (signal, kill, freeze). No shared memory that a guest can reach is part of it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::thread::Thread;
use std::time::Instant;

use smallvec::SmallVec;

use crate::error::{Restart, SysError};
use crate::mutex::{Mutex, assert_no_lock_held};
use crate::order::WaitQueueEntries;

/// When a wait ends by itself; `None`: never.
pub type Deadline = Option<Instant>;

/// Somebody to be told that a wait queue's object changed. `events` are the poll events that may have come
/// (0: look for yourself).
pub trait Wake: Send + Sync {
    fn wake(&self, events: u32);
}

/// Why a thread should leave its wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interrupts(u32);

impl Interrupts {
    /// A signal (or other work before the guest goes on) is pending.
    pub const SIGNAL: Interrupts = Interrupts(1);
    /// The task is to end.
    pub const KILL: Interrupts = Interrupts(2);

    /// Any of them.
    pub const ANY: Interrupts = Interrupts(Self::SIGNAL.0 | Self::KILL.0);
}

/// The part of a kernel thread that others may reach: wakes and interrupts.
pub struct Parker {
    thread: Thread,
    woken: AtomicBool,
    interrupts: AtomicU32,
    asleep: AtomicBool,
}

impl Parker {
    /// Asks the thread to leave its wait, or not to begin one, until [`Waiter::clear`].
    pub fn interrupt(&self, why: Interrupts) {
        self.interrupts.fetch_or(why.0, Ordering::SeqCst);
        self.unpark();
    }

    /// Whether any of `which` is pending.
    pub fn is_interrupted(&self, which: Interrupts) -> bool {
        self.interrupts.load(Ordering::SeqCst) & which.0 != 0
    }

    /// Whether the thread sleeps in a wait. Once woken it does not, although it may take long to get a CPU (Linux: a wake
    /// itself makes a task `TASK_RUNNING`).
    pub fn is_asleep(&self) -> bool {
        self.asleep.load(Ordering::Relaxed) && !self.woken.load(Ordering::SeqCst)
    }

    fn unpark(&self) {
        if !self.woken.swap(true, Ordering::SeqCst) {
            self.thread.unpark();
        }
    }
}

impl Wake for Parker {
    fn wake(&self, _events: u32) {
        self.unpark();
    }
}

/// A wait that ended without its event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitEnd {
    TimedOut,
    Interrupted(Restart),
}

impl From<WaitEnd> for SysError {
    /// A time-out becomes `ETIMEDOUT`; an interruption a restart (ERESTARTSYS).
    fn from(end: WaitEnd) -> SysError {
        match end {
            WaitEnd::TimedOut => SysError::Errno(abi::Errno::ETIMEDOUT),
            WaitEnd::Interrupted(restart) => SysError::Restart(restart),
        }
    }
}

/// The calling thread as a waiter. One for each kernel thread; not `Send`.
pub struct Waiter {
    parker: Arc<Parker>,
    /// A [`Parker`] unparks the thread that made it, so the waiter stays there.
    not_send: std::marker::PhantomData<*const ()>,
}

impl Default for Waiter {
    fn default() -> Self {
        Waiter::new()
    }
}

impl Waiter {
    /// A waiter for the calling thread.
    pub fn new() -> Waiter {
        let parker = Parker {
            thread: std::thread::current(),
            woken: AtomicBool::new(false),
            interrupts: AtomicU32::new(0),
            asleep: AtomicBool::new(false),
        };
        Waiter { parker: Arc::new(parker), not_send: std::marker::PhantomData }
    }

    /// What others wake and interrupt it by.
    pub fn parker(&self) -> &Arc<Parker> {
        &self.parker
    }

    /// Forgets these interrupts: they have been seen to.
    pub fn clear(&self, which: Interrupts) {
        self.parker.interrupts.fetch_and(!which.0, Ordering::SeqCst);
    }

    /// Waits until `check` gives a value. It is called once at least, and after each wake of one of `queues`; an
    /// event is preferred to an interruption, and that to the deadline, as on Linux.
    pub fn wait<T>(
        &self,
        queues: &[&WaitQueue],
        deadline: Deadline,
        check: impl FnMut() -> Option<T>,
    ) -> Result<T, WaitEnd> {
        self.wait_for(Interrupts::ANY, queues, deadline, check)
    }

    /// The same, but only the task's end interrupts it (Linux: `TASK_KILLABLE`).
    pub fn wait_killable<T>(
        &self,
        queues: &[&WaitQueue],
        deadline: Deadline,
        check: impl FnMut() -> Option<T>,
    ) -> Result<T, WaitEnd> {
        self.wait_for(Interrupts::KILL, queues, deadline, check)
    }

    fn wait_for<T>(
        &self,
        interrupts: Interrupts,
        queues: &[&WaitQueue],
        deadline: Deadline,
        mut check: impl FnMut() -> Option<T>,
    ) -> Result<T, WaitEnd> {
        if let Some(value) = check() {
            return Ok(value);
        }
        assert_no_lock_held();
        let _registered: SmallVec<[Registered<'_>; 4]> =
            queues.iter().map(|queue| Registered::on(queue, &self.parker)).collect();
        self.sleep(interrupts, deadline, check)
    }

    fn sleep<T>(
        &self,
        interrupts: Interrupts,
        deadline: Deadline,
        mut check: impl FnMut() -> Option<T>,
    ) -> Result<T, WaitEnd> {
        loop {
            self.parker.woken.store(false, Ordering::SeqCst);
            if let Some(value) = check() {
                return Ok(value);
            }
            if self.parker.is_interrupted(interrupts) {
                return Err(WaitEnd::Interrupted(Restart::SYS));
            }
            let left = match deadline {
                None => None,
                Some(at) => match at.checked_duration_since(Instant::now()) {
                    Some(left) if !left.is_zero() => Some(left),
                    _ => return Err(WaitEnd::TimedOut),
                },
            };
            self.parker.asleep.store(true, Ordering::Relaxed);
            match left {
                None => std::thread::park(),
                Some(left) => std::thread::park_timeout(left),
            }
            self.parker.asleep.store(false, Ordering::Relaxed);
        }
    }
}

/// A registration on a wait queue that ends with its scope.
struct Registered<'a> {
    queue: &'a WaitQueue,
    token: WaitToken,
}

impl<'a> Registered<'a> {
    fn on(queue: &'a WaitQueue, parker: &Arc<Parker>) -> Registered<'a> {
        Registered { queue, token: queue.register(parker.clone()) }
    }
}

impl Drop for Registered<'_> {
    fn drop(&mut self) {
        self.queue.unregister(self.token);
    }
}

/// Names a registration on a [`WaitQueue`]; no two are alike, whatever their queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct WaitToken(u64);

/// Those who wait for something to change. Change first, then wake.
#[derive(Default)]
pub struct WaitQueue {
    /// In the order in which they came.
    entries: Mutex<WaitQueueEntries, BTreeMap<WaitToken, Arc<dyn Wake>>>,
    /// Length of `entries`, so that waking nobody is one load.
    count: AtomicUsize,
}

impl WaitQueue {
    pub const fn new() -> WaitQueue {
        WaitQueue { entries: Mutex::new(BTreeMap::new()), count: AtomicUsize::new(0) }
    }

    /// Adds somebody to be told of every change from now on.
    pub fn register(&self, who: Arc<dyn Wake>) -> WaitToken {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let token = WaitToken(NEXT.fetch_add(1, Ordering::Relaxed));
        let mut entries = self.entries.lock();
        entries.insert(token, who);
        // SeqCst with the load in `wake`: either that wake sees us, or our later check sees its change.
        self.count.store(entries.len(), Ordering::SeqCst);
        token
    }

    /// Removes it again. Tokens of other queues and unknown ones are ignored.
    pub fn unregister(&self, token: WaitToken) {
        let gone = {
            let mut entries = self.entries.lock();
            let gone = entries.remove(&token);
            self.count.store(entries.len(), Ordering::SeqCst);
            gone
        };
        // Without the lock: its end may do anything.
        drop(gone);
    }

    /// Tells all of them.
    pub fn wake(&self, events: u32) {
        std::sync::atomic::fence(Ordering::SeqCst);
        if self.count.load(Ordering::SeqCst) == 0 {
            return;
        }
        let all: SmallVec<[Arc<dyn Wake>; 4]> = self.entries.lock().values().cloned().collect();
        for who in all {
            who.wake(events);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_wake_between_check_and_sleep_is_not_lost() {
        let queue = Arc::new(WaitQueue::new());
        let value = Arc::new(AtomicU32::new(0));
        for round in 1..=2000 {
            let (their_queue, their_value) = (queue.clone(), value.clone());
            let other = std::thread::spawn(move || {
                their_value.store(round, Ordering::SeqCst);
                their_queue.wake(0);
            });
            let waiter = Waiter::new();
            let seen = waiter.wait(&[&queue], Some(Instant::now() + Duration::from_secs(20)), || {
                Some(value.load(Ordering::SeqCst)).filter(|value| *value == round)
            });
            assert_eq!(seen, Ok(round));
            other.join().unwrap();
        }
        assert_eq!(queue.count.load(Ordering::SeqCst), 0);
    }

    #[test]
    fn whoever_is_woken_is_not_asleep_from_then_on() {
        let (tell, told) = std::sync::mpsc::channel();
        let sleeper = std::thread::spawn(move || {
            let waiter = Waiter::new();
            tell.send(waiter.parker().clone()).unwrap();
            waiter.wait(&[], None, || None::<()>).is_err()
        });
        let parker = told.recv().unwrap();
        while !parker.is_asleep() {
            std::thread::yield_now();
        }
        parker.interrupt(Interrupts::SIGNAL);
        assert!(!parker.is_asleep(), "whether it has run since or not");
        assert!(sleeper.join().unwrap() && !parker.is_asleep());
    }

    #[test]
    fn interrupts_end_waits_and_kills_only_end_killable_ones() {
        let waiter = Waiter::new();
        waiter.parker().interrupt(Interrupts::SIGNAL);
        let soon = Some(Instant::now() + Duration::from_millis(20));
        assert!(matches!(waiter.wait(&[], None, || None::<()>), Err(WaitEnd::Interrupted(_))));
        assert_eq!(waiter.wait_killable(&[], soon, || None::<()>), Err(WaitEnd::TimedOut));
        waiter.parker().interrupt(Interrupts::KILL);
        assert!(matches!(waiter.wait_killable(&[], None, || None::<()>), Err(WaitEnd::Interrupted(_))));
        waiter.clear(Interrupts::SIGNAL);
        waiter.clear(Interrupts::KILL);
        assert_eq!(waiter.wait(&[], None, || Some(7)), Ok(7));
    }
}
