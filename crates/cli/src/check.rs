//! `umlaut check`: what this host offers, found by trying.

use std::io::Write;

use anyhow::{Context, anyhow};
use platform::PlatformError;
use ptrace::probe::{Ability, State};

use crate::cgroup::MemoryCgroup;

pub(crate) fn check() -> anyhow::Result<i32> {
    for ability in ptrace::probe::probe() {
        say(&line(&ability))?;
    }
    let stub = stubs::Stubs::new(stubs::Options::default()).map(drop);
    say(&stub_line(&stub))?;
    say(&memory_line())?;
    say(&format!("--platform auto takes {}", chosen(&stub)?))?;
    Ok(0)
}

/// A line for stdout, which may be closed or full.
pub(crate) fn say(line: &str) -> anyhow::Result<()> {
    writeln!(std::io::stdout(), "{line}").context("writing to stdout")
}

/// What `--platform auto` takes, and why nothing better.
fn chosen(stub: &Result<(), PlatformError>) -> anyhow::Result<String> {
    let Err(no_stub) = stub else { return Ok("stub".to_owned()) };
    let choice = ptrace::probe::choose()
        .map_err(|why| anyhow!("no platform works on this host: stub: {no_stub}; {why}"))?;
    let why = if choice.why.is_empty() { String::new() } else { format!("; {}", choice.why) };
    Ok(format!("{} (stub: {no_stub}{why})", choice.mode.name()))
}

/// Whether `--platform stub` works.
fn stub_line(stub: &Result<(), PlatformError>) -> String {
    match stub {
        Ok(()) => "checking platform stub (seccomp TRAP, shared memory, patched calls) ... OK".to_owned(),
        Err(error) => format!("checking platform stub ... missing: {error}"),
    }
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
pub(crate) fn line(ability: &Ability) -> String {
    let state = match ability.state {
        State::Ok => "OK",
        State::Missing => "missing",
        State::Limited => "limited",
    };
    let detail = if ability.detail.is_empty() { String::new() } else { format!(": {}", ability.detail) };
    format!("checking {} ... {state}{detail}", ability.name)
}
