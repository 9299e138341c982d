//! `umlaut check`: what this host offers, found by trying.

use anyhow::anyhow;
use ptrace::probe::{Ability, State};

pub(crate) fn check() -> anyhow::Result<i32> {
    for ability in ptrace::probe::probe() {
        println!("{}", line(&ability));
    }
    let choice = ptrace::probe::choose().map_err(|why| anyhow!("no platform works on this host: {why}"))?;
    let why = if choice.why.is_empty() { String::new() } else { format!(" ({})", choice.why) };
    println!("--platform auto takes {}{why}", choice.mode.name());
    Ok(0)
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
