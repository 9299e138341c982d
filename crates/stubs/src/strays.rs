//! Strays: guest host processes that the kernel does not know. Where the host does not ask for the kernel's consent
//! ([`crate::consent`]) a guest that runs the stub's code by itself can clone such; anywhere it can keep a child that was
//! ordered from telling who it is. They are nobody's, and nothing but this ends them before the kernel does.
//!
//! All guest processes are children of the spawner's thread, so whatever child it has is known or a stray; a process
//! on whose birth the kernel works is not known yet, so a look at a time when there is one does not count.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicI32, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use guest_process::Guests;
use parking_lot::{Condvar, Mutex};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use crate::threads::Ending;

/// Time between looks.
const PERIOD: Duration = Duration::from_secs(5);
/// How often a look is tried while processes are born, and the time between.
const TRIES: u32 = 50;
const GAP: Duration = Duration::from_millis(20);
/// Within this a process that the kernel itself ends is reaped, mostly.
const GRACE: Duration = Duration::from_millis(100);

/// The look-out for strays.
#[derive(Debug, Default)]
pub(crate) struct Strays {
    /// The spawner's thread; 0: not yet known.
    parent: AtomicI32,
    /// Births that the kernel works on, and all that it has begun to. The first is counted before the second.
    born: AtomicU32,
    begun: AtomicU64,
    ended: Mutex<bool>,
    wake: Condvar,
}

/// While it lives, there may be a guest process that is not registered yet.
pub(crate) struct Birth<'a>(&'a Strays);

impl Drop for Birth<'_> {
    fn drop(&mut self) {
        self.0.born.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Strays {
    /// On the spawner's thread: its children are guest processes.
    pub(crate) fn are_children_here(&self) {
        self.parent.store(rustix::thread::gettid().as_raw_nonzero().get(), Ordering::Relaxed);
    }

    /// Before a guest process is made; until it is registered.
    pub(crate) fn birth(&self) -> Birth<'_> {
        self.born.fetch_add(1, Ordering::SeqCst);
        self.begun.fetch_add(1, Ordering::SeqCst);
        Birth(self)
    }

    /// The thread's whole life.
    pub(crate) fn run(&self, guests: &Guests, ending: &Ending) {
        while !self.sleep(PERIOD) {
            ending.look();
            for _ in 0..TRIES {
                match self.find(guests) {
                    // Hosts without the list (CONFIG_PROC_CHILDREN) keep strays until the kernel ends.
                    Some(Err(_)) => break,
                    Some(Ok(strays)) if strays.is_empty() => break,
                    Some(Ok(strays)) => {
                        self.sleep(GRACE);
                        strays.iter().for_each(end);
                        break;
                    }
                    None if self.sleep(GAP) => return,
                    None => {}
                }
            }
        }
    }

    /// Whether the host has no guest process that is not known, while the caller has none born. It may take a second.
    pub(crate) fn are_none(&self, guests: &Guests) -> bool {
        (0..TRIES).any(|_| {
            let none = self.find(guests).is_some_and(|strays| strays.is_ok_and(|strays| strays.is_empty()));
            none || self.sleep(GAP)
        })
    }

    /// Ends the thread.
    pub(crate) fn stop(&self) {
        *self.ended.lock() = true;
        self.wake.notify_all();
    }

    /// Returns whether the thread is to end.
    fn sleep(&self, time: Duration) -> bool {
        let mut ended = self.ended.lock();
        if !*ended {
            self.wake.wait_for(&mut ended, time);
        }
        *ended
    }

    /// Children that are no guest processes, those that end included. `None`: others were being born.
    fn find(&self, guests: &Guests) -> Option<io::Result<Vec<OwnedFd>>> {
        let begun = self.begun.load(Ordering::SeqCst);
        let quiet = || self.born.load(Ordering::SeqCst) == 0 && self.begun.load(Ordering::SeqCst) == begun;
        if !quiet() {
            return None;
        }
        let path = format!("/proc/self/task/{}/children", self.parent.load(Ordering::Relaxed));
        let list = match std::fs::read_to_string(path) {
            Ok(list) => list,
            Err(error) => return Some(Err(error)),
        };
        let strays = list
            .split_ascii_whitespace()
            .filter_map(|pid| pid.parse::<i32>().ok())
            .filter(|pid| !guests.knows(*pid))
            .filter_map(|pid| pidfd_open(Pid::from_raw(pid)?, PidfdFlags::empty()).ok())
            .collect();
        // So what was opened is none that was born behind the list, by a pid that it tells.
        quiet().then_some(Ok(strays))
    }
}

/// Kills it; reaps it when it is dead, in a later look.
fn end(stray: &OwnedFd) {
    // What is dead is reaped by this, or was by whoever ended it.
    if let Ok(None) = host::wait::wait_pidfd(stray.as_fd(), libc::WEXITED | libc::WNOHANG) {
        tracing::warn!("a process that nobody knows; killed it");
        // An error means that it has ended.
        let _ = pidfd_send_signal(stray, Signal::KILL);
    }
}
