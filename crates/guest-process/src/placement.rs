//! Keeps a guest thread on the CPU of the kernel thread that serves it, unless it computes.
//!
//! Waking a thread on another, idle CPU costs several times a switch on the same one. The side that sleeps
//! is moved: the kernel thread stays where the host put it, and on finding itself elsewhere than its
//! (stopped) tracee it moves that, by one `sched_setaffinity`. While stops follow each other the kernel thread is
//! *held* too: an idle CPU would draw it away at a wake-up, and the two would chase each other. What is pinned cannot be
//! balanced, so a guest thread that has run for [`TICK`] to twice that without a stop gets the mask back that
//! umlaut was started with, and so does a kernel thread that has seen no stop for so long: a ticker thread sees to
//! it, asleep whenever nothing runs.
//!
//! A kernel thread that begins with a new process is held from the start, one on each CPU: most of what a shell makes lives for
//! some dozens of stops, each of which would cost a wake-up across CPUs while another CPU is idle.
//!
//! A platform whose two sides can watch each other's words may have them *apart*: on different CPUs, neither asleep.

mod hold;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};

use crate::ticker::Ticker;

/// A guest thread that has not stopped for one to two of these is computing.
const TICK: Duration = Duration::from_millis(4);
const NOWHERE: i32 = -1;
/// Runs for which a new guest thread's kernel thread is held from the beginning: a short program's whole life.
const CHILDHOOD: u64 = 256;
/// Anywhere but on its kernel thread's CPU.
const APART: i32 = -2;

/// The placement of all guest threads of a platform.
pub struct Placement {
    /// The CPUs that umlaut may use; `None` switches placement off.
    allowed: Option<CpuSet>,
    pins: Mutex<Vec<Arc<Pin>>>,
    /// For each CPU, whether a kernel thread is held there: one at most, or the others could not spread.
    taken: Arc<[AtomicBool]>,
    /// The same of those that have begun just now.
    cradles: Arc<[AtomicBool]>,
    ticker: Ticker,
}

/// The placement of one guest thread. On cache lines of its own: its tracer writes it at each run.
#[derive(Debug)]
#[repr(align(128))]
pub struct Pin {
    tid: Pid,
    /// Of its process; others run beside it.
    is_leader: bool,
    tracer: Pid,
    /// Where it is pinned, or [`NOWHERE`]. Changed under `change`.
    cpu: AtomicI32,
    change: Mutex<()>,
    /// Where the tracer is held, or [`NOWHERE`]. Changed under `change`.
    held: AtomicI32,
    /// Held as one that has begun just now: `held` is a place among `cradles`, not `taken`. Changed under `change`.
    is_new: AtomicBool,
    taken: Arc<[AtomicBool]>,
    cradles: Arc<[AtomicBool]>,
    /// Runs since the tracee was last moved; written by its tracer only.
    steady: AtomicU32,
    /// Where it may run, if that is less than all.
    cpus: Mutex<Option<CpuSet>>,
    /// Odd while it runs; written by its tracer only.
    runs: AtomicU64,
    /// The ticker's: `runs` as it last saw it.
    seen: AtomicU64,
}

impl Pin {
    /// The one CPU where it may run now.
    pub fn at(&self) -> Option<i32> {
        Some(self.cpu.load(Ordering::Relaxed)).filter(|cpu| *cpu >= 0)
    }

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
            taken: (0..CpuSet::MAX_CPU).map(|_| AtomicBool::new(false)).collect(),
            cradles: (0..CpuSet::MAX_CPU).map(|_| AtomicBool::new(false)).collect(),
            ticker: Ticker::default(),
        }
    }

    /// Whether a ticker is needed.
    pub fn enabled(&self) -> bool {
        self.allowed.is_some()
    }

    /// Begins to place `tid` of the guest process `tgid`, a stopped tracee of the calling thread; `at`: the one CPU where it
    /// may run now, if that is known.
    pub fn add(&self, tgid: i32, tid: i32, at: Option<i32>) -> Option<Arc<Pin>> {
        self.allowed?;
        let pin = Arc::new(Pin {
            tid: Pid::from_raw(tid)?,
            is_leader: tid == tgid,
            tracer: rustix::thread::gettid(),
            cpu: AtomicI32::new(at.unwrap_or(NOWHERE)),
            change: Mutex::new(()),
            held: AtomicI32::new(NOWHERE),
            is_new: AtomicBool::new(false),
            taken: Arc::clone(&self.taken),
            cradles: Arc::clone(&self.cradles),
            steady: AtomicU32::new(0),
            cpus: Mutex::new(None),
            runs: AtomicU64::new(0),
            seen: AtomicU64::new(0),
        });
        let mut pins = self.pins.lock();
        // After an exec in a fresh process it is the same thread that goes on.
        if !pins.iter().any(|before| before.tracer == pin.tracer && before.bequeath(&pin)) && pin.is_leader {
            pin.cradle(i32::try_from(sched_getcpu()).unwrap_or(NOWHERE));
        }
        pins.push(Arc::clone(&pin));
        drop(pins);
        Some(pin)
    }

    /// Brings `tid`, which sleeps and has no pin, to the caller's CPU, unless `at` says that it is there; says so then.
    pub fn bring(&self, tid: i32, at: &mut Option<i32>) {
        if self.allowed.is_none() {
            return;
        }
        let here = i32::try_from(sched_getcpu()).ok();
        if *at != here {
            // An error means that it has died, or that the CPU was just taken away.
            let moved = sched_setaffinity(Pid::from_raw(tid), &only(here.unwrap_or(0)));
            *at = moved.ok().and(here);
        }
    }

    /// Ends it. After this the tid is not used any more.
    pub fn remove(&self, pin: &Arc<Pin>) {
        if let Some(allowed) = &self.allowed {
            pin.release(&pin.cpus.lock().unwrap_or(*allowed));
        }
        self.pins.lock().retain(|other| !Arc::ptr_eq(other, pin));
    }

    /// On the tracer's thread, before its stopped tracee goes on. Apart, the tracer [says](Placement::sleeps) when it no
    /// longer watches it.
    pub fn before_run(&self, pin: &Pin) {
        let cpu = pin.cpu.load(Ordering::Relaxed);
        pin.step();
        if cpu == APART {
            return;
        }
        let here = i32::try_from(sched_getcpu()).unwrap_or(NOWHERE);
        if cpu != here {
            pin.steady.store(0, Ordering::Relaxed);
            pin.place(&only(here), here);
        } else if !pin.held() {
            pin.hold(here);
        } else if pin.is_new.load(Ordering::Relaxed) {
            self.grow_up(pin, here);
        }
        self.ticker.alert();
    }

    /// On the tracer's thread, its tracee running: from now on it may compute unseen.
    pub fn sleeps(&self) {
        self.ticker.alert();
    }

    /// On the tracer's thread: what was new is so no longer after a while, and is held on only if no other is.
    fn grow_up(&self, pin: &Pin, here: i32) {
        if pin.runs.load(Ordering::Relaxed) < 2 * CHILDHOOD {
            return;
        }
        if !pin.keep(here)
            && let Some(allowed) = &self.allowed
        {
            pin.release(&pin.cpus.lock().unwrap_or(*allowed));
        }
    }

    /// The CPUs that umlaut may use, if it places guest threads at all.
    pub fn cpus(&self) -> usize {
        self.allowed.map_or(1, |allowed| allowed.count() as usize)
    }

    /// On the tracer's thread, its tracee stopped: from now on on other CPUs than this one, until [`Pin::is_apart`]
    /// no longer holds. `false`: there is none that it may use.
    pub fn part(&self, pin: &Pin) -> bool {
        let Some(mut others) = (*pin.cpus.lock()).or(self.allowed) else { return false };
        others.unset(sched_getcpu());
        others.count() > 0 && {
            pin.place(&others, APART);
            pin.is_apart()
        }
    }

    /// On the tracer's thread, when its tracee has stopped.
    pub fn after_run(&self, pin: &Pin) {
        pin.step();
    }

    /// The ticker's whole life, on a thread of its own, until [`Placement::end`].
    pub fn tick(&self) {
        let Some(allowed) = &self.allowed else { return };
        let idle = || !self.pins.lock().iter().any(|pin| pin.running() && pin.pinned() || pin.held());
        self.ticker.run(TICK, || self.unpin_computing(allowed), idle);
    }

    /// Ends the ticker.
    pub fn end(&self) {
        self.ticker.end();
    }

    /// Returns whether there is any that could need unpinning.
    fn unpin_computing(&self, allowed: &CpuSet) -> bool {
        let mut any = false;
        // Held all along: a pin in the list is of a living thread.
        for pin in self.pins.lock().iter() {
            let runs = pin.runs.load(Ordering::Relaxed);
            let computes = runs % 2 == 1 && pin.pinned();
            if !computes && !pin.held() {
                continue;
            }
            any = true;
            if pin.seen.swap(runs, Ordering::Relaxed) == runs {
                let cpus = pin.cpus.lock().unwrap_or(*allowed);
                pin.release(&cpus);
                if computes {
                    pin.place(&cpus, NOWHERE);
                }
            }
        }
        any
    }
}

impl Pin {
    /// Whether it is kept off its tracer's CPU: ends by [`Pin::join`], or when it computes.
    pub fn is_apart(&self) -> bool {
        self.cpu.load(Ordering::Relaxed) == APART
    }

    /// The next run brings it to its tracer's CPU.
    pub fn join(&self) {
        let _ = self.cpu.compare_exchange(APART, NOWHERE, Ordering::Relaxed, Ordering::Relaxed);
    }

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

fn only(cpu: i32) -> CpuSet {
    let mut set = CpuSet::new();
    set.set(cpu.unsigned_abs() as usize);
    set
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_of_those_that_begin_on_a_cpu_is_held_there() {
        let placement = Placement::new(true);
        let Some(all) = placement.allowed else {
            return eprintln!("skipped: there is one CPU only");
        };
        let cpus = || sched_getaffinity(None).expect("an affinity");
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let me = rustix::thread::gettid().as_raw_nonzero().get();
                let first = placement.add(me, me, None).expect("a pin");
                assert_eq!(cpus().count(), 1);
                // An exec in a fresh process: another guest thread, the same kernel thread.
                let second = placement.add(me, me, None).expect("a pin");
                placement.remove(&first);
                assert_eq!(cpus().count(), 1);
                // Its child begins where it is, as it may run nowhere else.
                let child = scope.spawn(|| {
                    let me = rustix::thread::gettid().as_raw_nonzero().get();
                    let third = placement.add(me, me, None).expect("a pin");
                    assert!(!third.held());
                    placement.remove(&third);
                });
                child.join().expect("it does not panic");
                placement.remove(&second);
                assert!(cpus() == all);
            });
        });
    }
}
