//! Changing names and attributes: links, removal, rename, modes, owners, times, sizes.

use abi::{AtFlags, Errno, RenameFlags, Timespec, Timeval, UnlinkFlags, UserAddr, Utimbuf};
use sync::SysResult;
use vfs::ops::{self, TimesChange};
use vfs::{RenameMode, SetTime};

use crate::syscall::{Fd, Id, In, Octal, UserCStr, UtimeTimes};
use crate::task::CurrentTask;

pub fn sys_link(task: &mut CurrentTask, old: UserCStr, new: UserCStr) -> SysResult<()> {
    sys_linkat(task, Fd::CWD, old, Fd::CWD, new, AtFlags::empty())
}

pub fn sys_linkat(
    task: &mut CurrentTask,
    old_dirfd: Fd,
    old: UserCStr,
    new_dirfd: Fd,
    new: UserCStr,
    flags: AtFlags,
) -> SysResult<()> {
    let (old, new) = (task.mm.read_path(old.0)?, task.mm.read_path(new.0)?);
    ops::link(&task.fs_context(), old_dirfd.0, &old, new_dirfd.0, &new, flags)
}

pub fn sys_symlink(task: &mut CurrentTask, target: UserCStr, path: UserCStr) -> SysResult<()> {
    sys_symlinkat(task, target, Fd::CWD, path)
}

pub fn sys_symlinkat(task: &mut CurrentTask, target: UserCStr, dirfd: Fd, path: UserCStr) -> SysResult<()> {
    let (target, path) = (task.mm.read_path(target.0)?, task.mm.read_path(path.0)?);
    ops::symlink(&task.fs_context(), &target, dirfd.0, &path)
}

pub fn sys_unlink(task: &mut CurrentTask, path: UserCStr) -> SysResult<()> {
    sys_unlinkat(task, Fd::CWD, path, UnlinkFlags::empty())
}

pub fn sys_rmdir(task: &mut CurrentTask, path: UserCStr) -> SysResult<()> {
    sys_unlinkat(task, Fd::CWD, path, UnlinkFlags::REMOVEDIR)
}

pub fn sys_unlinkat(task: &mut CurrentTask, dirfd: Fd, path: UserCStr, flags: UnlinkFlags) -> SysResult<()> {
    if !UnlinkFlags::REMOVEDIR.contains(flags) {
        return Err(Errno::EINVAL.into());
    }
    let path = task.mm.read_path(path.0)?;
    match flags.contains(UnlinkFlags::REMOVEDIR) {
        true => ops::rmdir(&task.fs_context(), dirfd.0, &path),
        false => ops::unlink(&task.fs_context(), dirfd.0, &path),
    }
}

pub fn sys_rename(task: &mut CurrentTask, old: UserCStr, new: UserCStr) -> SysResult<()> {
    sys_renameat2(task, Fd::CWD, old, Fd::CWD, new, RenameFlags::empty())
}

pub fn sys_renameat(
    task: &mut CurrentTask,
    old_dirfd: Fd,
    old: UserCStr,
    new_dirfd: Fd,
    new: UserCStr,
) -> SysResult<()> {
    sys_renameat2(task, old_dirfd, old, new_dirfd, new, RenameFlags::empty())
}

pub fn sys_renameat2(
    task: &mut CurrentTask,
    old_dirfd: Fd,
    old: UserCStr,
    new_dirfd: Fd,
    new: UserCStr,
    flags: RenameFlags,
) -> SysResult<()> {
    let mode = match flags {
        flags if flags.is_empty() => RenameMode::Replace,
        RenameFlags::NOREPLACE => RenameMode::NoReplace,
        RenameFlags::EXCHANGE => RenameMode::Exchange,
        // Whiteouts belong to overlay file systems, and ours makes its own.
        _ => return Err(Errno::EINVAL.into()),
    };
    let (old, new) = (task.mm.read_path(old.0)?, task.mm.read_path(new.0)?);
    ops::rename(&task.fs_context(), old_dirfd.0, &old, new_dirfd.0, &new, mode)
}

pub fn sys_chmod(task: &mut CurrentTask, path: UserCStr, mode: Octal) -> SysResult<()> {
    sys_fchmodat2(task, Fd::CWD, path, mode, AtFlags::empty())
}

pub fn sys_fchmodat(task: &mut CurrentTask, dirfd: Fd, path: UserCStr, mode: Octal) -> SysResult<()> {
    sys_fchmodat2(task, dirfd, path, mode, AtFlags::empty())
}

pub fn sys_fchmodat2(
    task: &mut CurrentTask,
    dirfd: Fd,
    path: UserCStr,
    mode: Octal,
    flags: AtFlags,
) -> SysResult<()> {
    if !(AtFlags::SYMLINK_NOFOLLOW | AtFlags::EMPTY_PATH).contains(flags) {
        return Err(Errno::EINVAL.into());
    }
    let path = task.mm.read_path(path.0)?;
    ops::chmod(&task.fs_context(), dirfd.0, &path, mode.0, flags)
}

pub fn sys_fchmod(task: &mut CurrentTask, fd: Fd, mode: Octal) -> SysResult<()> {
    ops::fchmod(&task.files.get(fd)?, mode.0, task)
}

/// An owner to set; -1 leaves it as it is.
fn owner(id: Id) -> Option<u32> {
    (id.0 != u32::MAX).then_some(id.0)
}

pub fn sys_chown(task: &mut CurrentTask, path: UserCStr, uid: Id, gid: Id) -> SysResult<()> {
    sys_fchownat(task, Fd::CWD, path, uid, gid, AtFlags::empty())
}

pub fn sys_lchown(task: &mut CurrentTask, path: UserCStr, uid: Id, gid: Id) -> SysResult<()> {
    sys_fchownat(task, Fd::CWD, path, uid, gid, AtFlags::SYMLINK_NOFOLLOW)
}

pub fn sys_fchownat(
    task: &mut CurrentTask,
    dirfd: Fd,
    path: UserCStr,
    uid: Id,
    gid: Id,
    flags: AtFlags,
) -> SysResult<()> {
    if !(AtFlags::SYMLINK_NOFOLLOW | AtFlags::EMPTY_PATH).contains(flags) {
        return Err(Errno::EINVAL.into());
    }
    let path = task.mm.read_path(path.0)?;
    ops::chown(&task.fs_context(), dirfd.0, &path, owner(uid), owner(gid), flags)
}

pub fn sys_fchown(task: &mut CurrentTask, fd: Fd, uid: Id, gid: Id) -> SysResult<()> {
    ops::fchown(&task.files.get(fd)?, owner(uid), owner(gid), task)
}

/// A time of `utimensat`'s.
fn set_time(time: Timespec) -> SysResult<Option<SetTime>> {
    match time.nsec {
        Timespec::UTIME_NOW => Ok(Some(SetTime::Now)),
        Timespec::UTIME_OMIT => Ok(None),
        // Times before 1970 are times.
        0..1_000_000_000 => Ok(Some(SetTime::At(time))),
        _ => Err(Errno::EINVAL.into()),
    }
}

fn change(
    task: &CurrentTask,
    dirfd: Fd,
    path: UserAddr,
    times: TimesChange,
    flags: AtFlags,
) -> SysResult<()> {
    // A null path means the descriptor itself.
    if path.is_null() && dirfd != Fd::CWD {
        if !flags.is_empty() {
            return Err(Errno::EINVAL.into());
        }
        return ops::futimens(&task.files.get(dirfd)?, times, task);
    }
    let path = task.mm.read_path(path)?;
    ops::utimens(&task.fs_context(), dirfd.0, &path, times, flags)
}

pub fn sys_utimensat(
    task: &mut CurrentTask,
    dirfd: Fd,
    path: UserCStr,
    times: UtimeTimes,
    flags: AtFlags,
) -> SysResult<()> {
    let times = match times.0.is_null() {
        true => TimesChange::NOW,
        false => {
            let [atime, mtime] = task.mm.read::<[Timespec; 2]>(times.0)?;
            let omits = |time: Timespec| time.nsec == Timespec::UTIME_OMIT;
            // Nothing to do is done before anything is looked at.
            if omits(atime) && omits(mtime) {
                return Ok(());
            }
            TimesChange { atime: set_time(atime)?, mtime: set_time(mtime)? }
        }
    };
    if !(AtFlags::SYMLINK_NOFOLLOW | AtFlags::EMPTY_PATH).contains(flags) {
        return Err(Errno::EINVAL.into());
    }
    change(task, dirfd, path.0, times, flags)
}

pub fn sys_futimesat(
    task: &mut CurrentTask,
    dirfd: Fd,
    path: UserCStr,
    times: In<[Timeval; 2]>,
) -> SysResult<()> {
    let times = match times.is_null() {
        true => TimesChange::NOW,
        false => {
            let [atime, mtime] = task.mm.read::<[Timeval; 2]>(times.0)?;
            let time = |time: Timeval| match time.is_valid() {
                true => Ok(Some(SetTime::At(Timespec { sec: time.sec, nsec: time.usec * 1000 }))),
                false => Err(Errno::EINVAL),
            };
            TimesChange { atime: time(atime)?, mtime: time(mtime)? }
        }
    };
    change(task, dirfd, path.0, times, AtFlags::empty())
}

pub fn sys_utimes(task: &mut CurrentTask, path: UserCStr, times: In<[Timeval; 2]>) -> SysResult<()> {
    sys_futimesat(task, Fd::CWD, path, times)
}

pub fn sys_utime(task: &mut CurrentTask, path: UserCStr, times: In<Utimbuf>) -> SysResult<()> {
    let times = match times.is_null() {
        true => TimesChange::NOW,
        false => {
            let given: Utimbuf = task.mm.read(times.0)?;
            let time = |sec: i64| Some(SetTime::At(Timespec { sec, nsec: 0 }));
            TimesChange { atime: time(given.actime), mtime: time(given.modtime) }
        }
    };
    change(task, Fd::CWD, path.0, times, AtFlags::empty())
}

pub fn sys_truncate(task: &mut CurrentTask, path: UserCStr, size: i64) -> SysResult<()> {
    let path = task.mm.read_path(path.0)?;
    ops::truncate(&task.fs_context(), &path, size)
}

pub fn sys_ftruncate(task: &mut CurrentTask, fd: Fd, size: i64) -> SysResult<()> {
    if size < 0 {
        return Err(Errno::EINVAL.into());
    }
    ops::ftruncate(&*task.files.get(fd)?, size, task)
}
