//! CPU clocks of processes and threads by their ids, and what a thread has used, which rustix does not tell.
//!
//! # Safety
//! The host writes one `timespec` or `rusage` that is ours.
#![allow(unsafe_code, reason = "clock_gettime with a clock made from an id; getrusage")]

use std::time::Duration;

/// The bits of a CPU clock's id below the process's (`CPUCLOCK_SCHED`, and with bit 2 that of a thread).
const SCHED: i32 = 2;
const PER_THREAD: i32 = 4;

/// CPU time that process `pid` has used, of all its threads, ended ones too. `None`: there is none.
pub fn process_cpu_time(pid: i32) -> Option<Duration> {
    read(pid, SCHED)
}

/// CPU time that a thread of this process has used. `None`: there is none.
pub fn thread_cpu_time(tid: i32) -> Option<Duration> {
    read(tid, SCHED | PER_THREAD)
}

/// Bytes that the calling thread has had read from storage, and written to it.
pub fn thread_storage_bytes() -> (u64, u64) {
    /// Linux counts in sectors, whatever the disk.
    const SECTOR: u64 = 512;
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: `usage` is ours to be written, and a valid `rusage` before that too.
    let usage = unsafe {
        libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr());
        usage.assume_init()
    };
    let bytes = |blocks: libc::c_long| u64::try_from(blocks).unwrap_or(0).saturating_mul(SECTOR);
    (bytes(usage.ru_inblock), bytes(usage.ru_oublock))
}

fn read(id: i32, kind: i32) -> Option<Duration> {
    // Linux: `make_process_cpuclock` in include/linux/posix-timers.h.
    let clock = ((!id).checked_mul(8)?) | kind;
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is ours to be written.
    let result = unsafe { libc::clock_gettime(clock, &raw mut time) };
    let seconds = u64::try_from(time.tv_sec).ok()?;
    let nanos = u32::try_from(time.tv_nsec).ok()?;
    (result == 0).then(|| Duration::new(seconds, nanos))
}

/// The processor's time-stamp counter, in ticks of its own.
pub fn ticks() -> u64 {
    // SAFETY: every x86-64 processor has the instruction, and it touches no memory.
    unsafe { std::arch::x86_64::_rdtsc() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_clocks_run() {
        let pid = std::process::id().cast_signed();
        let start = process_cpu_time(pid).expect("a process has a clock");
        while process_cpu_time(pid).expect("it still has") < start + Duration::from_millis(2) {}
        let tid = rustix::thread::gettid().as_raw_nonzero().get();
        assert!(thread_cpu_time(tid).expect("a thread has a clock") > Duration::ZERO);
        assert_eq!(process_cpu_time(i32::MAX / 16), None);
    }
}
