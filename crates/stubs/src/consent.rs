//! Consent: the host asks us about each clone of a guest process, where it offers that (`SECCOMP_RET_USER_NOTIF`), and the
//! kernel lets one pass for each that it has ordered. So a guest that runs the stub's code by itself makes neither hidden
//! threads nor hidden processes.
//!
//! One thread answers: who asks is told by the host, and what by the call's arguments. A call that a signal, a stop or a
//! freezer breaks off before the answer is made again, and asks again; one that is broken off behind it has used its
//! consent, and is asked about once more: refused, since nobody can tell it from a second one, and ordered again once the host
//! shows that nothing came of it. Kicks are none of that: the last one to be sent has
//! been sent before the order ([`crate::kick`]), and ends a wait for the answer at once.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use host::listener::{Answer, Listener, Notification};
use parking_lot::Mutex;
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};

/// How many refused calls are told.
const MOST_TOLD: u32 = 8;

/// A clone that the kernel orders.
#[derive(Debug)]
struct Expected {
    number: u64,
    tid: i32,
    flags: u32,
    used: bool,
    /// It has been asked for once more.
    again: bool,
}

/// Whether there is an order for a call.
enum Taken {
    /// One that is used by it.
    Now(u64),
    /// One that was used before.
    Before,
    Never,
}

/// See the module's head.
#[derive(Debug)]
pub(crate) struct Consent {
    in_force: AtomicBool,
    /// Those under way, and the number of the next.
    expected: Mutex<(Vec<Expected>, u64)>,
    refused: AtomicU32,
    /// Ends the threads.
    end: OwnedFd,
}

/// While it lives, the thread may clone: once.
pub(crate) struct Permit<'a> {
    consent: &'a Consent,
    number: u64,
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        self.consent.expected.lock().0.retain(|expected| expected.number != self.number);
    }
}

impl Permit<'_> {
    /// Whether its thread has asked once more, and been refused.
    pub(crate) fn is_asked_again(&self) -> bool {
        self.consent.expected.lock().0.iter().any(|expected| expected.number == self.number && expected.again)
    }
}

impl Consent {
    /// # Errors
    /// What making a descriptor gives.
    pub(crate) fn new() -> io::Result<Consent> {
        let end = eventfd(0, EventfdFlags::CLOEXEC)?;
        Ok(Consent {
            in_force: AtomicBool::new(false),
            expected: Mutex::default(),
            refused: AtomicU32::new(0),
            end,
        })
    }

    /// Whether clones are asked about.
    pub(crate) fn is_in_force(&self) -> bool {
        self.in_force.load(Ordering::Relaxed)
    }

    /// From now on clones are asked about.
    pub(crate) fn put_in_force(&self) {
        self.in_force.store(true, Ordering::Relaxed);
    }

    /// Before the thread is ordered to clone with these flags.
    pub(crate) fn permit(&self, tid: i32, flags: u32) -> Option<Permit<'_>> {
        if !self.is_in_force() {
            return None;
        }
        let (expected, next) = &mut *self.expected.lock();
        let number = *next;
        *next += 1;
        expected.push(Expected { number, tid, flags, used: false, again: false });
        Some(Permit { consent: self, number })
    }

    /// A thread's whole life: answers what comes by one listener, until none of its processes is left.
    pub(crate) fn run(&self, listener: &Listener) {
        loop {
            let mut both = [
                PollFd::new(listener, PollFlags::IN),
                PollFd::from_borrowed_fd(self.end.as_fd(), PollFlags::IN),
            ];
            match poll(&mut both, None) {
                Err(rustix::io::Errno::INTR) => continue,
                Ok(_) if both.each_ref().map(PollFd::revents) == [PollFlags::IN, PollFlags::empty()] => {}
                // It has no more processes; or: all is over. Whatever is waiting then fails.
                _ => return,
            }
            match listener.receive() {
                Ok(notification) => self.answer(listener, &notification),
                Err(error) if matches!(error.raw_os_error(), Some(libc::ENOENT | libc::EINTR)) => {}
                Err(error) => {
                    tracing::error!(%error, "guests can make neither processes nor threads any more");
                    return;
                }
            }
        }
    }

    fn answer(&self, listener: &Listener, notification: &Notification) {
        match self.take(notification) {
            Taken::Now(number) => {
                if listener.answer(notification, Answer::GoesOn).is_err() {
                    // It has not been made, and may be asked for again.
                    self.give_back(number);
                }
                return;
            }
            Taken::Before => {}
            Taken::Never if self.refused.fetch_add(1, Ordering::Relaxed) < MOST_TOLD => {
                tracing::warn!(tid = notification.tid, "a clone that nobody ordered; refused it");
            }
            Taken::Never => {}
        }
        // An error: it is gone.
        let _ = listener.answer(notification, Answer::Fails(libc::EPERM));
    }

    /// The order that the call carries out.
    fn take(&self, notification: &Notification) -> Taken {
        let Notification { tid, arguments: [flags, ..], .. } = *notification;
        let expected = &mut self.expected.lock().0;
        let mut taken = Taken::Never;
        for one in expected.iter_mut().filter(|one| one.tid == tid && u64::from(one.flags) == flags) {
            if !one.used {
                one.used = true;
                return Taken::Now(one.number);
            }
            one.again = true;
            taken = Taken::Before;
        }
        taken
    }

    fn give_back(&self, number: u64) {
        if let Some(expected) = self.expected.lock().0.iter_mut().find(|expected| expected.number == number) {
            expected.used = false;
        }
    }

    /// Ends the threads.
    pub(crate) fn stop(&self) {
        let _ = rustix::io::write(&self.end, &1u64.to_ne_bytes());
    }
}
