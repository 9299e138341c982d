//! One run of one workload at one place: a process, the figures that it printed, what the host says it used.
//!
//! Main types: [`Sample`], [`Figure`]. Neighbours: `places` makes the commands, `session` has the same figures from
//! places that stay up.

use std::collections::BTreeMap;
use std::io::Read;
use std::os::fd::AsFd;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use host::wait::Usage;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// A number that the program printed.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Figure {
    pub(crate) name: String,
    pub(crate) value: f64,
    pub(crate) unit: String,
    /// Operations made in all.
    pub(crate) operations: f64,
}

impl Figure {
    /// From `@ NAME VALUE UNIT OPERATIONS`.
    pub(crate) fn parse(line: &str) -> Option<Figure> {
        let mut words = line.trim().strip_prefix("@ ")?.split(' ');
        let mut next = || words.next();
        let (name, value, unit, operations) = (next()?, next()?, next()?, next()?);
        let figure = Figure {
            name: name.to_string(),
            value: value.parse().ok()?,
            unit: unit.to_string(),
            operations: operations.parse().ok()?,
        };
        figure.value.is_finite().then_some(figure)
    }
}

/// What a run gave.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sample {
    pub(crate) figures: Vec<Figure>,
    /// From the start of the process to its end.
    pub(crate) outside: Duration,
    /// Of the process and all that it waited for. A place that stays up has none.
    pub(crate) usage: Option<Usage>,
    /// The kernel's own counters, by how much each grew.
    pub(crate) counters: BTreeMap<String, f64>,
    /// System calls of all of them to the host, where they were counted.
    pub(crate) host_calls: Option<u64>,
}

/// The counters in what the program printed: `# NAME COUNT`.
pub(crate) fn counter(line: &str) -> Option<(String, f64)> {
    let (name, count) = line.trim().strip_prefix("# ")?.split_once(' ')?;
    Some((name.to_string(), count.parse().ok()?))
}

/// How long a run may take before it is given up.
pub(crate) const PATIENCE: Duration = Duration::from_secs(600);

/// Runs the command to its end, on one CPU if `pinned`.
///
/// # Errors
/// If it cannot be started, fails (with what it wrote to stderr), or does not end.
pub(crate) fn run(
    command: &mut Command,
    pinned: Option<usize>,
    patience: Duration,
) -> anyhow::Result<Sample> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let start = Instant::now();
    let mut child = spawn(command, pinned)?;
    let read = read_both(&mut child, start + patience);
    if read.is_err() {
        // It may have ended by itself.
        let _ = child.kill();
    }
    let pid = i32::try_from(child.id()).context("its pid")?;
    let (end, usage) = host::wait::end_with_usage(pid).context("waiting for its end")?;
    let outside = start.elapsed();
    let (text, complaint) = read?;
    if end.status != 0 {
        let complaint = complaint.trim();
        bail!(
            "{}",
            if complaint.is_empty() { format!("ended with status {}", end.status) } else { complaint.into() }
        );
    }
    let figures = text.lines().filter_map(Figure::parse).collect();
    let counters = text.lines().filter_map(counter).collect();
    Ok(Sample { figures, outside, usage: Some(usage), counters, host_calls: None })
}

/// Starts a process on the given CPU only.
///
/// # Errors
/// If there is no such program, or no such CPU for us.
pub(crate) fn spawn(command: &mut Command, pinned: Option<usize>) -> anyhow::Result<Child> {
    let Some(cpu) = pinned else {
        return command.spawn().with_context(|| command.get_program().to_string_lossy().into_owned());
    };
    // What a thread starts runs where the thread may.
    let before = sched_getaffinity(None)?;
    let mut only = CpuSet::new();
    only.set(cpu);
    sched_setaffinity(None, &only).with_context(|| format!("CPU {cpu}"))?;
    let child = command.spawn();
    sched_setaffinity(None, &before)?;
    child.with_context(|| command.get_program().to_string_lossy().into_owned())
}

/// What it writes to stdout and to stderr until it closes both.
fn read_both(child: &mut Child, deadline: Instant) -> anyhow::Result<(String, String)> {
    let (mut out, mut err) = (child.stdout.take(), child.stderr.take());
    let (mut text, mut complaint) = (Vec::new(), Vec::new());
    while out.is_some() || err.is_some() {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            bail!("did not end in time");
        }
        let mut fds = Vec::new();
        fds.extend(out.as_ref().map(|out| PollFd::from_borrowed_fd(out.as_fd(), PollFlags::IN)));
        fds.extend(err.as_ref().map(|err| PollFd::from_borrowed_fd(err.as_fd(), PollFlags::IN)));
        let timeout =
            Timespec { tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX), tv_nsec: 999_999_999 };
        match poll(&mut fds, Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let mut ready = fds.iter().map(|fd| !fd.revents().is_empty()).collect::<Vec<_>>().into_iter();
        let out_ready = out.is_some() && ready.next() == Some(true);
        let err_ready = err.is_some() && ready.next() == Some(true);
        if out_ready && !more(out.as_mut(), &mut text)? {
            out = None;
        }
        if err_ready && !more(err.as_mut(), &mut complaint)? {
            err = None;
        }
    }
    let string = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Ok((string(&text), string(&complaint)))
}

/// Reads what is there; false at the end.
fn more(from: Option<&mut impl Read>, into: &mut Vec<u8>) -> std::io::Result<bool> {
    let mut buffer = [0; 4096];
    let count = from.map_or(Ok(0), |from| from.read(&mut buffer))?;
    into.extend(buffer.iter().take(count));
    Ok(count > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_read_from_their_lines_only() {
        let figure = Figure::parse("@ getpid 71.190 ns 159300\r\n").expect("a figure");
        assert_eq!((figure.name.as_str(), figure.value, figure.unit.as_str()), ("getpid", 71.19, "ns"));
        assert_eq!(figure.operations, 159_300.0);
        for line in ["", "@ready", "getpid 1 ns 1", "@ getpid x ns 1", "@ getpid 1 ns", "@ getpid NaN ns 1"] {
            assert_eq!(Figure::parse(line), None, "{line}");
        }
    }

    #[test]
    fn a_run_gives_figures_usage_and_failures() {
        let shell = |script: &str| {
            let mut command = Command::new("/bin/sh");
            command.args(["-c", script]);
            run(&mut command, None, PATIENCE)
        };
        let sample =
            shell("echo; echo '# kicks 7'; echo @ x 2.5 ns 10; echo noise >&2").expect("it succeeds");
        assert_eq!(sample.figures.len(), 1);
        assert_eq!(sample.counters.get("kicks"), Some(&7.0));
        assert!(sample.usage.is_some_and(|usage| usage.minor_faults > 0));
        let error = shell("echo why >&2; exit 3").expect_err("it fails");
        assert_eq!(error.to_string(), "why");
        let mut endless = Command::new("/bin/sleep");
        let late = run(endless.arg("1000"), None, Duration::from_millis(10)).expect_err("it is given up");
        assert_eq!(late.to_string(), "did not end in time");
        assert_eq!(shell("exit 3").expect_err("it fails").to_string(), "ended with status 3");
        assert!(run(&mut Command::new("/nowhere/at/all"), None, PATIENCE).is_err());
    }

    #[test]
    fn a_pinned_run_has_one_cpu_and_leaves_us_ours() {
        let before = sched_getaffinity(None).expect("an affinity");
        let cpu = (0..CpuSet::MAX_CPU).find(|cpu| before.is_set(*cpu)).expect("a CPU");
        let mut command = Command::new("/bin/sh");
        command.args(["-c", "echo @ cpus $(nproc) ns 1"]);
        let sample = run(&mut command, Some(cpu), PATIENCE).expect("it runs");
        assert_eq!(sample.figures.first().map(|figure| figure.value), Some(1.0));
        assert!(sched_getaffinity(None).expect("an affinity") == before);
    }
}
