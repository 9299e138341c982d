//! Workloads: threads and processes.

use std::process::{Command, Stdio};

use crate::Workload;
use crate::measure::{Measured, repeat};
use crate::sys::{self, Mapping};

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
