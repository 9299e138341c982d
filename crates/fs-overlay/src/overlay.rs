//! The file system: its layers, its table of nodes.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use abi::{Errno, FileType};
use smallvec::SmallVec;
use sync::order::{FileSystem as FileSystemLevel, Overlay as OverlayLevel};
use sync::{Mutex, SysResult};
use vfs::{FileSystem, FsStat, Inode, NewNode, NewNodeKind};

use crate::lookup::Found;
use crate::marks;
use crate::node::{Lowers, OverlayNode, Place};
use crate::numbers::Numbers;

/// `OVERLAYFS_SUPER_MAGIC`.
const MAGIC: i64 = 0x794c_7630;

/// Layers that show as one tree.
pub struct Overlay {
    me: Weak<Overlay>,
    dev: u64,
    pub(crate) upper: Option<Upper>,
    /// Roots of the lower layers, the topmost first.
    lowers: Lowers,
    pub(crate) numbers: Numbers,
    nodes: Mutex<FileSystemLevel, Table>,
    /// Held by whatever changes the tree.
    pub(crate) tree: Mutex<OverlayLevel, ()>,
    /// Counts changes that concern look-ups which found a lower file: they look again. Odd while a change is half done
    /// that shows one for a moment.
    pub(crate) changes: AtomicU64,
    options: String,
}

/// The upper layer.
pub(crate) struct Upper {
    pub(crate) fs: Arc<dyn FileSystem>,
    /// The file system's own root, which some keep only as long as it is in use.
    _top: Arc<Inode>,
    pub(crate) root: Arc<Inode>,
    /// Where things are made before they are put in their place.
    pub(crate) work: Arc<Inode>,
    next_name: AtomicU64,
}

#[derive(Default)]
struct Table {
    known: HashMap<Key, Weak<Inode>>,
    sweep_at: usize,
}

/// What a node is known by: addresses of inodes that it keeps alive.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) enum Key {
    /// The root of the overlay.
    Root,
    /// Its inode in the upper layer.
    Upper(usize),
    /// Its directory and name, while it is not in the upper layer: so the names of a lower hard link are files of their
    /// own, which copy-up breaks.
    Place(usize, Box<[u8]>),
}

impl Key {
    pub(crate) fn upper(inode: &Arc<Inode>) -> Key {
        Key::Upper(Arc::as_ptr(inode).addr())
    }

    pub(crate) fn place(dir: &Arc<Inode>, name: &[u8]) -> Key {
        Key::Place(Arc::as_ptr(dir).addr(), name.into())
    }
}

impl Overlay {
    /// Lays `upper` over the directories `lowers`, the topmost first. The upper layer lies in the directory `upper` of
    /// that file system's root, beside `work`; both are made where they are missing, with the mode and owner of the
    /// topmost lower directory. Without an upper layer the overlay is read-only. `options` is what /proc/mounts shows.
    pub fn new(
        lowers: &[Arc<Inode>],
        upper: Option<Arc<dyn FileSystem>>,
        options: String,
    ) -> SysResult<Arc<Overlay>> {
        let numbers = Numbers::default();
        for lower in lowers {
            if !lower.is_dir() {
                return Err(Errno::ENOTDIR.into());
            }
            // The topmost lower layer's files keep their numbers.
            let attributes = lower.ops.attributes(lower)?;
            numbers.shown(attributes.dev, attributes.ino);
        }
        let upper = upper.map(|fs| Upper::open(fs, lowers.first())).transpose()?;
        if let (Some(upper), Some(lower)) = (&upper, lowers.first()) {
            let attributes = lower.ops.attributes(lower)?;
            marks::set_origin(&upper.root, numbers.shown(attributes.dev, attributes.ino))?;
        }
        if upper.is_none() && lowers.is_empty() {
            return Err(Errno::EINVAL.into());
        }
        Ok(Arc::new_cyclic(|me| Overlay {
            me: me.clone(),
            dev: vfs::anonymous_dev(),
            upper,
            lowers: SmallVec::from(lowers),
            numbers,
            nodes: Mutex::default(),
            tree: Mutex::default(),
            changes: AtomicU64::new(0),
            options,
        }))
    }

    /// The upper layer; `EROFS` without one.
    pub(crate) fn upper(&self) -> SysResult<&Upper> {
        self.upper.as_ref().ok_or(Errno::EROFS.into())
    }

    /// The node for what was found as `name` in `dir`.
    pub(crate) fn intern(&self, dir: &Arc<Inode>, name: &[u8], found: Found) -> SysResult<Arc<Inode>> {
        let key = match &found.upper {
            Some(upper) => Key::upper(upper),
            None => Key::place(dir, name),
        };
        let place = Some((dir.clone(), name.into()));
        self.inode(key, found, place)
    }

    /// The node of a file of the upper layer that has no name.
    pub(crate) fn intern_unnamed(&self, upper: Arc<Inode>) -> SysResult<Arc<Inode>> {
        self.inode(Key::upper(&upper), Found { upper: Some(upper), lowers: SmallVec::new() }, None)
    }

    fn inode(&self, key: Key, found: Found, place: Option<Place>) -> SysResult<Arc<Inode>> {
        // Let go after the lock.
        let mut replaced = None;
        let mut table = self.nodes.lock();
        if let Some(inode) = table.known.get(&key).and_then(Weak::upgrade) {
            if inode.downcast::<OverlayNode>().is_some_and(|node| node.takes(&found, place.as_ref())) {
                return Ok(inode);
            }
            replaced = Some(inode);
        }
        if table.known.len() >= table.sweep_at {
            table.known.retain(|_, inode| inode.strong_count() > 0);
            table.sweep_at = (table.known.len() * 2).max(1024);
        }
        // It is in use, so the weak reference to it holds.
        let me = self.me.upgrade().ok_or(Errno::EIO)?;
        let file_type = found.real().map_or(FileType::DIR, |real| real.file_type);
        let node = OverlayNode::new(me.clone(), found, place);
        let inode = Inode::new(me, file_type, Box::new(node));
        table.known.insert(key, Arc::downgrade(&inode));
        drop(table);
        drop(replaced);
        Ok(inode)
    }

    /// Makes `inode` known as the node of `upper`, its part in the upper layer from now on.
    pub(crate) fn publish(&self, inode: &Arc<Inode>, upper: &Arc<Inode>) {
        self.nodes.lock().known.insert(Key::upper(upper), Arc::downgrade(inode));
    }

    /// Notes that a lower file was copied up.
    pub(crate) fn note_copy_up(&self) {
        self.changes.fetch_add(2, Ordering::SeqCst);
    }

    /// Runs a change that for a moment shows what lies below.
    pub(crate) fn while_half_done<T>(&self, change: impl FnOnce() -> T) -> T {
        struct Done<'a>(&'a AtomicU64);
        impl Drop for Done<'_> {
            fn drop(&mut self) {
                self.0.fetch_add(1, Ordering::SeqCst);
            }
        }
        self.changes.fetch_add(1, Ordering::SeqCst);
        // Also if the change panics: look-ups wait for it.
        let _done = Done(&self.changes);
        change()
    }
}

impl Upper {
    fn open(fs: Arc<dyn FileSystem>, like: Option<&Arc<Inode>>) -> SysResult<Upper> {
        let (permissions, uid, gid) = match like {
            Some(like) => {
                let attributes = like.ops.attributes(like)?;
                (attributes.mode.permissions(), attributes.uid, attributes.gid)
            }
            None => (0o755, 0, 0),
        };
        let top = fs.root();
        let directory = |name: &[u8], permissions, uid, gid| -> SysResult<Arc<Inode>> {
            let node = NewNode { kind: NewNodeKind::Directory, permissions, uid, gid };
            match top.ops.create(&top, name, &node) {
                Err(error) if error.errno() == Some(Errno::EEXIST) => top.ops.lookup(&top, name),
                other => other,
            }
        };
        let root = directory(b"upper", permissions, uid, gid)?;
        let work = directory(b"work", 0o700, 0, 0)?;
        Ok(Upper { fs, _top: top, root, work, next_name: AtomicU64::new(0) })
    }

    /// A fresh name in `work`.
    pub(crate) fn temporary_name(&self) -> Vec<u8> {
        format!("#{:x}", self.next_name.fetch_add(1, Ordering::Relaxed)).into_bytes()
    }
}

impl FileSystem for Overlay {
    fn kind(&self) -> &'static str {
        "overlay"
    }

    fn dev(&self) -> u64 {
        self.dev
    }

    fn root(&self) -> Arc<Inode> {
        let upper = self.upper.as_ref().map(|upper| upper.root.clone());
        match self.inode(Key::Root, Found { upper, lowers: self.lowers.clone() }, None) {
            Ok(root) => root,
            // Not reached: whoever calls has the file system by a strong reference.
            Err(_) => std::process::abort(),
        }
    }

    fn stat(&self) -> SysResult<FsStat> {
        let top = match (&self.upper, self.lowers.first()) {
            (Some(upper), _) => upper.fs.stat()?,
            (None, Some(lower)) => lower.fs.stat()?,
            (None, None) => FsStat::default(),
        };
        Ok(FsStat { magic: MAGIC, ..top })
    }

    fn options(&self) -> String {
        self.options.clone()
    }

    fn changes_outside(&self) -> bool {
        self.lowers.iter().any(|lower| lower.fs.changes_outside())
            || self.upper.as_ref().is_some_and(|upper| upper.fs.changes_outside())
    }

    fn sync(&self) -> SysResult<()> {
        self.upper.as_ref().map_or(Ok(()), |upper| upper.fs.sync())
    }
}
