//! What the figures were measured on.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// A load that is worth a word.
const BUSY: f64 = 0.5;

/// A description of this machine and of us.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Machine {
    pub(crate) cpu: String,
    /// That we may use.
    pub(crate) cpus: usize,
    pub(crate) memory_kib: u64,
    pub(crate) kernel: String,
    pub(crate) distribution: String,
    /// Processes that ran or wanted to, on average over the minute before. Not in files of older versions.
    #[serde(default)]
    pub(crate) load: Option<f64>,
    /// Whether a hypervisor is below.
    pub(crate) virtual_machine: bool,
    /// The scaling governor, where there is one.
    pub(crate) governor: Option<String>,
    /// Name and state of each mitigation of a hardware weakness that this CPU needs.
    pub(crate) mitigations: BTreeMap<String, String>,
    pub(crate) umlaut: String,
    /// Whether umlaut was built without optimisation: then its figures say nothing.
    pub(crate) debug_build: bool,
}

impl Machine {
    pub(crate) fn this() -> Machine {
        let cpuinfo = text("/proc/cpuinfo");
        let kernel = rustix::system::uname();
        Machine {
            cpu: after(&cpuinfo, "model name").unwrap_or("unknown").to_string(),
            cpus: std::thread::available_parallelism().map_or(1, usize::from),
            memory_kib: after(&text("/proc/meminfo"), "MemTotal")
                .and_then(|amount| amount.split(' ').next()?.parse().ok())
                .unwrap_or(0),
            kernel: format!("{} {}", kernel.sysname().to_string_lossy(), kernel.release().to_string_lossy()),
            distribution: distribution(),
            load: text("/proc/loadavg").split(' ').next().and_then(|load| load.parse().ok()),
            virtual_machine: after(&cpuinfo, "flags").is_some_and(|flags| flags.contains(" hypervisor")),
            governor: std::fs::read_to_string("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")
                .ok()
                .map(|name| name.trim().to_string()),
            mitigations: mitigations(),
            umlaut: env!("CARGO_PKG_VERSION").to_string(),
            debug_build: cfg!(debug_assertions),
        }
    }

    /// One line for people.
    pub(crate) fn line(&self) -> String {
        let place = if self.virtual_machine { ", virtual" } else { "" };
        let busy = |load: &f64| *load >= BUSY;
        let load = self.load.filter(busy).map_or(String::new(), |load| format!(", load {load:.1} before"));
        format!("{} ({} CPUs{place}), {}, {}{load}", self.cpu, self.cpus, self.kernel, self.distribution)
    }
}

fn text(path: &str) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

/// The rest of the first line that begins with `name`, behind its colon.
fn after<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let line = text.lines().find(|line| line.starts_with(name))?;
    line.split_once(':').map(|(_, rest)| rest.trim())
}

fn distribution() -> String {
    let release = text("/etc/os-release");
    let line = release.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="));
    line.unwrap_or("unknown distribution").trim_matches('"').to_string()
}

fn mitigations() -> BTreeMap<String, String> {
    let Ok(entries) = std::fs::read_dir("/sys/devices/system/cpu/vulnerabilities") else {
        return BTreeMap::new();
    };
    let named = entries.flatten().filter_map(|entry| {
        let state = std::fs::read_to_string(entry.path()).ok()?.trim().to_string();
        (state != "Not affected").then(|| (entry.file_name().to_string_lossy().into_owned(), state))
    });
    named.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_found_behind_their_names() {
        let text = "processor\t: 0\nmodel name\t: A CPU @ 2 GHz\nflags\t\t: fpu hypervisor\n";
        assert_eq!(after(text, "model name"), Some("A CPU @ 2 GHz"));
        assert_eq!(after(text, "cache"), None);
    }

    #[test]
    fn a_busy_machine_says_so() {
        let idle = Machine { load: Some(0.2), ..Machine::this() };
        assert!(!idle.line().contains("load"), "{}", idle.line());
        let busy = Machine { load: Some(12.34), ..idle };
        assert!(busy.line().ends_with(", load 12.3 before"), "{}", busy.line());
    }
}
