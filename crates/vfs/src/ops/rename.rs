//! `rename`, `renameat`, `renameat2`.

use std::sync::Arc;

use abi::Errno;
use sync::SysResult;

use super::remove::name_is_gone;
use crate::dentry::DirectoryChange;
use crate::permission::{may_create, may_delete};
use crate::{Dentry, FsContext, Last, MAY_WRITE, Path, RenameMode, inode_permission};

/// Renames `old` to `new` within a mount.
pub fn rename(
    ctx: &FsContext<'_>,
    old_dirfd: i32,
    old: &[u8],
    new_dirfd: i32,
    new: &[u8],
    mode: RenameMode,
) -> SysResult<()> {
    ctx.retry_stale(|| {
        let from = ctx.parent(old_dirfd, old)?;
        let to = ctx.parent(new_dirfd, new)?;
        if !Arc::ptr_eq(&from.dir.mount, &to.dir.mount) {
            return Err(Errno::EXDEV.into());
        }
        let Last::Name(old_name) = from.last else { return Err(Errno::EBUSY.into()) };
        let Last::Name(new_name) = to.last else {
            return Err(if mode == RenameMode::NoReplace { Errno::EEXIST } else { Errno::EBUSY }.into());
        };
        from.dir.check_writable()?;
        let names = Names {
            old_dir: &from.dir,
            old_name: &old_name,
            old_slash: from.slash,
            new_dir: &to.dir,
            new_name: &new_name,
            new_slash: to.slash,
            mode,
        };
        if Arc::ptr_eq(&from.dir.dentry, &to.dir.dentry) {
            let change = from.dir.dentry.begin_change(ctx.waiter())?;
            return names.rename(ctx, &change, &change);
        }
        // Between directories: one at a time in this file system, so that who is whose ancestor does not change,
        // then the outer directory before the inner.
        let _shape = from.dir.dentry.tree.rename.lock(ctx.waiter())?;
        let (a, b) = (&from.dir.dentry, &to.dir.dentry);
        let from_first = a.is_at_or_above(b) || (!b.is_at_or_above(a) && Arc::as_ptr(a) < Arc::as_ptr(b));
        if from_first {
            let from_change = a.begin_change(ctx.waiter())?;
            let to_change = b.begin_change(ctx.waiter())?;
            names.rename(ctx, &from_change, &to_change)
        } else {
            let to_change = b.begin_change(ctx.waiter())?;
            let from_change = a.begin_change(ctx.waiter())?;
            names.rename(ctx, &from_change, &to_change)
        }
    })
}

struct Names<'a> {
    old_dir: &'a Path,
    old_name: &'a [u8],
    old_slash: bool,
    new_dir: &'a Path,
    new_name: &'a [u8],
    new_slash: bool,
    mode: RenameMode,
}

impl Names<'_> {
    /// With both directories held.
    fn rename(
        &self,
        ctx: &FsContext<'_>,
        from: &DirectoryChange<'_>,
        to: &DirectoryChange<'_>,
    ) -> SysResult<()> {
        let (old_dir, new_dir) = (&self.old_dir.dentry, &self.new_dir.dentry);
        let child = ctx.child_changing(old_dir, from, self.old_name)?.ok_or(Errno::ENOENT)?;
        let target = ctx.child_changing(new_dir, to, self.new_name)?;
        self.check_target(&child, target.as_ref())?;
        if let Some(target) = &target
            && Arc::ptr_eq(&child.inode, &target.inode)
        {
            // Two names of one file: POSIX says that nothing happens.
            return Ok(());
        }
        self.check_permissions(ctx, &child, target.as_ref())?;
        if ctx.mounts.is_mountpoint(&child)
            || target.as_ref().is_some_and(|target| ctx.mounts.is_mountpoint(target))
        {
            return Err(Errno::EBUSY.into());
        }
        let ops = &old_dir.inode.ops;
        ops.rename(&old_dir.inode, self.old_name, &new_dir.inode, self.new_name, self.mode)?;
        match target {
            Some(target) if self.mode == RenameMode::Exchange => {
                old_dir.move_child(&child, new_dir, self.new_name);
                new_dir.move_child(&target, old_dir, self.old_name);
            }
            target => {
                if let Some(target) = target {
                    name_is_gone(ctx, self.new_dir, &target);
                }
                old_dir.move_child(&child, new_dir, self.new_name);
            }
        }
        Ok(())
    }

    /// What must hold of what is there, before anybody's rights.
    fn check_target(&self, child: &Arc<Dentry>, target: Option<&Arc<Dentry>>) -> SysResult<()> {
        let child_is_dir = child.inode.is_dir();
        match (self.mode, target) {
            (RenameMode::NoReplace, Some(_)) => return Err(Errno::EEXIST.into()),
            (RenameMode::Exchange, None) => return Err(Errno::ENOENT.into()),
            (RenameMode::Exchange, Some(target)) if !target.inode.is_dir() && self.new_slash => {
                return Err(Errno::ENOTDIR.into());
            }
            _ => {}
        }
        if !child_is_dir && (self.old_slash || (self.new_slash && self.mode != RenameMode::Exchange)) {
            return Err(Errno::ENOTDIR.into());
        }
        let (old_dir, new_dir) = (&self.old_dir.dentry, &self.new_dir.dentry);
        if Arc::ptr_eq(old_dir, new_dir) {
            return Ok(());
        }
        if child_is_dir && child.is_at_or_above(new_dir) {
            return Err(Errno::EINVAL.into());
        }
        if target.is_some_and(|target| target.inode.is_dir() && target.is_at_or_above(old_dir)) {
            let errno = if self.mode == RenameMode::Exchange { Errno::EINVAL } else { Errno::ENOTEMPTY };
            return Err(errno.into());
        }
        Ok(())
    }

    /// Linux: `vfs_rename`.
    fn check_permissions(
        &self,
        ctx: &FsContext<'_>,
        child: &Arc<Dentry>,
        target: Option<&Arc<Dentry>>,
    ) -> SysResult<()> {
        let (old_dir, new_dir) = (&self.old_dir.dentry, &self.new_dir.dentry);
        let is_dir = child.inode.is_dir();
        may_delete(old_dir, &child.inode, Some(is_dir), ctx.caller)?;
        match target {
            None => may_create(new_dir, ctx.caller)?,
            Some(target) if self.mode == RenameMode::Exchange => {
                may_delete(new_dir, &target.inode, None, ctx.caller)?;
            }
            Some(target) => may_delete(new_dir, &target.inode, Some(is_dir), ctx.caller)?,
        }
        // A directory that gets another parent has its `..` rewritten.
        if !Arc::ptr_eq(old_dir, new_dir) {
            if is_dir {
                inode_permission(&child.inode, ctx.caller, MAY_WRITE)?;
            }
            if let Some(target) = target.filter(|target| target.inode.is_dir())
                && self.mode == RenameMode::Exchange
            {
                inode_permission(&target.inode, ctx.caller, MAY_WRITE)?;
            }
        }
        Ok(())
    }
}
