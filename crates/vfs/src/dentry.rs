//! Dentries, mounts and paths: names in the tree.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Weak};

use sync::Mutex;
use sync::order::{Dentry as DentryLevel, Leaf};

use crate::{FileDescription, FileSystem, Inode};

/// A name in a file system's tree that leads to an inode. Holds no host descriptor. There is one dentry for each
/// name that is in use, so identity of the `Arc` is identity of the name.
pub struct Dentry {
    pub inode: Arc<Inode>,
    /// Parent and name; they change by rename. The root of a file system has no parent.
    place: Mutex<Leaf, Place>,
    children: Mutex<DentryLevel, HashMap<Box<[u8]>, Weak<Dentry>>>,
    /// The name is gone (unlinked, or found to be something else).
    removed: AtomicBool,
    /// Something is mounted on it, in some name space: the walk looks the mount up.
    pub(crate) mounts_here: AtomicU32,
}

struct Place {
    parent: Option<Arc<Dentry>>,
    name: Box<[u8]>,
}

impl Dentry {
    /// The root of a file system's tree.
    pub fn new_root(inode: Arc<Inode>) -> Arc<Dentry> {
        Dentry::new(inode, None, b"")
    }

    fn new(inode: Arc<Inode>, parent: Option<Arc<Dentry>>, name: &[u8]) -> Arc<Dentry> {
        Arc::new(Dentry {
            inode,
            place: Mutex::new(Place { parent, name: name.into() }),
            children: Mutex::default(),
            removed: AtomicBool::new(false),
            mounts_here: AtomicU32::new(0),
        })
    }

    pub fn parent(&self) -> Option<Arc<Dentry>> {
        self.place.lock().parent.clone()
    }

    pub fn name(&self) -> Box<[u8]> {
        self.place.lock().name.clone()
    }

    pub fn is_removed(&self) -> bool {
        self.removed.load(Ordering::Acquire)
    }

    /// The child of this name that is in use already.
    pub fn cached_child(&self, name: &[u8]) -> Option<Arc<Dentry>> {
        self.children.lock().get(name).and_then(Weak::upgrade)
    }

    /// The child of this name, made for `inode` unless one for the same inode is in use.
    pub fn child(self: &Arc<Self>, name: &[u8], inode: Arc<Inode>) -> Arc<Dentry> {
        let mut children = self.children.lock();
        if let Some(known) = children.get(name).and_then(Weak::upgrade)
            && Arc::ptr_eq(&known.inode, &inode)
        {
            return known;
        }
        let dentry = Dentry::new(inode, Some(self.clone()), name);
        children.insert(name.into(), Arc::downgrade(&dentry));
        dentry
    }
}

/// A file system put into the name space (Linux: `struct mount`).
pub struct Mount {
    pub id: u32,
    pub fs: Arc<dyn FileSystem>,
    pub root: Arc<Dentry>,
    /// Where it is mounted; `None` for the root of the name space.
    pub at: Option<Path>,
    /// `MS_RDONLY`, `MS_NOSUID`, `MS_NODEV`, `MS_NOEXEC`, `MS_NOATIME`, … as `/proc/mounts` shows them.
    pub flags: AtomicU32,
    /// What /proc/mounts shows as the device: `umlaut`, `tmpfs`, a host directory.
    pub source: String,
}

/// A place in the name space: a dentry as seen in a mount (Linux: `struct path`).
#[derive(Clone)]
pub struct Path {
    pub mount: Arc<Mount>,
    pub dentry: Arc<Dentry>,
}

impl Path {
    pub fn inode(&self) -> &Arc<Inode> {
        &self.dentry.inode
    }
}

impl PartialEq for Path {
    fn eq(&self, other: &Path) -> bool {
        Arc::ptr_eq(&self.mount, &other.mount) && Arc::ptr_eq(&self.dentry, &other.dentry)
    }
}

/// Where a link leads that names an object (`/proc/PID/fd/N`).
pub enum MagicTarget {
    Path(Path),
    /// An open file, which may have no path: opening it makes a new description of the same object.
    File(Arc<FileDescription>),
}
