//! When a timer goes off.

use std::time::Duration;

use abi::{Itimerspec, Timespec};
use sync::SysResult;

use super::{duration, timespec};

/// A timer's next time and its period, on whatever clock it runs by.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Schedule {
    /// `None`: not armed.
    next: Option<Duration>,
    /// Zero: once.
    interval: Duration,
}

/// A guest's setting. Decoded before anything is changed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setting {
    value: Duration,
    interval: Duration,
    absolute: bool,
}

impl Setting {
    /// `EINVAL` for times that are none.
    pub(crate) fn new(setting: &Itimerspec, absolute: bool) -> SysResult<Setting> {
        Ok(Setting { value: duration(setting.value)?, interval: duration(setting.interval)?, absolute })
    }

    pub(crate) fn is_absolute(&self) -> bool {
        self.absolute
    }

    /// So long from now on, and then with this period.
    pub(crate) fn relative(value: Duration, interval: Duration) -> Setting {
        Setting { value, interval, absolute: false }
    }

    /// The schedule when the clock shows `now`. A zero value disarms.
    pub(crate) fn schedule(&self, now: Duration) -> Schedule {
        let base = if self.absolute { Duration::ZERO } else { now };
        let next = if self.value.is_zero() { None } else { Some(base.saturating_add(self.value)) };
        Schedule { next, interval: self.interval }
    }
}

impl Schedule {
    pub(crate) fn is_periodic(&self) -> bool {
        !self.interval.is_zero()
    }

    /// The time left, zero when it is due; `None`: not armed.
    pub(crate) fn left(&self, now: Duration) -> Option<Duration> {
        Some(self.next?.saturating_sub(now))
    }

    pub(crate) fn is_due(&self, now: Duration) -> bool {
        self.left(now) == Some(Duration::ZERO)
    }

    /// How often it has gone off by now; its next time lies in the future then, or there is none.
    pub(crate) fn advance(&mut self, now: Duration) -> u64 {
        let Some(next) = self.next else { return 0 };
        let Some(late) = now.checked_sub(next) else { return 0 };
        if self.interval.is_zero() {
            self.next = None;
            return 1;
        }
        let periods = late.as_nanos() / self.interval.as_nanos() + 1;
        self.next = Some(next.saturating_add(nanos(periods.saturating_mul(self.interval.as_nanos()))));
        u64::try_from(periods).unwrap_or(u64::MAX)
    }

    /// As the guest is told. Of a periodic one that is due, the time after next.
    pub(crate) fn show(mut self, now: Duration) -> Itimerspec {
        if self.is_periodic() {
            self.advance(now);
        }
        // At least a nanosecond: zero would mean that it is not armed.
        let left = self.left(now).map_or(Duration::ZERO, |left| left.max(Duration::from_nanos(1)));
        Itimerspec { value: timespec(left), ..self.show_disarmed() }
    }

    /// As the guest is told while it waits for its signal to be taken.
    pub(crate) fn show_disarmed(&self) -> Itimerspec {
        Itimerspec { interval: timespec(self.interval), value: Timespec::default() }
    }
}

/// A span of so many nanoseconds, as far as there are such.
fn nanos(count: u128) -> Duration {
    Duration::from_nanos(u64::try_from(count).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(count: u64) -> Duration {
        Duration::from_millis(count)
    }

    #[test]
    fn expiries_are_counted_and_the_next_is_ahead() {
        let mut schedule = Setting::relative(ms(10), ms(10)).schedule(ms(1000));
        assert_eq!((schedule.advance(ms(1009)), schedule.left(ms(1009))), (0, Some(ms(1))));
        assert_eq!((schedule.advance(ms(1010)), schedule.left(ms(1010))), (1, Some(ms(10))));
        assert_eq!((schedule.advance(ms(1055)), schedule.left(ms(1055))), (4, Some(ms(5))));
        let mut once = Setting::relative(ms(10), ms(0)).schedule(ms(0));
        assert_eq!((once.advance(ms(500)), once.left(ms(500)), once.advance(ms(600))), (1, None, 0));
    }

    #[test]
    fn absolute_times_and_disarming() {
        let spec = |value: i64, interval: i64| Itimerspec {
            value: Timespec { sec: value, nsec: 0 },
            interval: Timespec { sec: interval, nsec: 0 },
        };
        let past = Setting::new(&spec(1, 0), true).unwrap().schedule(ms(5000));
        assert!(past.is_due(ms(5000)));
        let none = Setting::new(&spec(0, 5), false).unwrap().schedule(ms(5000));
        assert_eq!((none.left(ms(0)), none.show(ms(0)).interval.sec), (None, 5));
        assert!(Setting::new(&spec(-1, 0), false).is_err());
        // A period beyond all bounds does not overflow.
        let mut far = Setting::new(&spec(i64::MAX, i64::MAX), false).unwrap().schedule(ms(1));
        assert_eq!(far.advance(ms(u64::MAX / 2)), 0);
    }
}
