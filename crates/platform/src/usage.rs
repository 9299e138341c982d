//! What guest processes and threads have used, as the host counts it.

use std::time::Duration;

/// Resources used by a guest's host threads. What the kernel's threads do for it is not in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostUsage {
    pub user: Duration,
    pub system: Duration,
    /// Most memory that was resident, in KiB.
    pub max_resident_kib: u64,
    pub minor_faults: u64,
    pub major_faults: u64,
    pub voluntary_switches: u64,
    pub involuntary_switches: u64,
}

/// Tells what one guest thread has used, from any thread of the kernel.
pub trait Meter: Send + Sync {
    /// Now; what it last was, or nothing, if the thread has ended.
    fn read(&self) -> HostUsage;

    /// Of the CPU time `serving` that its kernel thread has used so far: what passed while the guest's own thread waited for
    /// it awake, and is in what [`read`](Meter::read) tells.
    fn doubled(&self, serving: Duration) -> Duration {
        let _ = serving;
        Duration::ZERO
    }

    /// Whether it sleeps in a call that the platform serves by itself.
    fn sleeps(&self) -> bool {
        false
    }
}
