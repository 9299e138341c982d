//! What files are: `stat` and its kin, `access`, `statfs`, directories' entries, links' targets, the current
//! directory.

use abi::{
    AccessFlags, AtFlags, Dirent, Dirent64, DirentType, Errno, FileType, FsMagic, Statfs, Statx,
    StatxAttributes, StatxMask, StatxTimestamp, Timespec,
};
use sync::SysResult;
use vfs::ops::{self, Stat};
use vfs::{Attributes, DirSink, FsStat};
use zerocopy::IntoBytes;

use crate::syscall::{Fd, Out, OutBuf, OutDirents, OutDirents64, OutPath, UserCStr};
use crate::task::CurrentTask;

fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// As `stat` gives it.
fn to_stat(a: &Attributes) -> abi::Stat {
    abi::Stat {
        dev: a.dev,
        ino: a.ino,
        nlink: a.nlink,
        mode: a.mode,
        uid: a.uid,
        gid: a.gid,
        rdev: a.rdev,
        size: signed(a.size),
        blksize: signed(a.block_size),
        blocks: signed(a.blocks),
        atime: a.atime,
        mtime: a.mtime,
        ctime: a.ctime,
        ..abi::Stat::default()
    }
}

pub fn sys_stat(task: &mut CurrentTask, path: UserCStr, stat: Out<abi::Stat>) -> SysResult<()> {
    sys_newfstatat(task, Fd::CWD, path, stat, AtFlags::empty())
}

pub fn sys_lstat(task: &mut CurrentTask, path: UserCStr, stat: Out<abi::Stat>) -> SysResult<()> {
    sys_newfstatat(task, Fd::CWD, path, stat, AtFlags::SYMLINK_NOFOLLOW)
}

pub fn sys_fstat(task: &mut CurrentTask, fd: Fd, stat: Out<abi::Stat>) -> SysResult<()> {
    let attributes = task.files.table.get_any(fd.0)?.attributes()?;
    task.mm.write(stat.0, &to_stat(&attributes))
}

pub fn sys_newfstatat(
    task: &mut CurrentTask,
    dirfd: Fd,
    path: UserCStr,
    stat: Out<abi::Stat>,
    flags: AtFlags,
) -> SysResult<()> {
    let found = find(task, dirfd, path, flags)?;
    task.mm.write(stat.0, &to_stat(&found.attributes))
}

/// Finds what a path leads to. With AT_EMPTY_PATH a null path is an empty one (since Linux 6.11).
fn find(task: &CurrentTask, dirfd: Fd, path: UserCStr, flags: AtFlags) -> SysResult<Stat> {
    let path = match flags.contains(AtFlags::EMPTY_PATH) && path.0.is_null() {
        true => Vec::new(),
        false => task.mm.read_path(path.0)?,
    };
    ops::stat(&task.fs_context(), dirfd.0, &path, flags)
}

pub fn sys_statx(
    task: &mut CurrentTask,
    dirfd: Fd,
    path: UserCStr,
    flags: AtFlags,
    mask: StatxMask,
    out: Out<Statx>,
) -> SysResult<()> {
    let sync = AtFlags::STATX_FORCE_SYNC | AtFlags::STATX_DONT_SYNC;
    if mask.contains(StatxMask::RESERVED) || flags.contains(sync) {
        return Err(Errno::EINVAL.into());
    }
    let found = find(task, dirfd, path, flags)?;
    task.mm.write(out.0, &to_statx(&found))
}

fn to_statx(found: &Stat) -> Statx {
    let a = &found.attributes;
    let time = |time: Timespec| StatxTimestamp {
        sec: time.sec,
        nsec: u32::try_from(time.nsec).unwrap_or(0),
        ..StatxTimestamp::default()
    };
    let mut mask = StatxMask::BASIC_STATS | StatxMask::MNT_ID;
    if a.btime.is_some() {
        mask |= StatxMask::BTIME;
    }
    let mut attributes = StatxAttributes::empty();
    attributes.set(StatxAttributes::MOUNT_ROOT, found.is_mount_root);
    Statx {
        mask,
        blksize: u32::try_from(a.block_size).unwrap_or(u32::MAX),
        attributes,
        nlink: u32::try_from(a.nlink).unwrap_or(u32::MAX),
        uid: a.uid,
        gid: a.gid,
        mode: u16::try_from(a.mode.bits() & 0xffff).unwrap_or(0),
        ino: a.ino,
        size: a.size,
        blocks: a.blocks,
        attributes_mask: StatxAttributes::MOUNT_ROOT,
        atime: time(a.atime),
        btime: time(a.btime.unwrap_or_default()),
        ctime: time(a.ctime),
        mtime: time(a.mtime),
        rdev_major: abi::major(a.rdev),
        rdev_minor: abi::minor(a.rdev),
        dev_major: abi::major(a.dev),
        dev_minor: abi::minor(a.dev),
        mnt_id: u64::from(found.mount_id),
        ..Statx::default()
    }
}

pub fn sys_access(task: &mut CurrentTask, path: UserCStr, mode: AccessFlags) -> SysResult<()> {
    sys_faccessat2(task, Fd::CWD, path, mode, AtFlags::empty())
}

pub fn sys_faccessat(task: &mut CurrentTask, dirfd: Fd, path: UserCStr, mode: AccessFlags) -> SysResult<()> {
    sys_faccessat2(task, dirfd, path, mode, AtFlags::empty())
}

pub fn sys_faccessat2(
    task: &mut CurrentTask,
    dirfd: Fd,
    path: UserCStr,
    mode: AccessFlags,
    flags: AtFlags,
) -> SysResult<()> {
    let path = task.mm.read_path(path.0)?;
    ops::access(&task.fs_context(), dirfd.0, &path, mode, flags)
}

pub fn sys_readlink(task: &mut CurrentTask, path: UserCStr, buf: OutBuf) -> SysResult<usize> {
    sys_readlinkat(task, Fd::CWD, path, buf)
}

pub fn sys_readlinkat(task: &mut CurrentTask, dirfd: Fd, path: UserCStr, buf: OutBuf) -> SysResult<usize> {
    // The size is an `int` there.
    let len = i32::try_from(buf.len & 0xffff_ffff).unwrap_or(0);
    let len = usize::try_from(len).ok().filter(|len| *len > 0).ok_or(Errno::EINVAL)?;
    let path = task.mm.read_path(path.0)?;
    let target = ops::readlink(&task.fs_context(), dirfd.0, &path)?;
    let shown = target.get(..len).unwrap_or(&target);
    task.mm.write_bytes(buf.addr, shown)?;
    Ok(shown.len())
}

fn to_statfs(stat: &FsStat, flags: abi::StatfsFlags) -> Statfs {
    Statfs {
        fs_type: FsMagic(stat.magic),
        bsize: signed(stat.block_size),
        blocks: stat.blocks,
        bfree: stat.blocks_free,
        bavail: stat.blocks_available,
        files: stat.files,
        ffree: stat.files_free,
        fsid: stat.fsid,
        namelen: signed(stat.name_max),
        frsize: signed(stat.block_size),
        flags,
        spare: [0; 4],
    }
}

pub fn sys_statfs(task: &mut CurrentTask, path: UserCStr, out: Out<Statfs>) -> SysResult<()> {
    let path = task.mm.read_path(path.0)?;
    let (stat, flags) = ops::statfs(&task.fs_context(), &path)?;
    task.mm.write(out.0, &to_statfs(&stat, flags))
}

pub fn sys_fstatfs(task: &mut CurrentTask, fd: Fd, out: Out<Statfs>) -> SysResult<()> {
    let file = task.files.table.get_any(fd.0)?;
    let found = match (&file.path, &file.inode) {
        (Some(path), _) => to_statfs(&path.mount.fs.stat()?, ops::mount_statfs_flags(&path.mount)),
        (None, Some(inode)) => to_statfs(&inode.fs.stat()?, abi::StatfsFlags::VALID),
        (None, None) => to_statfs(&anonymous_stat(), abi::StatfsFlags::VALID),
    };
    task.mm.write(out.0, &found)
}

/// What `fstatfs` says of pipes and sockets (Linux: `simple_statfs` of pipefs).
fn anonymous_stat() -> FsStat {
    const PIPEFS_MAGIC: i64 = 0x5049_5045;
    FsStat { magic: PIPEFS_MAGIC, block_size: 4096, name_max: 255, ..FsStat::default() }
}

pub fn sys_chdir(task: &mut CurrentTask, path: UserCStr) -> SysResult<()> {
    let path = task.mm.read_path(path.0)?;
    let dir = ops::chdir(&task.fs_context(), &path)?;
    task.fs.update(|fs| fs.cwd = dir);
    Ok(())
}

pub fn sys_fchdir(task: &mut CurrentTask, fd: Fd) -> SysResult<()> {
    let file = task.files.table.get_any(fd.0)?;
    let dir = ops::fchdir(&task.fs_context(), &file)?;
    task.fs.update(|fs| fs.cwd = dir);
    Ok(())
}

pub fn sys_chroot(task: &mut CurrentTask, path: UserCStr) -> SysResult<()> {
    let path = task.mm.read_path(path.0)?;
    let dir = ops::chroot_target(&task.fs_context(), &path)?;
    task.fs.update(|fs| fs.root = dir);
    Ok(())
}

pub fn sys_getcwd(task: &mut CurrentTask, buf: OutPath) -> SysResult<usize> {
    let place = task.fs.get();
    let mut path = vfs::getcwd(&place.cwd, &place.root)?;
    path.push(0);
    if path.len() > buf.len {
        return Err(Errno::ERANGE.into());
    }
    task.mm.write_bytes(buf.addr, &path)?;
    Ok(path.len())
}

/// How entries are laid out.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Format {
    Old,
    Dirent64,
}

/// Collects entries as `getdents` lays them out.
struct Entries {
    format: Format,
    bytes: Vec<u8>,
    room: usize,
    /// An entry came that did not fit.
    full: bool,
}

impl DirSink for Entries {
    fn entry(&mut self, name: &[u8], ino: u64, file_type: FileType, next: u64) -> bool {
        let len = match self.format {
            Format::Dirent64 => Dirent64::reclen_for(name.len()),
            Format::Old => Dirent::reclen_for(name.len()),
        };
        let Some(reclen) = len.filter(|len| usize::from(*len) <= self.room - self.bytes.len()) else {
            self.full = true;
            return false;
        };
        let end = self.bytes.len() + usize::from(reclen);
        match self.format {
            Format::Dirent64 => {
                let head =
                    Dirent64 { ino, off: signed(next), reclen, kind: DirentType(file_type.dirent_type()) };
                self.bytes.extend(head.as_bytes());
                self.bytes.extend(name);
                self.bytes.resize(end, 0);
            }
            Format::Old => {
                self.bytes.extend(Dirent { ino, off: next, reclen }.as_bytes());
                self.bytes.extend(name);
                self.bytes.resize(end - 1, 0);
                self.bytes.push(file_type.dirent_type());
            }
        }
        true
    }
}

pub fn sys_getdents64(task: &mut CurrentTask, fd: Fd, buf: OutDirents64) -> SysResult<usize> {
    getdents(task, fd, OutDirents { addr: buf.addr, len: buf.len }, Format::Dirent64)
}

pub fn sys_getdents(task: &mut CurrentTask, fd: Fd, buf: OutDirents) -> SysResult<usize> {
    getdents(task, fd, buf, Format::Old)
}

fn getdents(task: &mut CurrentTask, fd: Fd, buf: OutDirents, format: Format) -> SysResult<usize> {
    let file = task.files.get(fd)?;
    if file.inode.as_ref().is_none_or(|inode| !inode.is_dir()) {
        return Err(Errno::ENOTDIR.into());
    }
    if !buf.addr.in_guest_range(u64::from(buf.len)) {
        return Err(Errno::EFAULT.into());
    }
    // More than this at once helps nobody.
    let room = usize::try_from(buf.len).unwrap_or(usize::MAX).min(1 << 20);
    let mut entries = Entries { format, bytes: Vec::new(), room, full: false };
    let before = file.ops.seek(&file, vfs::Seek::Current(0)).ok();
    file.ops.read_dir(&file, task, &mut entries)?;
    if entries.bytes.is_empty() && entries.full {
        return Err(Errno::EINVAL.into());
    }
    let written = task.mm.write_bytes(buf.addr, &entries.bytes);
    if let Err(error) = written {
        // Nothing was given: the position goes back (INVARIANTS 2.4).
        if let Some(position) = before {
            file.ops.seek(&file, vfs::Seek::Set(signed(position)))?;
        }
        return Err(error);
    }
    Ok(entries.bytes.len())
}
