//! The kernel's own counters around a workload: inside umlaut `/proc/umlaut/stat` has them, elsewhere there are none.
//!
//! Main types: [`Counters`]. Neighbours: `main` begins and ends them.

use std::collections::BTreeMap;
use std::io::Write;

type Counts = BTreeMap<String, u64>;

fn read() -> Counts {
    let text = std::fs::read_to_string("/proc/umlaut/stat").unwrap_or_default();
    let pair = |line: &str| {
        let (name, count) = line.split_once(' ')?;
        Some((name.to_string(), count.trim().parse().ok()?))
    };
    text.lines().filter_map(pair).collect()
}

/// Processor time of the kernel and of all guests, in nanoseconds; `None` where no kernel tells.
pub(crate) fn cpu_ns() -> Option<u64> {
    let counts = read();
    let names = ["kernel_user_us", "kernel_system_us", "guests_user_us", "guests_system_us"];
    let micros = |name: &&str| counts.get(*name).copied();
    (!counts.is_empty()).then(|| names.iter().filter_map(micros).sum::<u64>() * 1000)
}

/// Where the counters stood at a workload's start.
pub(crate) struct Counters {
    start: Counts,
    /// What reading them costs.
    reading: Counts,
}

impl Counters {
    pub(crate) fn begin() -> Counters {
        let before = read();
        let start = read();
        let reading =
            start.iter().map(|(name, count)| (name.clone(), since(&before, name, *count))).collect();
        Counters { start, reading }
    }

    /// Tells by how much each grew: `# NAME COUNT`.
    pub(crate) fn end(self) {
        let mut out = std::io::stdout().lock();
        for (name, count) in read() {
            let grown = since(&self.start, &name, count);
            let grown = grown.saturating_sub(self.reading.get(&name).copied().unwrap_or(0));
            // Whoever reads may have gone.
            let _ = writeln!(out, "# {name} {grown}");
        }
    }
}

fn since(before: &Counts, name: &str, count: u64) -> u64 {
    count.saturating_sub(before.get(name).copied().unwrap_or(0))
}
