//! Descriptors that umlaut was started with: stdin, stdout, stderr when they are no terminal.

use std::any::Any;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use abi::{Errno, FileMode, FileType, Timespec};
use sync::SysResult;
use vfs::{Attributes, Caller, FileDescription, FileOps, UserRead, UserWrite};

/// Bytes moved by one host call.
const CHUNK: usize = 64 << 10;

/// An open file of the host's that umlaut inherited. Its flags are never changed: its description is shared with the
/// user's shell (INVARIANTS 4.6).
pub struct HostFile {
    fd: Arc<OwnedFd>,
}

impl HostFile {
    pub fn new(fd: OwnedFd) -> HostFile {
        HostFile { fd: Arc::new(fd) }
    }

    /// The same open file of the host's for another description of ours (`/proc/self/fd/0` was opened).
    pub fn share(&self) -> HostFile {
        HostFile { fd: self.fd.clone() }
    }
}

fn errno(error: rustix::io::Errno) -> Errno {
    Errno::from_raw(error.raw_os_error())
}

impl FileOps for HostFile {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn read(&self, _: &FileDescription, _: &dyn Caller, to: &mut dyn UserWrite) -> SysResult<usize> {
        let mut buffer = vec![0; to.room().min(CHUNK)];
        let count = rustix::io::read(&self.fd, &mut buffer[..]).map_err(errno)?;
        Ok(to.put(buffer.get(..count).unwrap_or(&[])))
    }

    fn write(&self, _: &FileDescription, _: &dyn Caller, from: &mut dyn UserRead) -> SysResult<usize> {
        let mut buffer = vec![0; from.left().min(CHUNK)];
        let taken = from.take(&mut buffer);
        if taken == 0 && !buffer.is_empty() {
            return Err(Errno::EFAULT.into());
        }
        let count = rustix::io::write(&self.fd, buffer.get(..taken).unwrap_or(&[])).map_err(errno)?;
        from.untake(taken - count);
        Ok(count)
    }

    fn attributes(&self) -> Option<SysResult<Attributes>> {
        let stat = match rustix::fs::fstat(&self.fd) {
            Ok(stat) => stat,
            Err(error) => return Some(Err(errno(error).into())),
        };
        let kind = FileType(stat.st_mode & 0o170_000);
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
            atime: Timespec::default(),
            mtime: Timespec::default(),
            ctime: Timespec::default(),
            btime: None,
        }))
    }
}
