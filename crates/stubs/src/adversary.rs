//! A hostile guest, for tests: what it writes into its channels, and when, is decided on the kernel's own thread, so that
//! one input always does the same.
//!
//! An [`Adversary`] is asked before each access of the kernel to a channel, at each order, and at each wait for the guest.
//! Its real host process is there too, and does what it is ordered if the adversary lets an order through: so the kernel
//! can be led as far as a guest that begins well leads it. `crates/fuzzing` plays it; nothing of this is in the product.

use std::cell::RefCell;
use std::io;
use std::marker::PhantomData;
use std::os::fd::OwnedFd;
use std::time::Duration;

use crate::channel::Channel;
use crate::layout::*;

/// How long the kernel waits for the check-in of a process that an adversary's guest is to make.
const HURRY: Duration = Duration::from_millis(40);

/// A channel, as the guest may write it.
pub struct Memory<'a>(&'a Channel);

impl Memory<'_> {
    /// Bytes of it.
    pub const LEN: u64 = SIZE;

    /// Writes one aligned word, of 4 bytes or of 8.
    pub fn put(&self, offset: u64, value: u64, wide: bool) {
        if wide {
            self.0.set(offset & (SIZE - 8), value);
        } else {
            self.0.set32(offset & (SIZE - 4), value as u32);
        }
    }

    /// What the kernel has ordered last.
    pub fn order(&self) -> u32 {
        self.0.get32(ORDER) & ((1 << ORDER_BITS) - 1)
    }

    /// Where it lies in the guest, as a well-behaved guest has it there.
    pub fn address(&self) -> u64 {
        self.0.get(SELF)
    }

    /// Posts to the kernel.
    pub fn post(&self, reason: u32) {
        self.0.set32(REASON, reason);
        self.0.set32(TO_KERNEL, crate::protocol::POSTED);
    }
}

/// How a wait of the kernel's goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// As it is, for so long at most.
    Really(Duration),
    /// It is over: the guest has taken longer than it may.
    Over,
}

/// A hostile guest.
pub trait Adversary {
    /// The kernel is about to read or write at `offset`.
    fn touched(&mut self, memory: &Memory<'_>, offset: u64);

    /// The kernel gives an order. Returns whether the guest's real thread hears of it.
    fn lets_through(&mut self, memory: &Memory<'_>) -> bool;

    /// The kernel waits for the guest to post.
    fn awaited(&mut self, memory: &Memory<'_>) -> Wait;
}

/// The fields of a channel: where each begins, and its bytes.
pub const FIELDS: [(u64, u64); 40] = [
    (TO_KERNEL, 4),
    (TO_GUEST, 4),
    (REASON, 4),
    (ORDER, 4),
    (CALL, 48),
    (PENDING, 4),
    (ALIVE, 4),
    (CALLS, 4),
    (FILES, 4),
    (FP, 8),
    (RESULT, 8),
    (FAILED, 8),
    (SELF, 8),
    (GS, 8),
    (FEATURES, 8),
    (ARGS, 24),
    (SPIN, 4),
    (ANSWER_COUNT, 4),
    (SIGNAL, 48),
    (REGS, 184),
    (IDENTITY, 28),
    (SERVED, 8 * crate::leaf::COUNT as u64),
    (HANDED_COUNT, 4),
    (BUDGET, 8),
    (READ_CHARS, 16),
    (KEPT, 40),
    (BLOCKED, 24),
    (ALTERNATE, 24),
    (ARRIVED, 4),
    (DISPATCH, DISPATCHED),
    (MESSAGE, 0x80),
    (PASSED, 128),
    (TIMEOUT, 16),
    (RECORDS, 4 * RECORD),
    // The header and what is before it: the rest is any number's.
    (XSTATE, 576),
    (BROUGHT, 64),
    (BROUGHT + 16, MARSHAL_SIZE - 16),
    (ANSWERS, 256),
    (HANDED, 256),
    (FRAME, 1024),
];

thread_local! {
    /// Plays the guests of the calling thread.
    static HERE: RefCell<Option<Box<dyn Adversary>>> = const { RefCell::new(None) };
}

/// While it lives, an adversary plays.
pub struct Playing(PhantomData<*mut ()>);

impl Drop for Playing {
    fn drop(&mut self) {
        HERE.set(None);
    }
}

/// Lets it play the guests that the calling thread drives.
pub fn play(adversary: Box<dyn Adversary>) -> Playing {
    HERE.set(Some(adversary));
    Playing(PhantomData)
}

/// Asks it, if there is one and it is not its own doing that is asked about.
fn ask<T>(channel: &Channel, what: impl FnOnce(&mut dyn Adversary, &Memory<'_>) -> T) -> Option<T> {
    let asked = HERE.try_with(|here| {
        let mut here = here.try_borrow_mut().ok()?;
        here.as_mut().map(|adversary| what(&mut **adversary, &Memory(channel)))
    });
    asked.ok().flatten()
}

pub(crate) fn touched(channel: &Channel, offset: u64) {
    ask(channel, |adversary, memory| adversary.touched(memory, offset));
}

pub(crate) fn lets_through(channel: &Channel) -> bool {
    ask(channel, |adversary, memory| adversary.lets_through(memory)).unwrap_or(true)
}

/// How long a wait with this limit lasts at most; `None`: it is over.
pub(crate) fn awaited(channel: &Channel, limit: Option<libc::timespec>) -> Option<Option<libc::timespec>> {
    match ask(channel, |adversary, memory| adversary.awaited(memory)) {
        None => Some(limit),
        Some(Wait::Over) => None,
        Some(Wait::Really(span)) => {
            let mut end = crate::thread::in_seconds(span.as_secs().cast_signed());
            end.tv_nsec += i64::from(span.subsec_nanos());
            end.tv_sec += end.tv_nsec / 1_000_000_000;
            end.tv_nsec %= 1_000_000_000;
            let earlier = limit.filter(|limit| (limit.tv_sec, limit.tv_nsec) < (end.tv_sec, end.tv_nsec));
            Some(Some(earlier.unwrap_or(end)))
        }
    }
}

/// Makes the kernel's patience with a child of an adversary's short.
///
/// # Errors
/// What setting the socket's time gives.
pub(crate) fn hurry(control: &OwnedFd) -> io::Result<()> {
    let playing = HERE.try_with(|here| here.try_borrow().is_ok_and(|here| here.is_some()));
    if playing == Ok(true) {
        guest_process::wait_no_longer(control, HURRY)?;
    }
    Ok(())
}
