//! What the host counts for us: context switches, page faults, processor time.

use std::sync::Arc;
use std::time::Duration;

use platform::HostUsage;

use crate::kernel::Kernel;

/// What a set of host threads has used.
#[derive(Clone, Copy, Debug, Default)]
pub struct ProcessFigures {
    pub voluntary_switches: u64,
    pub involuntary_switches: u64,
    pub minor_faults: u64,
    pub major_faults: u64,
    pub user: Duration,
    pub system: Duration,
}

/// The host's figures for the kernel's process and for all guest processes.
#[derive(Clone, Copy, Debug, Default)]
pub struct HostFigures {
    /// All threads of the kernel, ended ones too.
    pub kernel: ProcessFigures,
    /// All guest host processes, ended ones too.
    pub guests: ProcessFigures,
}

impl ProcessFigures {
    fn add(&mut self, other: &ProcessFigures) {
        self.voluntary_switches += other.voluntary_switches;
        self.involuntary_switches += other.involuntary_switches;
        self.minor_faults += other.minor_faults;
        self.major_faults += other.major_faults;
        self.user += other.user;
        self.system += other.system;
    }

    pub fn switches(&self) -> u64 {
        self.voluntary_switches + self.involuntary_switches
    }

    /// Name (as part of a counter's) and value of each.
    pub fn named(&self) -> [(&'static str, u64); 6] {
        let microseconds = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        [
            ("switches_voluntary", self.voluntary_switches),
            ("switches_involuntary", self.involuntary_switches),
            ("faults_minor", self.minor_faults),
            ("faults_major", self.major_faults),
            ("user_us", microseconds(self.user)),
            ("system_us", microseconds(self.system)),
        ]
    }
}

impl From<HostUsage> for ProcessFigures {
    fn from(usage: HostUsage) -> Self {
        ProcessFigures {
            voluntary_switches: usage.voluntary_switches,
            involuntary_switches: usage.involuntary_switches,
            minor_faults: usage.minor_faults,
            major_faults: usage.major_faults,
            user: usage.user,
            system: usage.system,
        }
    }
}

impl From<host::wait::Usage> for ProcessFigures {
    fn from(usage: host::wait::Usage) -> Self {
        ProcessFigures {
            voluntary_switches: usage.voluntary_switches,
            involuntary_switches: usage.involuntary_switches,
            minor_faults: usage.minor_faults,
            major_faults: usage.major_faults,
            user: usage.user,
            system: usage.system,
        }
    }
}

impl Kernel {
    /// What the host has counted so far. Guest processes that end just now may be missed or counted twice; once all have
    /// ended it is exact.
    pub fn host_figures(&self) -> HostFigures {
        // Each host process was waited for by us when its last reference went.
        let mut guests = ProcessFigures::from(host::wait::children_usage());
        let spaces: Vec<_> = {
            let tasks = self.tasks.lock();
            let leaders = tasks.groups.values().filter_map(|entry| entry.threads.first());
            leaders
                .filter_map(|leader| leader.shared.lock().mm.as_ref().map(|mm| Arc::clone(&mm.space)))
                .collect()
        };
        for space in spaces {
            guests.add(&ProcessFigures::from(space.usage()));
        }
        HostFigures { kernel: host::wait::own_usage().into(), guests }
    }
}
