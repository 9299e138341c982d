//! The time that file times are set from.

use abi::Timespec;
use rustix::time::{ClockId, clock_gettime};
use vfs::SetTime;

/// Now, as precise as Linux's file times (a clock tick): what the host stamps memfds with too.
pub(crate) fn now() -> Timespec {
    let now = clock_gettime(ClockId::RealtimeCoarse);
    Timespec { sec: now.tv_sec, nsec: now.tv_nsec }
}

/// The time that a change asks for.
pub(crate) fn resolve(time: SetTime) -> Timespec {
    match time {
        SetTime::Now => now(),
        SetTime::At(at) => at,
    }
}
