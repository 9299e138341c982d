//! What `vfs` asks of an inode.

use std::any::Any;
use std::sync::Arc;

use abi::{Errno, FileType};
use sync::SysResult;
use vfs::{
    AttributeChange, Attributes, Caller, FileOps, Inode, InodeOps, NewNode, NewNodeKind, OpenHow, RenameMode,
    XattrMode,
};

use crate::file::TmpFile;
use crate::node::{Kind, TmpNode};
use crate::open_dir::OpenDir;
use crate::time::{now, resolve};

/// Our own type behind an inode of this file system; `EXDEV` for another's.
fn node(inode: &Arc<Inode>) -> SysResult<&TmpNode> {
    inode.downcast().ok_or(Errno::EXDEV.into())
}

impl InodeOps for TmpNode {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn attributes(&self, _: &Arc<Inode>) -> SysResult<Attributes> {
        self.stat()
    }

    fn set_attributes(&self, _: &Arc<Inode>, change: &AttributeChange) -> SysResult<()> {
        let mut state = self.lock();
        if let (Some(permissions), Kind::File(crate::data::Data::Host(host))) =
            (change.permissions, &state.kind)
        {
            host.set_mode(permissions)?;
        }
        if let Some(size) = change.size {
            if state.data()?.size()? == size {
                state.data()?.trim(&self.fs.space)?;
            } else {
                state.data()?.truncate(size, &self.fs.space)?;
                state.modified();
            }
        }
        if let Some(permissions) = change.permissions {
            state.mode = state.mode.with_permissions(permissions);
        }
        state.uid = change.uid.unwrap_or(state.uid);
        state.gid = change.gid.unwrap_or(state.gid);
        if let Some(atime) = change.atime {
            state.atime = resolve(atime);
            if let Kind::File(crate::data::Data::Host(host)) = &mut state.kind {
                host.atime_was_set()?;
            }
        }
        if let Some(mtime) = change.mtime {
            state.mtime = resolve(mtime);
            let mtime = state.mtime;
            if let Kind::File(crate::data::Data::Host(host)) = &mut state.kind {
                host.set_mtime(mtime)?;
            }
        }
        let more = change.permissions.is_some()
            || change.uid.is_some()
            || change.gid.is_some()
            || change.atime.is_some()
            || change.mtime.is_some();
        // A size that stays changes no time (truncate(2)); changing nothing does (chown to -1, -1).
        if more || change.size.is_none() {
            state.changed();
        }
        Ok(())
    }

    fn open(&self, this: &Arc<Inode>, how: OpenHow, _: &dyn Caller) -> SysResult<Box<dyn FileOps>> {
        match this.file_type {
            FileType::REG => Ok(Box::new(TmpFile::new(this.clone(), how.flags))),
            FileType::DIR => Ok(Box::new(OpenDir::new(this.clone()))),
            _ => Err(Errno::ENXIO.into()),
        }
    }

    fn lookup(&self, _: &Arc<Inode>, name: &[u8]) -> SysResult<Arc<Inode>> {
        self.lock().entries()?.get(name).cloned().ok_or(Errno::ENOENT.into())
    }

    fn create(&self, _: &Arc<Inode>, name: &[u8], node: &NewNode<'_>) -> SysResult<Arc<Inode>> {
        let child = self.fs.new_inode(node)?;
        let _tree = self.fs.tree.lock();
        let mut state = self.lock();
        if state.nlink == 0 {
            return Err(Errno::ENOENT.into());
        }
        let entries = state.entries()?;
        if entries.get(name).is_some() {
            return Err(Errno::EEXIST.into());
        }
        entries.insert(name, child.clone());
        if matches!(node.kind, NewNodeKind::Directory) {
            state.nlink = state.nlink.saturating_add(1);
        }
        state.modified();
        Ok(child)
    }

    fn create_unnamed(&self, _: &Arc<Inode>, node: &NewNode<'_>) -> SysResult<Arc<Inode>> {
        let inode = self.fs.new_inode(node)?;
        if let Some(node) = inode.downcast::<TmpNode>() {
            node.lock().nlink = 0;
        }
        Ok(inode)
    }

    fn link(&self, _: &Arc<Inode>, name: &[u8], target: &Arc<Inode>) -> SysResult<()> {
        if !self.fs.owns(target) {
            return Err(Errno::EXDEV.into());
        }
        let target_node = node(target)?;
        let _tree = self.fs.tree.lock();
        {
            let mut state = self.lock();
            if state.nlink == 0 {
                return Err(Errno::ENOENT.into());
            }
            if state.entries()?.get(name).is_some() {
                return Err(Errno::EEXIST.into());
            }
            state.entries()?.insert(name, target.clone());
            state.modified();
        }
        let mut state = target_node.lock();
        state.nlink = state.nlink.saturating_add(1);
        state.changed();
        Ok(())
    }

    fn unlink(&self, _: &Arc<Inode>, name: &[u8], child: &Arc<Inode>) -> SysResult<()> {
        let _tree = self.fs.tree.lock();
        let removed = {
            let mut state = self.lock();
            let removed = state.entries()?.get(name).cloned().filter(|found| Arc::ptr_eq(found, child));
            let removed = removed.ok_or(Errno::ENOENT)?;
            if removed.is_dir() {
                return Err(Errno::EISDIR.into());
            }
            // The clone keeps it alive until the lock is gone.
            drop(state.entries()?.remove(name));
            state.modified();
            removed
        };
        let mut state = node(&removed)?.lock();
        state.nlink = state.nlink.saturating_sub(1);
        state.changed();
        Ok(())
    }

    fn rmdir(&self, _: &Arc<Inode>, name: &[u8], child: &Arc<Inode>) -> SysResult<()> {
        let _tree = self.fs.tree.lock();
        let found = self.lock().entries()?.get(name).is_some_and(|found| Arc::ptr_eq(found, child));
        if !found {
            return Err(Errno::ENOENT.into());
        }
        {
            let mut state = node(child)?.lock();
            if !state.entries()?.is_empty() {
                return Err(Errno::ENOTEMPTY.into());
            }
            state.nlink = 0;
            state.changed();
        }
        let mut state = self.lock();
        drop(state.entries()?.remove(name));
        state.nlink = state.nlink.saturating_sub(1);
        state.modified();
        Ok(())
    }

    fn rename(
        &self,
        this: &Arc<Inode>,
        name: &[u8],
        to_dir: &Arc<Inode>,
        to_name: &[u8],
        mode: RenameMode,
    ) -> SysResult<()> {
        if !self.fs.owns(to_dir) {
            return Err(Errno::EXDEV.into());
        }
        let _tree = self.fs.tree.lock();
        let child = self.lock().entries()?.get(name).cloned().ok_or(Errno::ENOENT)?;
        let to = node(to_dir)?;
        let target = {
            let mut state = to.lock();
            if state.nlink == 0 {
                return Err(Errno::ENOENT.into());
            }
            state.entries()?.get(to_name).cloned()
        };
        check_target(&child, target.as_ref(), mode)?;
        if target.as_ref().is_some_and(|target| Arc::ptr_eq(target, &child)) {
            return Ok(());
        }
        // The new name first, so that nobody finds the file nowhere.
        to.put(to_name, child.clone())?;
        match &target {
            Some(target) if mode == RenameMode::Exchange => self.put(name, target.clone())?,
            _ => self.take(name)?,
        }
        let both_ways = mode == RenameMode::Exchange;
        if !Arc::ptr_eq(this, to_dir) {
            move_dotdot(&child, self, to)?;
            if let Some(target) = target.as_ref().filter(|_| both_ways) {
                move_dotdot(target, to, self)?;
            }
        }
        node(&child)?.lock().changed();
        if let Some(target) = target {
            let mut state = node(&target)?.lock();
            if !both_ways {
                let gone = if target.is_dir() { state.nlink } else { 1 };
                state.nlink = state.nlink.saturating_sub(gone);
            }
            state.changed();
            drop(state);
            if target.is_dir() && !both_ways {
                let mut state = to.lock();
                state.nlink = state.nlink.saturating_sub(1);
            }
        }
        Ok(())
    }

    fn read_link(&self, _: &Arc<Inode>) -> SysResult<Vec<u8>> {
        let mut state = self.lock();
        let Kind::Symlink(text) = &state.kind else { return Err(Errno::EINVAL.into()) };
        let text = text.to_vec();
        if needs_atime(state.atime, state.mtime, state.ctime) {
            state.atime = now();
        }
        Ok(text)
    }

    fn get_xattr(&self, _: &Arc<Inode>, name: &[u8]) -> SysResult<Vec<u8>> {
        self.xattr(name)
    }

    fn set_xattr(&self, _: &Arc<Inode>, name: &[u8], value: &[u8], mode: XattrMode) -> SysResult<()> {
        self.change_xattr(name, Some(value), mode)
    }

    fn remove_xattr(&self, _: &Arc<Inode>, name: &[u8]) -> SysResult<()> {
        self.change_xattr(name, None, XattrMode::Replace)
    }

    fn list_xattrs(&self, _: &Arc<Inode>) -> SysResult<Vec<Vec<u8>>> {
        Ok(self.lock().xattrs.keys().cloned().collect())
    }
}

impl TmpNode {
    /// Puts an entry, in place of what has the name. What it replaces is kept alive by the caller.
    fn put(&self, name: &[u8], child: Arc<Inode>) -> SysResult<()> {
        let mut state = self.lock();
        drop(state.entries()?.insert(name, child));
        state.modified();
        Ok(())
    }

    fn take(&self, name: &[u8]) -> SysResult<()> {
        let mut state = self.lock();
        drop(state.entries()?.remove(name));
        state.modified();
        Ok(())
    }
}

/// What a rename says to what has the new name.
fn check_target(child: &Arc<Inode>, target: Option<&Arc<Inode>>, mode: RenameMode) -> SysResult<()> {
    match (mode, target) {
        (RenameMode::NoReplace, Some(_)) => Err(Errno::EEXIST.into()),
        (RenameMode::Exchange, None) => Err(Errno::ENOENT.into()),
        (RenameMode::Replace, Some(target)) if !Arc::ptr_eq(child, target) => {
            match (child.is_dir(), target.is_dir()) {
                (true, false) => Err(Errno::ENOTDIR.into()),
                (false, true) => Err(Errno::EISDIR.into()),
                (true, true) if !node(target)?.lock().entries()?.is_empty() => Err(Errno::ENOTEMPTY.into()),
                _ => Ok(()),
            }
        }
        _ => Ok(()),
    }
}

/// A directory's `..` is a link to its parent.
fn move_dotdot(moved: &Arc<Inode>, from: &TmpNode, to: &TmpNode) -> SysResult<()> {
    if moved.is_dir() {
        let mut state = from.lock();
        state.nlink = state.nlink.saturating_sub(1);
        drop(state);
        let mut state = to.lock();
        state.nlink = state.nlink.saturating_add(1);
    }
    Ok(())
}

/// Whether reading updates the access time (Linux's `relatime`): it is no later than a change, or a day old.
pub(crate) fn needs_atime(atime: abi::Timespec, mtime: abi::Timespec, ctime: abi::Timespec) -> bool {
    const DAY: i64 = 24 * 60 * 60;
    atime <= mtime || atime <= ctime || now().sec.saturating_sub(atime.sec) >= DAY
}
