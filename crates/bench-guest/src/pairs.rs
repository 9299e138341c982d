//! Workloads: two that answer each other. One operation is a round trip; of signals, the way there.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use crate::Workload;
use crate::measure::{Measured, repeat};
use crate::sys::{self, Fd};

pub(crate) const ALL: &[Workload] = &[
    ("pipe-ping-pong", pipe),
    ("unix-ping-pong", unix),
    ("futex-ping-pong", futex),
    ("signal-other", signal),
];

/// Ten descriptors that nothing can be read from.
pub(crate) fn some_eventfds() -> Vec<Fd> {
    (0..10).map(|_| sys::eventfd()).collect()
}

fn pipe() -> Measured {
    let (there, back) = (sys::pipe(), sys::pipe());
    between_processes((back.0, there.1), (there.0, back.1))
}

fn unix() -> Measured {
    let (ours, theirs) = sys::socket_pair();
    between_processes((ours, ours), (theirs, theirs))
}

/// Descriptors to read from and to write to, ours and a child's.
fn between_processes(ours: (Fd, Fd), theirs: (Fd, Fd)) -> Measured {
    let child = sys::fork(|| {
        let mut byte = [0];
        while sys::read(theirs.0, &mut byte) == 1 {
            sys::write(theirs.1, &byte);
        }
    });
    let measured = repeat(|| {
        sys::write(ours.1, &[1]);
        sys::read(ours.0, &mut [0]);
    });
    sys::kill(child);
    sys::wait_for(child);
    measured
}

const OURS: u32 = 0;
const THEIRS: u32 = 1;
const OVER: u32 = 2;

/// Two threads pass one word to and fro.
fn futex() -> Measured {
    let word = Arc::new(AtomicU32::new(OURS));
    let other = word.clone();
    let thread = std::thread::spawn(move || {
        loop {
            match other.load(Ordering::Acquire) {
                THEIRS => {
                    other.store(OURS, Ordering::Release);
                    sys::futex_wake(&other);
                }
                OVER => return,
                value => sys::futex_wait(&other, value),
            }
        }
    });
    let measured = repeat(|| {
        word.store(THEIRS, Ordering::Release);
        sys::futex_wake(&word);
        while word.load(Ordering::Acquire) != OURS {
            sys::futex_wait(&word, THEIRS);
        }
    });
    word.store(OVER, Ordering::Release);
    sys::futex_wake(&word);
    // It has no way to panic.
    let _ = thread.join();
    measured
}

/// A signal to a thread that computes, until its handler has run.
fn signal() -> Measured {
    const NOBODY: usize = 0;
    const OVER: usize = usize::MAX;
    sys::handle_usr1();
    let word = Arc::new(AtomicUsize::new(NOBODY));
    let other = word.clone();
    let thread = std::thread::spawn(move || {
        other.store(sys::own_tid(), Ordering::Release);
        while other.load(Ordering::Relaxed) != OVER {
            std::hint::spin_loop();
        }
    });
    let tid = loop {
        match word.load(Ordering::Acquire) {
            NOBODY => std::thread::yield_now(),
            tid => break tid,
        }
    };
    let measured = repeat(|| {
        let before = sys::counted();
        sys::send_usr1_to(tid);
        // On one CPU the other thread needs ours.
        while sys::counted() == before {
            sys::sched_yield();
        }
    });
    word.store(OVER, Ordering::Release);
    // It has no way to panic.
    let _ = thread.join();
    measured
}
