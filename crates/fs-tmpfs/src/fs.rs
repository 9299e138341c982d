//! The file system.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use abi::{FileMode, FileType, FsMagic};
use sync::order::{Leaf, MemoryTree};
use sync::{Mutex, SysResult};
use vfs::{FileSystem, FsStat, Inode, NewNode, NewNodeKind};

use crate::host_data::SelfFds;
use crate::node::{Kind, TmpNode};
use crate::usage::{Counter, HostPages, PAGE};

/// Options of a mount of tmpfs.
#[derive(Clone, Debug)]
pub struct TmpFsOptions {
    /// Most bytes that files may hold (`size=`); 0 is no limit.
    pub size: u64,
    /// Most inodes (`nr_inodes=`); 0 is no limit.
    pub inodes: u64,
    /// Of the root directory (`mode=`, `uid=`, `gid=`).
    pub mode: u32,
    pub uid: u32,
    pub gid: u32,
    /// `tmpfs`, or what else the kind of file system shows as (`devtmpfs`).
    pub kind: &'static str,
    /// The limits are the defaults of their kind: they are not shown among the options, as on Linux.
    pub default_limits: bool,
    /// What counts the pages that lie in host memfds.
    pub host_pages: HostPages,
}

impl Default for TmpFsOptions {
    /// No limits, and a root directory that everybody may write to, as Linux makes it.
    fn default() -> Self {
        TmpFsOptions {
            size: 0,
            inodes: 0,
            mode: 0o1777,
            uid: 0,
            gid: 0,
            kind: "tmpfs",
            default_limits: false,
            host_pages: HostPages::default(),
        }
    }
}

/// A file system in memory. It lives as long as one of its inodes is in use.
pub struct TmpFs {
    me: Weak<TmpFs>,
    dev: u64,
    options: TmpFsOptions,
    pub(crate) self_fds: SelfFds,
    pub(crate) space: Counter,
    pub(crate) inodes: Counter,
    last_ino: AtomicU64,
    root: Mutex<Leaf, Root>,
    /// Held while names change, so that what concerns two nodes happens at once.
    pub(crate) tree: Mutex<MemoryTree, ()>,
}

/// The root directory refers to the file system, so the file system holds it only until it is mounted.
enum Root {
    Held(Arc<Inode>),
    Given(Weak<Inode>),
}

impl TmpFs {
    /// Whether its limits are those that nobody asked for.
    pub(crate) fn has_default_limits(&self) -> bool {
        self.options.default_limits
    }

    /// An empty file system; `dev` is the device number that its files show.
    pub fn new(dev: u64, options: TmpFsOptions, self_fds: SelfFds) -> Arc<TmpFs> {
        let fs = Arc::new_cyclic(|me| TmpFs {
            me: me.clone(),
            dev,
            self_fds,
            space: Counter::new(options.size.div_ceil(PAGE)).with_host(options.host_pages.clone()),
            inodes: Counter::new(options.inodes),
            options,
            last_ino: AtomicU64::new(0),
            root: Mutex::new(Root::Given(Weak::new())),
            tree: Mutex::new(()),
        });
        let root = fs.new_root();
        *fs.root.lock() = Root::Held(root);
        fs
    }

    fn new_root(self: &Arc<Self>) -> Arc<Inode> {
        let TmpFsOptions { mode, uid, gid, .. } = self.options;
        let node = NewNode { kind: NewNodeKind::Directory, permissions: mode, uid, gid };
        // Counted without regard to the limit: a file system has a root in any case.
        self.inodes.correct(0, 1);
        let kind = Kind::Directory(Default::default());
        self.inode(&node, FileType::DIR, 0, kind, 0)
    }

    /// A new file, counted. `ENOSPC`.
    pub(crate) fn new_inode(self: &Arc<Self>, node: &NewNode<'_>) -> SysResult<Arc<Inode>> {
        let (file_type, rdev, kind) = match node.kind {
            NewNodeKind::File => (FileType::REG, 0, Kind::File(Default::default())),
            NewNodeKind::Directory => (FileType::DIR, 0, Kind::Directory(Default::default())),
            NewNodeKind::Symlink(text) => (FileType::LNK, 0, Kind::Symlink(text.into())),
            NewNodeKind::Fifo => (FileType::FIFO, 0, Kind::Special),
            NewNodeKind::Socket => (FileType::SOCK, 0, Kind::Special),
            NewNodeKind::CharDevice(dev) => (FileType::CHR, dev, Kind::Special),
            NewNodeKind::BlockDevice(dev) => (FileType::BLK, dev, Kind::Special),
        };
        // A long link takes a page, a short one lies in the inode (Linux: SHORT_SYMLINK_LEN).
        let link_pages = match &kind {
            Kind::Symlink(text) if text.len() >= 128 => 1,
            _ => 0,
        };
        self.inodes.charge(1)?;
        if let Err(error) = self.space.charge(link_pages) {
            self.inodes.give_back(1);
            return Err(error);
        }
        Ok(self.inode(node, file_type, rdev, kind, link_pages))
    }

    /// The inode for a kind; it is counted already, as are the pages of a long link.
    pub(crate) fn inode(
        self: &Arc<Self>,
        node: &NewNode<'_>,
        file_type: FileType,
        rdev: u64,
        kind: Kind,
        link_pages: u64,
    ) -> Arc<Inode> {
        let ino = self.last_ino.fetch_add(1, Ordering::Relaxed).saturating_add(1);
        let mode = FileMode::new(file_type, node.permissions);
        let ops = TmpNode::new(self.clone(), ino, rdev, mode, (node.uid, node.gid), kind, link_pages);
        Inode::new(self.clone(), file_type, Box::new(ops))
    }

    /// Whether an inode is one of this file system's.
    pub(crate) fn owns(&self, inode: &Inode) -> bool {
        inode.downcast::<TmpNode>().is_some_and(|node| std::ptr::eq(&*node.fs, self))
    }
}

impl FileSystem for TmpFs {
    fn kind(&self) -> &'static str {
        self.options.kind
    }

    fn dev(&self) -> u64 {
        self.dev
    }

    fn root(&self) -> Arc<Inode> {
        let mut root = self.root.lock();
        let inode = match &*root {
            Root::Held(inode) => Some(inode.clone()),
            Root::Given(inode) => inode.upgrade(),
        };
        let inode = inode.unwrap_or_else(|| match self.me.upgrade() {
            // Nothing is left of what was there: it begins empty again.
            Some(me) => me.new_root(),
            // Not reached: whoever calls has the file system by a strong reference.
            None => std::process::abort(),
        });
        *root = Root::Given(Arc::downgrade(&inode));
        inode
    }

    fn stat(&self) -> SysResult<FsStat> {
        Ok(FsStat {
            magic: FsMagic::TMPFS.0,
            block_size: PAGE,
            blocks: self.space.limit(),
            blocks_free: self.space.free(),
            blocks_available: self.space.free(),
            files: self.inodes.limit(),
            files_free: self.inodes.free(),
            name_max: 255,
            fsid: [0; 2],
        })
    }

    fn options(&self) -> String {
        let mut options = Vec::new();
        let TmpFsOptions { size, inodes, mode, uid, gid, default_limits, .. } = self.options;
        if size != 0 && !default_limits {
            options.push(format!("size={}k", size.div_ceil(PAGE).saturating_mul(PAGE / 1024)));
        }
        if inodes != 0 && !default_limits {
            options.push(format!("nr_inodes={inodes}"));
        }
        if mode != 0o1777 {
            options.push(format!("mode={mode:03o}"));
        }
        if uid != 0 {
            options.push(format!("uid={uid}"));
        }
        if gid != 0 {
            options.push(format!("gid={gid}"));
        }
        options.join(",")
    }
}
