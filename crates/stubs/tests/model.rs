//! Hand-over and kicks, played by loom in all orders of their steps: no kick is missed, no wake-up is lost.
//!
//! The kernel's side is the product's (`src/protocol.rs`, built here with loom's atomics). The stub's side follows
//! `stub/hand_over.s`, `resume.s` and `signal.s` step by step: between any two instructions that matter a signal of the
//! host's may come, whose handler notes it, and sends a thread that has passed the last check back to it. What the host
//! does (signals, futexes) is a flag and a condition. A kick that is missed leaves everybody asleep, which loom finds.

use std::sync::Arc;

use loom::sync::{Condvar, Mutex};
use loom::thread;

use crate::atomic::{AtomicU32, Ordering};
use crate::protocol::{EMPTY, Marks, SLEEPING};

/// What `protocol` is built with.
mod atomic {
    pub(crate) use loom::sync::atomic::{AtomicBool, AtomicU32, Ordering, fence};
}
#[path = "../src/protocol.rs"]
#[allow(dead_code, reason = "the product uses all of it")]
mod protocol;

/// A thread, as the host has it: it may sleep on a word, and be sent a signal.
struct HostThread {
    signal: Mutex<bool>,
    changed: Condvar,
}

impl HostThread {
    fn new() -> HostThread {
        HostThread { signal: Mutex::new(false), changed: Condvar::new() }
    }

    /// `tgkill`.
    fn send_signal(&self) {
        *self.signal.lock().unwrap() = true;
        self.changed.notify_all();
    }

    /// Whether a signal interrupts it here.
    fn is_interrupted(&self) -> bool {
        std::mem::take(&mut *self.signal.lock().unwrap())
    }

    /// `FUTEX_WAIT`, which a signal ends.
    fn sleep_on(&self, word: &AtomicU32) {
        let mut signal = self.signal.lock().unwrap();
        while !*signal && word.load(Ordering::Acquire) == SLEEPING {
            signal = self.changed.wait(signal).unwrap();
        }
    }

    /// `FUTEX_WAKE`.
    fn wake(&self) {
        let _signal = self.signal.lock().unwrap();
        self.changed.notify_all();
    }

    /// Computes until a signal comes.
    fn compute(&self) {
        let mut signal = self.signal.lock().unwrap();
        while !*signal {
            signal = self.changed.wait(signal).unwrap();
        }
    }
}

/// Posts on a word, and wakes who sleeps on it.
fn post(ours: &AtomicU32, theirs: &AtomicU32, reader: &HostThread) {
    if protocol::post(ours, theirs) {
        reader.wake();
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Order {
    Resume,
    End,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Reason {
    Called,
    Kicked,
}

/// A guest thread, its kernel thread, and what they share.
struct World {
    guest: HostThread,
    kernel: HostThread,
    to_guest: AtomicU32,
    to_kernel: AtomicU32,
    order: AtomicU32,
    reason: AtomicU32,
    marks: Marks,
    /// What the kickers have done for the guest's kernel thread to see to.
    work: AtomicU32,
}

impl World {
    fn new() -> World {
        World {
            guest: HostThread::new(),
            kernel: HostThread::new(),
            to_guest: AtomicU32::new(EMPTY),
            to_kernel: AtomicU32::new(EMPTY),
            order: AtomicU32::new(0),
            reason: AtomicU32::new(0),
            marks: Marks::new(),
            work: AtomicU32::new(0),
        }
    }

    /// Somebody has something for the kernel thread: `Kick::interrupt`.
    fn kick(&self) {
        self.work.fetch_add(1, Ordering::Relaxed);
        if self.marks.kick() {
            self.guest.send_signal();
        }
    }

    fn give(&self, order: Order) {
        self.order.store(order as u32, Ordering::Relaxed);
        post(&self.to_kernel, &self.to_guest, &self.guest);
    }

    /// The kernel's thread: runs the guest (`Guest::run`) until it has seen all `work`. Returns how many kicks it was told of.
    fn serve(&self, work: u32) -> u32 {
        let mut reports = 0;
        loop {
            let kicked = !self.marks.begin() || {
                self.give(Order::Resume);
                // `channel::wait`.
                while !protocol::is_posted(&self.to_kernel) {
                    if protocol::mark_sleeping(&self.to_kernel) {
                        self.kernel.sleep_on(&self.to_kernel);
                    }
                }
                self.marks.end();
                let kicked = self.reason.load(Ordering::Relaxed) == Reason::Kicked as u32;
                if kicked {
                    self.marks.reported();
                }
                kicked
            };
            if kicked {
                reports += 1;
                if self.work.load(Ordering::Relaxed) == work {
                    self.give(Order::End);
                    return reports;
                }
            }
        }
    }
}

/// The stub, and the guest's code around it.
struct Stub<'a> {
    world: &'a World,
    /// `PENDING`: only its own thread and the handler on top of it use it.
    pending: bool,
    /// The handler sends back to the check.
    rewinds: bool,
    /// Calls that the guest's code makes before it computes for ever.
    calls: u32,
}

impl Stub<'_> {
    /// Between two instructions of the stub; whether the handler ran.
    fn step(&mut self) -> bool {
        let came = self.world.guest.is_interrupted();
        self.pending |= came;
        came
    }

    /// `umlaut_await`.
    fn await_order(&mut self) -> Order {
        loop {
            self.step();
            if protocol::is_posted(&self.world.to_guest) {
                break;
            }
            if protocol::mark_sleeping(&self.world.to_guest) {
                self.world.guest.sleep_on(&self.world.to_guest);
            }
        }
        self.step();
        let order = self.world.order.load(Ordering::Relaxed);
        if order == Order::End as u32 { Order::End } else { Order::Resume }
    }

    /// `umlaut_hand_over`, up to the wait.
    fn hand_over(&mut self, reason: Reason) {
        self.world.reason.store(reason as u32, Ordering::Relaxed);
        self.step();
        post(&self.world.to_guest, &self.world.to_kernel, &self.world.kernel);
    }

    /// `umlaut_check_call` to its jump. `false`: a kick was noted before.
    fn enter_guest(&mut self) -> bool {
        loop {
            if std::mem::take(&mut self.pending) {
                return false;
            }
            // Registers are loaded.
            if self.step() && self.rewinds {
                continue;
            }
            return true;
        }
    }

    /// The guest's code: some calls, then none.
    fn guest_code(&mut self) -> Reason {
        if self.calls == 0 {
            self.world.guest.compute();
        }
        if self.world.guest.is_interrupted() {
            return Reason::Kicked;
        }
        self.calls -= 1;
        Reason::Called
    }

    fn run(&mut self) {
        while self.await_order() == Order::Resume {
            let reason = if self.enter_guest() { self.guest_code() } else { Reason::Kicked };
            self.hand_over(reason);
        }
    }
}

/// Plays all orders: `kickers` threads that kick once each, against a guest that makes `calls`.
fn play(rewinds: bool, kickers: u32, calls: u32, preemptions: usize) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(preemptions);
    model.check(move || {
        let world = Arc::new(World::new());
        let mut threads: Vec<_> = (0..kickers)
            .map(|_| {
                let world = Arc::clone(&world);
                thread::spawn(move || world.kick())
            })
            .collect();
        let theirs = Arc::clone(&world);
        threads.push(thread::spawn(move || {
            Stub { world: &theirs, pending: false, rewinds, calls }.run();
        }));
        let reports = world.serve(kickers);
        // A report may come once more, when the kick crossed with a call: by the mark, then by the signal. What the kick
        // was for, a guest's signal, is in a queue of the kernel's, and is taken from it once.
        assert!((1..=2 * kickers).contains(&reports), "{reports} reports of {kickers} kicks");
        for thread in threads {
            thread.join().unwrap();
        }
    });
}

#[test]
fn no_kick_of_a_computing_guest_is_missed() {
    play(true, 1, 0, 3);
}

#[test]
fn no_kick_that_crosses_with_a_call_is_missed() {
    play(true, 1, 1, 2);
}

#[test]
fn no_kick_beside_another_is_missed() {
    play(true, 2, 0, 2);
}

/// The model sees what it is for: a handler that only notes the kick lets the guest go, and nobody hears of it.
#[test]
#[should_panic(expected = "deadlock")]
fn without_the_way_back_to_the_check_a_kick_is_missed() {
    play(false, 1, 0, 3);
}
