//! Deadlines for what a guest's host thread must do for the kernel: it comes back soon, or its process is killed.
//!
//! A thread in the stub can be kept from coming back by somebody outside (stopped, frozen), or by a file system that
//! does not answer a mapping. Its tracer waits in `waitid`, which has no time-out, so one thread of the platform
//! watches all that are awaited. One on which the host visibly works (running, or waiting for a disk) gets longer: a
//! populated mapping of many gigabytes is honest work.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

use crate::ticker::Ticker;

/// How long a guest thread may take for a step that does not wait for anybody.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);
/// How many times [`PATIENCE`] it gets while the host works on it.
const WORKING: u32 = 60;
/// Looks in the time of the patience.
const LOOKS: u32 = 4;

/// The watch over all guest threads of a platform.
#[derive(Debug)]
pub struct Deadlines {
    patience: Duration,
    vigils: Mutex<Vec<Arc<Vigil>>>,
    ticker: Ticker,
}

/// The watch over one guest thread.
#[derive(Debug)]
pub struct Vigil {
    tgid: i32,
    tid: i32,
    /// Odd while it is awaited; written by its tracer only.
    waits: AtomicU64,
    /// The watcher's: `waits` as it last saw it, and how many looks ago it first did.
    seen: AtomicU64,
    looks: AtomicU32,
}

impl Vigil {
    fn awaited(&self) -> bool {
        self.waits.load(Ordering::Relaxed) % 2 == 1
    }

    fn step(&self) {
        self.waits.store(self.waits.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
    }
}

impl Deadlines {
    pub fn new(patience: Duration) -> Deadlines {
        Deadlines { patience, vigils: Mutex::default(), ticker: Ticker::default() }
    }

    /// Begins to watch a thread that is not reaped before [`Deadlines::remove`].
    pub fn add(&self, tgid: i32, tid: i32) -> Arc<Vigil> {
        let vigil = Arc::new(Vigil {
            tgid,
            tid,
            waits: AtomicU64::new(0),
            seen: AtomicU64::new(0),
            looks: AtomicU32::new(0),
        });
        self.vigils.lock().push(Arc::clone(&vigil));
        vigil
    }

    /// Ends it. After this the tid is not used any more.
    pub fn remove(&self, vigil: &Arc<Vigil>) {
        self.vigils.lock().retain(|other| !Arc::ptr_eq(other, vigil));
    }

    /// On the tracer's thread: waits in `step` for what the thread must do at once.
    pub fn during<T>(&self, vigil: &Vigil, step: impl FnOnce() -> T) -> T {
        vigil.step();
        self.ticker.alert();
        let done = step();
        vigil.step();
        done
    }

    /// The watcher's whole life, on a thread of its own, until [`Deadlines::end`].
    pub fn watch(&self) {
        let idle = || !self.vigils.lock().iter().any(|vigil| vigil.awaited());
        self.ticker.run(self.patience / LOOKS, || self.look(), idle);
    }

    /// Ends the watcher.
    pub fn end(&self) {
        self.ticker.end();
    }

    /// Returns whether any thread is awaited.
    fn look(&self) -> bool {
        let mut any = false;
        // Held all along: a vigil in the list is of a thread that is not reaped.
        for vigil in self.vigils.lock().iter() {
            let waits = vigil.waits.load(Ordering::Relaxed);
            if waits % 2 == 0 {
                continue;
            }
            any = true;
            if vigil.seen.swap(waits, Ordering::Relaxed) != waits {
                vigil.looks.store(0, Ordering::Relaxed);
                continue;
            }
            let looks = vigil.looks.fetch_add(1, Ordering::Relaxed).saturating_add(1);
            let over = looks >= LOOKS * WORKING || looks >= LOOKS && !is_at_work(vigil.tgid, vigil.tid);
            if over {
                tracing::warn!(tid = vigil.tid, "guest thread does not come back; killed its process");
                // An error means that it is dead already.
                let _ = host::signal::send_to_thread(vigil.tgid, vigil.tid, libc::SIGKILL);
            }
        }
        any
    }
}

/// Whether a thread that is no tracee has ended, reaped or not.
pub fn is_zombie(tgid: i32, tid: i32) -> bool {
    state(tgid, tid).is_none_or(|state| matches!(state, 'Z' | 'X'))
}

/// Whether the host runs it, or waits for a device on its behalf: neither asleep nor stopped.
fn is_at_work(tgid: i32, tid: i32) -> bool {
    state(tgid, tid).is_some_and(|state| matches!(state, 'R' | 'D'))
}

/// Its state as `/proc/PID/stat` shows it; `None` if there is no such thread.
fn state(tgid: i32, tid: i32) -> Option<char> {
    let read = || std::fs::read_to_string(format!("/proc/{tgid}/task/{tid}/stat"));
    let stat = host::user::perhaps_as_guests(read).ok()?;
    // Behind the name, which may hold anything.
    stat.rsplit(") ").next()?.chars().next()
}
