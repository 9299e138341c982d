//! Copies to and from guest memory.

use abi::{Errno, GUEST_TOP, PAGE_SIZE, UserAddr};
use platform::{Event, GuestRange, Reach};
use smallvec::SmallVec;
use sync::SysResult;
use vfs::{UserRead, UserWrite};
use zerocopy::{FromBytes, Immutable, IntoBytes};

use crate::mm::{Backing, Mm, VmaFlags};

/// Bytes read at a time when looking for a string's end.
const STRING_CHUNK: usize = 256;

impl Mm {
    /// Copies `into.len()` bytes from the guest. `EFAULT` unless all of them are there.
    pub fn read_bytes(&self, from: UserAddr, into: &mut [u8]) -> SysResult<()> {
        let range = GuestRange { start: from, len: into.len() };
        let wanted = into.len();
        if self.copy_in(&[range], into) == wanted { Ok(()) } else { Err(Errno::EFAULT.into()) }
    }

    /// Copies `bytes` to the guest. `EFAULT` unless all fit; those before the fault are written.
    pub fn write_bytes(&self, to: UserAddr, bytes: &[u8]) -> SysResult<()> {
        let range = GuestRange { start: to, len: bytes.len() };
        if self.copy_out(bytes, &[range]) == bytes.len() { Ok(()) } else { Err(Errno::EFAULT.into()) }
    }

    /// Reads a value.
    pub fn read<T: FromBytes + IntoBytes>(&self, from: UserAddr) -> SysResult<T> {
        let mut value = T::new_zeroed();
        self.read_bytes(from, value.as_mut_bytes())?;
        Ok(value)
    }

    /// Writes a value.
    pub fn write<T: IntoBytes + Immutable>(&self, to: UserAddr, value: &T) -> SysResult<()> {
        self.write_bytes(to, value.as_bytes())
    }

    /// Reads a string without its zero byte. `too_long` if there is none within `limit` bytes.
    pub fn read_string(&self, from: UserAddr, limit: usize, too_long: Errno) -> SysResult<Vec<u8>> {
        let mut string = Vec::new();
        if from.0 < GUEST_TOP && self.space.read_string(from, &mut string) && string.len() < limit {
            crate::stats::count_copy(Event::CopyIn, Event::BytesIn, string.len());
            return Ok(string);
        }
        string.clear();
        let mut chunk = [0; STRING_CHUNK];
        while string.len() < limit {
            let at = from.checked_add(string.len() as u64).ok_or(Errno::EFAULT)?;
            // Not across a page: what lies behind the string may not be mapped.
            let to_page_end = usize::try_from(PAGE_SIZE - at.0 % PAGE_SIZE).unwrap_or(STRING_CHUNK);
            let count = STRING_CHUNK.min(to_page_end).min(limit - string.len());
            let part = chunk.get_mut(..count).ok_or(Errno::EFAULT)?;
            self.read_bytes(at, part)?;
            match part.iter().position(|byte| *byte == 0) {
                Some(end) => {
                    string.extend_from_slice(part.get(..end).unwrap_or(&[]));
                    return Ok(string);
                }
                None => string.extend_from_slice(part),
            }
        }
        Err(too_long.into())
    }

    /// A path. `ENAMETOOLONG` beyond 4095 bytes.
    pub fn read_path(&self, from: UserAddr) -> SysResult<Vec<u8>> {
        self.read_string(from, 4096, Errno::ENAMETOOLONG)
    }

    /// Copies ranges of the guest's to `into`; returns the bytes before the first fault.
    pub fn copy_in(&self, from: &[GuestRange], into: &mut [u8]) -> usize {
        sync::assert_no_lock_held();
        let from = in_range(from);
        let mut done = self.space.read(&from, into, Reach::Mapped);
        while done < into.len() {
            let Some(rest) = self.growing_part(&from, done) else { break };
            let Some(part) = into.get_mut(done..done + rest.len) else { break };
            if self.space.read(&[rest], part, Reach::Growing) < rest.len {
                break;
            }
            done += rest.len;
            let left = skip(&from, done);
            done += self.space.read(&left, into.get_mut(done..).unwrap_or(&mut []), Reach::Mapped);
        }
        crate::stats::count_copy(Event::CopyIn, Event::BytesIn, done);
        done
    }

    /// Copies `bytes` to ranges of the guest's; returns the bytes before the first fault.
    pub fn copy_out(&self, bytes: &[u8], to: &[GuestRange]) -> usize {
        sync::assert_no_lock_held();
        let to = in_range(to);
        let later = |range: &GuestRange| {
            range.len == bytes.len() && self.space.write_later(bytes, *range, &|| self.is_plain(range))
        };
        let mut done = match to.as_slice() {
            [range] if later(range) => bytes.len(),
            _ => self.space.write(bytes, &to, Reach::Mapped),
        };
        while done < bytes.len() {
            let Some(rest) = self.growing_part(&to, done) else { break };
            let Some(part) = bytes.get(done..done + rest.len) else { break };
            if self.space.write(part, &[rest], Reach::Growing) < rest.len {
                break;
            }
            done += rest.len;
            done += self.space.write(bytes.get(done..).unwrap_or(&[]), &skip(&to, done), Reach::Mapped);
        }
        crate::stats::count_copy(Event::CopyOut, Event::BytesOut, done);
        done
    }

    /// Whether a range is memory of the process's own that can be written.
    fn is_plain(&self, range: &GuestRange) -> bool {
        let record = self.record();
        record.vmas.find(range.start.0).is_some_and(|vma| {
            vma.prot.contains(abi::Prot::WRITE)
                && matches!(vma.backing, Backing::Anonymous)
                && range.start.0 + range.len as u64 <= vma.end
        })
    }

    /// The page at which a copy stopped, as far as it is asked for, if it lies where a stack may grow to
    /// (INVARIANTS 2.1): `process_vm_*` does not grow stacks, an access by the guest would.
    fn growing_part(&self, ranges: &[GuestRange], done: usize) -> Option<GuestRange> {
        let rest = *skip(ranges, done).first()?;
        let page_end = rest.start.0 / PAGE_SIZE * PAGE_SIZE + PAGE_SIZE;
        let len = rest.len.min(usize::try_from(page_end - rest.start.0).ok()?);
        let record = self.record();
        let above = record.vmas.first_above(rest.start.0)?;
        let is_stack = above.flags.contains(VmaFlags::GROWSDOWN) && above.prot.contains(abi::Prot::WRITE);
        // The host would ask for the kernel's own limit.
        let page = rest.start.0 / PAGE_SIZE * PAGE_SIZE;
        let is_stack = is_stack && above.end - page <= self.stack_limit();
        is_stack.then_some(GuestRange { start: rest.start, len })
    }
}

/// The ranges up to the first that leaves the guest's range.
fn in_range(ranges: &[GuestRange]) -> SmallVec<[GuestRange; 8]> {
    ranges.iter().copied().take_while(|range| range.start.in_guest_range(range.len as u64)).collect()
}

/// The ranges behind their first `bytes` bytes.
pub(super) fn skip(ranges: &[GuestRange], mut bytes: usize) -> SmallVec<[GuestRange; 8]> {
    let mut rest = SmallVec::new();
    for range in ranges {
        let skipped = bytes.min(range.len);
        bytes -= skipped;
        if skipped < range.len {
            rest.push(GuestRange {
                start: UserAddr(range.start.0 + skipped as u64),
                len: range.len - skipped,
            });
        }
    }
    rest
}

/// Guest buffers that a read fills.
pub struct UserSink<'a> {
    mm: &'a Mm,
    ranges: SmallVec<[GuestRange; 8]>,
    filled: usize,
}

/// Guest buffers that a write takes from.
pub struct UserSource<'a> {
    mm: &'a Mm,
    ranges: SmallVec<[GuestRange; 8]>,
    taken: usize,
}

fn total(ranges: &[GuestRange]) -> usize {
    ranges.iter().map(|range| range.len).sum()
}

impl<'a> UserSink<'a> {
    pub fn new(mm: &'a Mm, ranges: &[GuestRange]) -> UserSink<'a> {
        UserSink { mm, ranges: ranges.into(), filled: 0 }
    }

    pub fn one(mm: &'a Mm, start: UserAddr, len: usize) -> UserSink<'a> {
        UserSink::new(mm, &[GuestRange { start, len }])
    }
}

impl UserWrite for UserSink<'_> {
    fn room(&self) -> usize {
        total(&self.ranges).saturating_sub(self.filled)
    }

    fn put(&mut self, bytes: &[u8]) -> usize {
        let bytes = bytes.get(..self.room()).unwrap_or(bytes);
        let done = self.mm.copy_out(bytes, &cut(skip(&self.ranges, self.filled), bytes.len()));
        self.filled += done;
        done
    }
}

impl<'a> UserSource<'a> {
    pub fn new(mm: &'a Mm, ranges: &[GuestRange]) -> UserSource<'a> {
        UserSource { mm, ranges: ranges.into(), taken: 0 }
    }

    pub fn one(mm: &'a Mm, start: UserAddr, len: usize) -> UserSource<'a> {
        UserSource::new(mm, &[GuestRange { start, len }])
    }
}

impl UserRead for UserSource<'_> {
    fn left(&self) -> usize {
        total(&self.ranges).saturating_sub(self.taken)
    }

    fn take(&mut self, into: &mut [u8]) -> usize {
        let count = into.len().min(self.left());
        let Some(into) = into.get_mut(..count) else { return 0 };
        let done = self.mm.copy_in(&cut(skip(&self.ranges, self.taken), count), into);
        self.taken += done;
        done
    }

    fn untake(&mut self, bytes: usize) {
        self.taken = self.taken.saturating_sub(bytes);
    }
}

/// The first `bytes` bytes of the ranges.
fn cut(mut ranges: SmallVec<[GuestRange; 8]>, mut bytes: usize) -> SmallVec<[GuestRange; 8]> {
    for range in &mut ranges {
        range.len = range.len.min(bytes);
        bytes -= range.len;
    }
    ranges.retain(|range| range.len > 0);
    ranges
}
