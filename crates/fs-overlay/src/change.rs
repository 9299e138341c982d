//! Making and removing names.

use std::sync::Arc;

use abi::Errno;
use smallvec::SmallVec;
use sync::SysResult;
use vfs::{Inode, NewNode, NewNodeKind};

use crate::lookup::Found;
use crate::marks;
use crate::node::OverlayNode;

impl OverlayNode {
    /// What the upper part of this directory has under `name`: for a place where nothing shows, a whiteout.
    fn whiteout_at(upper: &Arc<Inode>, name: &[u8]) -> SysResult<bool> {
        match upper.ops.lookup(upper, name) {
            Ok(_) => Ok(true),
            Err(error) if error.errno() == Some(Errno::ENOENT) => Ok(false),
            Err(error) => Err(error),
        }
    }

    pub(crate) fn create_node(
        &self,
        this: &Arc<Inode>,
        name: &[u8],
        node: &NewNode<'_>,
    ) -> SysResult<Arc<Inode>> {
        let node = &NewNode { kind: marks::escaped(node.kind), ..*node };
        let overlay = &self.overlay;
        overlay.upper()?;
        if self.is_removed() {
            return Err(Errno::ENOENT.into());
        }
        if self.find(name)?.is_some() {
            // Before copy-up: what is refused changes nothing.
            return Err(Errno::EEXIST.into());
        }
        let dir = self.copy_up(this)?;
        let upper = overlay.upper()?;
        let _tree = overlay.tree.lock();
        self.must_be_free(name)?;
        let inode = if !Self::whiteout_at(&dir, name)? {
            dir.ops.create(&dir, name, node)?
        } else {
            let made = upper.make_new(node)?;
            let placed = match node.kind {
                // What it hides must not come back inside it.
                NewNodeKind::Directory => marks::set_opaque(&made.inode),
                _ => Ok(()),
            };
            if let Err(error) = placed.and_then(|()| upper.place_over(&made, &dir, name)) {
                upper.discard(&made);
                return Err(error);
            }
            made.inode
        };
        overlay.intern(this, name, Found { upper: Some(inode), lowers: SmallVec::new() })
    }

    pub(crate) fn link_node(&self, this: &Arc<Inode>, name: &[u8], target: &Arc<Inode>) -> SysResult<()> {
        let target = target.downcast::<OverlayNode>().map(|node| (node, target)).ok_or(Errno::EXDEV)?;
        if self.find(name)?.is_some() {
            return Err(Errno::EEXIST.into());
        }
        let dir = self.copy_up(this)?;
        let file = target.0.copy_up(target.1)?;
        let upper = self.overlay.upper()?;
        let _tree = self.overlay.tree.lock();
        self.must_be_free(name)?;
        if !Self::whiteout_at(&dir, name)? {
            return dir.ops.link(&dir, name, &file);
        }
        let own = upper.temporary_name();
        upper.work.ops.link(&upper.work, &own, &file)?;
        let placed = upper.work.ops.rename(&upper.work, &own, &dir, name, vfs::RenameMode::Replace);
        if placed.is_err() {
            upper.clean(&own);
        }
        placed
    }

    /// Makes sure, with the tree locked, that this directory is still there and has no `name`.
    fn must_be_free(&self, name: &[u8]) -> SysResult<()> {
        if self.is_removed() {
            return Err(Errno::ENOENT.into());
        }
        match self.find_now(name)? {
            Some(_) => Err(Errno::EEXIST.into()),
            None => Ok(()),
        }
    }

    /// `unlink` and `rmdir`.
    pub(crate) fn remove(&self, this: &Arc<Inode>, name: &[u8], child: &Arc<Inode>) -> SysResult<()> {
        let overlay = &self.overlay;
        let upper = overlay.upper()?;
        let node = child.downcast::<OverlayNode>().ok_or(Errno::ESTALE)?;
        if child.is_dir() && !node.is_empty(child)? {
            return Err(Errno::ENOTEMPTY.into());
        }
        let dir = self.copy_up(this)?;
        let _tree = overlay.tree.lock();
        let found = self.find_now(name)?.ok_or(Errno::ENOENT)?;
        if !found.is_same(&node.parts()) {
            return Err(Errno::ESTALE.into());
        }
        if child.is_dir() && !node.is_empty(child)? {
            return Err(Errno::ENOTEMPTY.into());
        }
        if self.lower_has(name)? {
            let whiteout = overlay.make_whiteout()?;
            let placed = match &found.upper {
                Some(part) if part.is_dir() => upper.place_for_directory(&whiteout, &dir, name),
                _ => upper.place_over(&whiteout, &dir, name),
            };
            if let Err(error) = placed {
                upper.discard(&whiteout);
                return Err(error);
            }
        } else {
            let part = found.upper.ok_or(Errno::ESTALE)?;
            match part.is_dir() {
                true => upper.remove_directory(&dir, name)?,
                false => dir.ops.unlink(&dir, name, &part)?,
            }
        }
        node.name_is_gone(child);
        Ok(())
    }

    /// Notes that the file lost its name. One in the upper layer may have others.
    pub(crate) fn name_is_gone(&self, this: &Arc<Inode>) {
        if this.is_dir() || self.upper().is_none() {
            self.set_removed();
        }
    }
}
