//! Its inodes.

use std::any::Any;
use std::sync::{Arc, Weak};

use abi::{Errno, FileMode, FileType};
use kernel::tty::Entry;
use sync::{Mutex, SysResult, order};
use vfs::{
    AttributeChange, Attributes, Caller, FileOps, FileSystem, Inode, InodeOps, ListedDirectory, ListedEntry,
    NewNode, NewNodeKind, OpenHow,
};

use crate::{DevPts, Place};

/// An inode of devpts.
pub(crate) struct Node {
    pub fs: Weak<DevPts>,
    pub place: Place,
    /// The pty that it was made for, as it was last seen: a file that is open outlives the pty's place in the table.
    pub entry: Option<Mutex<order::Leaf, Entry>>,
}

impl Node {
    fn fs(&self) -> SysResult<Arc<DevPts>> {
        self.fs.upgrade().ok_or(Errno::ENOENT.into())
    }

    /// Whether it is the node of this pty, and not of one that had its number before.
    pub(crate) fn is_of(&self, entry: Option<&Entry>) -> bool {
        match (&self.entry, entry) {
            (Some(own), Some(entry)) => Arc::ptr_eq(&own.lock().terminal, &entry.terminal),
            (None, None) => true,
            _ => false,
        }
    }

    /// Its pty while that is in the table.
    fn live(&self, index: u32) -> Option<Entry> {
        let entry = self.fs().and_then(|fs| fs.kernel()).ok()?.ptys.get(index)?;
        self.is_of(Some(&entry)).then_some(entry)
    }

    /// Its pty, in the table or as it was last seen there.
    fn entry(&self, index: u32) -> SysResult<Entry> {
        let own = self.entry.as_ref().ok_or(Errno::ENOENT)?;
        let live = self.live(index);
        let mut own = own.lock();
        if let Some(live) = live {
            *own = live;
        }
        Ok(own.clone())
    }
}

impl InodeOps for Node {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn attributes(&self, _: &Arc<Inode>) -> SysResult<Attributes> {
        let base = Attributes {
            dev: self.fs()?.dev(),
            ino: self.place.ino(),
            nlink: 1,
            block_size: 1024,
            ..Attributes::default()
        };
        Ok(match self.place {
            Place::Root => Attributes { mode: FileMode::new(FileType::DIR, 0o755), nlink: 2, ..base },
            Place::Ptmx => {
                Attributes { mode: FileMode::new(FileType::CHR, 0o666), rdev: abi::makedev(5, 2), ..base }
            }
            Place::Pty(index) => {
                let entry = self.entry(index)?;
                Attributes {
                    mode: FileMode::new(FileType::CHR, entry.permissions),
                    rdev: entry.terminal.dev(),
                    uid: entry.uid,
                    gid: entry.gid,
                    atime: entry.made,
                    mtime: entry.made,
                    ctime: entry.made,
                    ..base
                }
            }
        })
    }

    fn set_attributes(&self, _: &Arc<Inode>, change: &AttributeChange) -> SysResult<()> {
        let Place::Pty(index) = self.place else { return Err(Errno::EPERM.into()) };
        let apply = |entry: &mut Entry| {
            entry.permissions = change.permissions.unwrap_or(entry.permissions);
            entry.uid = change.uid.unwrap_or(entry.uid);
            entry.gid = change.gid.unwrap_or(entry.gid);
        };
        if self.live(index).is_some() {
            self.fs()?.kernel()?.ptys.update(index, apply);
        }
        if let Some(own) = &self.entry {
            apply(&mut own.lock());
        }
        Ok(())
    }

    fn open(&self, this: &Arc<Inode>, _: OpenHow, _: &dyn Caller) -> SysResult<Box<dyn FileOps>> {
        match self.place {
            Place::Root => {
                let inode = this.clone();
                Ok(Box::new(ListedDirectory::new(move || list(&inode))))
            }
            _ => Err(Errno::ENXIO.into()),
        }
    }

    fn lookup(&self, _: &Arc<Inode>, name: &[u8]) -> SysResult<Arc<Inode>> {
        let fs = self.fs()?;
        if name == b"ptmx" {
            return fs.inode(Place::Ptmx);
        }
        let text = std::str::from_utf8(name).map_err(|_| Errno::ENOENT)?;
        let index: u32 = text.parse().map_err(|_| Errno::ENOENT)?;
        if index.to_string() != text {
            return Err(Errno::ENOENT.into());
        }
        fs.inode(Place::Pty(index))
    }

    fn revalidate(&self, _: &Arc<Inode>, _: &[u8], child: &Arc<Inode>) -> bool {
        match child.downcast::<Node>().map(|node| node.place) {
            Some(Place::Pty(index)) => {
                child.downcast::<Node>().is_some_and(|node| node.live(index).is_some())
            }
            Some(_) => true,
            None => false,
        }
    }

    /// Files come with ptys only: Linux has no `create` here, which `open` calls `EACCES` and all others `EPERM`.
    fn create(&self, _: &Arc<Inode>, _: &[u8], node: &NewNode<'_>) -> SysResult<Arc<Inode>> {
        Err(if matches!(node.kind, NewNodeKind::File) { Errno::EACCES } else { Errno::EPERM }.into())
    }
}

/// All that the directory holds.
fn list(inode: &Arc<Inode>) -> SysResult<Vec<ListedEntry>> {
    let node: &Node = inode.downcast().ok_or(Errno::ENOTDIR)?;
    let entry = |name: String, place: Place, position| ListedEntry {
        name: name.into(),
        ino: place.ino(),
        file_type: place.file_type(),
        position,
    };
    let mut entries = vec![
        entry(".".into(), Place::Root, 0),
        entry("..".into(), Place::Root, 1),
        entry("ptmx".into(), Place::Ptmx, 2),
    ];
    // Before a kernel is attached there are no ptys.
    let indices = node.fs()?.kernel().map(|kernel| kernel.ptys.indices()).unwrap_or_default();
    entries.extend(
        indices.iter().map(|index| entry(index.to_string(), Place::Pty(*index), u64::from(*index) + 3)),
    );
    Ok(entries)
}
