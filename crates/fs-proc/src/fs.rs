//! The file system and its inodes.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock, Weak};

use kernel::kernel::Kernel;
use sync::{Mutex, SysResult, order};
use vfs::{FileSystem, FsStat, Inode};

use crate::node::{Node, Place};

/// `PROC_SUPER_MAGIC`.
const MAGIC: i64 = 0x9fa0;
/// `SYSFS_MAGIC`.
const SYSFS_MAGIC: i64 = 0x6265_6572;

/// A mounted proc, or sysfs, which is made in the same way.
pub struct ProcFs {
    own: Weak<ProcFs>,
    kernel: OnceLock<Weak<Kernel>>,
    dev: u64,
    /// Its root: that of proc or that of sysfs.
    top: Place,
    /// The inodes in use: one for each place.
    inodes: Mutex<order::FileSystem, HashMap<Place, Weak<Inode>>>,
}

impl ProcFs {
    /// A proc that shows nothing until [`ProcFs::attach`].
    pub fn new() -> Arc<ProcFs> {
        ProcFs::with_top(Place::Root)
    }

    /// A sysfs, likewise.
    pub fn sysfs() -> Arc<ProcFs> {
        ProcFs::with_top(Place::Sys(Vec::new()))
    }

    fn with_top(top: Place) -> Arc<ProcFs> {
        Arc::new_cyclic(|own| ProcFs {
            own: own.clone(),
            kernel: OnceLock::new(),
            dev: vfs::anonymous_dev(),
            top,
            inodes: Mutex::default(),
        })
    }

    /// Makes it show this kernel. Once.
    pub fn attach(&self, kernel: &Arc<Kernel>) {
        // A second kernel is not shown: there is one for each proc.
        let _ = self.kernel.set(Arc::downgrade(kernel));
    }

    pub(crate) fn kernel(&self) -> SysResult<Arc<Kernel>> {
        let kernel = self.kernel.get().and_then(Weak::upgrade);
        kernel.ok_or(abi::Errno::ENOENT.into())
    }

    /// The inode of a place.
    pub(crate) fn inode(&self, place: Place) -> SysResult<Arc<Inode>> {
        let own = self.own.upgrade().ok_or(abi::Errno::ENOENT)?;
        let mut inodes = self.inodes.lock();
        if let Some(known) = inodes.get(&place).and_then(Weak::upgrade) {
            return Ok(known);
        }
        if inodes.len() > 4096 {
            inodes.retain(|_, inode| inode.strong_count() > 0);
        }
        let file_type = place.file_type();
        let node = Node { fs: self.own.clone(), place: place.clone() };
        let inode = Inode::new(own, file_type, Box::new(node));
        inodes.insert(place, Arc::downgrade(&inode));
        Ok(inode)
    }
}

impl FileSystem for ProcFs {
    fn kind(&self) -> &'static str {
        if self.top == Place::Root { "proc" } else { "sysfs" }
    }

    fn dev(&self) -> u64 {
        self.dev
    }

    fn root(&self) -> Arc<Inode> {
        // A file system is asked while it lives.
        self.inode(self.top.clone()).unwrap_or_else(|_| unreachable!("a mounted proc has a root"))
    }

    fn stat(&self) -> SysResult<FsStat> {
        let magic = if self.top == Place::Root { MAGIC } else { SYSFS_MAGIC };
        Ok(FsStat { magic, block_size: 4096, name_max: 255, ..FsStat::default() })
    }

    fn is_generated(&self) -> bool {
        true
    }

    fn changes_outside(&self) -> bool {
        true
    }
}
