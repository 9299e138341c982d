//! Workloads: threads and processes, and several processes that call at once.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::measure::{Measured, repeat};
use crate::sys::{self, Mapping};
use crate::{Workload, figure};

pub(crate) const ALL: &[Workload] = &[
    ("thread", || {
        repeat(|| {
            // It has no way to panic.
            let _ = std::thread::spawn(|| {}).join();
        })
    }),
    ("fork-exit", || repeat(|| sys::wait_for(sys::fork(|| {})))),
    ("fork-exit-1m", || fork_with(1 << 20)),
    ("fork-exit-100m", || fork_with(100 << 20)),
    ("spawn-static", || repeat(|| spawn(own_program().arg("exit")))),
    ("spawn-dynamic", || repeat(|| spawn(&mut Command::new("/bin/true")))),
    ("fork-exec-dynamic", || repeat(fork_exec)),
];

fn fork_with(bytes: usize) -> Measured {
    let memory = Mapping::new(bytes);
    memory.write_each_page();
    repeat(|| sys::wait_for(sys::fork(|| {})))
}

fn own_program() -> Command {
    Command::new(std::env::current_exe().unwrap_or_else(|_| "/proc/self/exe".into()))
}

/// By `posix_spawn`, which the C library does as vfork does.
fn spawn(command: &mut Command) {
    match command.stdin(Stdio::null()).stdout(Stdio::null()).status() {
        Ok(status) if status.success() => {}
        other => {
            eprintln!("bench-guest: {command:?}: {other:?}");
            std::process::exit(3);
        }
    }
}

fn fork_exec() {
    sys::wait_for(sys::fork(sys::exec_true));
}

/// How long the processes of `contention` call.
const CALLING: Duration = Duration::from_millis(200);

/// Workloads that give more than one figure; false if this is none.
pub(crate) fn run_with_several_figures(name: &str) -> bool {
    if name != "contention" {
        return false;
    }
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let alone = calls_at_once(1);
    figure("contention/1", 1e9 / alone, "ns", 1);
    let mut counts = vec![2, cpus];
    counts.dedup();
    for count in counts {
        let rate = calls_at_once(count);
        figure(&format!("contention/{count}"), 1e9 / rate, "ns", 1);
        figure(&format!("contention/{count}-loss"), (1.0 - rate / alone) * 100.0, "%", 1);
    }
    true
}

/// Calls a second and process of so many processes that do nothing but call.
fn calls_at_once(processes: usize) -> f64 {
    let (read, write) = sys::pipe();
    let (gate, open) = sys::pipe();
    let children: Vec<usize> = (0..processes)
        .map(|_| {
            sys::fork(|| {
                sys::read(gate, &mut [0]);
                let start = Instant::now();
                let mut calls: u64 = 0;
                // The clock is read rarely.
                while start.elapsed() < CALLING {
                    for _ in 0..256 {
                        sys::getpid_by_syscall();
                    }
                    calls += 256;
                }
                let rate = calls as f64 / start.elapsed().as_secs_f64();
                sys::write(write, &rate.to_ne_bytes());
            })
        })
        .collect();
    sys::write(open, &vec![0; processes]);
    let mut sum = 0.0;
    for _ in 0..processes {
        let mut rate = [0; 8];
        sys::read(read, &mut rate);
        sum += f64::from_ne_bytes(rate);
    }
    children.into_iter().for_each(sys::wait_for);
    sum / processes as f64
}
