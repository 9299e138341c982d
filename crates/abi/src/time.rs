//! Time: `timespec` and its kin, clocks, timers, `adjtimex`, and the times that processes use
//! (`linux/time.h`, `linux/timex.h`, `linux/resource.h`).

use crate::macros::{flags, layout, names};

layout! {
    /// `struct timespec` (`__kernel_timespec`).
    #[derive(PartialOrd, Ord, Hash)]
    struct Timespec: 16 {
        0 sec: i64,
        /// 0 to 999 999 999 where it is a time; `UTIME_NOW`, `UTIME_OMIT` in `utimensat`.
        8 nsec: i64,
    }

    /// `struct timeval`.
    #[derive(PartialOrd, Ord, Hash)]
    struct Timeval: 16 {
        0 sec: i64,
        8 usec: i64,
    }

    /// `struct timezone`, of `gettimeofday`.
    struct Timezone: 8 {
        0 minuteswest: i32,
        4 dsttime: i32,
    }

    /// `struct itimerspec`.
    struct Itimerspec: 32 {
        0 interval: Timespec,
        16 value: Timespec,
    }

    /// `struct itimerval`.
    struct Itimerval: 32 {
        0 interval: Timeval,
        16 value: Timeval,
    }

    /// `struct utimbuf`.
    struct Utimbuf: 16 {
        0 actime: i64,
        8 modtime: i64,
    }

    /// `struct tms`: clock ticks of 1/100 s.
    struct Tms: 32 {
        0 utime: i64,
        8 stime: i64,
        16 cutime: i64,
        24 cstime: i64,
    }

    /// `struct rusage`.
    struct Rusage: 144 {
        0 utime: Timeval,
        16 stime: Timeval,
        /// KiB.
        32 maxrss: i64,
        40 ixrss: i64,
        48 idrss: i64,
        56 isrss: i64,
        64 minflt: i64,
        72 majflt: i64,
        80 nswap: i64,
        /// Blocks of 512 bytes.
        88 inblock: i64,
        96 oublock: i64,
        104 msgsnd: i64,
        112 msgrcv: i64,
        120 nsignals: i64,
        128 nvcsw: i64,
        136 nivcsw: i64,
    }

    /// `struct timex` (`__kernel_timex`), of `adjtimex` and `clock_adjtime`.
    struct Timex: 208 {
        0 modes: TimexModes,
        4 pad0: u32,
        8 offset: i64,
        16 freq: i64,
        24 maxerror: i64,
        32 esterror: i64,
        40 status: TimexStatus,
        44 pad1: u32,
        48 constant: i64,
        56 precision: i64,
        64 tolerance: i64,
        72 time: Timeval,
        88 tick: i64,
        96 ppsfreq: i64,
        104 jitter: i64,
        112 shift: i32,
        116 pad2: u32,
        120 stabil: i64,
        128 jitcnt: i64,
        136 calcnt: i64,
        144 errcnt: i64,
        152 stbcnt: i64,
        160 tai: i32,
        164 reserved: [u32; 11],
    }

    /// `struct sigevent` (`asm-generic/siginfo.h`), of `timer_create` and `mq_notify`.
    struct Sigevent: 64 {
        0 value: u64,
        8 signo: i32,
        12 notify: SigevNotify,
        /// With `SIGEV_THREAD_ID`: the thread.
        16 tid: i32,
        20 pad: [u32; 11],
    }
}

/// Nanoseconds in a second.
pub const NSEC_PER_SEC: u64 = 1_000_000_000;

/// Clock ticks in a second, as `times` and `/proc/PID/stat` count (`USER_HZ`).
pub const USER_HZ: u64 = 100;

impl Timespec {
    /// In `utimensat`: the present time.
    pub const UTIME_NOW: i64 = 0x3fff_ffff;
    /// In `utimensat`: leave it as it is.
    pub const UTIME_OMIT: i64 = 0x3fff_fffe;

    /// A span of this many nanoseconds.
    pub const fn from_nanos(nanos: u64) -> Timespec {
        Timespec { sec: (nanos / NSEC_PER_SEC).cast_signed(), nsec: (nanos % NSEC_PER_SEC).cast_signed() }
    }

    /// Whether Linux takes it as a time (`timespec64_valid`): not negative, nanoseconds in range.
    pub const fn is_valid(self) -> bool {
        self.sec >= 0 && self.nsec >= 0 && self.nsec < NSEC_PER_SEC.cast_signed()
    }

    /// In nanoseconds, the longest span of 64 signed bits where it is longer (`timespec64_to_ktime`);
    /// `None` where it is not valid.
    pub const fn to_nanos(self) -> Option<u64> {
        if !self.is_valid() {
            return None;
        }
        let seconds = self.sec.cast_unsigned().saturating_mul(NSEC_PER_SEC);
        let nanos = seconds.saturating_add(self.nsec.cast_unsigned());
        Some(if nanos > i64::MAX as u64 { i64::MAX as u64 } else { nanos })
    }
}

impl Timeval {
    /// A span of this many nanoseconds, cut to microseconds.
    pub const fn from_nanos(nanos: u64) -> Timeval {
        let usec = (nanos % NSEC_PER_SEC) / 1000;
        Timeval { sec: (nanos / NSEC_PER_SEC).cast_signed(), usec: usec.cast_signed() }
    }

    /// Whether Linux takes it as a time: not negative, microseconds in range.
    pub const fn is_valid(self) -> bool {
        self.sec >= 0 && self.usec >= 0 && self.usec < 1_000_000
    }

    /// In nanoseconds, as [`Timespec::to_nanos`] does it.
    pub const fn to_nanos(self) -> Option<u64> {
        match self.is_valid() {
            true => Timespec { sec: self.sec, nsec: self.usec * 1000 }.to_nanos(),
            false => None,
        }
    }
}

names! {
    /// A clock. Negative numbers are a process's or thread's CPU clock or a device's
    /// (`CPUCLOCK_*`, [`Clock::cpu_clock`]).
    Clock: i32, "CLOCK_" {
        REALTIME = 0;
        MONOTONIC = 1;
        PROCESS_CPUTIME_ID = 2;
        THREAD_CPUTIME_ID = 3;
        MONOTONIC_RAW = 4;
        REALTIME_COARSE = 5;
        MONOTONIC_COARSE = 6;
        BOOTTIME = 7;
        REALTIME_ALARM = 8;
        BOOTTIME_ALARM = 9;
        SGI_CYCLE = 10;
        TAI = 11;
    }

    /// Which interval timer.
    ItimerWhich: i32, "ITIMER_" {
        REAL = 0;
        VIRTUAL = 1;
        PROF = 2;
    }

    /// How a timer or queue notifies.
    SigevNotify: i32, "SIGEV_" {
        SIGNAL = 0;
        NONE = 1;
        THREAD = 2;
        THREAD_ID = 4;
    }

    /// Whose use `getrusage` counts.
    RusageWho: i32, "RUSAGE_" {
        SELF = 0, "RUSAGE_SELF";
        CHILDREN = -1;
        BOTH = -2;
        THREAD = 1;
    }
}

/// A CPU clock that a negative [`Clock`] names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuClock {
    /// The process or thread; 0 is the caller.
    pub pid: i32,
    /// Whether it is a thread's.
    pub per_thread: bool,
    /// `CPUCLOCK_PROF` 0, `CPUCLOCK_VIRT` 1, `CPUCLOCK_SCHED` 2, and `CLOCKFD` 3, a device's.
    pub which: u8,
}

impl Clock {
    /// The CPU clock that this names; `None` for clocks that are not negative.
    pub const fn cpu_clock(self) -> Option<CpuClock> {
        if self.0 >= 0 {
            return None;
        }
        Some(CpuClock {
            pid: !(self.0 >> 3),
            per_thread: self.0 & 4 != 0,
            which: (self.0.cast_unsigned() & 3) as u8,
        })
    }
}

flags! {
    /// Flags of `clock_nanosleep`, `timer_settime` (`TIMER_ABSTIME`).
    TimerFlags: u32, "TIMER_" {
        ABSTIME = 1;
    }

    /// Flags of `timerfd_create`.
    TimerfdFlags: u32, "TFD_" {
        NONBLOCK = 0o4000;
        CLOEXEC = 0o2000000;
    }

    /// Flags of `timerfd_settime`.
    TimerfdSettimeFlags: u32, "TFD_TIMER_" {
        ABSTIME = 1;
        CANCEL_ON_SET = 2;
    }

    /// What `adjtimex` sets.
    TimexModes: u32, "ADJ_" {
        OFFSET_SS_READ = 0xa001;
        OFFSET_SINGLESHOT = 0x8001;
        OFFSET = 0x1;
        FREQUENCY = 0x2;
        MAXERROR = 0x4;
        ESTERROR = 0x8;
        STATUS = 0x10;
        TIMECONST = 0x20;
        TAI = 0x80;
        SETOFFSET = 0x100;
        MICRO = 0x1000;
        NANO = 0x2000;
        TICK = 0x4000;
    }

    /// `status` of [`Timex`].
    TimexStatus: u32, "STA_" {
        PLL = 0x1;
        PPSFREQ = 0x2;
        PPSTIME = 0x4;
        FLL = 0x8;
        INS = 0x10;
        DEL = 0x20;
        UNSYNC = 0x40;
        FREQHOLD = 0x80;
        PPSSIGNAL = 0x100;
        PPSJITTER = 0x200;
        PPSWANDER = 0x400;
        PPSERROR = 0x800;
        CLOCKERR = 0x1000;
        NANO = 0x2000;
        MODE = 0x4000;
        CLK = 0x8000;
    }
}

names! {
    /// What `adjtimex` returns.
    TimexState: i32, "TIME_" {
        OK = 0;
        INS = 1;
        DEL = 2;
        OOP = 3;
        WAIT = 4;
        ERROR = 5;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_saturate_and_bad_ones_are_refused() {
        assert_eq!(Timespec { sec: 1, nsec: 5 }.to_nanos(), Some(1_000_000_005));
        assert_eq!(Timespec { sec: i64::MAX, nsec: 0 }.to_nanos(), Some(i64::MAX as u64));
        assert_eq!(Timespec { sec: 0, nsec: 1_000_000_000 }.to_nanos(), None);
        assert_eq!(Timespec { sec: -1, nsec: 0 }.to_nanos(), None);
        assert_eq!(Timeval { sec: 0, usec: 1_000_000 }.to_nanos(), None);
        assert_eq!(Timespec::from_nanos(1_500_000_000), Timespec { sec: 1, nsec: 500_000_000 });
    }

    #[test]
    fn negative_clocks_name_a_process_or_thread() {
        // clock_getcpuclockid(1234): MAKE_PROCESS_CPUCLOCK(pid, CPUCLOCK_SCHED).
        let clock = Clock((!1234 << 3) | 2).cpu_clock();
        assert_eq!(clock, Some(CpuClock { pid: 1234, per_thread: false, which: 2 }));
        assert_eq!(Clock(1).cpu_clock(), None);
    }
}
