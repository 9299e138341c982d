//! `mkdir`, `mknod`, `symlink`, `link`.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use abi::{AtFlags, Errno, FileMode, FileType, PATH_MAX};
use sync::SysResult;

use crate::dentry::DirectoryChange;
use crate::permission::may_create;
use crate::{
    Capability, FsContext, Inode, Last, Lookup, MAY_READ, MAY_WRITE, NewNode, NewNodeKind, Path,
    inode_permission, is_owner,
};

/// A node of the caller's in `dir` (Linux: `inode_init_owner`, `mode_strip_sgid`): a set-gid directory passes its
/// group on, and to directories the bit. `permissions` has the umask applied.
pub(crate) fn new_node<'n>(
    ctx: &FsContext<'_>,
    dir: &Arc<Inode>,
    kind: NewNodeKind<'n>,
    mut permissions: u32,
) -> SysResult<NewNode<'n>> {
    let cred = ctx.cred();
    let dir = dir.ops.attributes(dir)?;
    let (sgid, xgrp) = (FileMode::SGID.bits(), FileMode::XGRP.bits());
    let inherits = dir.mode.contains(FileMode::SGID);
    let gid = if inherits { dir.gid } else { cred.fsgid };
    if inherits && matches!(kind, NewNodeKind::Directory) {
        permissions |= sgid;
    } else if inherits
        && permissions & (sgid | xgrp) == sgid | xgrp
        && !cred.in_group(dir.gid)
        && !cred.capable(Capability::FSETID)
    {
        permissions &= !sgid;
    }
    Ok(NewNode { kind, permissions, uid: cred.fsuid, gid })
}

/// Finds where a new name goes, and has `make` make it (Linux: `filename_create`): `EEXIST` before `EROFS` before
/// `EACCES`.
fn create_at(
    ctx: &FsContext<'_>,
    dirfd: i32,
    path: &[u8],
    is_dir: bool,
    make: impl Fn(&Path, &[u8]) -> SysResult<Option<Arc<Inode>>>,
) -> SysResult<()> {
    let parent = ctx.parent(dirfd, path)?;
    let Last::Name(name) = parent.last else { return Err(Errno::EEXIST.into()) };
    let dir = &parent.dir;
    let change = dir.dentry.begin_change(ctx.waiter())?;
    if ctx.child_changing(&dir.dentry, &change, &name)?.is_some() {
        return Err(Errno::EEXIST.into());
    }
    if parent.slash && !is_dir {
        return Err(Errno::ENOENT.into());
    }
    dir.check_writable()?;
    if let Some(inode) = make(dir, &name)? {
        keep_new(ctx, dir, &change, &name, inode)?;
    }
    Ok(())
}

fn keep_new(
    ctx: &FsContext<'_>,
    dir: &Path,
    change: &DirectoryChange<'_>,
    name: &[u8],
    inode: Arc<Inode>,
) -> SysResult<()> {
    let dentry = dir.dentry.enter_new(change, name, inode)?;
    ctx.mounts.dentries.keep(&dentry);
    Ok(())
}

fn create_node(
    ctx: &FsContext<'_>,
    dir: &Path,
    name: &[u8],
    kind: NewNodeKind<'_>,
    permissions: u32,
) -> SysResult<Option<Arc<Inode>>> {
    let node = new_node(ctx, dir.inode(), kind, permissions)?;
    dir.inode().ops.create(dir.inode(), name, &node).map(Some)
}

/// Makes a directory. Of `mode` the permission bits and the sticky bit count.
pub fn mkdir(ctx: &FsContext<'_>, dirfd: i32, path: &[u8], mode: u32) -> SysResult<()> {
    let permissions = mode & 0o1777 & !ctx.place.umask;
    ctx.retry_stale(|| {
        create_at(ctx, dirfd, path, true, |dir, name| {
            may_create(&dir.dentry, ctx.caller)?;
            create_node(ctx, dir, name, NewNodeKind::Directory, permissions)
        })
    })
}

/// Makes a file, FIFO, socket or device node, as `mode` says (type 0 is a regular file). `EPERM` for directories,
/// and for devices without CAP_MKNOD.
pub fn mknod(ctx: &FsContext<'_>, dirfd: i32, path: &[u8], mode: FileMode, dev: u64) -> SysResult<()> {
    let kind = match mode.file_type() {
        FileType(0) | FileType::REG => NewNodeKind::File,
        FileType::FIFO => NewNodeKind::Fifo,
        FileType::SOCK => NewNodeKind::Socket,
        FileType::CHR => NewNodeKind::CharDevice(dev),
        FileType::BLK => NewNodeKind::BlockDevice(dev),
        FileType::DIR => return Err(Errno::EPERM.into()),
        _ => return Err(Errno::EINVAL.into()),
    };
    let is_device = match kind {
        // 0:0 is a whiteout, which anybody may make.
        NewNodeKind::CharDevice(dev) => dev != 0,
        NewNodeKind::BlockDevice(_) => true,
        _ => false,
    };
    let permissions = mode.permissions() & !ctx.place.umask;
    ctx.retry_stale(|| {
        create_at(ctx, dirfd, path, false, |dir, name| {
            may_create(&dir.dentry, ctx.caller)?;
            if is_device && !ctx.cred().capable(Capability::MKNOD) {
                return Err(Errno::EPERM.into());
            }
            create_node(ctx, dir, name, kind, permissions)
        })
    })
}

/// Makes the file of a socket, as `bind` does, and gives its inode. `permissions` are cut by the umask.
pub fn make_socket(ctx: &FsContext<'_>, path: &[u8], permissions: u32) -> SysResult<Arc<Inode>> {
    let permissions = permissions & 0o7777 & !ctx.place.umask;
    let made = RefCell::new(None);
    ctx.retry_stale(|| {
        create_at(ctx, abi::AT_FDCWD, path, false, |dir, name| {
            may_create(&dir.dentry, ctx.caller)?;
            let inode = create_node(ctx, dir, name, NewNodeKind::Socket, permissions)?;
            made.borrow_mut().clone_from(&inode);
            Ok(inode)
        })
    })?;
    made.into_inner().ok_or(Errno::EIO.into())
}

/// Makes a symbolic link with the text `target`.
pub fn symlink(ctx: &FsContext<'_>, target: &[u8], dirfd: i32, path: &[u8]) -> SysResult<()> {
    if target.is_empty() {
        return Err(Errno::ENOENT.into());
    }
    if target.len() >= PATH_MAX {
        return Err(Errno::ENAMETOOLONG.into());
    }
    ctx.retry_stale(|| {
        create_at(ctx, dirfd, path, false, |dir, name| {
            may_create(&dir.dentry, ctx.caller)?;
            create_node(ctx, dir, name, NewNodeKind::Symlink(target), 0o777)
        })
    })
}

/// Gives a file another name. Flags: AT_SYMLINK_FOLLOW, AT_EMPTY_PATH (needs CAP_DAC_READ_SEARCH).
pub fn link(
    ctx: &FsContext<'_>,
    old_dirfd: i32,
    old: &[u8],
    new_dirfd: i32,
    new: &[u8],
    flags: AtFlags,
) -> SysResult<()> {
    if !(flags & !(AtFlags::SYMLINK_FOLLOW | AtFlags::EMPTY_PATH)).is_empty() {
        return Err(Errno::EINVAL.into());
    }
    let mut how = Lookup::empty();
    how.set(Lookup::FOLLOW, flags.contains(AtFlags::SYMLINK_FOLLOW));
    if flags.contains(AtFlags::EMPTY_PATH) && old.is_empty() {
        if !ctx.cred().capable(Capability::DAC_READ_SEARCH) {
            return Err(Errno::ENOENT.into());
        }
        how |= Lookup::EMPTY;
    }
    ctx.retry_stale(|| {
        let target = ctx.lookup(old_dirfd, old, how)?.path_or(Errno::EXDEV)?;
        create_at(ctx, new_dirfd, new, false, |dir, name| {
            if !Arc::ptr_eq(&target.mount, &dir.mount) {
                return Err(Errno::EXDEV.into());
            }
            let inode = target.inode();
            may_link(ctx, inode)?;
            may_create(&dir.dentry, ctx.caller)?;
            if inode.is_dir() {
                return Err(Errno::EPERM.into());
            }
            let linkable = &inode.attached.linkable;
            if inode.ops.attributes(inode)?.nlink == 0 && !linkable.load(Ordering::Relaxed) {
                return Err(Errno::ENOENT.into());
            }
            dir.inode().ops.link(dir.inode(), name, inode)?;
            linkable.store(false, Ordering::Relaxed);
            Ok(Some(inode.clone()))
        })
    })
}

/// Linux: `may_linkat`. Others' files are given names only if they are regular, not set-id and the caller may read
/// and write them (`EPERM`).
fn may_link(ctx: &FsContext<'_>, inode: &Arc<Inode>) -> SysResult<()> {
    if ctx.mounts.protections.hardlinks.load(Ordering::Relaxed) == 0 {
        return Ok(());
    }
    let now = inode.ops.attributes(inode)?;
    let set_gid = FileMode::SGID | FileMode::XGRP;
    let is_plain = now.mode.is_regular() && !now.mode.contains(FileMode::SUID) && !now.mode.contains(set_gid);
    let safe = is_plain && inode_permission(inode, ctx.caller, MAY_READ | MAY_WRITE).is_ok();
    if safe || is_owner(&now, ctx.cred()) { Ok(()) } else { Err(Errno::EPERM.into()) }
}
