//! Extended attributes.

use abi::{AtFlags, Errno, XattrFlags};
use sync::SysResult;
use vfs::XattrMode;
use vfs::ops::{self, XattrTarget};

use crate::syscall::{Fd, InBuf, OutBuf, UserCStr};
use crate::task::CurrentTask;

/// Longest name with its prefix, and the zero behind it.
const NAME_ROOM: usize = 256;
/// Largest value (`XATTR_SIZE_MAX`).
const SIZE_MAX: usize = 65536;

/// What a call is about.
#[derive(Clone, Copy)]
enum Of {
    Path(UserCStr),
    Link(UserCStr),
    Fd(Fd),
}

fn target(task: &CurrentTask, of: Of) -> SysResult<XattrTarget> {
    let (path, flags) = match of {
        Of::Fd(fd) => return XattrTarget::of_file(&*task.files.get(fd)?),
        Of::Path(path) => (path, AtFlags::empty()),
        Of::Link(path) => (path, AtFlags::SYMLINK_NOFOLLOW),
    };
    let path = task.mm.read_path(path.0)?;
    ops::xattr_target(&task.fs_context(), abi::AT_FDCWD, &path, flags)
}

fn read_name(task: &CurrentTask, name: UserCStr) -> SysResult<Vec<u8>> {
    task.mm.read_string(name.0, NAME_ROOM, Errno::ERANGE)
}

fn set(task: &CurrentTask, of: Of, name: UserCStr, value: InBuf, flags: XattrFlags) -> SysResult<()> {
    let mode = match flags {
        flags if flags.is_empty() => XattrMode::Any,
        XattrFlags::CREATE => XattrMode::Create,
        XattrFlags::REPLACE => XattrMode::Replace,
        _ => return Err(Errno::EINVAL.into()),
    };
    let name = read_name(task, name)?;
    if value.len > SIZE_MAX {
        return Err(Errno::E2BIG.into());
    }
    let mut bytes = vec![0; value.len];
    task.mm.read_bytes(value.addr, &mut bytes)?;
    ops::set_xattr(&target(task, of)?, &name, &bytes, mode, task)
}

/// Gives a result to a buffer whose size 0 asks for the size alone.
fn give(task: &CurrentTask, bytes: &[u8], room: OutBuf) -> SysResult<usize> {
    if room.len == 0 {
        return Ok(bytes.len());
    }
    if bytes.len() > room.len {
        return Err(Errno::ERANGE.into());
    }
    task.mm.write_bytes(room.addr, bytes)?;
    Ok(bytes.len())
}

fn get(task: &CurrentTask, of: Of, name: UserCStr, value: OutBuf) -> SysResult<usize> {
    let name = read_name(task, name)?;
    let found = ops::get_xattr(&target(task, of)?, &name, task)?;
    give(task, &found, value)
}

fn list(task: &CurrentTask, of: Of, names: OutBuf) -> SysResult<usize> {
    let found = ops::list_xattrs(&target(task, of)?, task)?;
    give(task, &found, names)
}

fn remove(task: &CurrentTask, of: Of, name: UserCStr) -> SysResult<()> {
    let name = read_name(task, name)?;
    ops::remove_xattr(&target(task, of)?, &name, task)
}

pub fn sys_setxattr(
    task: &mut CurrentTask,
    path: UserCStr,
    name: UserCStr,
    value: InBuf,
    flags: XattrFlags,
) -> SysResult<()> {
    set(task, Of::Path(path), name, value, flags)
}

pub fn sys_lsetxattr(
    task: &mut CurrentTask,
    path: UserCStr,
    name: UserCStr,
    value: InBuf,
    flags: XattrFlags,
) -> SysResult<()> {
    set(task, Of::Link(path), name, value, flags)
}

pub fn sys_fsetxattr(
    task: &mut CurrentTask,
    fd: Fd,
    name: UserCStr,
    value: InBuf,
    flags: XattrFlags,
) -> SysResult<()> {
    set(task, Of::Fd(fd), name, value, flags)
}

pub fn sys_getxattr(
    task: &mut CurrentTask,
    path: UserCStr,
    name: UserCStr,
    value: OutBuf,
) -> SysResult<usize> {
    get(task, Of::Path(path), name, value)
}

pub fn sys_lgetxattr(
    task: &mut CurrentTask,
    path: UserCStr,
    name: UserCStr,
    value: OutBuf,
) -> SysResult<usize> {
    get(task, Of::Link(path), name, value)
}

pub fn sys_fgetxattr(task: &mut CurrentTask, fd: Fd, name: UserCStr, value: OutBuf) -> SysResult<usize> {
    get(task, Of::Fd(fd), name, value)
}

pub fn sys_listxattr(task: &mut CurrentTask, path: UserCStr, names: OutBuf) -> SysResult<usize> {
    list(task, Of::Path(path), names)
}

pub fn sys_llistxattr(task: &mut CurrentTask, path: UserCStr, names: OutBuf) -> SysResult<usize> {
    list(task, Of::Link(path), names)
}

pub fn sys_flistxattr(task: &mut CurrentTask, fd: Fd, names: OutBuf) -> SysResult<usize> {
    list(task, Of::Fd(fd), names)
}

pub fn sys_removexattr(task: &mut CurrentTask, path: UserCStr, name: UserCStr) -> SysResult<()> {
    remove(task, Of::Path(path), name)
}

pub fn sys_lremovexattr(task: &mut CurrentTask, path: UserCStr, name: UserCStr) -> SysResult<()> {
    remove(task, Of::Link(path), name)
}

pub fn sys_fremovexattr(task: &mut CurrentTask, fd: Fd, name: UserCStr) -> SysResult<()> {
    remove(task, Of::Fd(fd), name)
}
