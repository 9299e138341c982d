//! What guest processes and threads have used, from the host's `/proc`.
//!
//! `stat` has user and system time in clock ticks only; the sums are known to the nanosecond, and are split in the
//! ratio of those, as the host itself does for `getrusage`.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use platform::{HostUsage, Meter};

/// KiB that whoever ran has had: the page of its stack. The host counts pages for each CPU and adds them up in batches of
/// some dozens, so it tells 0 of a small process that stayed on one.
const LEAST_RESIDENT: u64 = 4;

/// CPU time of a kernel thread that passes beside that of its guest's thread, each awake while the other works: it counts once.
#[derive(Debug, Default)]
pub struct Doubled {
    /// Nanoseconds, up to the last [`Doubled::end`].
    before: AtomicU64,
    /// The kernel thread's CPU time when they began to be awake together, in nanoseconds; 0: they are not.
    since: AtomicU64,
}

impl Doubled {
    /// On the kernel thread: from now on both are awake.
    pub fn begin(&self) {
        self.since.store(own_time(), Ordering::Relaxed);
    }

    /// On the kernel thread: one of them sleeps again.
    pub fn end(&self) {
        let before = self.of(own_time());
        self.since.store(0, Ordering::Relaxed);
        self.before.store(before, Ordering::Relaxed);
    }

    /// How much of `serving` nanoseconds.
    fn of(&self, serving: u64) -> u64 {
        let since = self.since.load(Ordering::Relaxed);
        let now = if since == 0 { 0 } else { serving.saturating_sub(since) };
        self.before.load(Ordering::Relaxed).saturating_add(now)
    }
}

/// CPU time of the calling thread, in nanoseconds.
fn own_time() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
    seconds.saturating_mul(1_000_000_000).saturating_add(u64::try_from(now.tv_nsec).unwrap_or(0))
}

/// One guest thread's.
pub struct ThreadMeter {
    tgid: i32,
    tid: i32,
    doubled: Arc<Doubled>,
    /// What it was when last read, for when the thread has ended.
    last: Mutex<HostUsage>,
}

impl ThreadMeter {
    pub fn new(tgid: i32, tid: i32, doubled: Arc<Doubled>) -> ThreadMeter {
        ThreadMeter { tgid, tid, doubled, last: Mutex::default() }
    }
}

impl Meter for ThreadMeter {
    fn read(&self) -> HostUsage {
        let directory = format!("/proc/{}/task/{}", self.tgid, self.tid);
        let total = read(&directory, "schedstat")
            .and_then(|text| text.split_ascii_whitespace().next()?.parse().ok())
            .map(Duration::from_nanos);
        if let (Some(total), Some(usage)) = (total, read_usage(&directory)) {
            let mut last = self.last.lock();
            *last = split(total, usage, &last);
        }
        *self.last.lock()
    }

    fn doubled(&self, serving: Duration) -> Duration {
        Duration::from_nanos(self.doubled.of(u64::try_from(serving.as_nanos()).unwrap_or(u64::MAX)))
    }

    fn sleeps(&self) -> bool {
        let stat = read(&format!("/proc/{}/task/{}", self.tgid, self.tid), "stat");
        stat.is_some_and(|stat| stat.rsplit_once(')').is_some_and(|(_, rest)| rest.starts_with(" S")))
    }
}

/// A whole process's, `last` being what it was before. `None`: it is gone.
pub(crate) fn process_usage(tgid: i32, last: &HostUsage) -> Option<HostUsage> {
    let total = host::clock::process_cpu_time(tgid)?;
    read_usage(&format!("/proc/{tgid}")).map(|usage| split(total, usage, last))
}

/// The same of one that has been reaped.
pub(crate) fn reaped_usage(usage: &host::wait::Usage) -> HostUsage {
    HostUsage {
        user: usage.user,
        system: usage.system,
        max_resident_kib: usage.max_resident.max(LEAST_RESIDENT),
        minor_faults: usage.minor_faults,
        major_faults: usage.major_faults,
        voluntary_switches: usage.voluntary_switches,
        involuntary_switches: usage.involuntary_switches,
    }
}

fn read(directory: &str, name: &str) -> Option<String> {
    host::user::perhaps_as_guests(|| std::fs::read_to_string(format!("{directory}/{name}"))).ok()
}

/// All but the exact sum of times.
fn read_usage(directory: &str) -> Option<HostUsage> {
    let stat = read(directory, "stat")?;
    let status = read(directory, "status").unwrap_or_default();
    parse(&stat, &status)
}

fn parse(stat: &str, status: &str) -> Option<HostUsage> {
    // Behind the name, which may hold anything: the state is field 3.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_ascii_whitespace().collect();
    let field = |number: usize| fields.get(number - 3).and_then(|text| text.parse().ok()).unwrap_or(0u64);
    let line = |name: &str| {
        let rest = status.lines().find_map(|line| line.strip_prefix(name))?;
        rest.split_ascii_whitespace().next()?.parse().ok()
    };
    Some(HostUsage {
        user: ticks(field(14)),
        system: ticks(field(15)),
        max_resident_kib: line("VmHWM:").unwrap_or(0).max(LEAST_RESIDENT),
        minor_faults: field(10),
        major_faults: field(12),
        voluntary_switches: line("voluntary_ctxt_switches:").unwrap_or(0),
        involuntary_switches: line("nonvoluntary_ctxt_switches:").unwrap_or(0),
    })
}

/// A clock tick of `/proc` is 1/100 s.
fn ticks(count: u64) -> Duration {
    Duration::from_millis(count.saturating_mul(10))
}

/// Splits the exact sum in the ratio of user and system ticks, neither less than before (Linux: `cputime_adjust`).
fn split(total: Duration, usage: HostUsage, last: &HostUsage) -> HostUsage {
    if total <= last.user + last.system {
        return HostUsage { user: last.user, system: last.system, ..usage };
    }
    let (user, sum) = (usage.user.as_nanos(), (usage.user + usage.system).as_nanos());
    // A thread without a tick yet has computed rather than called.
    let user = (total.as_nanos() * user).checked_div(sum).unwrap_or(total.as_nanos());
    let user = Duration::from_nanos(u64::try_from(user).unwrap_or(u64::MAX));
    let user = user.clamp(last.user, total.saturating_sub(last.system));
    HostUsage { user, system: total.saturating_sub(user), ..usage }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_beside_each_other_is_told_while_it_passes_and_after() {
        let doubled = Doubled::default();
        assert_eq!(doubled.of(1 << 40), 0);
        doubled.begin();
        let begun = doubled.since.load(Ordering::Relaxed);
        assert_eq!(doubled.of(begun + 500), 500);
        while own_time() < begun + 1_000_000 {}
        doubled.end();
        let sum = doubled.of(own_time());
        assert!(sum >= 1_000_000);
        assert_eq!(doubled.of(1 << 60), sum);
    }

    #[test]
    fn stat_and_status_are_read_by_their_fields() {
        let stat = "7 (odd ) (name) R 1 2 3 0 -1 4194304 111 0 22 0 30 10 0 0 20 0 1 0 5 6 7";
        let status =
            "Name:\tx\nVmHWM:\t    1234 kB\nvoluntary_ctxt_switches:\t8\nnonvoluntary_ctxt_switches:\t9\n";
        let read = parse(stat, status).expect("it is well-formed");
        let usage = split(Duration::from_nanos(800), read, &HostUsage::default());
        assert_eq!((usage.user, usage.system), (Duration::from_nanos(600), Duration::from_nanos(200)));
        assert_eq!((usage.minor_faults, usage.major_faults, usage.max_resident_kib), (111, 22, 1234));
        assert_eq!((usage.voluntary_switches, usage.involuntary_switches), (8, 9));
        // Ticks that come later all in the kernel take nothing back.
        let later = HostUsage { user: Duration::ZERO, system: Duration::from_millis(100), ..read };
        let later = split(Duration::from_nanos(1000), later, &usage);
        assert_eq!((later.user, later.system), (Duration::from_nanos(600), Duration::from_nanos(400)));
        let same = split(Duration::from_nanos(900), read, &later);
        assert_eq!((same.user, same.system), (later.user, later.system));
    }
}
