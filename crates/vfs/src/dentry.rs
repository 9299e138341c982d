//! Dentries: names in a file system's tree.
//!
//! One [`Dentry`] stands for each name that is in use, so identity of the `Arc` is identity of the name. A dentry
//! holds its parent and its inode, never a host descriptor; a directory knows its children weakly. What keeps
//! names alive that nobody uses just now is the bounded [`DentryCache`](crate::DentryCache).
//!
//! Changes of a directory go through [`Dentry::begin_change`], which makes them one after the other (Linux:
//! `i_rwsem`) and tells lookups that run beside them to look again.
//!
//! Neighbours: `namei` walks along dentries, `ops` changes them, `mount` hangs mounts on them.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use abi::{Errno, NAME_MAX};
use sync::order::{Dentry as DentryLevel, Leaf};
use sync::{Mutex, SleepLock, SleepLockGuard, SysResult, Waiter};

use crate::Inode;

/// A name in a file system's tree that leads to an inode.
pub struct Dentry {
    pub inode: Arc<Inode>,
    pub(crate) tree: Arc<Tree>,
    /// Parent and name; they change by rename. The root of a file system has no parent.
    place: Mutex<Leaf, Place>,
    /// What only directories have.
    directory: Option<Box<Directory>>,
    /// The name is gone (unlinked, or found to be something else).
    removed: AtomicBool,
    /// How many mounts are on it, in whatever name space: unless it is 0 the walk looks the mount up.
    pub(crate) mounts_here: AtomicU32,
    /// Used since the cache's hand last passed; the cache's.
    pub(crate) used: AtomicBool,
    /// Its place in the cache, `usize::MAX` for none; changed under the cache's lock only.
    pub(crate) cache_slot: AtomicUsize,
}

struct Place {
    parent: Option<Arc<Dentry>>,
    name: Box<[u8]>,
}

/// One file system's tree: what all its dentries share.
pub(crate) struct Tree {
    /// Held across renames between directories (Linux: `s_vfs_rename_mutex`), so that ancestry is stable.
    pub(crate) rename: SleepLock,
    /// Counts moves, so that who reads a whole path notices one in between (Linux: `rename_lock`).
    pub(crate) moves: AtomicU64,
    /// [`FileSystem::changes_outside`](crate::FileSystem::changes_outside).
    pub(crate) changes_outside: bool,
    /// [`FileSystem::is_generated`](crate::FileSystem::is_generated).
    pub(crate) is_generated: bool,
}

#[derive(Default)]
struct Directory {
    children: Mutex<DentryLevel, Children>,
    /// Held while the directory is changed.
    change: SleepLock,
    /// Odd while the directory is being changed: a lookup that ran beside a change must not enter into
    /// `children` what it found.
    generation: AtomicU64,
}

#[derive(Default)]
struct Children {
    map: HashMap<Box<[u8]>, Weak<Dentry>>,
    /// Size at which the dead ones are swept out, so that dropping a dentry needs no lock.
    sweep_at: usize,
}

impl Children {
    fn get(&self, name: &[u8]) -> Option<Arc<Dentry>> {
        self.map.get(name).and_then(Weak::upgrade)
    }

    /// Takes `dentry` out, if it is what has this name.
    fn remove(&mut self, name: &[u8], dentry: &Arc<Dentry>) {
        if self.map.get(name).is_some_and(|known| std::ptr::eq(known.as_ptr(), Arc::as_ptr(dentry))) {
            self.map.remove(name);
        }
    }

    fn insert(&mut self, name: &[u8], dentry: &Arc<Dentry>) {
        if self.map.len() >= self.sweep_at.max(32) {
            self.map.retain(|_, child| child.strong_count() > 0);
            self.map.shrink_to(self.map.len().saturating_mul(2));
            self.sweep_at = self.map.len().saturating_mul(2);
        }
        self.map.insert(name.into(), Arc::downgrade(dentry));
    }
}

/// A change of a directory in progress (see [`Dentry::begin_change`]).
pub(crate) struct DirectoryChange<'a> {
    directory: &'a Directory,
    _lock: SleepLockGuard<'a>,
}

impl Drop for DirectoryChange<'_> {
    fn drop(&mut self) {
        self.directory.generation.fetch_add(1, Ordering::SeqCst);
    }
}

impl Dentry {
    /// The root of a file system's tree.
    pub fn new_root(inode: Arc<Inode>) -> Arc<Dentry> {
        let tree = Tree {
            rename: SleepLock::new(),
            moves: AtomicU64::new(0),
            changes_outside: inode.fs.changes_outside(),
            is_generated: inode.fs.is_generated(),
        };
        Dentry::new(inode, Arc::new(tree), None, b"")
    }

    /// A name that stands in no directory: a memfd, a file made with `O_TMPFILE`. It shows as removed.
    pub fn new_unlinked(self: &Arc<Self>, name: &[u8], inode: Arc<Inode>) -> Arc<Dentry> {
        let dentry = Dentry::new(inode, self.tree.clone(), Some(self.clone()), name);
        dentry.removed.store(true, Ordering::Release);
        dentry
    }

    fn new(inode: Arc<Inode>, tree: Arc<Tree>, parent: Option<Arc<Dentry>>, name: &[u8]) -> Arc<Dentry> {
        let directory = inode.is_dir().then(Box::default);
        Arc::new(Dentry {
            inode,
            tree,
            place: Mutex::new(Place { parent, name: name.into() }),
            directory,
            removed: AtomicBool::new(false),
            mounts_here: AtomicU32::new(0),
            used: AtomicBool::new(false),
            cache_slot: AtomicUsize::new(usize::MAX),
        })
    }

    pub fn parent(&self) -> Option<Arc<Dentry>> {
        self.place.lock().parent.clone()
    }

    pub fn name(&self) -> Box<[u8]> {
        self.place.lock().name.clone()
    }

    pub(crate) fn place(&self) -> (Option<Arc<Dentry>>, Box<[u8]>) {
        let place = self.place.lock();
        (place.parent.clone(), place.name.clone())
    }

    /// Whether the name is gone; the root of a tree never is.
    pub fn is_removed(&self) -> bool {
        self.removed.load(Ordering::Acquire)
    }

    pub(crate) fn has_mounts(&self) -> bool {
        self.mounts_here.load(Ordering::Acquire) != 0
    }

    fn directory(&self) -> SysResult<&Directory> {
        self.directory.as_deref().ok_or(Errno::ENOTDIR.into())
    }

    /// The child of this name that is in use already.
    pub fn cached_child(&self, name: &[u8]) -> Option<Arc<Dentry>> {
        self.directory.as_deref()?.children.lock().get(name)
    }

    /// Looks a name up in the file system and gives its dentry. Waits for changes of the directory in progress.
    pub(crate) fn lookup(self: &Arc<Self>, name: &[u8], waiter: &Waiter) -> SysResult<Arc<Dentry>> {
        let directory = self.directory()?;
        let before = directory.generation.load(Ordering::SeqCst);
        if before.is_multiple_of(2) {
            let inode = self.ask(name)?;
            if let Some(child) = self.enter(directory, name, inode, Some(before)) {
                return Ok(child);
            }
        }
        let _change = directory.change.lock(waiter)?;
        let inode = self.ask(name)?;
        self.enter(directory, name, inode, None).ok_or(Errno::ESTALE.into())
    }

    /// Looks a name up while the caller changes this directory: in the file system always.
    pub(crate) fn lookup_changing(
        self: &Arc<Self>,
        _change: &DirectoryChange<'_>,
        name: &[u8],
    ) -> SysResult<Arc<Dentry>> {
        let inode = self.ask(name)?;
        self.enter(self.directory()?, name, inode, None).ok_or(Errno::ESTALE.into())
    }

    fn ask(&self, name: &[u8]) -> SysResult<Arc<Inode>> {
        if name.len() > NAME_MAX {
            return Err(Errno::ENAMETOOLONG.into());
        }
        self.inode.ops.lookup(&self.inode, name)
    }

    /// Enters a new name that the caller's change has made.
    pub(crate) fn enter_new(
        self: &Arc<Self>,
        _change: &DirectoryChange<'_>,
        name: &[u8],
        inode: Arc<Inode>,
    ) -> SysResult<Arc<Dentry>> {
        self.enter(self.directory()?, name, inode, None).ok_or(Errno::ESTALE.into())
    }

    /// The child of this name for `inode`: the one in use, or a new one. `None`, and nothing is done, when the
    /// directory has left the generation `only_in`.
    fn enter(
        self: &Arc<Self>,
        directory: &Directory,
        name: &[u8],
        inode: Arc<Inode>,
        only_in: Option<u64>,
    ) -> Option<Arc<Dentry>> {
        let mut children = directory.children.lock();
        if only_in.is_some_and(|generation| generation != directory.generation.load(Ordering::SeqCst)) {
            return None;
        }
        let known = children.get(name);
        if let Some(known) = &known {
            if Arc::ptr_eq(&known.inode, &inode) {
                return Some(known.clone());
            }
            known.removed.store(true, Ordering::Release);
        }
        let dentry = Dentry::new(inode, self.tree.clone(), Some(self.clone()), name);
        children.insert(name, &dentry);
        drop(children);
        Some(dentry)
    }

    /// Begins a change of this directory: waits for others, ended only by the task's end. While the result lives,
    /// lookups wait, and what is asked of the file system and what is entered here change in one order.
    pub(crate) fn begin_change(&self, waiter: &Waiter) -> SysResult<DirectoryChange<'_>> {
        let directory = self.directory()?;
        let lock = directory.change.lock(waiter)?;
        directory.generation.fetch_add(1, Ordering::SeqCst);
        Ok(DirectoryChange { directory, _lock: lock })
    }

    /// Takes the name `child` out of this directory: it was unlinked.
    pub(crate) fn forget(&self, child: &Arc<Dentry>) {
        if let Some(directory) = self.directory.as_deref() {
            directory.children.lock().remove(&child.name(), child);
        }
        child.removed.store(true, Ordering::Release);
    }

    /// How often this directory was changed; `None` while it is.
    pub(crate) fn generation(&self) -> Option<u64> {
        let generation = self.directory.as_deref()?.generation.load(Ordering::SeqCst);
        generation.is_multiple_of(2).then_some(generation)
    }

    /// Takes `child` out of this directory, where it was `name`: the file system says that it is that no more. Not if
    /// the directory has left the generation `since`: then a change of ours may have moved it, and it lives on elsewhere.
    pub(crate) fn forget_unless_changed(&self, name: &[u8], child: &Arc<Dentry>, since: Option<u64>) -> bool {
        let Some(directory) = self.directory.as_deref() else { return false };
        let mut children = directory.children.lock();
        if since.is_none() || self.generation() != since {
            return false;
        }
        children.remove(name, child);
        child.removed.store(true, Ordering::Release);
        true
    }

    /// Moves `child` from here to `to` under the name `to_name` (Linux: `d_move`). The caller changes both
    /// directories and has taken what was there before out.
    pub(crate) fn move_child(&self, child: &Arc<Dentry>, to: &Arc<Dentry>, to_name: &[u8]) {
        self.tree.moves.fetch_add(1, Ordering::SeqCst);
        let old_name = child.name();
        if let Some(directory) = self.directory.as_deref() {
            // An exchange may have put the other one here by now.
            directory.children.lock().remove(&old_name, child);
        }
        let new_place = Place { parent: Some(to.clone()), name: to_name.into() };
        let old_place = std::mem::replace(&mut *child.place.lock(), new_place);
        if let Some(directory) = to.directory.as_deref() {
            directory.children.lock().insert(to_name, child);
        }
        drop(old_place);
        self.tree.moves.fetch_add(1, Ordering::SeqCst);
    }

    /// Whether this is `other` or lies above it.
    pub(crate) fn is_at_or_above(self: &Arc<Self>, other: &Arc<Dentry>) -> bool {
        let mut at = other.clone();
        loop {
            if Arc::ptr_eq(self, &at) {
                return true;
            }
            match at.parent() {
                Some(parent) => at = parent,
                None => return false,
            }
        }
    }
}

impl Drop for Dentry {
    /// Lets the ancestors go one by one: dropping them inside each other would use stack for each level of a
    /// tree that a guest may have made very deep.
    fn drop(&mut self) {
        let mut next = self.place.get_mut().parent.take();
        while let Some(parent) = next {
            next = Arc::into_inner(parent).and_then(|mut parent| parent.place.get_mut().parent.take());
        }
    }
}

#[cfg(test)]
mod tests;
