//! The mock's futexes: one table, and one condition that every change wakes.

use std::time::Duration;

use abi::Errno;
use parking_lot::{Condvar, Mutex};
use rustix::time::{ClockId, clock_gettime};

use crate::FutexCall;

/// `(memory or object, address or offset)`.
pub(super) type Key = (usize, u64);

#[derive(Default)]
pub(super) struct Futexes {
    waiters: Mutex<Table>,
    changed: Condvar,
}

#[derive(Default)]
struct Table {
    next: u64,
    waiting: Vec<Waiter>,
}

struct Waiter {
    id: u64,
    key: Key,
    bits: u32,
}

/// How a wait ended.
pub(super) enum End {
    Woken,
    TimedOut,
    Changed,
    Left,
}

impl Futexes {
    /// Waits on `key` if `word()` is `call.val`, until woken, timed out, or `leave()`.
    pub(super) fn wait(
        &self,
        key: Key,
        call: &FutexCall,
        bits: u32,
        word: impl Fn() -> u32,
        leave: impl Fn() -> bool,
    ) -> End {
        let mut table = self.waiters.lock();
        if word() != call.val {
            return End::Changed;
        }
        let id = table.next;
        table.next += 1;
        table.waiting.push(Waiter { id, key, bits });
        loop {
            if !table.waiting.iter().any(|waiter| waiter.id == id) {
                return End::Woken;
            }
            let rest = remaining(call);
            let end = if leave() {
                End::Left
            } else if rest == Some(Duration::ZERO) {
                End::TimedOut
            } else {
                match rest {
                    Some(rest) => {
                        self.changed.wait_for(&mut table, rest);
                    }
                    None => self.changed.wait(&mut table),
                }
                continue;
            };
            table.waiting.retain(|waiter| waiter.id != id);
            return end;
        }
    }

    /// Wakes up to `count` waiters on `key` that wait for one of `bits`; returns how many.
    pub(super) fn wake(&self, key: Key, count: u32, bits: u32) -> u64 {
        let mut table = self.waiters.lock();
        let mut woken = 0;
        table.waiting.retain(|waiter| {
            let hit = woken < u64::from(count) && waiter.key == key && waiter.bits & bits != 0;
            woken += u64::from(hit);
            !hit
        });
        self.changed.notify_all();
        woken
    }

    /// Wakes `wake` waiters on `from` and moves `requeue` more to `to`, if `expected` allows.
    pub(super) fn requeue(
        &self,
        from: Key,
        to: Key,
        (wake, requeue): (u32, u32),
        unchanged: impl Fn() -> bool,
    ) -> Result<u64, Errno> {
        let mut table = self.waiters.lock();
        if !unchanged() {
            return Err(Errno::EAGAIN);
        }
        let (mut woken, mut moved) = (0, 0);
        table.waiting.retain_mut(|waiter| {
            if waiter.key != from {
                return true;
            }
            if woken < wake {
                woken += 1;
                return false;
            }
            if moved < requeue {
                moved += 1;
                waiter.key = to;
            }
            true
        });
        self.changed.notify_all();
        Ok(u64::from(woken + moved))
    }

    /// Has every waiter look whether it should leave.
    pub(super) fn wake_everybody(&self) {
        let _table = self.waiters.lock();
        self.changed.notify_all();
    }
}

/// Time until the deadline; `None` for none.
fn remaining(call: &FutexCall) -> Option<Duration> {
    let (seconds, nanoseconds) = call.timeout?;
    let realtime = call.op & libc::FUTEX_CLOCK_REALTIME.cast_unsigned() != 0;
    let now = clock_gettime(if realtime { ClockId::Realtime } else { ClockId::Monotonic });
    let ns = |seconds: i64, nanoseconds: i64| i128::from(seconds) * 1_000_000_000 + i128::from(nanoseconds);
    let rest = ns(seconds, nanoseconds) - ns(now.tv_sec, now.tv_nsec);
    Some(Duration::from_nanos(u64::try_from(rest.max(0)).unwrap_or(u64::MAX)))
}
