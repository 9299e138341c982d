//! One file of the file system.

use std::collections::BTreeMap;
use std::sync::Arc;

use abi::{Errno, FileMode, Timespec};
use sync::order::Inode as InodeLevel;
use sync::{Mutex, MutexGuard, SleepLock, SysResult};
use vfs::{Attributes, FileSystem, Inode};

use crate::data::Data;
use crate::dir::Entries;
use crate::fs::TmpFs;
use crate::node_ops::needs_atime;
use crate::time::now;
use crate::usage::PAGE;

/// What is behind an inode of a [`TmpFs`].
pub struct TmpNode {
    pub(crate) fs: Arc<TmpFs>,
    pub(crate) ino: u64,
    rdev: u64,
    pub(crate) state: Mutex<InodeLevel, State>,
    /// Held over a whole write, copies from the guest included (Linux: `i_rwsem`), so that appends do not mix.
    pub(crate) writing: SleepLock,
}

pub(crate) struct State {
    pub(crate) mode: FileMode,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    pub(crate) nlink: u64,
    pub(crate) atime: Timespec,
    /// Of a file in a memfd the host's is the truth.
    pub(crate) mtime: Timespec,
    /// Of a file in a memfd the later of this and the host's.
    pub(crate) ctime: Timespec,
    btime: Timespec,
    pub(crate) kind: Kind,
    pub(crate) xattrs: BTreeMap<Vec<u8>, Vec<u8>>,
    /// Pages counted for a long link's text.
    link_pages: u64,
    /// Pages counted for extended attributes, which do not show as blocks.
    pub(crate) xattr_pages: u64,
}

pub(crate) enum Kind {
    File(Data),
    Directory(Entries),
    Symlink(Box<[u8]>),
    /// A device, FIFO or socket.
    Special,
}

impl State {
    pub(crate) fn entries(&mut self) -> SysResult<&mut Entries> {
        match &mut self.kind {
            Kind::Directory(entries) => Ok(entries),
            _ => Err(Errno::ENOTDIR.into()),
        }
    }

    pub(crate) fn data(&mut self) -> SysResult<&mut Data> {
        match &mut self.kind {
            Kind::File(data) => Ok(data),
            _ => Err(Errno::EINVAL.into()),
        }
    }

    /// The content was changed just now.
    pub(crate) fn modified(&mut self) {
        let now = now();
        (self.mtime, self.ctime) = (now, now);
    }

    /// Metadata was changed just now.
    pub(crate) fn changed(&mut self) {
        self.ctime = now();
    }
}

impl TmpNode {
    pub(crate) fn new(
        fs: Arc<TmpFs>,
        ino: u64,
        rdev: u64,
        mode: FileMode,
        (uid, gid): (u32, u32),
        kind: Kind,
        link_pages: u64,
    ) -> TmpNode {
        let now = now();
        let nlink = if mode.is_dir() { 2 } else { 1 };
        let state = State {
            mode,
            uid,
            gid,
            nlink,
            atime: now,
            mtime: now,
            ctime: now,
            btime: now,
            kind,
            xattrs: BTreeMap::new(),
            link_pages,
            xattr_pages: 0,
        };
        TmpNode { fs, ino, rdev, state: Mutex::new(state), writing: SleepLock::new() }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// What `stat` tells.
    pub(crate) fn stat(&self) -> SysResult<Attributes> {
        let mut state = self.lock();
        let mut attributes = Attributes {
            dev: self.fs.dev(),
            ino: self.ino,
            mode: state.mode,
            nlink: state.nlink,
            uid: state.uid,
            gid: state.gid,
            rdev: self.rdev,
            size: 0,
            block_size: PAGE,
            blocks: state.link_pages.saturating_mul(PAGE / 512),
            atime: state.atime,
            mtime: state.mtime,
            ctime: state.ctime,
            btime: Some(state.btime),
        };
        match &mut state.kind {
            Kind::File(Data::Memory(pages)) => {
                attributes.size = pages.size();
                attributes.blocks =
                    attributes.blocks.saturating_add(pages.count().saturating_mul(PAGE / 512));
            }
            Kind::File(Data::Host(host)) => {
                let stat = host.stat()?;
                host.recount(0, &self.fs.space);
                let unsigned = |value: i64| u64::try_from(value).unwrap_or(0);
                let time = |sec: i64, nsec: i64| Timespec { sec, nsec };
                attributes.size = unsigned(stat.st_size);
                attributes.blocks = attributes.blocks.saturating_add(unsigned(stat.st_blocks));
                attributes.mtime = time(stat.st_mtime, i64::try_from(stat.st_mtime_nsec).unwrap_or(0));
                if let Some(ctime) = host.ctime(&stat) {
                    attributes.ctime = attributes.ctime.max(ctime);
                }
                // The host notes every read; of those counts, as relatime does, the first since a change.
                if let Some(atime) = host.atime(&stat).filter(|atime| *atime > attributes.atime)
                    && needs_atime(attributes.atime, attributes.mtime, attributes.ctime)
                {
                    attributes.atime = atime;
                    state.atime = atime;
                }
            }
            // Linux counts BOGO_DIRENT_SIZE for each entry, `.` and `..` among them.
            Kind::Directory(entries) => {
                attributes.size = (entries.len() as u64).saturating_add(2).saturating_mul(20)
            }
            Kind::Symlink(text) => attributes.size = text.len() as u64,
            Kind::Special => {}
        }
        Ok(attributes)
    }
}

impl Drop for TmpNode {
    /// Gives back what it used. Directories below go one by one: dropped inside each other they would use stack for
    /// each level of a tree that a guest may have made very deep.
    fn drop(&mut self) {
        let mut below = release(&self.fs, self.state.get_mut());
        while let Some(inode) = below.pop() {
            let Some(inode) = Arc::into_inner(inode) else { continue };
            if let Some(node) = inode.downcast::<TmpNode>() {
                let inner = {
                    let mut state = node.lock();
                    match &mut state.kind {
                        Kind::Directory(entries) => entries.drain().collect(),
                        _ => Vec::new(),
                    }
                };
                below.extend(inner);
            }
        }
    }
}

/// Gives back what a node is counted for; its children, if it is a directory.
fn release(fs: &TmpFs, state: &mut State) -> Vec<Arc<Inode>> {
    fs.inodes.give_back(1);
    fs.space.give_back(state.link_pages.saturating_add(state.xattr_pages));
    match &mut state.kind {
        Kind::File(data) => {
            data.release(&fs.space);
            Vec::new()
        }
        Kind::Directory(entries) => entries.drain().collect(),
        Kind::Symlink(_) | Kind::Special => Vec::new(),
    }
}
