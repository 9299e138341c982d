//! Mounts and the mount table (Linux: `struct mount`, `mnt_namespace`).
//!
//! A [`Mount`] puts a tree, or a part of one, over a place. [`MountTable`] knows them all; the walk asks it only
//! where a dentry says that something is mounted on it. Propagation is private throughout.
//!
//! Neighbours: `namei` crosses mounts both ways, `mount_text` prints the table, the kernel's mount calls act here.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use abi::Errno;
use sync::order::{Leaf, Mounts};
use sync::{Mutex, SysResult};

use crate::mount_flags::kept;
use crate::{Dentry, DentryCache, FileSystem, MountFlags, Path, Protections, UmountFlags};

/// A file system put into the name space.
pub struct Mount {
    pub id: u32,
    pub fs: Arc<dyn FileSystem>,
    /// What shows at the place: the file system's root, or what was bound.
    pub root: Arc<Dentry>,
    at: Mutex<Leaf, Option<Path>>,
    flags: AtomicU32,
    /// The file system itself was mounted read-only, as mountinfo shows it; what refuses is `flags`.
    pub(crate) fs_readonly: AtomicBool,
    /// What /proc/mounts shows as the device: `umlaut`, `tmpfs`, a host directory.
    pub source: String,
    /// Files open for writing through it: no read-only remount then.
    pub(crate) writers: AtomicU32,
}

impl Mount {
    /// A mount of the kernel's own, in no name space, for files without a name (Linux: `kern_mount`): its root.
    pub fn internal(fs: &Arc<dyn FileSystem>, source: &str) -> Path {
        let root = Dentry::new_root(fs.root());
        let mount = Mount {
            id: 0,
            fs: fs.clone(),
            root: root.clone(),
            at: Mutex::new(None),
            flags: AtomicU32::new(0),
            fs_readonly: AtomicBool::new(false),
            source: source.to_owned(),
            writers: AtomicU32::new(0),
        };
        Path { mount: Arc::new(mount), dentry: root }
    }

    /// Where it is mounted; `None` for the root of the name space and for what was detached.
    pub fn at(&self) -> Option<Path> {
        self.at.lock().clone()
    }

    /// `RDONLY`, `NOSUID`, `NODEV`, `NOEXEC`, `NOATIME`, …
    pub fn flags(&self) -> MountFlags {
        MountFlags::from_bits_retain(self.flags.load(Ordering::Relaxed))
    }

    /// Puts it there; gives back where it was, to be dropped without locks.
    fn set_at(&self, at: Option<Path>) -> Option<Path> {
        if let Some(at) = &at {
            at.dentry.mounts_here.fetch_add(1, Ordering::AcqRel);
        }
        let old = std::mem::replace(&mut *self.at.lock(), at);
        if let Some(old) = &old {
            old.dentry.mounts_here.fetch_sub(1, Ordering::AcqRel);
        }
        old
    }
}

/// A name space of mounts.
pub struct MountTable {
    state: Mutex<Mounts, State>,
    /// The names kept alive.
    pub dentries: Arc<DentryCache>,
    /// What guards against traps laid for others.
    pub protections: Protections,
}

#[derive(Default)]
struct State {
    /// In the order of mounting; the first is the root.
    list: Vec<Arc<Mount>>,
    by_place: HashMap<Place, Arc<Mount>>,
    last_id: u32,
}

/// A mount's id and the address of a dentry in it, which the mount that is hung there keeps alive.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Place(u32, usize);

impl Place {
    fn of(path: &Path) -> Place {
        Place(path.mount.id, Arc::as_ptr(&path.dentry).addr())
    }
}

/// How many mounts a name space takes (Linux: `fs.mount-max`).
const MOUNT_MAX: usize = 100_000;

impl State {
    fn add(&mut self, new: NewMount<'_>, at: Option<Path>) -> SysResult<Arc<Mount>> {
        if self.list.len() >= MOUNT_MAX {
            return Err(Errno::ENOSPC.into());
        }
        self.last_id = self.last_id.wrapping_add(1);
        let mount = Arc::new(Mount {
            id: self.last_id,
            fs: new.root.inode.fs.clone(),
            root: new.root,
            at: Mutex::new(None),
            flags: AtomicU32::new(new.flags.bits()),
            fs_readonly: AtomicBool::new(new.fs_readonly),
            source: new.source.to_owned(),
            writers: AtomicU32::new(0),
        });
        self.list.push(mount.clone());
        self.hang(&mount, at);
        Ok(mount)
    }

    fn hang(&mut self, mount: &Arc<Mount>, at: Option<Path>) -> Option<Path> {
        if let Some(at) = &at {
            self.by_place.insert(Place::of(at), mount.clone());
        }
        mount.set_at(at)
    }

    /// `mount` and everything mounted below it, outer ones first.
    fn tree(&self, mount: &Arc<Mount>) -> Vec<Arc<Mount>> {
        let mut tree = vec![mount.clone()];
        let mut next = 0;
        while let Some(outer) = tree.get(next).cloned() {
            tree.extend(self.children(&outer).cloned());
            next += 1;
        }
        tree
    }

    fn children<'a>(&'a self, outer: &'a Arc<Mount>) -> impl Iterator<Item = &'a Arc<Mount>> {
        self.list.iter().filter(|mount| {
            let at = mount.at.lock();
            at.as_ref().is_some_and(|at| Arc::ptr_eq(&at.mount, outer))
        })
    }

    fn remove(&mut self, mount: &Arc<Mount>) -> Option<Path> {
        self.list.retain(|other| !Arc::ptr_eq(other, mount));
        if let Some(at) = mount.at() {
            self.by_place.remove(&Place::of(&at));
        }
        mount.set_at(None)
    }
}

struct NewMount<'a> {
    root: Arc<Dentry>,
    source: &'a str,
    flags: MountFlags,
    fs_readonly: bool,
}

impl<'a> NewMount<'a> {
    /// A file system mounted with these flags.
    fn fresh(root: Arc<Dentry>, source: &'a str, flags: MountFlags) -> NewMount<'a> {
        NewMount { root, source, flags: kept(flags), fs_readonly: flags.contains(MountFlags::RDONLY) }
    }

    /// `root` as another place of what `mount` shows.
    fn copy(mount: &'a Mount, root: Arc<Dentry>) -> NewMount<'a> {
        let fs_readonly = mount.fs_readonly.load(Ordering::Relaxed);
        NewMount { root, source: &mount.source, flags: mount.flags(), fs_readonly }
    }
}

impl MountTable {
    /// A name space with `fs` as its root.
    pub fn new(fs: &Arc<dyn FileSystem>, source: &str, flags: MountFlags) -> Arc<MountTable> {
        let mut state = State::default();
        let root = Dentry::new_root(fs.root());
        // The first mount of a table cannot exceed the limit.
        let _ = state.add(NewMount::fresh(root, source, flags), None);
        Arc::new(MountTable {
            state: Mutex::new(state),
            dentries: Arc::default(),
            protections: Protections::default(),
        })
    }

    /// Its root, whatever is mounted over it included (what a new task's root directory is).
    pub fn root(&self) -> Option<Path> {
        let mount = self.state.lock().list.first()?.clone();
        let dentry = mount.root.clone();
        Some(self.topmost(Path { mount, dentry }))
    }

    /// What is mounted on exactly this place.
    pub(crate) fn mounted_at(&self, path: &Path) -> Option<Path> {
        let mount = self.state.lock().by_place.get(&Place::of(path))?.clone();
        let dentry = mount.root.clone();
        Some(Path { mount, dentry })
    }

    /// The root of the last of the mounts stacked on `path`, or `path` if there is none.
    pub(crate) fn topmost(&self, mut path: Path) -> Path {
        while path.dentry.has_mounts() {
            match self.mounted_at(&path) {
                Some(over) => path = over,
                None => break,
            }
        }
        path
    }

    /// Whether anything is mounted on this dentry in this name space, through whatever mount.
    pub(crate) fn is_mountpoint(&self, dentry: &Arc<Dentry>) -> bool {
        let address = Arc::as_ptr(dentry).addr();
        dentry.has_mounts() && self.state.lock().by_place.keys().any(|place| place.1 == address)
    }

    /// All mounts, in order of mounting.
    pub fn list(&self) -> Vec<Arc<Mount>> {
        self.state.lock().list.clone()
    }

    /// Mounts a file system on `at`. `ENOTDIR` unless directory goes on directory and file on file, `EBUSY` for
    /// the same file system on its own root, `ENOENT` on a removed name.
    pub fn mount(
        &self,
        fs: &Arc<dyn FileSystem>,
        source: &str,
        flags: MountFlags,
        at: &Path,
    ) -> SysResult<Arc<Mount>> {
        if Arc::ptr_eq(&at.mount.fs, fs) && at.is_mount_root() {
            return Err(Errno::EBUSY.into());
        }
        let root = self.tree_root(fs);
        self.attach(NewMount::fresh(root, source, flags), at)
    }

    /// The root dentry of a file system: the one in use, since names are unique.
    fn tree_root(&self, fs: &Arc<dyn FileSystem>) -> Arc<Dentry> {
        let known = self.state.lock().list.iter().find(|mount| Arc::ptr_eq(&mount.fs, fs)).cloned();
        let Some(known) = known else { return Dentry::new_root(fs.root()) };
        let mut root = known.root.clone();
        while let Some(parent) = root.parent() {
            root = parent;
        }
        root
    }

    fn attach(&self, new: NewMount<'_>, at: &Path) -> SysResult<Arc<Mount>> {
        if new.root.inode.is_dir() != at.inode().is_dir() {
            return Err(Errno::ENOTDIR.into());
        }
        if at.dentry.is_removed() {
            return Err(Errno::ENOENT.into());
        }
        let mut state = self.state.lock();
        let mut at = at.clone();
        // Another mount may have come on top meanwhile: go over it.
        while let Some(over) = state.by_place.get(&Place::of(&at)) {
            at = Path { mount: over.clone(), dentry: over.root.clone() };
        }
        state.add(new, Some(at))
    }

    /// Shows `from` also at `at`, with the mount flags of `from`'s mount; `recursive` with what is mounted below.
    pub fn bind(&self, from: &Path, at: &Path, recursive: bool) -> SysResult<Arc<Mount>> {
        let below: Vec<Arc<Mount>> = match recursive {
            true => self.state.lock().tree(&from.mount).into_iter().skip(1).collect(),
            false => Vec::new(),
        };
        let bound = self.attach(NewMount::copy(&from.mount, from.dentry.clone()), at)?;
        let mut copies = vec![(from.mount.clone(), bound.clone())];
        for mount in below {
            let Some(place) = mount.at() else { continue };
            if Arc::ptr_eq(&place.mount, &from.mount) && !from.dentry.is_at_or_above(&place.dentry) {
                continue;
            }
            let Some((_, outer)) = copies.iter().find(|(old, _)| Arc::ptr_eq(old, &place.mount)) else {
                continue;
            };
            let at = Path { mount: outer.clone(), dentry: place.dentry };
            let copy = self.attach(NewMount::copy(&mount, mount.root.clone()), &at)?;
            copies.push((mount.clone(), copy));
        }
        Ok(bound)
    }

    /// Moves a mount, with all below it, to `at`. `EINVAL` unless `from` is a mount's root (and not that of the
    /// name space), `ELOOP` into itself.
    pub fn move_mount(&self, from: &Path, at: &Path) -> SysResult<()> {
        if !from.is_mount_root() || from.mount.at().is_none() {
            return Err(Errno::EINVAL.into());
        }
        if from.inode().is_dir() != at.inode().is_dir() {
            return Err(Errno::ENOTDIR.into());
        }
        if at.is_at_or_below(from) {
            return Err(Errno::ELOOP.into());
        }
        if at.dentry.is_removed() {
            return Err(Errno::ENOENT.into());
        }
        let mut state = self.state.lock();
        if let Some(old) = from.mount.at() {
            state.by_place.remove(&Place::of(&old));
        }
        let old = state.hang(&from.mount, Some(at.clone()));
        drop(state);
        drop(old);
        Ok(())
    }

    /// Changes the flags of the mount whose root `path` is; with `BIND` only this mount's. `EBUSY`: read-only while files are open for writing.
    pub fn remount(&self, path: &Path, flags: MountFlags) -> SysResult<()> {
        if !path.is_mount_root() {
            return Err(Errno::EINVAL.into());
        }
        let readonly = flags.contains(MountFlags::RDONLY);
        if readonly && path.mount.writers.load(Ordering::SeqCst) != 0 {
            return Err(Errno::EBUSY.into());
        }
        path.mount.flags.store(kept(flags).bits(), Ordering::Relaxed);
        if !flags.contains(MountFlags::BIND) {
            path.mount.fs_readonly.store(readonly, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Unmounts the mount whose root `path` is. `EINVAL` if it is none or the root of the name space; `EBUSY` if it
    /// is in use or something is mounted below, unless `DETACH`.
    pub fn umount(&self, path: Path, flags: UmountFlags) -> SysResult<()> {
        if !path.is_mount_root() || path.mount.at().is_none() {
            return Err(Errno::EINVAL.into());
        }
        let mut state = self.state.lock();
        // The table's list, its index and `path`: more is an open file, a directory in use, a mount below.
        let in_use = Arc::strong_count(&path.mount) > 3;
        if in_use && !flags.contains(UmountFlags::DETACH) {
            return Err(Errno::EBUSY.into());
        }
        let gone = state.tree(&path.mount);
        let places: Vec<Option<Path>> = gone.iter().rev().map(|mount| state.remove(mount)).collect();
        drop(state);
        drop(places);
        for mount in &gone {
            if !self.list().iter().any(|other| Arc::ptr_eq(&other.fs, &mount.fs)) {
                self.dentries.let_go_of_all(&mount.fs);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
