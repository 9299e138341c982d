//! Ranges of record locks.

use abi::Errno;
use sync::SysResult;

/// Bytes from `start` to `end`, both inclusive; `end` at the largest offset means "and all that may come".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LockRange {
    start: i64,
    end: i64,
}

impl LockRange {
    /// From `struct flock`: `start` relative to `base`; `len` 0 is to the end, negative lies before `start` (Linux:
    /// `flock_to_posix_lock`).
    pub fn new(base: i64, start: i64, len: i64) -> SysResult<LockRange> {
        let start = base.checked_add(start).ok_or(Errno::EOVERFLOW)?;
        if start < 0 {
            return Err(Errno::EINVAL.into());
        }
        let range = if len > 0 {
            let end = start.checked_add(len.saturating_sub(1)).ok_or(Errno::EOVERFLOW)?;
            LockRange { start, end }
        } else if len < 0 {
            let first = start.checked_add(len).filter(|first| *first >= 0).ok_or(Errno::EINVAL)?;
            LockRange { start: first, end: start.saturating_sub(1) }
        } else {
            LockRange { start, end: i64::MAX }
        };
        Ok(range)
    }

    pub(super) fn between(start: i64, end: i64) -> Option<LockRange> {
        (start <= end).then_some(LockRange { start, end })
    }

    pub fn start(self) -> i64 {
        self.start
    }

    /// The last byte.
    pub fn end(self) -> i64 {
        self.end
    }

    /// As `l_len` gives it: 0 for "to the end".
    pub fn len(self) -> i64 {
        if self.end == i64::MAX { 0 } else { self.end.saturating_sub(self.start).saturating_add(1) }
    }

    /// A range has one byte at least.
    pub fn is_empty(self) -> bool {
        false
    }

    pub(super) fn overlaps(self, other: LockRange) -> bool {
        self.start <= other.end && other.start <= self.end
    }

    /// Whether they overlap or lie side by side.
    pub(super) fn touches(self, other: LockRange) -> bool {
        self.start <= other.end.saturating_add(1) && other.start <= self.end.saturating_add(1)
    }

    pub(super) fn union(self, other: LockRange) -> LockRange {
        LockRange { start: self.start.min(other.start), end: self.end.max(other.end) }
    }

    /// What is left of it before and behind `cut`.
    pub(super) fn without(self, cut: LockRange) -> [Option<LockRange>; 2] {
        [
            LockRange::between(self.start, self.end.min(cut.start.saturating_sub(1)))
                .filter(|_| cut.start > 0),
            LockRange::between(self.start.max(cut.end.saturating_add(1)), self.end)
                .filter(|_| cut.end < i64::MAX),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bounds(base: i64, start: i64, len: i64) -> Result<(i64, i64), Errno> {
        LockRange::new(base, start, len).map(|r| (r.start, r.end)).map_err(|e| e.errno().unwrap())
    }

    #[test]
    fn flock_structures_mean_what_linux_says() {
        assert_eq!(bounds(0, 10, 5), Ok((10, 14)));
        assert_eq!(bounds(100, -10, 0), Ok((90, i64::MAX)));
        assert_eq!(bounds(0, 10, -10), Ok((0, 9)));
        assert_eq!(bounds(0, 10, -11), Err(Errno::EINVAL));
        assert_eq!(bounds(0, -1, 5), Err(Errno::EINVAL));
        assert_eq!(bounds(0, i64::MAX, 1), Ok((i64::MAX, i64::MAX)));
        assert_eq!(bounds(0, i64::MAX, 2), Err(Errno::EOVERFLOW));
        assert_eq!(bounds(1, i64::MAX, 1), Err(Errno::EOVERFLOW));
        assert_eq!(bounds(0, 5, i64::MIN), Err(Errno::EINVAL));
    }
}
