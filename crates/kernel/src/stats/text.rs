//! The counters as texts: lines of `name value`, in the manner of Linux's `/proc/vmstat`.

use std::fmt::Write;

use platform::{Event, Place};

use super::Totals;
use crate::kernel::Kernel;
use crate::syscall::table;

/// Calls that have been made with one number.
struct Calls {
    name: &'static str,
    counts: [u64; Place::ALL.len()],
}

impl Calls {
    fn total(&self) -> u64 {
        self.counts.iter().sum()
    }
}

/// Those that have been made at all, by number.
fn calls_made(totals: &Totals) -> Vec<Calls> {
    let one = |row: &crate::syscall::Row| Calls {
        name: row.name,
        counts: Place::ALL.map(|place| totals.calls(place, row.number)),
    };
    table::rows().map(one).filter(|calls| calls.total() > 0).collect()
}

impl Kernel {
    /// All counters but calls by number, as `(name, value)`. All only grow, but `tasks`.
    pub fn stat_figures(&self) -> Vec<(String, u64)> {
        let totals = self.stats.totals();
        let mut figures = vec![("tasks".into(), totals.tasks), ("tasks_made".into(), totals.tasks_made)];
        for place in Place::ALL {
            figures.push((format!("calls_{}", place.name()), totals.calls_at(place)));
        }
        figures.extend(Event::ALL.map(|event| (event.name().into(), totals.event(event))));
        let host = self.host_figures();
        for (whose, used) in [("kernel", host.kernel), ("guests", host.guests)] {
            figures.extend(used.named().map(|(name, value)| (format!("{whose}_{name}"), value)));
        }
        figures
    }

    /// `/proc/umlaut/stat`.
    pub fn stat_text(&self) -> String {
        self.stat_figures().iter().fold(String::new(), |mut text, (name, value)| {
            // A string takes all that is written to it.
            let _ = writeln!(text, "{name} {value}");
            text
        })
    }

    /// `/proc/umlaut/calls`: calls by name and place.
    pub fn calls_text(&self) -> String {
        let mut text = String::new();
        for calls in calls_made(&self.stats.totals()) {
            for (place, count) in Place::ALL.iter().zip(calls.counts).filter(|(_, count)| *count > 0) {
                let _ = writeln!(text, "{}.{} {count}", calls.name, place.name());
            }
        }
        text
    }

    /// `/proc/umlaut/platform`: how guest code is run, and how that is counted.
    pub fn platform_text(&self) -> String {
        let platform = self.platform.capabilities();
        let (name, counters) = (platform.name, self.stats.mode().name());
        format!("platform {name}\ncounters {counters}\nxsave_size {}\n", platform.xsave_size)
    }

    /// What `umlaut run --stats` prints at the end: a table of calls, most frequent first, then everything else.
    pub fn stats_table(&self) -> String {
        let totals = self.stats.totals();
        let mut calls = calls_made(&totals);
        calls.sort_by_key(|calls| std::cmp::Reverse(calls.total()));
        let all: u64 = calls.iter().map(Calls::total).sum();
        let mut text = String::from("umlaut: system calls\n");
        let [stub, delegated, kernel] = Place::ALL.map(Place::name);
        let _ =
            writeln!(text, "  {:<20}{:>12}{:>8}{stub:>12}{delegated:>12}{kernel:>12}", "call", "count", "%");
        let row = |name: &str, counts: [u64; Place::ALL.len()]| {
            let total: u64 = counts.iter().sum();
            #[allow(clippy::cast_precision_loss, reason = "a share to one digit")]
            let share = 100.0 * total as f64 / all.max(1) as f64;
            let [stub, delegated, kernel] = counts;
            format!("  {name:<20}{total:>12}{share:>8.1}{stub:>12}{delegated:>12}{kernel:>12}\n")
        };
        for calls in &calls {
            text.push_str(&row(calls.name, calls.counts));
        }
        text.push_str(&row("all", Place::ALL.map(|place| totals.calls_at(place))));
        if totals.calls_at(Place::Stub) > 0 {
            text.push_str(
                "  (what the stub served is the guests' own word: they can write to its counters)\n",
            );
        }
        text.push_str("umlaut: everything else\n");
        for (name, value) in self.stat_figures().iter().filter(|(name, _)| !is_of_the_table(name)) {
            let _ = writeln!(text, "  {name:<32}{value:>12}");
        }
        for (what, count) in self.stats.not_built() {
            let _ = writeln!(text, "  {:<32}{count:>12}", format!("not built: {what}"));
        }
        text
    }
}

/// A process, as lists show it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessLine {
    pub pid: i32,
    pub parent: i32,
    pub threads: usize,
    /// `R`, `S` or `Z`.
    pub state: char,
    /// As the guest chose it: any bytes.
    pub name: Vec<u8>,
}

impl Kernel {
    /// All processes, by pid.
    pub fn process_list(&self) -> Vec<ProcessLine> {
        let tasks = self.tasks.lock();
        let line = |(pid, entry): (&i32, &crate::task::GroupEntry)| {
            let leader = entry.threads.first();
            let runs = entry.threads.iter().any(|task| !task.is_asleep());
            let state = match (entry.zombie.is_some(), runs) {
                (true, _) => 'Z',
                (false, true) => 'R',
                (false, false) => 'S',
            };
            let name = leader.map_or_else(|| entry.name.clone(), |task| task.shared.lock().name.clone());
            ProcessLine { pid: *pid, parent: entry.parent, threads: entry.threads.len(), state, name }
        };
        tasks.groups.iter().map(line).collect()
    }
}

/// Whether a figure is a column of the table of calls already.
fn is_of_the_table(name: &str) -> bool {
    Place::ALL.iter().any(|place| name.strip_prefix("calls_") == Some(place.name()))
}
