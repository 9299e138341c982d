//! `unlink` and `rmdir`.

use std::sync::Arc;

use abi::Errno;
use sync::SysResult;

use crate::permission::may_delete;
use crate::{Dentry, FsContext, Last, Path};

/// Forgets a name that the file system has removed.
pub(super) fn name_is_gone(ctx: &FsContext<'_>, dir: &Path, child: &Arc<Dentry>) {
    dir.dentry.forget(child);
    ctx.mounts.dentries.let_go(child);
}

/// Removes a name of something that is not a directory.
pub fn unlink(ctx: &FsContext<'_>, dirfd: i32, path: &[u8]) -> SysResult<()> {
    ctx.retry_stale(|| {
        let parent = ctx.parent(dirfd, path)?;
        let Last::Name(name) = parent.last else { return Err(Errno::EISDIR.into()) };
        let dir = parent.dir;
        let change = dir.dentry.begin_change(ctx.waiter())?;
        dir.check_writable()?;
        let child = ctx.child_changing(&dir.dentry, &change, &name)?.ok_or(Errno::ENOENT)?;
        let is_dir = child.inode.is_dir();
        if parent.slash {
            return Err(if is_dir { Errno::EISDIR } else { Errno::ENOTDIR }.into());
        }
        may_delete(&dir.dentry, &child.inode, Some(false), ctx.caller)?;
        if ctx.mounts.is_mountpoint(&child) {
            return Err(Errno::EBUSY.into());
        }
        dir.inode().ops.unlink(dir.inode(), &name, &child.inode)?;
        name_is_gone(ctx, &dir, &child);
        Ok(())
    })
}

/// Removes an empty directory.
pub fn rmdir(ctx: &FsContext<'_>, dirfd: i32, path: &[u8]) -> SysResult<()> {
    ctx.retry_stale(|| {
        let parent = ctx.parent(dirfd, path)?;
        let name = match parent.last {
            Last::Name(name) => name,
            Last::Dot => return Err(Errno::EINVAL.into()),
            Last::DotDot => return Err(Errno::ENOTEMPTY.into()),
            Last::Root => return Err(Errno::EBUSY.into()),
        };
        let dir = parent.dir;
        let change = dir.dentry.begin_change(ctx.waiter())?;
        dir.check_writable()?;
        let child = ctx.child_changing(&dir.dentry, &change, &name)?.ok_or(Errno::ENOENT)?;
        may_delete(&dir.dentry, &child.inode, Some(true), ctx.caller)?;
        if ctx.mounts.is_mountpoint(&child) {
            return Err(Errno::EBUSY.into());
        }
        dir.inode().ops.rmdir(dir.inode(), &name, &child.inode)?;
        name_is_gone(ctx, &dir, &child);
        Ok(())
    })
}
