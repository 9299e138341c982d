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
    figure("contention/1", alone.ns, "ns", 1);
    figure("contention/1-cpu", alone.cpu_ns, "ns", 1);
    let mut counts = vec![2, cpus];
    counts.dedup();
    for count in counts {
        let each = calls_at_once(count);
        figure(&format!("contention/{count}"), each.ns, "ns", 1);
        figure(&format!("contention/{count}-loss"), (1.0 - alone.ns / each.ns) * 100.0, "%", 1);
        figure(&format!("contention/{count}-cpu"), each.cpu_ns, "ns", 1);
        figure(&format!("contention/{count}-cpu-loss"), (1.0 - alone.cpu_ns / each.cpu_ns) * 100.0, "%", 1);
    }
    true
}

/// What a call costs, on average.
#[derive(Default)]
struct CallCost {
    /// Time that passes, in nanoseconds.
    ns: f64,
    /// Processor time, in the guest and in whatever serves it, in nanoseconds. What others do on the machine hardly shows
    /// in it; what processes cost each other by shared locks and cache lines does.
    cpu_ns: f64,
}

/// Of so many processes that do nothing but call, each on a CPU of its own as far as there are as many.
fn calls_at_once(processes: usize) -> CallCost {
    let (read, write) = sys::pipe();
    let (gate, open) = sys::pipe();
    let children: Vec<usize> = (0..processes)
        .map(|index| {
            sys::fork(|| {
                sys::pin_to_one_of_its_cpus(index);
                sys::read(gate, &mut [0]);
                let (start, cpu) = (Instant::now(), sys::process_cpu_ns());
                let mut calls: u64 = 0;
                // The clock is read rarely.
                while start.elapsed() < CALLING {
                    some_calls();
                    calls += 256;
                }
                let ns = start.elapsed().as_nanos() as f64 / calls as f64;
                let cpu_ns = sys::process_cpu_ns().saturating_sub(cpu) as f64 / calls as f64;
                // Nobody measures the end of his time alone.
                while start.elapsed() < CALLING + CALLING / 10 {
                    some_calls();
                }
                let [ns, cpu_ns] = [ns, cpu_ns].map(f64::to_ne_bytes);
                sys::write(write, &[ns, cpu_ns].concat());
            })
        })
        .collect();
    sys::write(open, &vec![0; processes]);
    let mut mean = CallCost::default();
    for _ in 0..processes {
        let mut cost = [[0; 8]; 2];
        sys::read(read, cost.as_flattened_mut());
        let [ns, cpu_ns] = cost.map(f64::from_ne_bytes);
        mean.ns += ns / processes as f64;
        mean.cpu_ns += cpu_ns / processes as f64;
    }
    children.into_iter().for_each(sys::wait_for);
    mean
}

fn some_calls() {
    for _ in 0..256 {
        sys::getpid_by_syscall();
    }
}
