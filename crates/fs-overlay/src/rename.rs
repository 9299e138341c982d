//! Renaming.

use std::sync::Arc;

use abi::Errno;
use sync::SysResult;
use vfs::{Inode, RenameMode};

use crate::copy_up::Made;
use crate::marks;
use crate::node::OverlayNode;
use crate::overlay::Upper;

/// One end of a rename.
struct End<'a> {
    node: &'a OverlayNode,
    name: &'a [u8],
}

impl End<'_> {
    /// Whether `inode` still is what is there, with the tree locked.
    fn is_still(&self, inode: Option<&Arc<Inode>>) -> SysResult<bool> {
        Ok(match (self.node.find_now(self.name)?, inode) {
            (None, None) => true,
            (Some(found), Some(inode)) => {
                inode.downcast::<OverlayNode>().is_some_and(|node| found.is_same(&node.parts()))
            }
            _ => false,
        })
    }
}

impl OverlayNode {
    pub(crate) fn rename_node(
        &self,
        this: &Arc<Inode>,
        name: &[u8],
        to_dir: &Arc<Inode>,
        to_name: &[u8],
        mode: RenameMode,
    ) -> SysResult<()> {
        let overlay = &self.overlay;
        let upper = overlay.upper()?;
        let to_node = to_dir.downcast::<OverlayNode>().ok_or(Errno::EXDEV)?;
        let from = End { node: self, name };
        let to = End { node: to_node, name: to_name };
        let moved = self.find_inode(this, name)?.ok_or(Errno::ENOENT)?;
        let target = to_node.find_inode(to_dir, to_name)?;
        match (&target, mode) {
            (Some(_), RenameMode::NoReplace) => return Err(Errno::EEXIST.into()),
            (None, RenameMode::Exchange) => return Err(Errno::ENOENT.into()),
            // Two names of one file: nothing happens (rename(2)).
            (Some(target), _) if Arc::ptr_eq(target, &moved) => return Ok(()),
            (Some(target), RenameMode::Replace) => may_replace(&moved, target)?,
            _ => {}
        }
        make_movable(&moved)?;
        if let (Some(target), RenameMode::Exchange) = (&target, mode) {
            make_movable(target)?;
        }
        let from_upper = self.copy_up(this)?;
        let to_upper = to_node.copy_up(to_dir)?;

        let _tree = overlay.tree.lock();
        if self.is_removed() || to_node.is_removed() {
            return Err(Errno::ENOENT.into());
        }
        if !from.is_still(Some(&moved))? || !to.is_still(target.as_ref())? {
            return Err(Errno::ESTALE.into());
        }
        // A directory must not merge with what lies below its new place.
        if moved.is_dir() && to_node.lower_has(to_name)? {
            set_opaque(&moved)?;
        }
        if mode == RenameMode::Exchange {
            let target = target.ok_or(Errno::ENOENT)?;
            if target.is_dir() && self.lower_has(name)? {
                set_opaque(&target)?;
            }
            from_upper.ops.rename(&from_upper, name, &to_upper, to_name, mode)?;
            set_place(&moved, to_dir, to_name);
            set_place(&target, this, name);
            return Ok(());
        }
        if let Some(target) = &target {
            may_replace(&moved, target)?;
        }
        let whiteout = if self.lower_has(name)? { Some(overlay.make_whiteout()?) } else { None };
        let done = overlay.while_half_done(|| {
            let from = (&from_upper, name);
            upper.move_over(from, (&to_upper, to_name), moved.is_dir(), whiteout.as_ref())
        });
        if done.is_err() {
            if let Some(whiteout) = &whiteout {
                upper.discard(whiteout);
            }
            return done;
        }
        set_place(&moved, to_dir, to_name);
        if let Some(target) = &target
            && let Some(node) = target.downcast::<OverlayNode>()
        {
            node.name_is_gone(target);
        }
        Ok(())
    }
}

/// Whether `moved` may take the place of `target` (vfs_rename's order).
fn may_replace(moved: &Arc<Inode>, target: &Arc<Inode>) -> SysResult<()> {
    match (moved.is_dir(), target.is_dir()) {
        (true, false) => Err(Errno::ENOTDIR.into()),
        (false, true) => Err(Errno::EISDIR.into()),
        (false, false) => Ok(()),
        (true, true) => {
            let node = target.downcast::<OverlayNode>().ok_or(Errno::EIO)?;
            if node.is_empty(target)? { Ok(()) } else { Err(Errno::ENOTEMPTY.into()) }
        }
    }
}

/// Brings a file into the upper layer, a directory with all that is in it.
fn make_movable(inode: &Arc<Inode>) -> SysResult<()> {
    let node = inode.downcast::<OverlayNode>().ok_or(Errno::EIO)?;
    if inode.is_dir() { node.make_whole(inode) } else { node.copy_up(inode).map(drop) }
}

fn set_opaque(inode: &Arc<Inode>) -> SysResult<()> {
    let upper = inode.downcast::<OverlayNode>().and_then(OverlayNode::upper).ok_or(Errno::ESTALE)?;
    marks::set_opaque(&upper)
}

fn set_place(inode: &Arc<Inode>, dir: &Arc<Inode>, name: &[u8]) {
    if let Some(node) = inode.downcast::<OverlayNode>() {
        node.set_place(dir, name);
    }
}

impl Upper {
    /// Moves a file of the upper layer over whatever the upper layer has at its new place (nothing, a whiteout, a
    /// file, a directory with nothing but whiteouts), and leaves `whiteout` where it was.
    fn move_over(
        &self,
        (from, name): (&Arc<Inode>, &[u8]),
        (to, to_name): (&Arc<Inode>, &[u8]),
        is_dir: bool,
        whiteout: Option<&Made>,
    ) -> SysResult<()> {
        let at_target = match to.ops.lookup(to, to_name) {
            Ok(inode) => Some(inode),
            Err(error) if error.errno() == Some(Errno::ENOENT) => None,
            Err(error) => return Err(error),
        };
        match at_target {
            // Neither kind replaces the other, and a directory of whiteouts is not empty: the old one comes to the
            // new one's place, and goes from there.
            Some(old) if is_dir || old.is_dir() => {
                from.ops.rename(from, name, to, to_name, RenameMode::Exchange)?;
                match (whiteout, old.is_dir()) {
                    (Some(whiteout), true) => self.place_for_directory(whiteout, from, name),
                    (Some(whiteout), false) => self.place_over(whiteout, from, name),
                    (None, true) => self.remove_directory(from, name),
                    (None, false) => from.ops.unlink(from, name, &old),
                }
            }
            _ => {
                from.ops.rename(from, name, to, to_name, RenameMode::Replace)?;
                whiteout.map_or(Ok(()), |whiteout| self.place(whiteout, from, name))
            }
        }
    }

    /// Puts a file in the place of a directory that shows no entries.
    pub(crate) fn place_for_directory(&self, made: &Made, dir: &Arc<Inode>, name: &[u8]) -> SysResult<()> {
        let own = self.own_name(made)?;
        self.work.ops.rename(&self.work, &own, dir, name, RenameMode::Exchange)?;
        self.clean(&own);
        Ok(())
    }

    /// Removes a directory that shows no entries: there may be whiteouts in it.
    pub(crate) fn remove_directory(&self, dir: &Arc<Inode>, name: &[u8]) -> SysResult<()> {
        let own = self.temporary_name();
        dir.ops.rename(dir, name, &self.work, &own, RenameMode::NoReplace)?;
        self.clean(&own);
        Ok(())
    }
}
