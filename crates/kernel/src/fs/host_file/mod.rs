//! Descriptors that umlaut was started with: stdin, stdout, stderr when they are no terminal.
//!
//! [`HostFile`] is the file; what can block (pipes, sockets) is awaited by [`Stream`](stream::Stream), so that a
//! signal reaches a guest that waits for the host. The host's description, its offset and its flags are shared with
//! whoever started us: the offset is used as it is, the flags are never changed (INVARIANTS 4.6).

mod stream;

use std::any::Any;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;

use abi::{Errno, FcntlCmd, FileMode, FileType, Ioctl, MAX_RW_COUNT, OpenFlags, Timespec, UserAddr};
use rustix::fs::{FallocateFlags, SeekFrom};
use smallvec::{SmallVec, smallvec};
use sync::{SysResult, WaitQueue};
use vfs::{Attributes, Caller, FileDescription, FileOps, Mapping, Ready, Seek, UserRead, UserWrite};

use stream::Stream;

/// Bytes moved by one host call.
const CHUNK: usize = 64 << 10;

/// An open file of the host's that umlaut inherited.
pub struct HostFile {
    fd: Arc<OwnedFd>,
    /// `None`: it never blocks (regular files, /dev/null).
    stream: Option<Arc<Stream>>,
}

impl HostFile {
    pub fn new(fd: OwnedFd) -> HostFile {
        let fd = Arc::new(fd);
        HostFile { stream: Stream::watch(&fd).map(Arc::new), fd }
    }

    /// The same open file of the host's for another description of ours (`/proc/self/fd/0` was opened).
    pub fn share(&self) -> HostFile {
        HostFile { fd: self.fd.clone(), stream: self.stream.clone() }
    }

    /// A pipe of the host's, which has a size.
    pub fn is_pipe(&self) -> bool {
        rustix::fs::fstat(&self.fd).is_ok_and(|stat| stat.st_mode & 0o170_000 == 0o010_000)
    }

    fn is_regular(&self) -> bool {
        rustix::fs::fstat(&self.fd).is_ok_and(|stat| stat.st_mode & 0o170_000 == 0o100_000)
    }

    /// How much of `count` bytes RLIMIT_FSIZE lets be written (Linux: `generic_write_check_limits`).
    fn within_limit(
        &self,
        file: &FileDescription,
        caller: &dyn Caller,
        at: Option<u64>,
        count: usize,
    ) -> SysResult<usize> {
        let limit = caller.file_size_limit();
        if limit >= i64::MAX.unsigned_abs() || count == 0 || !self.is_regular() {
            return Ok(count);
        }
        let start = match at {
            _ if file.flags().contains(OpenFlags::APPEND) => {
                u64::try_from(rustix::fs::fstat(&self.fd).map_err(errno)?.st_size).unwrap_or(0)
            }
            Some(at) => at,
            None => rustix::fs::tell(&self.fd).map_err(errno)?,
        };
        match limit.checked_sub(start) {
            None | Some(0) => {
                caller.file_too_big();
                Err(Errno::EFBIG.into())
            }
            Some(room) => Ok(usize::try_from(room).unwrap_or(usize::MAX).min(count)),
        }
    }

    fn read_host(
        &self,
        file: &FileDescription,
        caller: &dyn Caller,
        at: Option<u64>,
        to: &mut dyn UserWrite,
    ) -> SysResult<usize> {
        let mut buffer = vec![0; to.room().min(CHUNK)];
        let mut done = 0;
        loop {
            let want = to.room().min(buffer.len());
            let chunk = buffer.get_mut(..want).unwrap_or_default();
            let got = match (at, &self.stream) {
                (Some(at), _) => {
                    retry(|| rustix::io::pread(&self.fd, &mut *chunk, at.saturating_add(done as u64)))
                        .map_err(|error| errno(error).into())
                }
                (None, Some(stream)) => stream.read(file, caller, chunk),
                (None, None) => {
                    retry(|| rustix::io::read(&self.fd, &mut *chunk)).map_err(|error| errno(error).into())
                }
            };
            let got = match got {
                Ok(got) => got,
                Err(_) if done > 0 => return Ok(done),
                Err(error) => return Err(error),
            };
            let put = to.put(chunk.get(..got).unwrap_or_default());
            done += put;
            if put < got && at.is_none() {
                self.put_back(chunk.get(put..got).unwrap_or_default());
            }
            if put < got && done == 0 {
                return Err(Errno::EFAULT.into());
            }
            // A stream gives what it has; a file goes on until its end.
            if self.stream.is_some() || put < got || got < want || to.room() == 0 || done >= MAX_RW_COUNT {
                return Ok(done);
            }
        }
    }

    /// What the guest's memory did not take is there for the next read (INVARIANTS 2.4).
    fn put_back(&self, bytes: &[u8]) {
        match &self.stream {
            Some(stream) => stream.put_back(bytes),
            None => {
                let back = i64::try_from(bytes.len()).unwrap_or(0);
                // A device that cannot seek has nothing to go back to.
                let _ = rustix::fs::seek(&self.fd, SeekFrom::Current(-back));
            }
        }
    }

    fn write_host(
        &self,
        file: &FileDescription,
        caller: &dyn Caller,
        at: Option<u64>,
        from: &mut dyn UserRead,
    ) -> SysResult<usize> {
        let total = self.within_limit(file, caller, at, from.left().min(MAX_RW_COUNT))?;
        let mut buffer = vec![0; total.min(CHUNK)];
        let mut done = 0;
        loop {
            let want = (total - done).min(buffer.len());
            let taken = from.take(buffer.get_mut(..want).unwrap_or_default());
            if taken == 0 && want > 0 {
                return if done > 0 { Ok(done) } else { Err(Errno::EFAULT.into()) };
            }
            let bytes = buffer.get(..taken).unwrap_or_default();
            let wrote = match (at, &self.stream) {
                (Some(at), _) => {
                    retry(|| rustix::io::pwrite(&self.fd, bytes, at.saturating_add(done as u64)))
                        .map_err(|error| errno(error).into())
                }
                (None, Some(stream)) => stream.write(file, caller, bytes),
                (None, None) => {
                    retry(|| rustix::io::write(&self.fd, bytes)).map_err(|error| errno(error).into())
                }
            };
            let wrote = match wrote {
                Ok(wrote) => wrote,
                Err(error) => {
                    from.untake(taken);
                    if error == Errno::EPIPE.into() {
                        caller.broken_pipe();
                    }
                    return if done > 0 { Ok(done) } else { Err(error) };
                }
            };
            from.untake(taken.saturating_sub(wrote));
            done += wrote;
            if wrote < taken || done >= total {
                return Ok(done);
            }
        }
    }
}

fn errno(error: rustix::io::Errno) -> Errno {
    Errno::from_raw(error.raw_os_error())
}

/// Host signals to our own threads are no reason for the guest to see EINTR.
fn retry<T>(mut call: impl FnMut() -> rustix::io::Result<T>) -> rustix::io::Result<T> {
    loop {
        match call() {
            Err(rustix::io::Errno::INTR) => {}
            result => return result,
        }
    }
}

impl FileOps for HostFile {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn read(&self, file: &FileDescription, caller: &dyn Caller, to: &mut dyn UserWrite) -> SysResult<usize> {
        self.read_host(file, caller, None, to)
    }

    fn write(
        &self,
        file: &FileDescription,
        caller: &dyn Caller,
        from: &mut dyn UserRead,
    ) -> SysResult<usize> {
        self.write_host(file, caller, None, from)
    }

    fn read_at(
        &self,
        file: &FileDescription,
        caller: &dyn Caller,
        offset: u64,
        to: &mut dyn UserWrite,
    ) -> SysResult<usize> {
        self.read_host(file, caller, Some(offset), to)
    }

    fn write_at(
        &self,
        file: &FileDescription,
        caller: &dyn Caller,
        offset: u64,
        from: &mut dyn UserRead,
    ) -> SysResult<usize> {
        self.write_host(file, caller, Some(offset), from)
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
        Ok(rustix::fs::seek(&self.fd, to).map_err(errno)?)
    }

    fn attributes(&self) -> Option<SysResult<Attributes>> {
        let stat = match rustix::fs::fstat(&self.fd) {
            Ok(stat) => stat,
            Err(error) => return Some(Err(errno(error).into())),
        };
        let kind = FileType(stat.st_mode & 0o170_000);
        let time = |seconds: i64, nanoseconds: u64| Timespec {
            sec: seconds,
            nsec: i64::try_from(nanoseconds).unwrap_or(0),
        };
        Some(Ok(Attributes {
            dev: stat.st_dev,
            ino: stat.st_ino,
            mode: FileMode::new(kind, stat.st_mode & 0o7777),
            nlink: stat.st_nlink,
            uid: 0,
            gid: 0,
            rdev: stat.st_rdev,
            size: u64::try_from(stat.st_size).unwrap_or(0),
            block_size: u64::try_from(stat.st_blksize).unwrap_or(4096),
            blocks: u64::try_from(stat.st_blocks).unwrap_or(0),
            atime: time(stat.st_atime, stat.st_atime_nsec),
            mtime: time(stat.st_mtime, stat.st_mtime_nsec),
            ctime: time(stat.st_ctime, stat.st_ctime_nsec),
            btime: None,
        }))
    }

    fn truncate(&self, _: &FileDescription, caller: &dyn Caller, size: u64) -> SysResult<()> {
        let now = u64::try_from(rustix::fs::fstat(&self.fd).map_err(errno)?.st_size).unwrap_or(0);
        if size > caller.file_size_limit() && size > now {
            caller.file_too_big();
            return Err(Errno::EFBIG.into());
        }
        Ok(retry(|| rustix::fs::ftruncate(&self.fd, size)).map_err(errno)?)
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
        Ok(retry(|| rustix::fs::fallocate(&self.fd, mode, offset, len)).map_err(errno)?)
    }

    fn sync(&self, data_only: bool) -> SysResult<()> {
        let synced = match data_only {
            true => retry(|| rustix::fs::fdatasync(&self.fd)),
            false => retry(|| rustix::fs::fsync(&self.fd)),
        };
        Ok(synced.map_err(errno)?)
    }

    fn mapping(&self, _: &FileDescription, _writable_shared: bool) -> SysResult<Mapping> {
        if self.is_regular() { Ok(Mapping::Host(self.fd.clone())) } else { Err(Errno::ENODEV.into()) }
    }

    fn ioctl(
        &self,
        _: &FileDescription,
        caller: &dyn Caller,
        command: u32,
        argument: u64,
    ) -> SysResult<usize> {
        if Ioctl(command) != Ioctl::FIONREAD {
            return Err(Errno::ENOTTY.into());
        }
        let waiting = rustix::io::ioctl_fionread(&self.fd).map_err(errno)?;
        let waiting = i32::try_from(waiting).unwrap_or(i32::MAX);
        caller.write_user(UserAddr(argument), &waiting.to_ne_bytes())?;
        Ok(0)
    }

    /// The size of a pipe can be asked for. It is not changed: the pipe is not the guest's alone.
    fn fcntl(&self, _: &FileDescription, _: &dyn Caller, command: FcntlCmd, _: u64) -> SysResult<usize> {
        match command {
            FcntlCmd::GETPIPE_SZ => Ok(rustix::pipe::fcntl_getpipe_size(&self.fd).map_err(errno)?),
            FcntlCmd::SETPIPE_SZ => Err(Errno::EPERM.into()),
            _ => Err(Errno::EINVAL.into()),
        }
    }

    fn poll(&self, _: &FileDescription) -> Ready {
        self.stream.as_ref().map_or(Ready::READABLE | Ready::WRITABLE, |stream| stream.ready())
    }

    fn wait_queues(&self) -> SmallVec<[&WaitQueue; 2]> {
        match &self.stream {
            Some(stream) => smallvec![stream.queue()],
            None => SmallVec::new(),
        }
    }

    /// As the host shows it: a path of the host's, or what stands for one.
    fn link_name(&self) -> Option<String> {
        let link = format!("/proc/self/fd/{}", self.fd.as_raw_fd());
        if let Ok(text) = rustix::fs::readlink(link, Vec::new()) {
            return Some(text.to_string_lossy().into_owned());
        }
        let stat = rustix::fs::fstat(&self.fd).ok()?;
        match stat.st_mode & 0o170_000 {
            0o010_000 => Some(format!("pipe:[{}]", stat.st_ino)),
            0o140_000 => Some(format!("socket:[{}]", stat.st_ino)),
            _ => None,
        }
    }
}
