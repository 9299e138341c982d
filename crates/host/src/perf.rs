//! Counts of the host's own events (`perf_event_open`), where it lets us have them.
//!
//! # Safety
//! The host reads one `perf_event_attr` of ours, whose size stands in it.
#![allow(unsafe_code, reason = "perf_event_open takes a structure")]

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::FromRawFd;

/// `PERF_TYPE_TRACEPOINT`.
const TRACEPOINT: u32 = 2;
/// `inherit`, the second bit of the flags: processes made later count too.
const INHERIT: u64 = 1 << 1;
/// `PERF_FLAG_FD_CLOEXEC`.
const CLOEXEC: libc::c_ulong = 8;

/// The first version of `struct perf_event_attr` (`PERF_ATTR_SIZE_VER0`), which every kernel takes.
#[repr(C)]
#[derive(Default)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_events: u32,
    bp_type: u32,
    bp_addr: u64,
}

/// A running count. Ends with its value.
#[derive(Debug)]
pub struct Counter(File);

impl Counter {
    /// Counts the system calls of this thread and of all processes and threads that come from it from now on. It makes
    /// them slower.
    ///
    /// # Errors
    /// Without the privilege (`kernel.perf_event_paranoid`), or where tracefs is not mounted or not readable.
    pub fn of_system_calls() -> io::Result<Counter> {
        let places = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];
        let id = |place| std::fs::read_to_string(format!("{place}/events/raw_syscalls/sys_enter/id"));
        let id = places.into_iter().find_map(|place| id(place).ok()).ok_or(io::ErrorKind::NotFound)?;
        let config = id.trim().parse().map_err(|_| io::Error::from(io::ErrorKind::InvalidData))?;
        let size = u32::try_from(size_of::<Attributes>()).unwrap_or(0);
        let attributes =
            Attributes { kind: TRACEPOINT, size, config, flags: INHERIT, ..Attributes::default() };
        // SAFETY: the structure is ours, as long as it says.
        let result =
            unsafe { libc::syscall(libc::SYS_perf_event_open, &raw const attributes, 0, -1, -1, CLOEXEC) };
        crate::check(result)?;
        // SAFETY: a descriptor that was just made for us.
        Ok(Counter(unsafe { File::from_raw_fd(i32::try_from(result).unwrap_or(-1)) }))
    }

    /// How many there were, those of ended processes included.
    ///
    /// # Errors
    /// If the host does not tell.
    pub fn read(&self) -> io::Result<u64> {
        let mut count = [0; 8];
        (&self.0).read_exact(&mut count)?;
        Ok(u64::from_ne_bytes(count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_of_children_count() {
        let counter = match Counter::of_system_calls() {
            Ok(counter) => counter,
            Err(error) => return eprintln!("skipped: this host does not let us count: {error}"),
        };
        let before = counter.read().expect("readable");
        let status = std::process::Command::new("/bin/sh").args(["-c", "exit 0"]).status();
        assert!(status.is_ok_and(|status| status.success()));
        assert!(counter.read().expect("readable") > before + 10);
    }
}
