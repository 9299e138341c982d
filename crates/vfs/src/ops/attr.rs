//! `chmod`, `chown`, `truncate`, `fallocate` and their kin (Linux: `notify_change`, `setattr_prepare`).

use std::sync::Arc;
use std::sync::atomic::Ordering;

use abi::{AtFlags, Errno, FallocFlags, FileMode, FileType};
use sync::{SysError, SysResult};

use crate::{
    AttributeChange, Attributes, Caller, Capability, Cred, FileDescription, FsContext, Inode, Lookup,
    MAY_WRITE, MagicTarget, inode_permission, is_owner,
};

const SUID: u32 = FileMode::SUID.bits();
const SGID: u32 = FileMode::SGID.bits();

/// What attributes are changed of.
pub(super) enum Object {
    Inode(Arc<Inode>),
    /// An open file without an inode.
    File(Arc<FileDescription>),
}

impl Object {
    /// What a path leads to; `EROFS` through a read-only mount.
    pub(super) fn of_target(target: MagicTarget) -> SysResult<Object> {
        match target {
            MagicTarget::Path(path) => {
                path.check_writable()?;
                Ok(Object::Inode(path.dentry.inode.clone()))
            }
            MagicTarget::File(file) => Object::of_file(&file),
        }
    }

    pub(super) fn of_file(file: &Arc<FileDescription>) -> SysResult<Object> {
        if let Some(path) = &file.path {
            path.check_writable()?;
        }
        Ok(match &file.inode {
            Some(inode) => Object::Inode(inode.clone()),
            None => Object::File(file.clone()),
        })
    }

    pub(super) fn attributes(&self) -> SysResult<Attributes> {
        match self {
            Object::Inode(inode) => inode.ops.attributes(inode),
            Object::File(file) => file.attributes(),
        }
    }

    pub(super) fn change(&self, change: &AttributeChange) -> SysResult<()> {
        match self {
            Object::Inode(inode) => {
                inode.attached.without_privileges.store(false, Ordering::Relaxed);
                let changed = inode.ops.set_attributes(inode, change);
                if change.permissions.is_some_and(|permissions| permissions & (SUID | SGID) != 0) {
                    inode.attached.privileges_given();
                }
                changed
            }
            Object::File(file) => file.ops.set_attributes(change),
        }
    }

    pub(super) fn may_write(&self, caller: &dyn Caller) -> SysResult<()> {
        match self {
            Object::Inode(inode) => inode_permission(inode, caller, MAY_WRITE),
            Object::File(file) => crate::generic_permission(&file.attributes()?, caller.cred(), MAY_WRITE),
        }
    }
}

/// How `at` flags of calls on attributes walk: AT_SYMLINK_NOFOLLOW and AT_EMPTY_PATH. `EINVAL` for others.
pub(super) fn lookup_flags(flags: AtFlags) -> SysResult<Lookup> {
    if !(flags & !(AtFlags::SYMLINK_NOFOLLOW | AtFlags::EMPTY_PATH)).is_empty() {
        return Err(Errno::EINVAL.into());
    }
    let mut how = Lookup::empty();
    how.set(Lookup::FOLLOW, !flags.contains(AtFlags::SYMLINK_NOFOLLOW));
    how.set(Lookup::EMPTY, flags.contains(AtFlags::EMPTY_PATH));
    Ok(how)
}

/// Sets permission bits. `EPERM` unless the caller owns the file; `EOPNOTSUPP` for a link itself.
pub fn chmod(ctx: &FsContext<'_>, dirfd: i32, path: &[u8], mode: u32, flags: AtFlags) -> SysResult<()> {
    let how = lookup_flags(flags)?;
    ctx.retry_stale(|| change_mode(&Object::of_target(ctx.lookup(dirfd, path, how)?)?, mode, ctx.cred()))
}

/// Sets permission bits of an open file.
pub fn fchmod(file: &Arc<FileDescription>, mode: u32, caller: &dyn Caller) -> SysResult<()> {
    change_mode(&Object::of_file(file)?, mode, caller.cred())
}

fn change_mode(object: &Object, mode: u32, cred: &Cred) -> SysResult<()> {
    let now = object.attributes()?;
    if now.mode.is_symlink() {
        return Err(Errno::EOPNOTSUPP.into());
    }
    if !is_owner(&now, cred) {
        return Err(Errno::EPERM.into());
    }
    let mut permissions = mode & FileMode::PERMISSION_MASK;
    if !cred.in_group(now.gid) && !cred.capable(Capability::FSETID) {
        permissions &= !SGID;
    }
    object.change(&AttributeChange { permissions: Some(permissions), ..Default::default() })
}

/// Sets owner and group, `None` leaving one as it is. Set-id bits of files go, even for root.
pub fn chown(
    ctx: &FsContext<'_>,
    dirfd: i32,
    path: &[u8],
    uid: Option<u32>,
    gid: Option<u32>,
    flags: AtFlags,
) -> SysResult<()> {
    let how = lookup_flags(flags)?;
    ctx.retry_stale(|| change_owner(&Object::of_target(ctx.lookup(dirfd, path, how)?)?, uid, gid, ctx.cred()))
}

/// Sets owner and group of an open file.
pub fn fchown(
    file: &Arc<FileDescription>,
    uid: Option<u32>,
    gid: Option<u32>,
    caller: &dyn Caller,
) -> SysResult<()> {
    change_owner(&Object::of_file(file)?, uid, gid, caller.cred())
}

fn change_owner(object: &Object, uid: Option<u32>, gid: Option<u32>, cred: &Cred) -> SysResult<()> {
    let now = object.attributes()?;
    let owns = cred.fsuid == now.uid;
    let uid_allowed = uid.is_none_or(|uid| owns && uid == now.uid);
    let gid_allowed = gid.is_none_or(|gid| owns && (gid == now.gid || cred.in_group(gid)));
    let allowed = (uid_allowed && gid_allowed) || cred.capable(Capability::CHOWN);
    if !allowed {
        return Err(Errno::EPERM.into());
    }
    let mut permissions = None;
    if !now.mode.is_dir() {
        let kept = now.mode.permissions() & !SUID & !dropped_sgid(&now, cred);
        if kept != now.mode.permissions() {
            if !is_owner(&now, cred) {
                return Err(Errno::EPERM.into());
            }
            permissions = Some(kept);
        }
        if let (Object::Inode(inode), FileType::REG) = (object, now.mode.file_type()) {
            drop_file_capabilities(inode);
        }
    }
    object.change(&AttributeChange { permissions, uid, gid, ..Default::default() })
}

/// The set-gid bit if it goes with a change of owner or content (Linux: `setattr_should_drop_sgid`): on group
/// executables always, else where the caller could not set it.
fn dropped_sgid(now: &Attributes, cred: &Cred) -> u32 {
    let mode = now.mode;
    let goes = mode.contains(FileMode::XGRP) || !(cred.in_group(now.gid) || cred.capable(Capability::FSETID));
    if mode.contains(FileMode::SGID) && goes { SGID } else { 0 }
}

/// The permission bits that a file keeps when the caller changes its content; `None`: all of them.
fn kept_permissions(now: &Attributes, cred: &Cred) -> Option<u32> {
    if !now.mode.is_regular() || cred.capable(Capability::FSETID) {
        return None;
    }
    let kept = now.mode.permissions() & !SUID & !dropped_sgid(now, cred);
    (kept != now.mode.permissions()).then_some(kept)
}

const FILE_CAPABILITIES: &[u8] = b"security.capability";

fn drop_file_capabilities(inode: &Arc<Inode>) {
    // Most files have none, and a file system without attributes says so.
    let _ = inode.ops.remove_xattr(inode, FILE_CAPABILITIES);
}

/// Before the caller writes to the file: takes its set-id bits and file capabilities (Linux: `file_remove_privs`).
pub fn remove_privileges(inode: &Arc<Inode>, caller: &dyn Caller) -> SysResult<()> {
    let known = &inode.attached.without_privileges;
    if known.load(Ordering::Relaxed) || inode.file_type != FileType::REG {
        return Ok(());
    }
    let now = inode.ops.attributes(inode)?;
    if let Some(permissions) = kept_permissions(&now, caller.cred()) {
        let permissions = Some(permissions);
        inode.ops.set_attributes(inode, &AttributeChange { permissions, ..Default::default() })?;
    }
    drop_file_capabilities(inode);
    if now.mode.permissions() & (SUID | SGID) == 0 {
        known.store(true, Ordering::Relaxed);
    }
    Ok(())
}

/// Whether the file has neither set-id bits nor file capabilities now.
pub fn is_without_privileges(inode: &Arc<Inode>) -> bool {
    let plain = |now: Attributes| now.mode.permissions() & (SUID | SGID) == 0;
    let none = [Errno::ENODATA, Errno::EOPNOTSUPP].map(SysError::Errno);
    inode.ops.attributes(inode).is_ok_and(plain)
        && inode.ops.get_xattr(inode, FILE_CAPABILITIES).is_err_and(|error| none.contains(&error))
}

/// The change that sets a file's size, its set-id bits taken where that takes them.
pub(super) fn truncate_change(inode: &Arc<Inode>, cred: &Cred, size: u64) -> SysResult<AttributeChange> {
    let permissions = kept_permissions(&inode.ops.attributes(inode)?, cred);
    drop_file_capabilities(inode);
    Ok(AttributeChange { size: Some(size), permissions, ..Default::default() })
}

/// `EFBIG` (and SIGXFSZ) if a file would grow beyond the caller's limit (Linux: `inode_newsize_ok`).
fn check_size(now: &Attributes, size: u64, caller: &dyn Caller) -> SysResult<()> {
    if size > now.size && size > caller.file_size_limit() {
        caller.file_too_big();
        return Err(Errno::EFBIG.into());
    }
    Ok(())
}

/// Sets the size of the file that `path` leads to.
pub fn truncate(ctx: &FsContext<'_>, path: &[u8], size: i64) -> SysResult<()> {
    let size = u64::try_from(size).map_err(|_| Errno::EINVAL)?;
    ctx.retry_stale(|| {
        let path = ctx.lookup(abi::AT_FDCWD, path, Lookup::FOLLOW)?.path_or(Errno::EINVAL)?;
        let inode = path.inode();
        match inode.file_type {
            FileType::REG => {}
            FileType::DIR => return Err(Errno::EISDIR.into()),
            _ => return Err(Errno::EINVAL.into()),
        }
        path.check_writable()?;
        inode_permission(inode, ctx.caller, MAY_WRITE)?;
        let _access = inode.write_access()?;
        check_size(&inode.ops.attributes(inode)?, size, ctx.caller)?;
        inode.ops.set_attributes(inode, &truncate_change(inode, ctx.cred(), size)?)
    })
}

/// Sets the size of an open file. `EINVAL` unless it is a regular file open for writing.
pub fn ftruncate(file: &FileDescription, size: i64, caller: &dyn Caller) -> SysResult<()> {
    let size = u64::try_from(size).map_err(|_| Errno::EINVAL)?;
    let regular = file.inode.as_ref().filter(|inode| inode.file_type == FileType::REG);
    let Some(inode) = regular.filter(|_| file.is_writable()) else { return Err(Errno::EINVAL.into()) };
    check_size(&file.attributes()?, size, caller)?;
    remove_privileges(inode, caller)?;
    file.ops.truncate(file, caller, size)
}

/// Allocates or gives back space of an open file (Linux: `vfs_fallocate`). `EOPNOTSUPP` for modes that do not exist
/// or that the file system has not.
pub fn fallocate(
    file: &FileDescription,
    mode: FallocFlags,
    offset: i64,
    len: i64,
    caller: &dyn Caller,
) -> SysResult<()> {
    let (Ok(offset), Ok(len)) = (u64::try_from(offset), u64::try_from(len)) else {
        return Err(Errno::EINVAL.into());
    };
    if len == 0 {
        return Err(Errno::EINVAL.into());
    }
    let keeps = mode.contains(FallocFlags::KEEP_SIZE);
    let known = match mode & !FallocFlags::KEEP_SIZE {
        FallocFlags::PUNCH_HOLE => keeps,
        FallocFlags::COLLAPSE_RANGE | FallocFlags::INSERT_RANGE | FallocFlags::WRITE_ZEROES => !keeps,
        FallocFlags::UNSHARE_RANGE | FallocFlags::ZERO_RANGE => true,
        other => other.is_empty(),
    };
    if !known {
        return Err(Errno::EOPNOTSUPP.into());
    }
    if !file.is_writable() {
        return Err(Errno::EBADF.into());
    }
    let inode = match &file.inode {
        Some(inode) if inode.file_type == FileType::REG => inode,
        Some(inode) if inode.is_dir() => return Err(Errno::EISDIR.into()),
        Some(inode) if inode.file_type == FileType::FIFO => return Err(Errno::ESPIPE.into()),
        Some(_) => return Err(Errno::ENODEV.into()),
        None => return Err(Errno::ESPIPE.into()),
    };
    let end = offset.checked_add(len).filter(|end| i64::try_from(*end).is_ok()).ok_or(Errno::EFBIG)?;
    if !mode.contains(FallocFlags::PUNCH_HOLE) {
        check_size(&file.attributes()?, end, caller)?;
    }
    remove_privileges(inode, caller)?;
    file.ops.allocate(file, caller, mode.bits(), offset, len)
}
