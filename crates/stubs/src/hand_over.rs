//! Posting to a guest thread, and waiting for what it posts: futexes on the words of its channel, and a word of the kernel's
//! own beside them, so that no guest keeps one of the kernel's threads.
//!
//! # Safety
//! Futex calls on words of mappings that their channel keeps, and on the kernel's own; the structures live over the calls.
#![allow(unsafe_code, reason = "futexes on memory shared with a guest process")]

use std::io;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use crate::channel::Channel;
use crate::layout::*;
use crate::protocol::{self, SLEEPING};

/// A word of the kernel's own by which its threads are woken, whatever guests do to theirs.
#[derive(Debug, Default)]
pub(crate) struct Bell {
    word: AtomicU32,
}

impl Bell {
    /// The guest process is gone.
    pub(crate) const DEAD: u32 = 1;
    /// Counts kicks, above the flag.
    const KICK: u32 = 2;

    pub(crate) fn value(&self) -> u32 {
        self.word.load(Ordering::Acquire)
    }

    pub(crate) fn is_dead(&self) -> bool {
        self.value() & Bell::DEAD != 0
    }

    /// Waits for the death of a process that has been killed, whatever its threads still post.
    pub(crate) fn wait_until_dead(&self) {
        loop {
            let seen = self.value();
            if seen & Bell::DEAD != 0 {
                return;
            }
            // Whatever it says, the word is looked at again.
            let _ =
                rustix::thread::futex::wait(&self.word, rustix::thread::futex::Flags::PRIVATE, seen, None);
        }
    }

    pub(crate) fn ring_dead(&self) {
        self.word.fetch_or(Bell::DEAD, Ordering::AcqRel);
        wake(&self.word, true);
    }

    pub(crate) fn ring_kick(&self) {
        self.word.fetch_add(Bell::KICK, Ordering::AcqRel);
        wake(&self.word, true);
    }
}

/// How a wait for the guest's post ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Waited {
    Posted,
    /// The bell rang.
    Bell,
    TimedOut,
}

/// Posts to the guest. Returns whether it slept.
pub(crate) fn post(channel: &Channel) -> bool {
    #[cfg(feature = "testing")]
    if !crate::adversary::lets_through(channel) {
        return false;
    }
    let word = channel.word(TO_GUEST);
    let slept = protocol::post(channel.word(TO_KERNEL), word);
    if slept {
        wake(word, false);
    }
    slept
}

/// Watches for the guest's post without sleeping, for `span` at most or until the bell rings.
/// Returns whether it came.
pub(crate) fn watch(channel: &Channel, bell: &Bell, span: Duration) -> bool {
    /// Looks at the words between two at the clock.
    const LOOKS: u32 = 16;
    let word = channel.word(TO_KERNEL);
    let (begun, seen) = (Instant::now(), bell.value());
    loop {
        for _ in 0..LOOKS {
            if protocol::is_posted(word) {
                return true;
            }
            std::hint::spin_loop();
        }
        if bell.value() != seen || begun.elapsed() >= span {
            return false;
        }
    }
}

/// Waits for the guest's post, while the bell has the value `seen`.
pub(crate) fn wait(channel: &Channel, bell: &Bell, seen: u32, limit: Option<libc::timespec>) -> Waited {
    #[cfg(feature = "testing")]
    let limit = match crate::adversary::awaited(channel, limit) {
        Some(limit) => limit,
        None => return Waited::TimedOut,
    };
    let word = channel.word(TO_KERNEL);
    let mut first = true;
    loop {
        if protocol::is_posted(word) {
            return Waited::Posted;
        }
        if bell.value() != seen {
            return Waited::Bell;
        }
        // A guest that writes to the word all the time keeps the host from ever seeing the limit.
        if !first && limit.is_some_and(has_passed) {
            return Waited::TimedOut;
        }
        first = false;
        if !protocol::mark_sleeping(word) {
            continue;
        }
        if wait_for_either(word, &bell.word, seen, limit) == Err(libc::ETIMEDOUT) {
            return Waited::TimedOut;
        }
    }
}

/// Waits until the host has cleared a thread's word, or until `limit`.
pub(crate) fn wait_until_clear(channel: &Channel, bell: &Bell, limit: libc::timespec) -> bool {
    #[cfg(feature = "testing")]
    let limit = match crate::adversary::awaited(channel, Some(limit)) {
        Some(Some(limit)) => limit,
        _ => return false,
    };
    let word = channel.word(ALIVE);
    loop {
        let value = word.load(Ordering::Acquire);
        if value == 0 || bell.is_dead() {
            return true;
        }
        // As in `wait`.
        if has_passed(limit) {
            return false;
        }
        // SAFETY: a word of a mapping that `channel` keeps; an absolute time.
        let result = unsafe {
            libc::syscall(
                libc::SYS_futex,
                word.as_ptr(),
                libc::FUTEX_WAIT_BITSET,
                value,
                &raw const limit,
                0,
                u32::MAX,
            )
        };
        if result < 0 && io::Error::last_os_error().raw_os_error() == Some(libc::ETIMEDOUT) {
            return false;
        }
    }
}

/// `limit`: CLOCK_MONOTONIC.
fn has_passed(limit: libc::timespec) -> bool {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    (now.tv_sec, now.tv_nsec) >= (limit.tv_sec, limit.tv_nsec)
}

fn wake(word: &AtomicU32, private: bool) {
    let flag = if private { libc::FUTEX_PRIVATE_FLAG } else { 0 };
    // SAFETY: wakes whoever waits on the word; touches nothing else.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE | flag, i32::MAX, 0, 0, 0) };
}

#[repr(C)]
struct FutexWaitv {
    val: u64,
    uaddr: u64,
    flags: u32,
    reserved: u32,
}

/// `limit`: CLOCK_MONOTONIC.
fn wait_for_either(
    shared: &AtomicU32,
    private: &AtomicU32,
    seen: u32,
    limit: Option<libc::timespec>,
) -> Result<(), i32> {
    /// `FUTEX2_SIZE_U32`.
    const U32: u32 = 2;
    let waiters = [
        FutexWaitv { val: SLEEPING.into(), uaddr: shared.as_ptr().addr() as u64, flags: U32, reserved: 0 },
        FutexWaitv {
            val: seen.into(),
            uaddr: private.as_ptr().addr() as u64,
            flags: U32 | libc::FUTEX_PRIVATE_FLAG.cast_unsigned(),
            reserved: 0,
        },
    ];
    let limit = limit.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: both words outlive the call; the array and the time are read only.
    let result = unsafe {
        libc::syscall(libc::SYS_futex_waitv, waiters.as_ptr(), waiters.len(), 0, limit, libc::CLOCK_MONOTONIC)
    };
    if result >= 0 {
        return Ok(());
    }
    Err(io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO))
}

/// Whether the host has `futex_waitv`.
pub(crate) fn host_can_wait() -> bool {
    let word = AtomicU32::new(0);
    // EAGAIN: the values differ.
    wait_for_either(&word, &word, 1, None) == Err(libc::EAGAIN)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;
    use crate::channel::Channels;

    /// Whatever a guest writes to its words meanwhile, waits end at their limit.
    #[test]
    fn a_scribbling_guest_does_not_keep_the_kernel_waiting() {
        let channels = Channels::new(0).unwrap();
        let (channel, theirs) = (channels.map(0).unwrap(), channels.map(0).unwrap());
        let bell = Bell::default();
        let stop = AtomicBool::new(false);
        let soon = || {
            let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
            libc::timespec { tv_sec: now.tv_sec + 1, tv_nsec: now.tv_nsec }
        };
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut value = 3u32;
                while !stop.load(Ordering::Relaxed) {
                    theirs.set32(TO_KERNEL, value);
                    theirs.set32(ALIVE, value);
                    value = value.wrapping_add(1).max(3);
                    std::hint::spin_loop();
                }
            });
            let waited = wait(&channel, &bell, bell.value(), Some(soon()));
            let cleared = wait_until_clear(&channel, &bell, soon());
            stop.store(true, Ordering::Relaxed);
            assert_eq!((waited, cleared), (Waited::TimedOut, false));
        });
    }
}
