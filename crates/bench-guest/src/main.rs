//! The program that `umlaut bench` runs, the same binary natively and inside.
//!
//! `run NAME…` measures workloads, `serve` those whose names come line by line on stdin (for places that take long to
//! start), `time CMD…` a whole command, `exit` ends at once. Each figure is one line, see [`figure`]. Nothing but std
//! and raw calls: `crates/bench/build.rs` compiles these sources by rustc alone into a static binary.
//!
//! Neighbours: [`sys`] makes the system calls, [`measure`] repeats and times, the others are the workloads.

mod at_once;
mod calls;
mod counters;
mod files;
mod measure;
mod memory;
mod pairs;
mod processes;
mod sys;

use std::io::{BufRead, Write};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use measure::Measured;

/// A workload: its name and what measures it.
type Workload = (&'static str, fn() -> Measured);

fn workloads() -> impl Iterator<Item = &'static Workload> {
    [calls::ALL, files::ALL, memory::ALL, pairs::ALL, processes::ALL].into_iter().flatten()
}

/// One figure for the harness: `@ NAME VALUE UNIT OPERATIONS`, the operations being all that were made,
/// calibration included.
pub(crate) fn figure(name: &str, value: f64, unit: &str, operations: u64) {
    let mut out = std::io::stdout().lock();
    // Whoever reads may have gone.
    let _ = writeln!(out, "@ {name} {value:.3} {unit} {operations}");
    let _ = out.flush();
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let rest = words.get(1..).unwrap_or(&[]);
    match words.first().map(String::as_str) {
        // A program that ends at once, for workloads that start programs.
        Some("exit") => {}
        Some("run") => {
            if !run(rest) {
                std::process::exit(2);
            }
        }
        Some("time") => std::process::exit(time(rest)),
        Some("serve") => serve(rest),
        Some("list") => workloads().for_each(|(name, _)| println!("{name}")),
        _ => {
            eprintln!("bench-guest: run NAME… | time CMD… | serve | list | exit");
            std::process::exit(2);
        }
    }
}

/// Measures each; false if one is not known.
fn run(names: &[String]) -> bool {
    for name in names {
        if run_with_own_figures(name) {
            continue;
        }
        let Some((name, measure)) = workloads().find(|(own, _)| own == name) else {
            eprintln!("bench-guest: no workload {name}");
            return false;
        };
        let counters = counters::Counters::begin();
        let measured = measure();
        counters.end();
        figure(name, measured.nanoseconds, "ns", measured.operations);
    }
    true
}

/// Workloads that give figures of their own kind; false if this is none.
fn run_with_own_figures(name: &str) -> bool {
    match name {
        "contention" => at_once::contention(name, sys::getpid_by_syscall),
        "contention-hand-over" => at_once::contention(name, sys::sched_get_priority_max),
        "tracers" => at_once::tracers(name),
        "pairs" => at_once::pairs(name),
        "idle" => figure(name, idle() * 100.0, "%", 1),
        _ => return false,
    }
    true
}

/// Which part of a CPU is busy while we sleep: with this process, and the kernel if it is umlaut's.
fn idle() -> f64 {
    const SLEEP: Duration = Duration::from_secs(1);
    let cpu_ns = || counters::cpu_ns().unwrap_or_else(sys::process_cpu_ns);
    // Reading the kernel's counters is work.
    let before = cpu_ns();
    let reading = cpu_ns() - before;
    let before = cpu_ns();
    let start = Instant::now();
    sys::sleep(SLEEP);
    let took = start.elapsed().as_nanos() as f64;
    (cpu_ns() - before).saturating_sub(reading) as f64 / took
}

/// Runs a command with its output thrown away and tells how long it took; gives its status.
fn time(words: &[String]) -> i32 {
    let Some((program, arguments)) = words.split_first() else { return 2 };
    let start = Instant::now();
    let status = Command::new(program).args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).status();
    let took = start.elapsed();
    match status {
        Ok(status) if status.success() => {
            figure("time", took.as_secs_f64() * 1e9, "ns", 1);
            0
        }
        Ok(status) => {
            eprintln!("bench-guest: {program}: {status}");
            1
        }
        Err(error) => {
            eprintln!("bench-guest: {program}: {error}");
            1
        }
    }
}

/// Reads lines such as `run getpid` or `time sh -c true`, each served by a fresh process of ours, and answers `@end
/// STATUS` after its figures; ends at the end of input or at `quit`. As pid 1 it powers the machine off then.
fn serve(rest: &[String]) {
    if let Some(directory) = rest.first()
        && let Err(error) = std::env::set_current_dir(directory)
    {
        eprintln!("bench-guest: {directory}: {error}");
        return;
    }
    println!("@ready");
    for line in std::io::stdin().lock().lines() {
        let Ok(line) = line else { break };
        // A terminal's echo, or whatever else: only our own commands count.
        let words: Vec<&str> = line.trim().split('\u{1f}').collect();
        match words.first() {
            Some(&"quit") => break,
            Some(&("run" | "time")) => {}
            _ => continue,
        }
        let own = std::env::current_exe().unwrap_or_else(|_| "/proc/self/exe".into());
        let status = Command::new(own).args(&words).stdin(Stdio::null()).status();
        let code = status.ok().and_then(|status| status.code()).unwrap_or(-1);
        println!("@end {code}");
    }
    if std::process::id() == 1 {
        sys::power_off();
    }
}
