//! The inode operations: reading goes to the part that speaks for the file, changing to the upper one.

use std::any::Any;
use std::sync::Arc;

use abi::Errno;
use sync::SysResult;
use vfs::{
    AttributeChange, Attributes, Caller, FileOps, Inode, InodeOps, NewNode, OpenHow, RenameMode, XattrMode,
};

use crate::dir::OverlayDir;
use crate::file::OverlayFile;
use crate::marks;
use crate::node::OverlayNode;

impl InodeOps for OverlayNode {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn attributes(&self, _this: &Arc<Inode>) -> SysResult<Attributes> {
        let (real, _) = self.real()?;
        let attributes = real.ops.attributes(&real)?;
        self.shown(&real, attributes)
    }

    fn set_attributes(&self, this: &Arc<Inode>, change: &AttributeChange) -> SysResult<()> {
        let upper = self.copy_up_part(this, change.size.unwrap_or(u64::MAX))?;
        upper.ops.set_attributes(&upper, change)
    }

    fn open(&self, this: &Arc<Inode>, how: OpenHow, caller: &dyn Caller) -> SysResult<Box<dyn FileOps>> {
        if this.is_dir() {
            return Ok(Box::new(OverlayDir::new(this.clone())));
        }
        let real = if how.flags.is_writable() { self.copy_up(this)? } else { self.real()?.0 };
        let file = real.ops.open(&real, how, caller)?;
        Ok(Box::new(OverlayFile::new(file, real, this.clone())))
    }

    fn lookup(&self, this: &Arc<Inode>, name: &[u8]) -> SysResult<Arc<Inode>> {
        self.find_inode(this, name)?.ok_or(Errno::ENOENT.into())
    }

    fn revalidate(&self, _this: &Arc<Inode>, name: &[u8], child: &Arc<Inode>) -> bool {
        let Some(node) = child.downcast::<OverlayNode>() else { return false };
        let Ok(Some(found)) = self.find(name) else { return false };
        let parts = node.parts();
        // It may have been copied up since.
        found.is_same(&parts) || found.was(&parts)
    }

    fn create(&self, this: &Arc<Inode>, name: &[u8], node: &NewNode<'_>) -> SysResult<Arc<Inode>> {
        self.create_node(this, name, node)
    }

    fn create_unnamed(&self, this: &Arc<Inode>, node: &NewNode<'_>) -> SysResult<Arc<Inode>> {
        let dir = self.copy_up(this)?;
        let made = dir.ops.create_unnamed(&dir, node)?;
        self.overlay.intern_unnamed(made)
    }

    fn link(&self, this: &Arc<Inode>, name: &[u8], target: &Arc<Inode>) -> SysResult<()> {
        self.link_node(this, name, target)
    }

    fn unlink(&self, this: &Arc<Inode>, name: &[u8], child: &Arc<Inode>) -> SysResult<()> {
        self.remove(this, name, child)
    }

    fn rmdir(&self, this: &Arc<Inode>, name: &[u8], child: &Arc<Inode>) -> SysResult<()> {
        self.remove(this, name, child)
    }

    fn rename(
        &self,
        this: &Arc<Inode>,
        name: &[u8],
        to_dir: &Arc<Inode>,
        to_name: &[u8],
        mode: RenameMode,
    ) -> SysResult<()> {
        self.rename_node(this, name, to_dir, to_name, mode)
    }

    fn read_link(&self, _this: &Arc<Inode>) -> SysResult<Vec<u8>> {
        let (real, _) = self.real()?;
        real.ops.read_link(&real)
    }

    fn get_xattr(&self, _this: &Arc<Inode>, name: &[u8]) -> SysResult<Vec<u8>> {
        if marks::is_private(name) {
            return Err(Errno::EOPNOTSUPP.into());
        }
        let (real, _) = self.real()?;
        real.ops.get_xattr(&real, name)
    }

    fn set_xattr(&self, this: &Arc<Inode>, name: &[u8], value: &[u8], mode: XattrMode) -> SysResult<()> {
        if marks::is_private(name) {
            return Err(Errno::EOPNOTSUPP.into());
        }
        let upper = self.copy_up(this)?;
        upper.ops.set_xattr(&upper, name, value, mode)
    }

    fn remove_xattr(&self, this: &Arc<Inode>, name: &[u8]) -> SysResult<()> {
        // What is not there needs no copy-up to be missed (ovl_xattr_set).
        self.get_xattr(this, name)?;
        let upper = self.copy_up(this)?;
        upper.ops.remove_xattr(&upper, name)
    }

    fn list_xattrs(&self, _this: &Arc<Inode>) -> SysResult<Vec<Vec<u8>>> {
        let (real, _) = self.real()?;
        let mut names = real.ops.list_xattrs(&real)?;
        names.retain(|name| !marks::is_private(name));
        Ok(names)
    }
}
