//! `/proc/PID/mem`: a process's memory as a file.

use std::any::Any;
use std::sync::Arc;

use abi::{Errno, UserAddr};
use kernel::mm::{Access, GuestRange, Mm};
use sync::{Mutex, SysResult, order};
use vfs::{Caller, FileDescription, FileOps, Seek, UserRead, UserWrite};

/// Bytes moved at a time.
const CHUNK: usize = 64 << 10;

/// The memory of the image that ran when it was opened.
pub(crate) struct MemoryFile {
    mm: Arc<Mm>,
    offset: Mutex<order::File, u64>,
}

impl MemoryFile {
    pub(crate) fn new(mm: Arc<Mm>) -> MemoryFile {
        MemoryFile { mm, offset: Mutex::new(0) }
    }

    fn range(at: u64, done: usize, len: usize) -> Option<GuestRange> {
        let start = UserAddr(at.checked_add(done as u64)?);
        start.in_guest_range(len as u64).then_some(GuestRange { start, len })
    }
}

impl FileOps for MemoryFile {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn read(&self, file: &FileDescription, caller: &dyn Caller, to: &mut dyn UserWrite) -> SysResult<usize> {
        let at = *self.offset.lock();
        let count = self.read_at(file, caller, at, to)?;
        *self.offset.lock() = at.saturating_add(count as u64);
        Ok(count)
    }

    /// Up to the first byte that cannot be read; `EIO` if that is the first of all. An image that has gone is empty.
    fn read_at(
        &self,
        _: &FileDescription,
        _: &dyn Caller,
        offset: u64,
        to: &mut dyn UserWrite,
    ) -> SysResult<usize> {
        if self.mm.users() == 0 {
            return Ok(0);
        }
        let mut done = 0;
        let mut buffer = vec![0; to.room().min(CHUNK)];
        while to.room() > 0 {
            let len = to.room().min(CHUNK);
            let part = buffer.get_mut(..len).unwrap_or(&mut []);
            let found = MemoryFile::range(offset, done, len)
                .map_or(0, |range| self.mm.inspect(&[range], part, Access::Forced));
            if found == 0 {
                return if done > 0 { Ok(done) } else { Err(Errno::EIO.into()) };
            }
            let put = to.put(part.get(..found).unwrap_or(&[]));
            done += put;
            if put < found {
                return if done > 0 { Ok(done) } else { Err(Errno::EFAULT.into()) };
            }
            if found < len {
                break;
            }
        }
        Ok(done)
    }

    fn write(
        &self,
        file: &FileDescription,
        caller: &dyn Caller,
        from: &mut dyn UserRead,
    ) -> SysResult<usize> {
        let at = *self.offset.lock();
        let count = self.write_at(file, caller, at, from)?;
        *self.offset.lock() = at.saturating_add(count as u64);
        Ok(count)
    }

    fn write_at(
        &self,
        _: &FileDescription,
        _: &dyn Caller,
        offset: u64,
        from: &mut dyn UserRead,
    ) -> SysResult<usize> {
        if self.mm.users() == 0 {
            return Ok(0);
        }
        let mut done = 0;
        let mut buffer = vec![0; from.left().min(CHUNK)];
        while from.left() > 0 {
            let len = from.left().min(CHUNK);
            let taken = from.take(buffer.get_mut(..len).unwrap_or(&mut []));
            let bytes = buffer.get(..taken).unwrap_or(&[]);
            if taken == 0 {
                return if done > 0 { Ok(done) } else { Err(Errno::EFAULT.into()) };
            }
            let put = MemoryFile::range(offset, done, taken)
                .map_or(0, |range| self.mm.alter(bytes, &[range], Access::Forced));
            done += put;
            if put < taken {
                from.untake(taken - put);
                return if done > 0 { Ok(done) } else { Err(Errno::EIO.into()) };
            }
        }
        Ok(done)
    }

    /// Any address is a position (Linux: `mem_lseek`); there is no end to count from.
    fn seek(&self, _: &FileDescription, to: Seek) -> SysResult<u64> {
        let mut offset = self.offset.lock();
        *offset = match to {
            Seek::Set(at) => at.cast_unsigned(),
            Seek::Current(by) => offset.wrapping_add_signed(by),
            _ => return Err(Errno::EINVAL.into()),
        };
        Ok(*offset)
    }
}
