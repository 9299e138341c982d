//! `umlaut stat`: what a kernel does, live, in the manner of vmstat.

use std::time::Duration;

use super::client::{self, Snapshot};

/// What is asked for.
#[derive(Debug, clap::Args)]
pub(crate) struct StatOptions {
    /// The kernel: its pid (or its supervisor's, which is the one that a shell knows), or its program's name. May be left
    /// out where one runs
    pub target: Option<String>,
    /// A line every so many seconds, until the kernel ends; without it one line, of the time since its start
    #[arg(long, value_name = "SECONDS", value_parser = parse_interval)]
    pub interval: Option<Duration>,
    /// So many lines
    #[arg(long, value_name = "N", requires = "interval")]
    pub count: Option<u64>,
    /// All counters, as `name value`, in place of rates
    #[arg(long, conflicts_with = "interval")]
    pub all: bool,
}

/// Lines between two heads.
const PAGE: u64 = 20;

/// A column: its head, its width, and what it shows of the time between two snapshots.
struct Column {
    head: &'static str,
    width: usize,
    show: fn(&Between<'_>) -> String,
}

/// Two snapshots and the time between them.
struct Between<'a> {
    before: &'a Snapshot,
    after: &'a Snapshot,
    seconds: f64,
}

impl Between<'_> {
    fn grown(&self, names: &[&str]) -> f64 {
        let grown = |name: &&str| self.after.number(name).saturating_sub(self.before.number(name));
        #[allow(clippy::cast_precision_loss, reason = "shown to three digits")]
        let sum = names.iter().map(grown).sum::<u64>() as f64;
        sum
    }

    fn rate(&self, names: &[&str]) -> String {
        short(self.grown(names) / self.seconds)
    }

    /// Microseconds of processor time in per cent of one processor.
    fn percent(&self, names: &[&str]) -> String {
        format!("{:.0}", self.grown(names) / self.seconds / 1e4)
    }
}

const SWITCHES: [&str; 4] = [
    "kernel_switches_voluntary",
    "kernel_switches_involuntary",
    "guests_switches_voluntary",
    "guests_switches_involuntary",
];

/// In groups, whose heads stand above them.
static GROUPS: &[(&str, &[Column])] = &[
    ("", &[Column { head: "tasks", width: 5, show: |it| it.after.word("tasks").into() }]),
    (
        "calls/s",
        &[
            Column { head: "stub", width: 6, show: |it| it.rate(&["calls_stub"]) },
            Column { head: "deleg", width: 6, show: |it| it.rate(&["calls_delegated"]) },
            Column { head: "kernel", width: 6, show: |it| it.rate(&["calls_kernel"]) },
        ],
    ),
    (
        "kernel/s",
        &[
            Column { head: "hand", width: 6, show: |it| it.rate(&["hand_overs"]) },
            Column { head: "kick", width: 6, show: |it| it.rate(&["kicks"]) },
            Column { head: "wait", width: 6, show: |it| it.rate(&["waits"]) },
            Column { head: "fault", width: 6, show: |it| it.rate(&["faults"]) },
            Column { head: "signal", width: 6, show: |it| it.rate(&["signals"]) },
        ],
    ),
    (
        "bytes/s",
        &[
            Column { head: "in", width: 6, show: |it| it.rate(&["bytes_in"]) },
            Column { head: "out", width: 6, show: |it| it.rate(&["bytes_out"]) },
        ],
    ),
    (
        "host/s",
        &[
            Column { head: "call", width: 6, show: |it| it.rate(&["host_calls"]) },
            Column { head: "cswtch", width: 6, show: |it| it.rate(&SWITCHES) },
            Column {
                head: "pgfalt",
                width: 6,
                show: |it| it.rate(&["guests_faults_minor", "guests_faults_major"]),
            },
        ],
    ),
    (
        "cpu %",
        &[
            Column { head: "us", width: 4, show: |it| it.percent(&["guests_user_us"]) },
            Column { head: "sy", width: 4, show: |it| it.percent(&["guests_system_us"]) },
            Column { head: "ker", width: 4, show: |it| it.percent(&["kernel_user_us", "kernel_system_us"]) },
        ],
    ),
];

/// Three digits and a letter.
fn short(value: f64) -> String {
    for (limit, divisor, letter) in
        [(9999.5, 1.0, ""), (999.5e3, 1e3, "k"), (999.5e6, 1e6, "M"), (999.5e9, 1e9, "G")]
    {
        if value < limit {
            return format!("{:.0}{letter}", value / divisor);
        }
    }
    format!("{:.0}T", value / 1e12)
}

fn head() -> String {
    let (mut above, mut below) = (String::new(), String::new());
    for (index, (name, columns)) in GROUPS.iter().enumerate() {
        let gap = if index == 0 { "" } else { "  " };
        let width = columns.iter().map(|column| column.width + 1).sum::<usize>() - 1;
        let fill = if name.is_empty() { ' ' } else { '-' };
        let left = width.saturating_sub(name.len()) / 2;
        let right = width.saturating_sub(name.len() + left);
        let (left, right) = (fill.to_string().repeat(left), fill.to_string().repeat(right));
        above.push_str(&format!("{gap}{left}{name}{right}"));
        let heads: Vec<String> =
            columns.iter().map(|column| format!("{:>width$}", column.head, width = column.width)).collect();
        below.push_str(&format!("{gap}{}", heads.join(" ")));
    }
    format!("{above}\n{below}\n")
}

fn line(between: &Between<'_>) -> String {
    let group = |columns: &[Column]| -> String {
        let values: Vec<String> = columns
            .iter()
            .map(|column| format!("{:>width$}", (column.show)(between), width = column.width))
            .collect();
        values.join(" ")
    };
    let groups: Vec<String> = GROUPS.iter().map(|(_, columns)| group(columns)).collect();
    groups.join("  ") + "\n"
}

/// Time between two snapshots, by the kernel's own clock, in seconds.
fn between<'a>(before: &'a Snapshot, after: &'a Snapshot) -> Between<'a> {
    let microseconds = after.number("uptime_us").saturating_sub(before.number("uptime_us")).max(1);
    #[allow(clippy::cast_precision_loss, reason = "a time between two lines")]
    let seconds = microseconds as f64 / 1e6;
    Between { before, after, seconds }
}

/// The command.
pub(crate) fn stat(options: &StatOptions) -> anyhow::Result<i32> {
    let (instance, first) = client::find(options.target.as_deref())?;
    if options.all {
        return super::print(&first.text);
    }
    let Some(interval) = options.interval else {
        return super::print(&(head() + &line(&between(&Snapshot::default(), &first))));
    };
    super::print(&head())?;
    let mut before = first;
    for number in 1..=options.count.unwrap_or(u64::MAX) {
        std::thread::sleep(interval);
        // It has ended.
        let Ok(after) = instance.snapshot() else { break };
        super::print(&line(&between(&before, &after)))?;
        if number % PAGE == 0 {
            super::print(&head())?;
        }
        before = after;
    }
    Ok(0)
}

fn parse_interval(text: &str) -> Result<Duration, String> {
    let seconds = text.parse::<f64>().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    let seconds = seconds.filter(|seconds| *seconds >= Duration::from_millis(10));
    seconds.ok_or("give seconds, 0.01 or more".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        for (value, text) in [(0.0, "0"), (9999.0, "9999"), (12_345.0, "12k"), (2.5e9, "2G"), (3e15, "3000T")]
        {
            assert_eq!(short(value), text);
        }
    }

    #[test]
    fn heads_and_lines_have_one_width() {
        let empty = Snapshot::default();
        let text = head() + &line(&between(&empty, &empty));
        let widths: Vec<usize> = text.lines().skip(1).map(str::len).collect();
        assert_eq!(widths.first(), widths.last());
        assert!(text.contains("-calls/s-"), "{text}");
    }
}
