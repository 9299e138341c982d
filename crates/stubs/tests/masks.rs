//! The masks that guest threads change by themselves, played by loom in all orders of the steps: no signal for a process is
//! left to nobody.
//!
//! The sender's steps follow the kernel's `signal/send.rs` and `deliver.rs`, the guest's `stub/own.s`, whose exchange is a full
//! barrier. The kernel's lock on a process's pending signals is one here too; what a guest's thread does it does without.

use std::sync::Arc;

use loom::sync::Mutex;
use loom::sync::atomic::{AtomicBool, AtomicU32, Ordering, fence};
use loom::thread;

/// The signal.
const SIGNAL: u32 = 1;

/// A guest thread with its kernel thread.
struct Task {
    blocked: AtomicU32,
    /// `WAITING` of its channel.
    waiting: AtomicU32,
    kicked: AtomicBool,
}

impl Task {
    fn new(blocked: u32) -> Task {
        Task { blocked: AtomicU32::new(blocked), waiting: AtomicU32::new(0), kicked: AtomicBool::new(false) }
    }

    fn wants(&self) -> bool {
        self.blocked.load(Ordering::Relaxed) & SIGNAL == 0
    }

    /// `rt_sigprocmask` in the stub. Whether it is to go to the kernel behind it.
    fn set_blocked(&self, set: u32) -> bool {
        let before = self.blocked.swap(set, Ordering::AcqRel);
        fence(Ordering::SeqCst);
        self.waiting.load(Ordering::Relaxed) & (before ^ set) != 0
    }
}

/// A process of two threads.
struct World {
    tasks: [Task; 2],
    /// Signals for the process.
    pending: Mutex<u32>,
    taken: AtomicU32,
    /// The sender fences.
    fences: bool,
}

impl World {
    /// `send_queued`: for the process.
    fn send(&self) {
        let mut pending = self.pending.lock().unwrap();
        *pending |= SIGNAL;
        for task in &self.tasks {
            task.waiting.fetch_or(SIGNAL, Ordering::Relaxed);
        }
        if self.fences {
            fence(Ordering::SeqCst);
        }
        let chosen = self.tasks.iter().find(|task| task.wants());
        drop(pending);
        if let Some(task) = chosen {
            task.kicked.swap(true, Ordering::AcqRel);
        }
    }

    /// `handle_signals`: takes it, or leaves it to who wants it.
    fn look(&self, own: usize) {
        let (task, other) = (&self.tasks[own], &self.tasks[1 - own]);
        let mut pending = self.pending.lock().unwrap();
        if *pending != 0 && task.wants() {
            self.taken.fetch_add(1, Ordering::Relaxed);
            *pending = 0;
        }
        task.waiting.store(*pending, Ordering::Relaxed);
        let is_left = *pending != 0;
        drop(pending);
        if is_left && other.wants() {
            other.kicked.swap(true, Ordering::AcqRel);
        }
    }

    /// A kick that has come is seen to, now or later.
    fn see_to_kick(&self, own: usize) {
        if self.tasks[own].kicked.swap(false, Ordering::AcqRel) {
            self.look(own);
        }
    }

    /// One change of a mask, with what it leads to.
    fn change(&self, own: usize, set: u32) {
        if self.tasks[own].set_blocked(set) {
            self.look(own);
        }
        self.see_to_kick(own);
    }
}

/// The first thread goes from blocking `first.0` to `first.1`, the second likewise, while the signal is sent; in the end one of
/// them wants it.
fn play(first: (u32, u32), second: (u32, u32), fences: bool) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(move || {
        let world = Arc::new(World {
            tasks: [Task::new(first.0), Task::new(second.0)],
            pending: Mutex::new(0),
            taken: AtomicU32::new(0),
            fences,
        });
        let threads: Vec<_> = [(0, first), (1, second)]
            .into_iter()
            .filter(|(_, (before, after))| before != after)
            .map(|(own, (_, after))| {
                let world = Arc::clone(&world);
                thread::spawn(move || world.change(own, after))
            })
            .collect();
        world.send();
        for thread in threads {
            thread.join().unwrap();
        }
        // Kicks that nobody has seen to yet; each may lead to one of the other.
        for own in [0, 1, 0, 1] {
            world.see_to_kick(own);
        }
        assert_eq!(world.taken.load(Ordering::Relaxed), 1, "the signal is taken once");
    });
}

#[test]
fn who_unblocks_a_signal_takes_it() {
    play((SIGNAL, 0), (SIGNAL, SIGNAL), true);
}

#[test]
fn who_blocks_a_signal_leaves_it_to_another() {
    play((0, SIGNAL), (0, 0), true);
}

#[test]
fn threads_that_change_their_minds_at_once_lose_no_signal() {
    play((0, SIGNAL), (SIGNAL, 0), true);
}

/// The model sees what it is for: a sender that does not fence reads a mask of before, and the stub no signal.
#[test]
#[should_panic(expected = "taken once")]
fn without_the_fence_a_signal_is_left_to_nobody() {
    play((SIGNAL, 0), (SIGNAL, SIGNAL), false);
}
