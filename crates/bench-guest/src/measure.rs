//! Repeats an operation often enough to time it: a loop count that takes about a millisecond, many batches of it, and
//! their median. On a busy host a batch that short mostly fits between two preemptions, and those that do not fit are
//! the slow half.
//!
//! Main types: [`Measured`]. Neighbours: every workload.

use std::time::{Duration, Instant};

/// Batches that are timed: at most and, where each takes long, at least.
const BATCHES: usize = 25;
const FEW: usize = 5;
/// What a batch should take.
const BATCH: Duration = Duration::from_millis(1);
/// What calibration must have taken before its rate is believed.
const BELIEVABLE: Duration = Duration::from_micros(400);
/// When few batches are enough.
const LONG: Duration = Duration::from_millis(60);

/// What one operation costs.
pub(crate) struct Measured {
    /// Median of the batches.
    pub(crate) nanoseconds: f64,
    /// Operations made in all, calibration included.
    pub(crate) operations: u64,
}

/// An operation that is timed as a whole loop.
pub(crate) fn repeat(mut operation: impl FnMut()) -> Measured {
    batches(|count| {
        let start = Instant::now();
        for _ in 0..count {
            operation();
        }
        start.elapsed()
    })
}

/// A batch that times itself: makes `count` operations and says what they took.
pub(crate) fn batches(mut batch: impl FnMut(u64) -> Duration) -> Measured {
    let mut operations = 0;
    let mut count: u64 = 1;
    let took = loop {
        let mut took = batch(count);
        operations += count;
        if took >= BELIEVABLE {
            // It may have been preempted: the faster of two counts.
            took = took.min(batch(count));
            operations += count;
        }
        if took >= BELIEVABLE || count >= 1 << 28 {
            break took;
        }
        count *= 2;
    };
    let wanted = count as f64 * BATCH.as_secs_f64() / took.as_secs_f64().max(1e-9);
    let count = whole(wanted).max(1);
    let mut costs = Vec::with_capacity(BATCHES);
    let start = Instant::now();
    while costs.len() < BATCHES && (costs.len() < FEW || start.elapsed() < LONG) {
        costs.push(batch(count).as_secs_f64() * 1e9 / count as f64);
        operations += count;
    }
    costs.sort_by(f64::total_cmp);
    Measured { nanoseconds: costs.get(costs.len() / 2).copied().unwrap_or(0.0), operations }
}

/// Exactly `count` operations, timed once.
pub(crate) fn exactly(count: u64, mut operation: impl FnMut()) -> Measured {
    let start = Instant::now();
    for _ in 0..count {
        operation();
    }
    Measured { nanoseconds: start.elapsed().as_secs_f64() * 1e9 / count as f64, operations: count }
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a loop count, far below 2^53")]
fn whole(number: f64) -> u64 {
    number as u64
}
