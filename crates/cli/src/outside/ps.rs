//! `umlaut ps`: the kernels that run, or the processes inside one.

use super::client;

/// Lists all kernels of this user, or with `target` the processes inside that one.
pub(crate) fn ps(target: Option<&str>) -> anyhow::Result<i32> {
    let Some(target) = target else {
        println!("{:>8} {:>8} {:>10} {:>6} {:<8} PROGRAM", "PID", "KERNEL", "SECONDS", "TASKS", "PLATFORM");
        for (_, snapshot) in client::find_all()? {
            println!(
                "{:>8} {:>8} {:>10} {:>6} {:<8} {}",
                snapshot.word("supervisor_pid"),
                snapshot.word("kernel_pid"),
                snapshot.number("uptime_us") / 1_000_000,
                snapshot.word("tasks"),
                snapshot.word("platform"),
                snapshot.word("program"),
            );
        }
        return Ok(0);
    };
    let (_, snapshot) = client::find(Some(target))?;
    println!("{:>8} {:>8} {:>8} S NAME", "PID", "PPID", "THREADS");
    for process in &snapshot.processes {
        let mut words = process.splitn(5, ' ');
        let mut next = || words.next().unwrap_or("?");
        println!("{:>8} {:>8} {:>8} {} {}", next(), next(), next(), next(), next());
    }
    Ok(0)
}
