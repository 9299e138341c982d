//! Keeps a guest thread on the CPU of the kernel thread that serves it, unless it computes.
//!
//! Waking a thread on another, idle CPU costs several times a switch on the same one. The side that sleeps
//! is moved: the kernel thread stays where the host put it, and on finding itself elsewhere than its
//! (stopped) tracee it moves that, by one `sched_setaffinity`. A pinned thread cannot be balanced, so one
//! that has run for [`TICK`] to twice that without a stop gets the mask back that umlaut was started with:
//! a ticker thread sees to it, asleep whenever nothing runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};

use crate::ticker::Ticker;

/// A guest thread that has not stopped for one to two of these is computing.
const TICK: Duration = Duration::from_millis(4);
const NOWHERE: i32 = -1;

/// The placement of all guest threads of a platform.
pub struct Placement {
    /// The CPUs that umlaut may use; `None` switches placement off.
    allowed: Option<CpuSet>,
    pins: Mutex<Vec<Arc<Pin>>>,
    ticker: Ticker,
}

/// The placement of one guest thread. On cache lines of its own: its tracer writes it at each run.
#[derive(Debug)]
#[repr(align(128))]
pub struct Pin {
    tid: Pid,
    /// Where it is pinned, or [`NOWHERE`]. Changed under `change`.
    cpu: AtomicI32,
    change: Mutex<()>,
    /// Where it may run, if that is less than all.
    cpus: Mutex<Option<CpuSet>>,
    /// Odd while it runs; written by its tracer only.
    runs: AtomicU64,
    /// The ticker's: `runs` as it last saw it.
    seen: AtomicU64,
}

impl Pin {
    fn pinned(&self) -> bool {
        self.cpu.load(Ordering::Relaxed) != NOWHERE
    }

    fn running(&self) -> bool {
        self.runs.load(Ordering::Relaxed) % 2 == 1
    }

    fn step(&self) {
        self.runs.store(self.runs.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
    }
}

impl Placement {
    /// With `enabled` false it never does anything.
    pub fn new(enabled: bool) -> Placement {
        let allowed = if enabled { sched_getaffinity(None).ok() } else { None };
        // On one CPU there is nothing to place.
        Placement {
            allowed: allowed.filter(|set| set.count() > 1),
            pins: Mutex::default(),
            ticker: Ticker::default(),
        }
    }

    /// Whether a ticker is needed.
    pub fn enabled(&self) -> bool {
        self.allowed.is_some()
    }

    /// Begins to place `tid`, a stopped tracee.
    pub fn add(&self, tid: i32) -> Option<Arc<Pin>> {
        self.allowed?;
        let pin = Arc::new(Pin {
            tid: Pid::from_raw(tid)?,
            cpu: AtomicI32::new(NOWHERE),
            change: Mutex::new(()),
            cpus: Mutex::new(None),
            runs: AtomicU64::new(0),
            seen: AtomicU64::new(0),
        });
        self.pins.lock().push(Arc::clone(&pin));
        Some(pin)
    }

    /// Ends it. After this the tid is not used any more.
    pub fn remove(&self, pin: &Arc<Pin>) {
        self.pins.lock().retain(|other| !Arc::ptr_eq(other, pin));
    }

    /// On the tracer's thread, before its stopped tracee goes on.
    pub fn before_run(&self, pin: &Pin) {
        let here = i32::try_from(sched_getcpu()).unwrap_or(NOWHERE);
        if pin.cpu.load(Ordering::Relaxed) != here {
            let mut set = CpuSet::new();
            set.set(here.unsigned_abs() as usize);
            pin.place(&set, here);
        }
        pin.step();
        self.ticker.alert();
    }

    /// On the tracer's thread, when its tracee has stopped.
    pub fn after_run(&self, pin: &Pin) {
        pin.step();
    }

    /// The ticker's whole life, on a thread of its own, until [`Placement::end`].
    pub fn tick(&self) {
        let Some(allowed) = &self.allowed else { return };
        let idle = || !self.pins.lock().iter().any(|pin| pin.running() && pin.pinned());
        self.ticker.run(TICK, || self.unpin_computing(allowed), idle);
    }

    /// Ends the ticker.
    pub fn end(&self) {
        self.ticker.end();
    }

    /// Returns whether any guest thread that could need unpinning runs.
    fn unpin_computing(&self, allowed: &CpuSet) -> bool {
        let mut any = false;
        // Held all along: a pin in the list is of a living thread.
        for pin in self.pins.lock().iter() {
            let runs = pin.runs.load(Ordering::Relaxed);
            if runs.is_multiple_of(2) || !pin.pinned() {
                continue;
            }
            any = true;
            if pin.seen.swap(runs, Ordering::Relaxed) == runs {
                let cpus = *pin.cpus.lock();
                pin.place(cpus.as_ref().unwrap_or(allowed), NOWHERE);
            }
        }
        any
    }
}

impl Pin {
    /// Confines it for good: where its tracer is now confined to.
    pub fn confine(&self, cpus: CpuSet) {
        *self.cpus.lock() = Some(cpus);
    }

    fn place(&self, set: &CpuSet, cpu: i32) {
        let _change = self.change.lock();
        // An error means that it has died, or that the CPU was just taken away: try again at the next run.
        if sched_setaffinity(Some(self.tid), set).is_ok() {
            self.cpu.store(cpu, Ordering::Relaxed);
        }
    }
}

/// Lets a guest thread run on these CPUs only (bit `n % 64` of word `n / 64`): by its pin, if it has one.
pub fn confine(tid: i32, pin: Option<&Pin>, cpus: &[u64]) {
    let mut set = CpuSet::new();
    for (index, word) in cpus.iter().enumerate().take(CpuSet::MAX_CPU / 64) {
        for bit in (0..64).filter(|bit| word >> bit & 1 != 0) {
            set.set(index * 64 + bit);
        }
    }
    match pin {
        Some(pin) => pin.confine(set),
        // An error means that it has died, or that the host has taken those CPUs away.
        None => drop(Pid::from_raw(tid).map(|tid| sched_setaffinity(Some(tid), &set))),
    }
}

/// Sets a guest thread's niceness.
pub fn set_nice(tid: i32, nice: i32) {
    // An error means that it has died, or that only the superuser may go down.
    let _ = Pid::from_raw(tid).map(|tid| rustix::process::setpriority_process(Some(tid), nice));
}
