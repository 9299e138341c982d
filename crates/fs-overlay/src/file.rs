//! Open files: those of the layers, with the overlay's attributes.
//!
//! The layer's own operations run with the overlay's description, so they must know their inode themselves and
//! not ask the description for it.

use std::any::Any;
use std::sync::Arc;

use abi::{FcntlCmd, OpenFlags};
use smallvec::SmallVec;
use sync::{SysResult, WaitQueue};
use vfs::{
    Attributes, Caller, FileDescription, FileOps, HandOut, Inode, Mapping, Ready, Seek, UserRead, UserWrite,
};

use crate::node::OverlayNode;

/// An open file that is not a directory.
pub(crate) struct OverlayFile {
    real: Box<dyn FileOps>,
    /// The part that was opened: it stays, also when the file is copied up.
    part: Arc<Inode>,
    inode: Arc<Inode>,
}

impl OverlayFile {
    pub(crate) fn new(real: Box<dyn FileOps>, part: Arc<Inode>, inode: Arc<Inode>) -> OverlayFile {
        OverlayFile { real, part, inode }
    }
}

impl FileOps for OverlayFile {
    /// The layer's own type: what the kernel looks for is that.
    fn as_any(&self) -> &dyn Any {
        self.real.as_any()
    }

    fn read(&self, file: &FileDescription, caller: &dyn Caller, to: &mut dyn UserWrite) -> SysResult<usize> {
        self.real.read(file, caller, to)
    }

    fn write(
        &self,
        file: &FileDescription,
        caller: &dyn Caller,
        from: &mut dyn UserRead,
    ) -> SysResult<usize> {
        self.real.write(file, caller, from)
    }

    fn read_at(
        &self,
        file: &FileDescription,
        caller: &dyn Caller,
        offset: u64,
        to: &mut dyn UserWrite,
    ) -> SysResult<usize> {
        self.real.read_at(file, caller, offset, to)
    }

    fn write_at(
        &self,
        file: &FileDescription,
        caller: &dyn Caller,
        offset: u64,
        from: &mut dyn UserRead,
    ) -> SysResult<usize> {
        self.real.write_at(file, caller, offset, from)
    }

    fn seek(&self, file: &FileDescription, to: Seek) -> SysResult<u64> {
        self.real.seek(file, to)
    }

    /// Of the open file while it still speaks for the inode, else of what does.
    fn attributes(&self) -> Option<SysResult<Attributes>> {
        let node = self.inode.downcast::<OverlayNode>()?;
        let speaks = node.real().is_ok_and(|(real, _)| Arc::ptr_eq(&real, &self.part));
        if !speaks {
            return None;
        }
        let attributes = self.real.attributes()?;
        Some(attributes.and_then(|attributes| node.shown(&self.part, attributes)))
    }

    fn fcntl(
        &self,
        file: &FileDescription,
        caller: &dyn Caller,
        command: FcntlCmd,
        argument: u64,
    ) -> SysResult<usize> {
        self.real.fcntl(file, caller, command, argument)
    }

    fn truncate(&self, file: &FileDescription, caller: &dyn Caller, size: u64) -> SysResult<()> {
        self.real.truncate(file, caller, size)
    }

    fn allocate(
        &self,
        file: &FileDescription,
        caller: &dyn Caller,
        mode: u32,
        offset: u64,
        len: u64,
    ) -> SysResult<()> {
        self.real.allocate(file, caller, mode, offset, len)
    }

    fn sync(&self, data_only: bool) -> SysResult<()> {
        self.real.sync(data_only)
    }

    fn mapping(&self, file: &FileDescription, writable_shared: bool) -> SysResult<Mapping> {
        self.real.mapping(file, writable_shared)
    }

    fn ioctl(
        &self,
        file: &FileDescription,
        caller: &dyn Caller,
        command: u32,
        argument: u64,
    ) -> SysResult<usize> {
        self.real.ioctl(file, caller, command, argument)
    }

    fn poll(&self, file: &FileDescription) -> Ready {
        self.real.poll(file)
    }

    fn wait_queues(&self) -> SmallVec<[&WaitQueue; 2]> {
        self.real.wait_queues()
    }

    fn flags_changed(&self, file: &FileDescription, changed: OpenFlags) -> SysResult<()> {
        self.real.flags_changed(file, changed)
    }

    fn flush(&self, file: &FileDescription, caller: &dyn Caller) -> SysResult<()> {
        self.real.flush(file, caller)
    }

    fn hand_out(&self, file: &FileDescription, often: bool) -> Option<HandOut> {
        self.real.hand_out(file, often)
    }

    fn link_name(&self) -> Option<String> {
        self.real.link_name()
    }
}
