//! Reading, writing, closing.

use std::sync::Arc;

use abi::Errno;
use sync::SysResult;
use vfs::FileDescription;

use crate::mm::{UserSink, UserSource};
use crate::syscall::{Fd, InBuf, OutBuf};
use crate::task::CurrentTask;

/// Bytes that one call transfers at most (`MAX_RW_COUNT`).
pub const MAX_RW_COUNT: usize = 0x7fff_f000;

impl super::Files {
    /// The open file behind a descriptor. `EBADF`.
    pub fn get(&self, fd: Fd) -> SysResult<Arc<FileDescription>> {
        self.table.get(fd.0)
    }
}

pub fn sys_read(task: &mut CurrentTask, fd: Fd, buf: OutBuf) -> SysResult<usize> {
    let file = task.files.get(fd)?;
    if !file.is_readable() {
        return Err(Errno::EBADF.into());
    }
    if !buf.addr.in_guest_range(buf.len as u64) {
        return Err(Errno::EFAULT.into());
    }
    let mut sink = UserSink::one(&task.mm, buf.addr, buf.len.min(MAX_RW_COUNT));
    file.ops.read(&file, task, &mut sink)
}

pub fn sys_write(task: &mut CurrentTask, fd: Fd, buf: InBuf) -> SysResult<usize> {
    let file = task.files.get(fd)?;
    if !file.is_writable() {
        return Err(Errno::EBADF.into());
    }
    if !buf.addr.in_guest_range(buf.len as u64) {
        return Err(Errno::EFAULT.into());
    }
    let mut source = UserSource::one(&task.mm, buf.addr, buf.len.min(MAX_RW_COUNT));
    file.ops.write(&file, task, &mut source)
}

pub fn sys_close(task: &mut CurrentTask, fd: Fd) -> SysResult<()> {
    let file = task.files.table.remove(fd.0)?;
    file.descriptor_closed(task.files_owner(), task)
}
