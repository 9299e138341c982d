//! The kernel's threads that drive tasks: one for each, and some that have driven one and wait for the next.
//!
//! A task that a shell makes lives for a fraction of a millisecond; a thread made anew (its stack, its alternate signal
//! stack, the faults of both) is a good part of that.
//!
//! Main types: [`Threads`]. Neighbours: `fork.rs` gives tasks their threads, `here.rs` says where they begin.

use std::cell::Cell;
use std::io;
use std::sync::Arc;
use std::thread::Thread;
use std::time::Duration;

use rustix::process::Pid;
use rustix::thread::CpuSet;
use sync::{Mutex, order};

use crate::resource::usage::{StorageBytes, this_threads_time};
use crate::task::here::Here;

/// Stack of a kernel thread, in bytes. Unoptimised builds need more.
pub(crate) const KERNEL_STACK: usize = if cfg!(debug_assertions) { 1 << 20 } else { 256 << 10 };
/// Threads that wait for work, at most. More end.
const MAX_IDLE: usize = 16;

type Work = Box<dyn FnOnce() + Send>;

/// See the module's head.
#[derive(Default)]
pub(crate) struct Threads {
    idle: Mutex<order::Leaf, Idle>,
}

#[derive(Default)]
struct Idle {
    seats: Vec<Arc<Seat>>,
    closed: bool,
}

/// Where a thread waits for work.
struct Seat {
    tid: Pid,
    thread: Thread,
    next: Mutex<order::Leaf, Next>,
}

#[derive(Default)]
enum Next {
    #[default]
    Nothing,
    Work(String, Work),
    End,
}

thread_local! {
    /// What the thread had used when it began with its present task.
    static BEFORE: Cell<(Duration, StorageBytes)> = const { Cell::new((Duration::ZERO, (0, 0))) };
}

/// CPU time of the calling thread when it began with its task.
pub(crate) fn time_before() -> Duration {
    BEFORE.get().0
}

/// What the calling thread had moved from and to storage when it began with its task.
pub(crate) fn storage_before() -> StorageBytes {
    BEFORE.get().1
}

impl Threads {
    /// Has a thread named `name` do `work`. `placed`: it begins on the caller's CPU, and may run on these.
    ///
    /// # Errors
    /// What making a thread gives.
    pub(crate) fn start(
        self: &Arc<Self>,
        name: String,
        placed: Option<CpuSet>,
        work: impl FnOnce() + Send + 'static,
    ) -> io::Result<()> {
        let seat = self.idle.lock().seats.pop();
        if let Some(seat) = seat {
            let release = placed.and_then(|cpus| Here::confine_other(seat.tid, cpus));
            seat.give(Next::Work(name, with_release(release, work)));
            return Ok(());
        }
        let here = placed.and_then(Here::confine);
        let work = with_release(here.as_ref().map(Here::release), work);
        let threads = Arc::clone(self);
        let life = move || {
            work();
            threads.wait_for_more();
        };
        std::thread::Builder::new().name(name).stack_size(KERNEL_STACK).spawn(life).map(drop)
    }

    /// Threads that wait end, and those that work when they have done.
    pub(crate) fn close(&self) {
        let seats = {
            let mut idle = self.idle.lock();
            idle.closed = true;
            std::mem::take(&mut idle.seats)
        };
        seats.into_iter().for_each(|seat| seat.give(Next::End));
    }

    /// The rest of a thread's life.
    fn wait_for_more(&self) {
        let seat = Arc::new(Seat {
            tid: rustix::thread::gettid(),
            thread: std::thread::current(),
            next: Mutex::default(),
        });
        loop {
            BEFORE.set((this_threads_time(), host::clock::thread_storage_bytes()));
            {
                let mut idle = self.idle.lock();
                if idle.closed || idle.seats.len() >= MAX_IDLE {
                    return;
                }
                idle.seats.push(Arc::clone(&seat));
            }
            let Some((name, work)) = seat.take() else { return };
            // A name is for those who look on from outside only.
            let _ = rustix::thread::set_name(&std::ffi::CString::new(name).unwrap_or_default());
            work();
        }
    }
}

fn with_release(
    release: Option<impl FnOnce() + Send + 'static>,
    work: impl FnOnce() + Send + 'static,
) -> Work {
    Box::new(move || {
        if let Some(release) = release {
            release();
        }
        work();
    })
}

impl Seat {
    fn give(&self, next: Next) {
        *self.next.lock() = next;
        self.thread.unpark();
    }

    /// `None`: it is to end.
    fn take(&self) -> Option<(String, Work)> {
        loop {
            let next = std::mem::take(&mut *self.next.lock());
            match next {
                Next::Work(name, work) => return Some((name, work)),
                Next::End => return None,
                // A token may be left from the last task's waits.
                Next::Nothing => std::thread::park(),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::sync_channel;

    use super::*;

    #[test]
    fn a_thread_that_has_done_its_work_takes_the_next() {
        let threads = Arc::new(Threads::default());
        let (tell, told) = sync_channel(1);
        let mut tids = std::collections::HashSet::new();
        let all = rustix::thread::sched_getaffinity(None).ok();
        for turn in 0..10 {
            let tell = tell.clone();
            let work = move || tell.send(rustix::thread::gettid()).expect("somebody listens");
            threads.start(format!("turn {turn}"), all.filter(|_| turn % 2 == 0), work).expect("a thread");
            tids.insert(told.recv().expect("it works"));
            while threads.idle.lock().seats.is_empty() {
                std::thread::yield_now();
            }
        }
        assert_eq!(tids.len(), 1);
        threads.close();
        assert!(threads.idle.lock().seats.is_empty());
        // Works still, but keeps nobody.
        threads
            .start("last".into(), None, move || {
                tell.send(rustix::thread::gettid()).expect("somebody listens")
            })
            .expect("a thread");
        told.recv().expect("it works");
    }
}
