//! What tasks read and write, as `/proc/PID/io` tells it.

use std::sync::atomic::{AtomicU64, Ordering};

use platform::DelegatedIo;

/// Bytes and calls of reading and writing (Linux: `struct task_io_accounting`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IoUsage {
    /// Bytes that read and write calls gave and took, whatever the file.
    pub read_chars: u64,
    pub written_chars: u64,
    pub read_calls: u64,
    pub write_calls: u64,
    /// Bytes that the host's storage gave and took for it.
    pub read_bytes: u64,
    pub write_bytes: u64,
}

impl IoUsage {
    /// Wraps around: what a guest thread did by itself is its own word.
    pub fn add(&mut self, other: &IoUsage) {
        let pairs = [
            (&mut self.read_chars, other.read_chars),
            (&mut self.written_chars, other.written_chars),
            (&mut self.read_calls, other.read_calls),
            (&mut self.write_calls, other.write_calls),
            (&mut self.read_bytes, other.read_bytes),
            (&mut self.write_bytes, other.write_bytes),
        ];
        for (sum, amount) in pairs {
            *sum = sum.wrapping_add(amount);
        }
    }
}

/// A task's own. Written by its own thread only.
#[derive(Default)]
pub struct IoCounters {
    read_chars: AtomicU64,
    written_chars: AtomicU64,
    read_calls: AtomicU64,
    write_calls: AtomicU64,
    /// What its kernel thread had moved when that was last looked at.
    read_bytes: AtomicU64,
    write_bytes: AtomicU64,
}

/// Adds without a locked instruction: nobody else writes.
fn add(counter: &AtomicU64, amount: u64) {
    counter.store(counter.load(Ordering::Relaxed).wrapping_add(amount), Ordering::Relaxed);
}

impl IoCounters {
    /// A call read this much.
    pub(crate) fn count_read(&self, bytes: usize) {
        add(&self.read_chars, bytes as u64);
        add(&self.read_calls, 1);
    }

    /// A call wrote this much.
    pub(crate) fn count_write(&self, bytes: usize) {
        add(&self.written_chars, bytes as u64);
        add(&self.write_calls, 1);
    }

    /// The guest thread did this by itself.
    pub(crate) fn count_delegated(&self, io: &DelegatedIo) {
        add(&self.read_chars, io.read_chars);
        add(&self.read_calls, io.read_calls);
        add(&self.written_chars, io.written_chars);
        add(&self.write_calls, io.write_calls);
    }

    /// Looks at what the calling kernel thread, the task's own, has moved from and to the host's storage.
    pub fn look_at_storage(&self) {
        let (read, written) = host::clock::thread_storage_bytes();
        let before = crate::task::threads::storage_before();
        self.read_bytes.store(read.saturating_sub(before.0), Ordering::Relaxed);
        self.write_bytes.store(written.saturating_sub(before.1), Ordering::Relaxed);
    }

    /// What it was when last looked at.
    pub fn get(&self) -> IoUsage {
        IoUsage {
            read_chars: self.read_chars.load(Ordering::Relaxed),
            written_chars: self.written_chars.load(Ordering::Relaxed),
            read_calls: self.read_calls.load(Ordering::Relaxed),
            write_calls: self.write_calls.load(Ordering::Relaxed),
            read_bytes: self.read_bytes.load(Ordering::Relaxed),
            write_bytes: self.write_bytes.load(Ordering::Relaxed),
        }
    }
}
