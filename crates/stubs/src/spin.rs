//! Spinning: a guest thread and its kernel thread on two CPUs, each watching for the other's post instead of
//! sleeping, while the host has a CPU to spare for that.
//!
//! On one CPU a hand-over costs two switches, some microseconds; across CPUs with both asleep ten times that; with both
//! awake a tenth. So a pair begins *together*, goes *apart* after a streak of quick hand-overs, if the host says
//! that a CPU is idle, and comes together again once watching has failed too often. Every failed stay doubles
//! the streak that the next one needs.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

/// How long either side watches before it sleeps.
const SPAN: Duration = Duration::from_micros(20);
/// The same while one of them comes up on its CPU: at the beginning of a stay, and after a failure, since waking takes
/// longer than [`SPAN`], so that each would find the other asleep for ever.
const LONG_SPAN: Duration = Duration::from_micros(200);
/// Hand-overs until both are up. None of them counts as a failure.
const SETTLING: u32 = 4;
/// Between two posts of a streak, at most.
const QUICK: Duration = Duration::from_micros(25);
/// Hand-overs in a streak: what going apart costs (a move and a wake-up on an idle CPU), in their gain.
const STREAK: u32 = 64;
const LONGEST_STREAK: u32 = 8192;
/// The least streak after the host was found busy: what looking costs, in what it might have brought.
const BUSY_STREAK: u32 = 512;
/// What a failed watch costs, in the gain of those that do not fail.
const LOSS: i32 = 24;
/// Failures close to each other that are borne.
const CREDIT: i32 = 2 * LOSS;
/// Hand-overs apart between two looks at the host's load.
const LOOK: u32 = 1024;
/// Hand-overs of a stay that was worth it.
const WORTH: u32 = 512;
/// What a look that finds no CPU to spare costs: not all credit.
const CROWD: i32 = CREDIT - 8;

/// What all pairs of a kernel share: the host, as far as spinning depends on it.
#[derive(Debug)]
pub(crate) struct Host {
    /// That umlaut may use.
    cpus: usize,
    load: Option<File>,
    /// The time-stamp counter and the clock at one moment.
    begun: (u64, Instant),
}

impl Host {
    /// `enabled` false: nobody ever spins. Nor do they where umlaut may use less than two CPUs' time.
    pub(crate) fn new(enabled: bool, cpus: usize) -> Host {
        let worth = enabled && cpus > 1 && quota().is_none_or(|share| share >= 2.0);
        Host {
            cpus,
            load: if worth { File::open("/proc/loadavg").ok() } else { None },
            begun: (host::clock::ticks(), Instant::now()),
        }
    }

    /// Threads of the host that run or want to, the caller's too.
    fn running(&self) -> Option<usize> {
        let mut text = [0u8; 64];
        let len = self.load.as_ref()?.read_at(&mut text, 0).ok()?;
        running(std::str::from_utf8(text.get(..len)?).ok()?)
    }

    /// `span` in ticks of the time-stamp counter; `None`: not known yet.
    fn in_ticks(&self, span: Duration) -> Option<u32> {
        let elapsed = self.begun.1.elapsed();
        if elapsed < Duration::from_millis(1) {
            return None;
        }
        let ticks = u128::from(host::clock::ticks().checked_sub(self.begun.0)?);
        u32::try_from(ticks.checked_mul(span.as_nanos())?.checked_div(elapsed.as_nanos())?).ok()
    }
}

/// The fourth field of `/proc/loadavg`, up to its slash.
fn running(loadavg: &str) -> Option<usize> {
    loadavg.split(' ').nth(3)?.split('/').next()?.parse().ok()
}

/// The share of CPUs' time that the control group grants, if it limits that.
fn quota() -> Option<f64> {
    let read = |path: &str| std::fs::read_to_string(path).ok();
    let ratio = |quota: &str, period: &str| {
        let (quota, period) = (quota.trim().parse::<f64>().ok()?, period.trim().parse::<f64>().ok()?);
        (quota > 0.0 && period > 0.0).then(|| quota / period)
    };
    if let Some(max) = read("/sys/fs/cgroup/cpu.max") {
        let (quota, period) = max.trim().split_once(' ')?;
        return ratio(quota, period);
    }
    ratio(&read("/sys/fs/cgroup/cpu/cpu.cfs_quota_us")?, &read("/sys/fs/cgroup/cpu/cpu.cfs_period_us")?)
}

/// What a pair is to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// As it is.
    Stay,
    /// Apart, if there is another CPU; the guest watches for so many ticks.
    Part(u32),
    /// Apart, as it is; the guest watches for so many ticks.
    Watch(u32),
    /// Together.
    Join,
}

/// One pair.
#[derive(Debug)]
pub(crate) struct Spin {
    last: Option<Instant>,
    /// Quick hand-overs since the last slow one.
    streak: u32,
    needed: u32,
    credit: i32,
    /// Hand-overs of this stay.
    stay: u32,
    /// Those to come until both sides are up.
    settling: u32,
}

impl Default for Spin {
    fn default() -> Spin {
        Spin { last: None, streak: 0, needed: STREAK, credit: 0, stay: 0, settling: 0 }
    }
}

impl Spin {
    /// The guest has posted, together.
    pub(crate) fn met(&mut self, host: &Host) -> Next {
        if host.load.is_none() {
            return Next::Stay;
        }
        let now = Instant::now();
        let quick = self.last.replace(now).is_some_and(|last| now.duration_since(last) < QUICK);
        self.streak = if quick { self.streak.saturating_add(1) } else { 0 };
        if self.streak < self.needed {
            return Next::Stay;
        }
        self.streak = 0;
        // The two of us among them: on its way to sleep the guest is often overtaken by the thread that it wakes.
        let idle = host.running().is_some_and(|running| running <= host.cpus);
        match host.in_ticks(LONG_SPAN) {
            Some(ticks) if idle => {
                (self.credit, self.stay, self.settling) = (CREDIT, 0, SETTLING);
                Next::Part(ticks)
            }
            _ => {
                self.needed = self.needed.max(BUSY_STREAK);
                Next::Stay
            }
        }
    }

    /// The guest has posted, apart. `awake`: neither side slept.
    pub(crate) fn watched(&mut self, host: &Host, awake: bool) -> Next {
        self.stay = self.stay.saturating_add(1);
        if self.settling > 0 {
            self.settling -= 1;
            let settled = (self.settling == 0).then(|| host.in_ticks(SPAN)).flatten();
            return settled.map_or(Next::Stay, Next::Watch);
        }
        let crowded =
            self.stay.is_multiple_of(LOOK) && host.running().is_none_or(|running| running > host.cpus);
        // One look may find what runs for a moment only.
        self.credit = match (awake, crowded) {
            (true, false) => (self.credit + 1).min(CREDIT),
            (false, false) => self.credit - LOSS,
            (_, true) => self.credit - CROWD,
        };
        if self.credit <= 0 {
            return Next::Join;
        }
        let ticks = if awake { None } else { host.in_ticks(LONG_SPAN) };
        match ticks {
            Some(ticks) => {
                self.settling = SETTLING;
                Next::Watch(ticks)
            }
            None => Next::Stay,
        }
    }

    /// For how long the kernel's side watches, apart.
    pub(crate) fn span(&self) -> Duration {
        if self.settling > 0 { LONG_SPAN } else { SPAN }
    }

    /// It came together again, by us or by the ticker.
    pub(crate) fn joined(&mut self) {
        if self.stay < WORTH {
            self.fail();
        } else {
            self.needed = STREAK;
        }
        (self.streak, self.last) = (0, None);
    }

    fn fail(&mut self) {
        self.needed = (self.needed * 2).min(LONGEST_STREAK);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MANY: usize = 1 << 20;

    fn host(cpus: usize) -> Host {
        let host = Host {
            cpus,
            load: File::open("/proc/loadavg").ok(),
            begun: (host::clock::ticks(), Instant::now()),
        };
        std::thread::sleep(Duration::from_millis(2));
        host
    }

    #[test]
    fn load_is_read() {
        assert_eq!(running("0.96 3.57 3.72 2/80 17068\n"), Some(2));
        assert_eq!(running(""), None);
        assert!(host(1).running().unwrap() >= 1);
    }

    /// At first, and after a failure, both sides have time.
    fn both_come_up(spin: &mut Spin, host: &Host) {
        assert_eq!(spin.span(), LONG_SPAN);
        for _ in 1..SETTLING {
            assert_eq!(spin.watched(host, false), Next::Stay);
        }
        assert!(matches!(spin.watched(host, false), Next::Watch(_)));
        assert_eq!(spin.span(), SPAN);
    }

    #[test]
    fn a_streak_parts_a_pair_and_failures_join_it() {
        let (host, mut spin) = (host(MANY), Spin::default());
        spin.needed = 1;
        // A slow machine may need some: two calls within 25 us.
        let parted = (0..1000).any(|_| matches!(spin.met(&host), Next::Part(ticks) if ticks > 0));
        assert!(parted);
        for _ in 1..CREDIT / LOSS {
            both_come_up(&mut spin, &host);
            assert!(matches!(spin.watched(&host, false), Next::Watch(_)));
        }
        both_come_up(&mut spin, &host);
        assert_eq!(spin.watched(&host, false), Next::Join);
        spin.joined();
        assert_eq!(spin.needed, 2);
    }

    #[test]
    fn a_stay_that_is_worth_it_lasts() {
        let (mut host, mut spin) = (host(MANY), Spin::default());
        spin.credit = CREDIT;
        // One failure in fifty is less than it gains.
        for n in 1..LOOK {
            assert_ne!(spin.watched(&host, n % 50 != 0), Next::Join);
        }
        // The host has no CPU to spare any more: a failure more, and it is over.
        host.cpus = 0;
        assert_eq!(spin.watched(&host, true), Next::Stay);
        assert_eq!(spin.watched(&host, false), Next::Join);
        (spin.needed, spin.stay) = (LONGEST_STREAK, WORTH);
        spin.joined();
        assert_eq!(spin.needed, STREAK);
    }

    #[test]
    fn nobody_parts_where_no_cpu_is_idle() {
        let (host, mut spin) = (host(0), Spin::default());
        spin.needed = 1;
        assert!((0..1000).all(|_| spin.met(&host) == Next::Stay));
        let (none, mut spin) = (Host::new(false, 8), Spin::default());
        assert!((0..1000).all(|_| spin.met(&none) == Next::Stay));
    }
}
