//! The process that the user starts: it watches over the kernel, which is its child.
//!
//! It has one thread and does nothing but wait. Signals for umlaut are passed on to the kernel through a
//! pipe, and the kernel, which may be another user, asks it to stop the user's job; when the kernel dies, however that came, what it left behind is given to the supervisor (a
//! subreaper), which kills it. When the supervisor dies, the kernel sees the pipe's end and ends too.

use std::io::{Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use anyhow::Context;
use host::process::Fork;
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus};

/// Added to the number of a signal that the host itself sent, as its terminals do.
pub(crate) const BY_HOST: u8 = 0x80;

/// Signals that are passed on to the guest (the first two to the console).
const FORWARDED: [Signal; 9] = [
    Signal::WINCH,
    Signal::CONT,
    Signal::HUP,
    Signal::INT,
    Signal::QUIT,
    Signal::TERM,
    Signal::USR1,
    Signal::USR2,
    Signal::ALARM,
];

/// Asks the supervisor for what only it may do: to stop the user's job, ourselves included, as its terminal would.
pub(crate) struct Job(UnixStream);

impl Job {
    /// Returns when the job goes on. An orphaned one is not stopped by the host; then it returns at once.
    pub(crate) fn stop(&self, signal: Signal) {
        let byte = [u8::try_from(signal.as_raw()).unwrap_or(0)];
        // Without a supervisor all ends soon.
        let _ = (&self.0).write_all(&byte).and_then(|()| (&self.0).read_exact(&mut [0]));
    }
}

/// Forks: returns in the kernel's process, with the end of the pipe that tells of signals. The supervisor stays in here
/// and ends with the kernel's status, after `clean_up`, when nothing of the instance is left.
pub(crate) fn become_kernel(clean_up: impl FnOnce()) -> anyhow::Result<(OwnedFd, Job)> {
    rustix::process::set_child_subreaper(Some(rustix::process::getpid())).context("becoming a subreaper")?;
    // Inherited dispositions would hide the ends of children.
    host::signal::set_default(Signal::CHILD.as_raw())?;
    let own = [&Signal::CHILD, &Signal::IO];
    let watched: Vec<i32> = FORWARDED.iter().chain(own).map(|signal| signal.as_raw()).collect();
    host::process::block_signals(&watched);
    let terminal = crate::console::saved_settings();
    let (signals, to_kernel) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
    let (asked, job) = UnixStream::pair()?;
    match host::process::fork().context("starting the kernel's process (is `ulimit -u` reached?)")? {
        Fork::Child => {
            drop((to_kernel, asked));
            Ok((signals, Job(job)))
        }
        Fork::Parent { child } => {
            drop((signals, job));
            // Without it the job is not stopped: the kernel hears so when it asks.
            let asked = host::process::signal_when_readable(asked.as_fd()).is_ok().then_some(asked);
            // It has done most of what it ever does.
            host::residency::release_programs();
            let status = watch(child, &to_kernel, asked.as_ref(), &watched);
            clean_up();
            // However the kernel ended: the user's terminal is as it was.
            if let Some((host, saved)) = terminal {
                crate::console::restore_raw(&host, saved.as_ref());
            }
            std::process::exit(status);
        }
    }
}

fn watch(kernel: i32, to_kernel: &OwnedFd, asked: Option<&UnixStream>, watched: &[i32]) -> i32 {
    let status = loop {
        let (signal, by_host) = host::process::wait_for_signal(watched);
        if signal == Signal::IO.as_raw() {
            asked.into_iter().for_each(stop_job);
            continue;
        }
        if signal != Signal::CHILD.as_raw() {
            let origin = if by_host { BY_HOST } else { 0 };
            let byte = [u8::try_from(signal).unwrap_or(0) | origin];
            // The kernel may be gone already; its end comes next.
            let _ = rustix::io::write(to_kernel, &byte);
            continue;
        }
        if let Some(status) = reap_until_kernel(kernel) {
            break status;
        }
    };
    kill_leftovers();
    status
}

/// Stops the job, this process included, if the kernel has asked for it, and tells it when it goes on.
fn stop_job(mut asked: &UnixStream) {
    let mut byte = [0];
    while let Ok(1) = asked.read(&mut byte) {
        let stops = [Signal::TSTP, Signal::TTIN, Signal::TTOU];
        if let Some(signal) = stops.into_iter().find(|signal| signal.as_raw() == i32::from(byte[0])) {
            // An error: there is nobody who may be stopped.
            let _ = rustix::process::kill_current_process_group(signal);
        }
        // The kernel may have ended meanwhile.
        let _ = asked.write(&byte);
    }
}

/// Reaps what has ended; the kernel's exit status if it is among them.
fn reap_until_kernel(kernel: i32) -> Option<i32> {
    let mut found = None;
    while let Ok(Some((pid, status))) = rustix::process::wait(WaitOptions::NOHANG) {
        if pid.as_raw_nonzero().get() == kernel {
            found = Some(exit_code(status));
        }
    }
    found
}

fn exit_code(status: WaitStatus) -> i32 {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => code,
        (None, Some(signal)) => 128 + signal,
        (None, None) => 1,
    }
}

/// Kills what the kernel left behind until nothing is left: each that dies may give us its own children.
fn kill_leftovers() {
    loop {
        for pid in children() {
            let _ = rustix::process::kill_process(pid, Signal::KILL);
        }
        match rustix::process::wait(WaitOptions::empty()) {
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => return,
        }
    }
}

/// In the kernel, at its end, when nobody is left to do it: kills and reaps its children. Not for long: what has got stuck
/// ends with the pid namespace or by PDEATHSIG.
pub(crate) fn end_children() {
    const PATIENCE: Duration = Duration::from_secs(2);
    let end = Instant::now() + PATIENCE;
    let own = rustix::process::getpid().as_raw_nonzero().get();
    while Instant::now() < end {
        for pid in children_by_stat(own) {
            let _ = rustix::process::kill_process(pid, Signal::KILL);
        }
        match rustix::process::wait(WaitOptions::NOHANG) {
            Ok(None) => std::thread::sleep(Duration::from_millis(2)),
            Err(rustix::io::Errno::CHILD) => return,
            _ => {}
        }
    }
}

/// Our children, as the host lists them.
fn children() -> Vec<Pid> {
    let own = rustix::process::getpid().as_raw_nonzero().get();
    let path = format!("/proc/self/task/{own}/children");
    match std::fs::read_to_string(path) {
        Ok(list) => list.split_whitespace().filter_map(|pid| Pid::from_raw(pid.parse().ok()?)).collect(),
        // A host without CONFIG_PROC_CHILDREN: look at everybody's parent.
        Err(_) => children_by_stat(own),
    }
}

fn children_by_stat(own: i32) -> Vec<Pid> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    let parent_is_us = |pid: i32| -> Option<bool> {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let parent: i32 = stat.rsplit(')').next()?.split_whitespace().nth(1)?.parse().ok()?;
        Some(parent == own)
    };
    let pids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    pids.filter(|pid| parent_is_us(*pid) == Some(true)).filter_map(Pid::from_raw).collect()
}
