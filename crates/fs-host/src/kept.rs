//! Files that guests open again and again: a few are held `O_PATH`, so that the next open is one host call on what is known
//! already, and not a search by name, a look at what was found, and a second open.
//!
//! What is held is the file, whatever becomes of its names: whoever opens it so has just asked the host what the name leads to.
//! While one is held, its inode number goes to no other file. Little is held on to of what the host deletes: a few small
//! files of the root's own file system, which is one on a disk or in memory (a network's would keep a deleted file under a
//! name of its own). What guests delete is let go at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fd::OwnedFd;
use sync::Mutex;
use sync::order::Leaf;

use crate::node::Handle;
use crate::stat::{FileId, HostStat};

/// Files held by one file system, at most.
const MOST: usize = 8;
/// Bytes of a file that is held, at most.
const LARGEST: u64 = 4 << 20;

/// The files held.
pub(crate) struct Kept {
    /// Of the mount whose files may be held.
    mount: Option<u64>,
    files: Mutex<Leaf, Files>,
}

#[derive(Default)]
struct Files {
    held: [Option<File>; MOST],
    /// The one to go next.
    next: usize,
}

struct File {
    id: FileId,
    /// A regular file, held `O_PATH`.
    fd: Arc<OwnedFd>,
}

/// What a file's node remembers of its opens.
#[derive(Debug, Default)]
pub(crate) struct Opens {
    before: AtomicBool,
    held: AtomicBool,
}

impl Opens {
    /// It is opened. Whether it was before.
    fn again(&self) -> bool {
        self.before.swap(true, Ordering::Relaxed)
    }
}

impl Kept {
    /// For a file system whose files may be held if they are on `mount` (never 0, which is any).
    pub(crate) fn new(mount: Option<u64>) -> Kept {
        Kept { mount: mount.filter(|mount| *mount != 0), files: Mutex::default() }
    }

    fn may_hold(&self, stat: &HostStat) -> bool {
        self.mount == Some(stat.mount) && stat.size() <= LARGEST
    }

    /// The file that `stat` tells of, if it is held. The host has just said so of a name of it.
    pub(crate) fn get(&self, opens: &Opens, stat: &HostStat) -> Option<Arc<OwnedFd>> {
        if !opens.held.load(Ordering::Relaxed) || !self.may_hold(stat) {
            return None;
        }
        let files = self.files.lock();
        files.held.iter().flatten().find(|file| file.id == stat.id).map(|file| file.fd.clone())
    }

    /// Holds a regular file that is open `O_PATH` as `fd`, if it was opened before.
    pub(crate) fn note(&self, opens: &Opens, stat: &HostStat, fd: OwnedFd) -> Handle {
        if !opens.again() || !self.may_hold(stat) {
            return Handle::Path(fd);
        }
        let fd = Arc::new(fd);
        let new = File { id: stat.id, fd: fd.clone() };
        opens.held.store(true, Ordering::Relaxed);
        let mut files = self.files.lock();
        // Two threads may open it at once.
        let at = files.held.iter().position(|held| held.as_ref().is_some_and(|file| file.id == new.id));
        let at = at.unwrap_or(files.next);
        files.next = (at + 1) % MOST;
        let gone = files.held.get_mut(at).and_then(|held| held.replace(new));
        // It is closed without the lock.
        drop(files);
        drop(gone);
        Handle::Open(fd)
    }

    /// Lets go of a file: a name of it is gone, or it is not in use any more.
    pub(crate) fn forget(&self, opens: &Opens, id: FileId) {
        if !opens.held.swap(false, Ordering::Relaxed) {
            return;
        }
        let mut files = self.files.lock();
        let slot = files.held.iter_mut().find(|held| held.as_ref().is_some_and(|file| file.id == id));
        let gone = slot.and_then(Option::take);
        drop(files);
        drop(gone);
    }

    /// Lets go of all: the host has no descriptors left.
    pub(crate) fn clear(&self) {
        let gone = std::mem::take(&mut *self.files.lock());
        drop(gone);
    }
}
