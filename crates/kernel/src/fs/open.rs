//! Opening, closing and duplicating descriptors.

use std::sync::Arc;

use abi::{CloseRangeFlags, Errno, FileMode, OpenFlags};
use sync::SysResult;
use vfs::FileDescription;
use vfs::ops::{self, OpenRequest};
use zerocopy::IntoBytes;

use crate::resource::NOFILE;
use crate::syscall::{CreateMode, Device, Fd, In, Octal, UserCStr};
use crate::task::CurrentTask;

pub fn sys_open(task: &mut CurrentTask, path: UserCStr, flags: OpenFlags, mode: CreateMode) -> SysResult<Fd> {
    sys_openat(task, Fd::CWD, path, flags, mode)
}

pub fn sys_creat(task: &mut CurrentTask, path: UserCStr, mode: Octal) -> SysResult<Fd> {
    let flags = OpenFlags::CREAT | OpenFlags::WRONLY | OpenFlags::TRUNC;
    do_open(task, Fd::CWD, path, &OpenRequest::open(flags, mode.0)?)
}

pub fn sys_openat(
    task: &mut CurrentTask,
    dirfd: Fd,
    path: UserCStr,
    flags: OpenFlags,
    mode: CreateMode,
) -> SysResult<Fd> {
    do_open(task, dirfd, path, &OpenRequest::open(flags, mode.0)?)
}

pub fn sys_openat2(
    task: &mut CurrentTask,
    dirfd: Fd,
    path: UserCStr,
    how: In<abi::OpenHow>,
    size: usize,
) -> SysResult<Fd> {
    let how = read_how(task, how, size)?;
    do_open(task, dirfd, path, &OpenRequest::openat2(&how)?)
}

/// A structure that may grow: unknown tails must be zero (Linux: `copy_struct_from_user`).
fn read_how(task: &CurrentTask, at: In<abi::OpenHow>, size: usize) -> SysResult<abi::OpenHow> {
    let known = size_of::<abi::OpenHow>();
    if size < known {
        return Err(Errno::EINVAL.into());
    }
    if size > 4096 {
        return Err(Errno::E2BIG.into());
    }
    let mut how = abi::OpenHow::default();
    task.mm.read_bytes(at.0, how.as_mut_bytes())?;
    let mut tail = vec![0; size - known];
    task.mm.read_bytes(at.0.checked_add(known as u64).ok_or(Errno::EFAULT)?, &mut tail)?;
    if tail.iter().any(|byte| *byte != 0) { Err(Errno::E2BIG.into()) } else { Ok(how) }
}

fn do_open(task: &CurrentTask, dirfd: Fd, path: UserCStr, request: &OpenRequest) -> SysResult<Fd> {
    let path = task.mm.read_path(path.0)?;
    let limit = task.limit(NOFILE);
    let reserved = task.files.table.reserve(limit, request.is_cloexec())?;
    let file = ops::open(&task.fs_context(), dirfd.0, &path, request)?;
    Ok(Fd(reserved.install(file)))
}

impl CurrentTask {
    /// Gives an open file a descriptor.
    pub fn install(&self, file: Arc<FileDescription>, cloexec: bool) -> SysResult<Fd> {
        self.files.table.install(file, self.limit(NOFILE), cloexec).map(Fd)
    }
}

pub fn sys_close(task: &mut CurrentTask, fd: Fd) -> SysResult<()> {
    let file = task.files.table.remove(fd.0)?;
    // A close that was interrupted has closed all the same.
    file.descriptor_closed(task.files_owner(), task)
        .map_err(|error| error.errno().unwrap_or(Errno::EINTR).into())
}

pub fn sys_close_range(
    task: &mut CurrentTask,
    first: u32,
    last: u32,
    flags: CloseRangeFlags,
) -> SysResult<()> {
    if flags.has_unknown() || first > last {
        return Err(Errno::EINVAL.into());
    }
    if flags.contains(CloseRangeFlags::UNSHARE) {
        task.unshare_files();
    }
    if flags.contains(CloseRangeFlags::CLOEXEC) {
        task.files.table.set_cloexec_range(first, last);
        return Ok(());
    }
    for file in task.files.table.remove_range(first, last) {
        task.close_description(&file);
    }
    Ok(())
}

pub fn sys_dup(task: &mut CurrentTask, fd: Fd) -> SysResult<Fd> {
    let file = task.files.table.get_any(fd.0)?;
    task.install(file, false)
}

pub fn sys_dup2(task: &mut CurrentTask, old: Fd, new: Fd) -> SysResult<Fd> {
    if old == new {
        task.files.table.get_any(old.0)?;
        return Ok(new);
    }
    replace(task, old, new, false)
}

pub fn sys_dup3(task: &mut CurrentTask, old: Fd, new: Fd, flags: OpenFlags) -> SysResult<Fd> {
    if !OpenFlags::CLOEXEC.contains(flags) || old == new {
        return Err(Errno::EINVAL.into());
    }
    replace(task, old, new, flags.contains(OpenFlags::CLOEXEC))
}

fn replace(task: &mut CurrentTask, old: Fd, new: Fd, cloexec: bool) -> SysResult<Fd> {
    let limit = task.limit(NOFILE);
    if let Some(file) = task.files.table.replace(old.0, new.0, limit, cloexec)? {
        task.close_description(&file);
    }
    Ok(new)
}

pub fn sys_umask(task: &mut CurrentTask, mask: Octal) -> SysResult<u32> {
    Ok(task.fs.replace_umask(mask.0 & 0o777))
}

pub fn sys_mkdir(task: &mut CurrentTask, path: UserCStr, mode: Octal) -> SysResult<()> {
    sys_mkdirat(task, Fd::CWD, path, mode)
}

pub fn sys_mkdirat(task: &mut CurrentTask, dirfd: Fd, path: UserCStr, mode: Octal) -> SysResult<()> {
    let path = task.mm.read_path(path.0)?;
    ops::mkdir(&task.fs_context(), dirfd.0, &path, mode.0)
}

pub fn sys_mknod(task: &mut CurrentTask, path: UserCStr, mode: FileMode, dev: Device) -> SysResult<()> {
    sys_mknodat(task, Fd::CWD, path, mode, dev)
}

pub fn sys_mknodat(
    task: &mut CurrentTask,
    dirfd: Fd,
    path: UserCStr,
    mode: FileMode,
    dev: Device,
) -> SysResult<()> {
    let path = task.mm.read_path(path.0)?;
    // Device numbers come in 32 bits.
    ops::mknod(&task.fs_context(), dirfd.0, &path, mode, dev.0 & 0xffff_ffff)
}
