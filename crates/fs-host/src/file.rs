//! Open regular files. The host's open file description is the truth: offset, `O_APPEND`, size and times live
//! there, and nothing of it is kept here.

use std::any::Any;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use abi::{Errno, MAX_RW_COUNT, OpenFlags};
use rustix::fs::{FallocateFlags, OFlags, SeekFrom};
use sync::SysResult;
use vfs::{Attributes, Caller, FileDescription, FileOps, HandOut, Inode, Mapping, Seek, UserRead, UserWrite};

use crate::buffer::{CHUNK, with_buffer};
use crate::error::{errno, retry};
use crate::node::HostNode;
use crate::stat::HostStat;

/// An open regular file of the host.
pub(crate) struct HostFile {
    file: Arc<OwnedFd>,
    inode: Arc<Inode>,
}

/// Where a transfer goes on: at the description's offset, or at one of its own.
#[derive(Clone, Copy)]
enum At {
    Offset,
    Position(u64),
}

impl At {
    fn moved_by(self, bytes: usize) -> At {
        match self {
            At::Offset => At::Offset,
            At::Position(at) => At::Position(at.saturating_add(bytes as u64)),
        }
    }
}

impl HostFile {
    pub(crate) fn new(file: Arc<OwnedFd>, inode: Arc<Inode>) -> HostFile {
        HostFile { file, inode }
    }

    fn read_from(&self, mut at: At, to: &mut dyn UserWrite) -> SysResult<usize> {
        let total = to.room().min(MAX_RW_COUNT);
        with_buffer(total.min(CHUNK), |buffer| {
            let mut done = 0;
            loop {
                let want = (total - done).min(buffer.len());
                let Some(chunk) = buffer.get_mut(..want) else { return Ok(done) };
                let got = match self.host_read(at, chunk) {
                    Ok(got) => got,
                    Err(_) if done > 0 => return Ok(done),
                    Err(error) => return Err(errno(error)),
                };
                let put = to.put(chunk.get(..got).unwrap_or_default());
                done += put;
                if put < got {
                    self.give_back(at, got - put);
                    return if done > 0 { Ok(done) } else { Err(Errno::EFAULT.into()) };
                }
                if got < want || done >= total {
                    return Ok(done);
                }
                at = at.moved_by(got);
            }
        })
    }

    fn host_read(&self, at: At, into: &mut [u8]) -> rustix::io::Result<usize> {
        retry(|| match at {
            At::Offset => rustix::io::read(&self.file, &mut *into),
            At::Position(at) => rustix::io::pread(&self.file, &mut *into, at),
        })
    }

    /// Moves the offset back over bytes that the guest's memory did not take.
    fn give_back(&self, at: At, bytes: usize) {
        if let (At::Offset, Ok(bytes)) = (at, i64::try_from(bytes)) {
            // A regular file that could be read can be seeked in, to where it was.
            let _ = rustix::fs::seek(&self.file, SeekFrom::Current(-bytes));
        }
    }

    fn write_to(
        &self,
        file: &FileDescription,
        caller: &dyn Caller,
        mut at: At,
        from: &mut dyn UserRead,
    ) -> SysResult<usize> {
        let wanted = from.left().min(MAX_RW_COUNT);
        let total = self.within_limit(file, caller, at, wanted)?;
        self.node()?.before_write(&self.inode, caller)?;
        with_buffer(total.min(CHUNK), |buffer| {
            let mut done = 0;
            loop {
                let want = (total - done).min(buffer.len());
                let Some(chunk) = buffer.get_mut(..want) else { return Ok(done) };
                let got = from.take(chunk);
                if got == 0 && want > 0 {
                    return if done > 0 { Ok(done) } else { Err(Errno::EFAULT.into()) };
                }
                let wrote = match self.host_write(at, chunk.get(..got).unwrap_or_default()) {
                    Ok(wrote) => wrote,
                    Err(error) => {
                        from.untake(got);
                        return if done > 0 { Ok(done) } else { Err(errno(error)) };
                    }
                };
                from.untake(got - wrote);
                done += wrote;
                if wrote < want || done >= total {
                    return Ok(done);
                }
                at = at.moved_by(wrote);
            }
        })
    }

    fn host_write(&self, at: At, bytes: &[u8]) -> rustix::io::Result<usize> {
        retry(|| match at {
            At::Offset => rustix::io::write(&self.file, bytes),
            At::Position(at) => rustix::io::pwrite(&self.file, bytes, at),
        })
    }

    /// How much of `count` bytes the guest's RLIMIT_FSIZE lets be written (`generic_write_check_limits`).
    fn within_limit(
        &self,
        file: &FileDescription,
        caller: &dyn Caller,
        at: At,
        count: usize,
    ) -> SysResult<usize> {
        let limit = caller.file_size_limit();
        if limit >= i64::MAX.unsigned_abs() || count == 0 {
            return Ok(count);
        }
        let start = if file.flags().contains(OpenFlags::APPEND) {
            HostStat::of(&self.file).map_err(errno)?.size()
        } else {
            match at {
                At::Position(at) => at,
                At::Offset => rustix::fs::tell(&self.file).map_err(errno)?,
            }
        };
        match limit.checked_sub(start) {
            None | Some(0) => {
                caller.file_too_big();
                Err(Errno::EFBIG.into())
            }
            Some(room) => Ok(usize::try_from(room).unwrap_or(usize::MAX).min(count)),
        }
    }

    fn node(&self) -> SysResult<&HostNode> {
        self.inode.downcast::<HostNode>().ok_or(Errno::EIO.into())
    }
}

impl FileOps for HostFile {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn read(&self, _: &FileDescription, _: &dyn Caller, to: &mut dyn UserWrite) -> SysResult<usize> {
        self.read_from(At::Offset, to)
    }

    fn write(
        &self,
        file: &FileDescription,
        caller: &dyn Caller,
        from: &mut dyn UserRead,
    ) -> SysResult<usize> {
        self.write_to(file, caller, At::Offset, from)
    }

    fn read_at(
        &self,
        _: &FileDescription,
        _: &dyn Caller,
        offset: u64,
        to: &mut dyn UserWrite,
    ) -> SysResult<usize> {
        self.read_from(At::Position(offset), to)
    }

    fn write_at(
        &self,
        file: &FileDescription,
        caller: &dyn Caller,
        offset: u64,
        from: &mut dyn UserRead,
    ) -> SysResult<usize> {
        self.write_to(file, caller, At::Position(offset), from)
    }

    fn seek(&self, _: &FileDescription, to: Seek) -> SysResult<u64> {
        let unsigned = |at: i64, negative: Errno| u64::try_from(at).map_err(|_| negative);
        let to = match to {
            Seek::Set(at) => SeekFrom::Start(unsigned(at, Errno::EINVAL)?),
            Seek::Current(by) => SeekFrom::Current(by),
            Seek::End(by) => SeekFrom::End(by),
            Seek::Data(at) => SeekFrom::Data(unsigned(at, Errno::ENXIO)?),
            Seek::Hole(at) => SeekFrom::Hole(unsigned(at, Errno::ENXIO)?),
        };
        rustix::fs::seek(&self.file, to).map_err(errno)
    }

    fn attributes(&self) -> Option<SysResult<Attributes>> {
        let stat = HostStat::of(&self.file).map_err(errno);
        Some(stat.and_then(|stat| self.node()?.shown(&self.inode, &stat)))
    }

    fn truncate(&self, _: &FileDescription, caller: &dyn Caller, size: u64) -> SysResult<()> {
        if size > caller.file_size_limit() && size > HostStat::of(&self.file).map_err(errno)?.size() {
            caller.file_too_big();
            return Err(Errno::EFBIG.into());
        }
        self.node()?.before_write(&self.inode, caller)?;
        retry(|| rustix::fs::ftruncate(&self.file, size)).map_err(errno)
    }

    fn allocate(
        &self,
        _: &FileDescription,
        caller: &dyn Caller,
        mode: u32,
        offset: u64,
        len: u64,
    ) -> SysResult<()> {
        let mode = FallocateFlags::from_bits_retain(mode);
        if !mode.contains(FallocateFlags::KEEP_SIZE) && offset.saturating_add(len) > caller.file_size_limit()
        {
            caller.file_too_big();
            return Err(Errno::EFBIG.into());
        }
        self.node()?.before_write(&self.inode, caller)?;
        retry(|| rustix::fs::fallocate(&self.file, mode, offset, len)).map_err(errno)
    }

    fn sync(&self, data_only: bool) -> SysResult<()> {
        let synced = match data_only {
            true => retry(|| rustix::fs::fdatasync(&self.file)),
            false => retry(|| rustix::fs::fsync(&self.file)),
        };
        synced.map_err(errno)
    }

    fn mapping(&self, _: &FileDescription, _writable_shared: bool) -> SysResult<Mapping> {
        Ok(Mapping::Host(self.file.clone()))
    }

    fn flags_changed(&self, file: &FileDescription, changed: OpenFlags) -> SysResult<()> {
        let known = OpenFlags::APPEND | OpenFlags::DIRECT | OpenFlags::NOATIME;
        if !changed.intersects(known) {
            return Ok(());
        }
        let flags = (file.flags() & known).bits();
        // The host's description never blocks.
        let flags = OFlags::from_bits_retain(flags) | OFlags::NONBLOCK;
        rustix::fs::fcntl_setfl(&self.file, flags).map_err(errno)
    }

    /// Not from where a call may take as long as another machine or process likes: no kick ends it.
    fn hand_out(&self, _: &FileDescription, _: bool) -> Option<HandOut> {
        let stat = rustix::fs::fstatfs(&self.file).ok()?;
        let magic = u32::try_from(stat.f_type.cast_unsigned() & 0xffff_ffff).ok()?;
        let plain = crate::check::by_magic(magic) == crate::check::Verdict::Plain;
        plain.then(|| HandOut { file: self.file.clone(), may_write: true, budget: None })
    }
}
