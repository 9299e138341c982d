//! `umlaut ps`: the kernels that run, or the processes inside one.

use super::client::{self, Instance, Snapshot};

/// Lists all kernels of this user, or with `target` the processes inside that one.
pub(crate) fn ps(target: Option<&str>) -> anyhow::Result<i32> {
    let text = match target {
        None => kernels(&client::find_all()?),
        Some(target) => processes(&client::find(Some(target))?.1),
    };
    super::print(&text)
}

fn kernels(found: &[(Instance, Snapshot)]) -> String {
    let mut text =
        format!("{:>8} {:>8} {:>10} {:>6} {:<8} PROGRAM\n", "PID", "KERNEL", "SECONDS", "TASKS", "PLATFORM");
    for (_, snapshot) in found {
        text.push_str(&format!(
            "{:>8} {:>8} {:>10} {:>6} {:<8} {}\n",
            snapshot.word("supervisor_pid"),
            snapshot.word("kernel_pid"),
            snapshot.number("uptime_us") / 1_000_000,
            snapshot.word("tasks"),
            snapshot.word("platform"),
            snapshot.word("program"),
        ));
    }
    text
}

fn processes(snapshot: &Snapshot) -> String {
    let mut text = format!("{:>8} {:>8} {:>8} S NAME\n", "PID", "PPID", "THREADS");
    for process in &snapshot.processes {
        let mut words = process.splitn(5, ' ');
        let mut next = || words.next().unwrap_or("?");
        text.push_str(&format!("{:>8} {:>8} {:>8} {} {}\n", next(), next(), next(), next(), next()));
    }
    text
}
