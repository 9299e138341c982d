//! `umlaut check`: what this host offers, found by trying.

use anyhow::anyhow;
use ptrace::probe::{Ability, State};

use crate::cgroup::MemoryCgroup;

pub(crate) fn check() -> anyhow::Result<i32> {
    for ability in ptrace::probe::probe() {
        println!("{}", line(&ability));
    }
    println!("{}", memory_line());
    let choice = ptrace::probe::choose().map_err(|why| anyhow!("no platform works on this host: {why}"))?;
    let why = if choice.why.is_empty() { String::new() } else { format!(" ({})", choice.why) };
    println!("--platform auto takes {}{why}", choice.mode.name());
    Ok(0)
}

/// What `--memory` is enforced by.
fn memory_line() -> String {
    match MemoryCgroup::make(64 << 20, None) {
        Ok(cgroup) => {
            let dir = cgroup.dir().parent().map(|parent| parent.display().to_string()).unwrap_or_default();
            cgroup.remove();
            format!("checking memory cgroup ... OK: --memory makes one below {dir}")
        }
        Err(why) => format!(
            "checking memory cgroup ... missing: {why}; --memory is kept by a watching thread and RLIMIT_DATA"
        ),
    }
}

/// In the manner of User-Mode Linux: `checking PTRACE_SYSEMU ... OK`.
fn line(ability: &Ability) -> String {
    let state = match ability.state {
        State::Ok => "OK",
        State::Missing => "missing",
        State::Limited => "limited",
    };
    let detail = if ability.detail.is_empty() { String::new() } else { format!(": {}", ability.detail) };
    format!("checking {} ... {state}{detail}", ability.name)
}
