//! Deaths: one thread that watches the pidfds of all guest processes and rings their threads' bells.
//!
//! It reaps nothing: a process is reaped when its last reference goes.

use std::collections::HashMap;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use guest_process::Process;
use parking_lot::Mutex;
use platform::AddressSpace;
use rustix::event::{Timespec, epoll, eventfd};

use crate::hand_over::Bell;

/// Watches guest processes.
pub(crate) struct Reaper {
    epoll: OwnedFd,
    /// Ends the thread.
    end: OwnedFd,
    next: AtomicU64,
    watched: Mutex<HashMap<u64, Vec<Weak<Bell>>>>,
}

/// A process is watched, until this is dropped.
pub(crate) struct Watch {
    reaper: Arc<Reaper>,
    number: u64,
}

impl Watch {
    /// A thread of the process: its bell rings when that dies, or now if it has died.
    pub(crate) fn add(&self, bell: &Arc<Bell>) {
        let mut watched = self.reaper.watched.lock();
        match watched.get_mut(&self.number) {
            Some(bells) => {
                bells.retain(|bell| bell.strong_count() > 0);
                bells.push(Arc::downgrade(bell));
            }
            None => bell.ring_dead(),
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.reaper.watched.lock().remove(&self.number);
    }
}

/// The number of `end`.
const END: u64 = 0;

impl Reaper {
    /// Not yet watching: [`Reaper::run`] does, on a thread of its own.
    ///
    /// # Errors
    /// What making the descriptors gives.
    pub(crate) fn new() -> io::Result<Reaper> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let end = eventfd(0, rustix::event::EventfdFlags::CLOEXEC)?;
        epoll::add(&epoll, &end, epoll::EventData::new_u64(END), epoll::EventFlags::IN)?;
        Ok(Reaper { epoll, end, next: AtomicU64::new(END + 1), watched: Mutex::default() })
    }

    /// Begins to watch a process.
    ///
    /// # Errors
    /// What adding its pidfd gives.
    pub(crate) fn watch(self: &Arc<Self>, process: &Process) -> io::Result<Watch> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        self.watched.lock().insert(number, Vec::new());
        let watch = Watch { reaper: Arc::clone(self), number };
        if let Some(pidfd) = process.death() {
            let flags = epoll::EventFlags::IN | epoll::EventFlags::ONESHOT;
            epoll::add(&self.epoll, pidfd, epoll::EventData::new_u64(number), flags)?;
        }
        Ok(watch)
    }

    /// The thread's whole life.
    pub(crate) fn run(&self) {
        let mut events = Vec::with_capacity(64);
        loop {
            events.clear();
            match epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut events), None::<&Timespec>) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => {
                    tracing::error!(%error, "the deaths of guest processes are not seen any more");
                    return;
                }
            }
            for event in &events {
                match event.data.u64() {
                    END => return,
                    number => {
                        let bells = self.watched.lock().remove(&number).unwrap_or_default();
                        bells.iter().filter_map(Weak::upgrade).for_each(|bell| bell.ring_dead());
                    }
                }
            }
        }
    }

    /// Ends the thread.
    pub(crate) fn stop(&self) {
        let _ = rustix::io::write(&self.end, &1u64.to_ne_bytes());
    }
}
