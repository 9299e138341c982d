//! Resource limits and usage.

pub mod io;
pub mod limits;
pub mod usage;

use std::time::Duration;

pub use io::{IoCounters, IoUsage};

/// The limits of a group (`getrlimit`), by number: `(soft, hard)`.
#[derive(Clone, Copy, Debug)]
pub struct Limits([(u64, u64); 16]);

/// No limit.
pub const INFINITY: u64 = u64::MAX;

pub const CPU: usize = 0;
pub const FSIZE: usize = 1;
pub const DATA: usize = 2;
pub const STACK: usize = 3;
pub const CORE: usize = 4;
pub const RSS: usize = 5;
pub const NPROC: usize = 6;
pub const NOFILE: usize = 7;
pub const MEMLOCK: usize = 8;
pub const AS: usize = 9;
pub const LOCKS: usize = 10;
pub const SIGPENDING: usize = 11;
pub const MSGQUEUE: usize = 12;
pub const NICE: usize = 13;
pub const RTPRIO: usize = 14;
pub const RTTIME: usize = 15;

impl Default for Limits {
    /// What init has on Linux, with the number of processes bounded by `pid_max`.
    fn default() -> Self {
        let mut limits = [(INFINITY, INFINITY); 16];
        let set = [
            (STACK, 8 << 20, INFINITY),
            (CORE, 0, INFINITY),
            (NPROC, 16384, 16384),
            (NOFILE, 1024, 1 << 20),
            (MEMLOCK, 8 << 20, 8 << 20),
            (SIGPENDING, 16384, 16384),
            (MSGQUEUE, 819_200, 819_200),
            (NICE, 0, 0),
            (RTPRIO, 0, 0),
        ];
        for (which, soft, hard) in set {
            if let Some(limit) = limits.get_mut(which) {
                *limit = (soft, hard);
            }
        }
        Limits(limits)
    }
}

impl Limits {
    /// Soft and hard limit; `None`: no such resource.
    pub fn get(&self, which: usize) -> Option<(u64, u64)> {
        self.0.get(which).copied()
    }

    pub fn set(&mut self, which: usize, limit: (u64, u64)) {
        if let Some(place) = self.0.get_mut(which) {
            *place = limit;
        }
    }

    /// The soft limit.
    pub fn soft(&self, which: usize) -> u64 {
        self.get(which).map_or(INFINITY, |(soft, _)| soft)
    }

    pub fn pending_signals(&self) -> u64 {
        self.soft(SIGPENDING)
    }
}

/// Resources used.
#[derive(Clone, Copy, Debug, Default)]
pub struct Usage {
    pub user: Duration,
    pub system: Duration,
    /// In KiB.
    pub max_resident: u64,
    pub minor_faults: u64,
    pub major_faults: u64,
    pub voluntary_switches: u64,
    pub involuntary_switches: u64,
    pub io: IoUsage,
}

impl Usage {
    /// Adds what another has used; the largest resident size counts.
    pub fn add(&mut self, other: &Usage) {
        self.user += other.user;
        self.system += other.system;
        self.max_resident = self.max_resident.max(other.max_resident);
        self.minor_faults += other.minor_faults;
        self.major_faults += other.major_faults;
        self.voluntary_switches += other.voluntary_switches;
        self.involuntary_switches += other.involuntary_switches;
        self.io.add(&other.io);
    }

    /// User time in clock ticks of 1/100 s.
    pub fn user_ticks(&self) -> i64 {
        ticks(self.user)
    }

    /// System time in clock ticks.
    pub fn system_ticks(&self) -> i64 {
        ticks(self.system)
    }
}

/// A duration in clock ticks of 1/100 s.
pub fn ticks(time: Duration) -> i64 {
    i64::try_from(time.as_millis() / 10).unwrap_or(i64::MAX)
}

impl Usage {
    /// As `getrusage` and `wait4` give it.
    pub fn to_rusage(&self) -> abi::Rusage {
        let timeval = |time: Duration| abi::Timeval {
            sec: i64::try_from(time.as_secs()).unwrap_or(i64::MAX),
            usec: i64::from(time.subsec_micros()),
        };
        let count = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
        abi::Rusage {
            utime: timeval(self.user),
            stime: timeval(self.system),
            maxrss: count(self.max_resident),
            minflt: count(self.minor_faults),
            majflt: count(self.major_faults),
            nvcsw: count(self.voluntary_switches),
            nivcsw: count(self.involuntary_switches),
            inblock: count(self.io.read_bytes / 512),
            oublock: count(self.io.write_bytes / 512),
            ..abi::Rusage::default()
        }
    }
}
