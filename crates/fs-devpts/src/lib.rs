//! devpts: a node for each pty that is open, and `ptmx`.
//!
//! Main type: [`DevPts`]. The nodes are the kernel's table of ptys ([`kernel::tty::Ptys`]) seen as files; opening one
//! goes by its device number to the kernel, as with any device. Neighbours: `kernel` below, `cli` mounts it.
//!
//! Lock levels: `FileSystem` (the table of inodes), `File` (a directory's position).
#![forbid(unsafe_code)]
#![deny(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

mod node;

use std::collections::HashMap;
use std::sync::{Arc, OnceLock, Weak};

use abi::{Errno, FileType};
use kernel::kernel::Kernel;
use sync::{Mutex, SysResult, order};
use vfs::{FileSystem, FsStat, Inode};

use crate::node::Node;

/// `DEVPTS_SUPER_MAGIC`.
const MAGIC: i64 = 0x1cd1;

/// A place in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Place {
    Root,
    Ptmx,
    Pty(u32),
}

impl Place {
    fn file_type(self) -> FileType {
        if self == Place::Root { FileType::DIR } else { FileType::CHR }
    }

    /// As Linux numbers them: the root, `ptmx`, then ptys.
    fn ino(self) -> u64 {
        match self {
            Place::Root => 1,
            Place::Ptmx => 2,
            Place::Pty(index) => u64::from(index) + 3,
        }
    }
}

/// A mounted devpts.
pub struct DevPts {
    own: Weak<DevPts>,
    kernel: OnceLock<Weak<Kernel>>,
    dev: u64,
    inodes: Mutex<order::FileSystem, HashMap<Place, Weak<Inode>>>,
}

impl DevPts {
    /// One that shows no pty until [`DevPts::attach`].
    pub fn new() -> Arc<DevPts> {
        Arc::new_cyclic(|own| DevPts {
            own: own.clone(),
            kernel: OnceLock::new(),
            dev: vfs::anonymous_dev(),
            inodes: Mutex::default(),
        })
    }

    /// Makes it show this kernel's ptys. Once.
    pub fn attach(&self, kernel: &Arc<Kernel>) {
        // A second kernel is not shown: there is one for each devpts.
        let _ = self.kernel.set(Arc::downgrade(kernel));
    }

    pub(crate) fn kernel(&self) -> SysResult<Arc<Kernel>> {
        self.kernel.get().and_then(Weak::upgrade).ok_or(Errno::ENOENT.into())
    }

    pub(crate) fn inode(&self, place: Place) -> SysResult<Arc<Inode>> {
        let own = self.own.upgrade().ok_or(Errno::ENOENT)?;
        let entry = match place {
            Place::Pty(index) => Some(self.kernel()?.ptys.get(index).ok_or(Errno::ENOENT)?),
            _ => None,
        };
        let mut inodes = self.inodes.lock();
        if let Some(known) = inodes.get(&place).and_then(Weak::upgrade)
            && known.downcast::<Node>().is_some_and(|node| node.is_of(entry.as_ref()))
        {
            return Ok(known);
        }
        let node = Node { fs: self.own.clone(), place, entry: entry.map(Mutex::new) };
        let inode = Inode::new(own, place.file_type(), Box::new(node));
        inodes.insert(place, Arc::downgrade(&inode));
        Ok(inode)
    }
}

impl FileSystem for DevPts {
    fn kind(&self) -> &'static str {
        "devpts"
    }
    fn dev(&self) -> u64 {
        self.dev
    }
    fn root(&self) -> Arc<Inode> {
        // A file system is asked while it lives.
        self.inode(Place::Root).unwrap_or_else(|_| unreachable!("a mounted devpts has a root"))
    }
    fn stat(&self) -> SysResult<FsStat> {
        Ok(FsStat { magic: MAGIC, block_size: 4096, name_max: 255, ..FsStat::default() })
    }
    fn options(&self) -> String {
        "gid=5,mode=620,ptmxmode=666".into()
    }
    fn changes_outside(&self) -> bool {
        true
    }
}
