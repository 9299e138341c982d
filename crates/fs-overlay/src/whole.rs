//! Making a directory whole: all in it is copied up, and what lies below is hidden for good. Then it can be renamed, which
//! overlayfs without redirects refuses. Large trees are refused here too (`EXDEV`; programs copy them then).

use std::sync::Arc;

use abi::{Errno, FileType};
use sync::SysResult;
use vfs::{Inode, InodeOps};

use crate::node::OverlayNode;
use crate::{dir, marks};

/// What may be copied for one rename.
struct Budget {
    entries: u32,
    bytes: u64,
}

impl Budget {
    const RENAME: Budget = Budget { entries: 4096, bytes: 256 << 20 };

    fn spend(&mut self, bytes: u64) -> SysResult<()> {
        match (self.entries.checked_sub(1), self.bytes.checked_sub(bytes)) {
            (Some(entries), Some(bytes)) => {
                *self = Budget { entries, bytes };
                Ok(())
            }
            _ => Err(Errno::EXDEV.into()),
        }
    }
}

impl OverlayNode {
    /// Makes this directory whole. Not to be called with the tree locked.
    pub(crate) fn make_whole(&self, this: &Arc<Inode>) -> SysResult<()> {
        let mut budget = Budget::RENAME;
        // Parents before children; trees can be deep: no recursion.
        let mut directories = vec![this.clone()];
        let mut next = 0;
        while let Some(dir) = directories.get(next).cloned() {
            next += 1;
            let node = dir.downcast::<OverlayNode>().ok_or(Errno::EIO)?;
            if node.is_whole() {
                continue;
            }
            node.copy_up(&dir)?;
            for name in node.shown_names(&dir)? {
                let child = match node.lookup(&dir, &name) {
                    Err(error) if error.errno() == Some(Errno::ENOENT) => continue,
                    other => other?,
                };
                let child_node = child.downcast::<OverlayNode>().ok_or(Errno::EIO)?;
                let (real, is_upper) = child_node.real()?;
                let to_copy = child.file_type == FileType::REG && !is_upper;
                budget.spend(if to_copy { real.ops.attributes(&real)?.size } else { 0 })?;
                if child.is_dir() {
                    directories.push(child);
                } else {
                    child_node.copy_up(&child)?;
                }
            }
        }
        for dir in directories.iter().rev() {
            dir.downcast::<OverlayNode>().ok_or(Errno::EIO)?.hide_lowers()?;
        }
        Ok(())
    }

    /// Whether nothing lies below this directory.
    fn is_whole(&self) -> bool {
        let parts = self.parts();
        parts.upper.is_some() && parts.lowers.is_empty()
    }

    /// Hides the lower parts of this directory, all of which the upper one has. `EXDEV` if somebody was faster.
    fn hide_lowers(&self) -> SysResult<()> {
        let _tree = self.overlay.tree.lock();
        let parts = self.parts();
        let upper = parts.upper.ok_or(Errno::EXDEV)?;
        for lower in &parts.lowers {
            for name in dir::names(lower)? {
                let found = self.find_now(&name)?;
                if found.is_some_and(|found| found.upper.is_none() || !found.lowers.is_empty()) {
                    return Err(Errno::EXDEV.into());
                }
            }
        }
        if !parts.lowers.is_empty() {
            marks::set_opaque(&upper)?;
            self.forget_lowers();
        }
        Ok(())
    }
}
