//! What a kernel takes of memory: the workload `kernel-memory`.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Stdio;

use anyhow::Context;

use crate::places::{Kind, Place, Setup};
use crate::sample::{Figure, Sample};

/// Starts a shell that waits, and looks at the processes of umlaut meanwhile; `None` at other places.
pub(crate) fn of_kernel(place: &Place, setup: &Setup) -> anyhow::Result<Option<Sample>> {
    let Kind::Umlaut(_) = place.kind else { return Ok(None) };
    let shell = ["-c".to_string(), "echo up; read line".to_string()];
    let mut command = place.command(setup, Path::new("/bin/sh"), &shell);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
    let mut line = String::new();
    let output = child.stdout.take().context("its output")?;
    let read = BufReader::new(output).read_line(&mut line);
    let kib = own_processes(child.id()).iter().filter_map(|pid| resident_kib(*pid)).sum::<u64>();
    // The shell reads its end.
    drop(child.stdin.take());
    child.wait()?;
    read?;
    let figure =
        Figure { name: "kernel-memory".into(), value: kib as f64, unit: "KiB".into(), operations: 1.0 };
    Ok(Some(Sample { figures: vec![figure], ..Sample::default() }))
}

/// The supervisor, and the kernel: its children that run the same program.
fn own_processes(supervisor: u32) -> Vec<u32> {
    let list = std::fs::read_to_string(format!("/proc/{supervisor}/task/{supervisor}/children"));
    let name = |pid: u32| std::fs::read_to_string(format!("/proc/{pid}/comm")).ok();
    let own = name(supervisor);
    let children = list.unwrap_or_default();
    let children = children.split_whitespace().filter_map(|pid| pid.parse().ok());
    std::iter::once(supervisor).chain(children.filter(|pid| name(*pid) == own)).collect()
}

/// What is resident of it, all that it shares included.
fn resident_kib(pid: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.split_whitespace().next()?.parse().ok()
}
