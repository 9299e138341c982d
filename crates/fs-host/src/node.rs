//! One file of the host: where it is, and how it is reached.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use abi::{Errno, FileMode};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::OFlags;
use smallvec::SmallVec;
use sync::order::{FileSystem as FileSystemLevel, Inode as InodeLevel, Leaf};
use sync::{Mutex, SysError, SysResult};
use vfs::{Attributes, Inode};

use crate::descriptors::DirFd;
use crate::error::{moved, stale};
use crate::kept::Opens;
use crate::locks::HostLocks;
use crate::places::Places;
use crate::record::Record;
use crate::seen;
use crate::side::Side;
use crate::stat::{FileId, HostStat};
use crate::{HostFs, View};

/// Deeper trees than this have lost their way (two directories that each seem to lie in the other).
const DEEPEST: usize = 1 << 16;

/// A host file or directory: the operations of its inode.
pub(crate) struct HostNode {
    pub(crate) fs: Arc<HostFs>,
    pub(crate) id: FileId,
    /// For directories: what of it is shown; `None`: all.
    pub(crate) view: Option<Arc<View>>,
    state: Mutex<Leaf, State>,
    /// The directory descriptor was used since the cache last asked.
    used: AtomicBool,
    /// Its mode was last seen to have set-id bits.
    set_id: AtomicBool,
    pub(crate) opens: Opens,
    /// Held over a change of owner or mode, which reads, decides and writes.
    pub(crate) changes: Mutex<InodeLevel, ()>,
    /// For directories: what their side file says, once it was read. The lock is held over host calls on that file,
    /// since they are one step with what is kept here.
    pub(crate) side: Mutex<FileSystemLevel, Option<Box<Side>>>,
}

#[derive(Default)]
struct State {
    /// Where it was found: one place for a directory, one for each known name of another file. None for the
    /// root, and for files without a name.
    places: Places,
    dir_fd: Option<Arc<DirFd>>,
    /// Descriptors of open files of it: the way to it when its names are gone.
    open: SmallVec<[Weak<OwnedFd>; 1]>,
    /// When to sweep the dead ones in `open`.
    sweep_at: usize,
    /// Held for a file that never had a name (`O_TMPFILE`).
    pinned: Option<Arc<OwnedFd>>,
    /// The file's locks on the host, while guests hold some.
    locks: Weak<HostLocks>,
    /// The record, as it was when the file had last changed then.
    record: Option<((i64, u32), Option<Record>)>,
    /// Counts changes of the record, so that one read before a change is not kept after it.
    generation: u64,
}

/// What is known of a record.
pub(crate) enum Cached {
    Record(Option<Record>),
    /// Nothing; what is read now goes with this generation.
    Unknown(u64),
}

/// A descriptor that stands for the file itself.
pub(crate) enum Handle {
    Dir(Arc<DirFd>),
    Open(Arc<OwnedFd>),
    Path(OwnedFd),
}

impl AsFd for Handle {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Handle::Dir(dir) => dir.fd.as_fd(),
            Handle::Open(file) => file.as_fd(),
            Handle::Path(file) => file.as_fd(),
        }
    }
}

impl HostNode {
    pub(crate) fn new(fs: Arc<HostFs>, id: FileId, view: Option<Arc<View>>) -> HostNode {
        HostNode {
            fs,
            id,
            view,
            state: Mutex::default(),
            used: AtomicBool::new(false),
            set_id: AtomicBool::new(false),
            opens: Opens::default(),
            changes: Mutex::default(),
            side: Mutex::default(),
        }
    }

    pub(crate) fn is_root(&self) -> bool {
        self.id == self.fs.root_fd.id
    }

    /// Its places, under the lock: whoever drops one does so without.
    pub(crate) fn with_places<T>(&self, act: impl FnOnce(&mut Places) -> T) -> T {
        act(&mut self.state.lock().places)
    }

    /// Keeps `file` open for as long as the inode lives: it has no name.
    pub(crate) fn pin(&self, file: Arc<OwnedFd>) {
        self.state.lock().pinned = Some(file);
    }

    /// Lets go of it: it has a name now.
    pub(crate) fn unpin(&self) {
        let pinned = self.state.lock().pinned.take();
        drop(pinned);
    }

    /// The record, if it was read when the file had last changed as it has now.
    pub(crate) fn cached_record(&self, changed: (i64, u32)) -> Cached {
        let state = self.state.lock();
        match state.record {
            Some((when, record)) if when == changed => Cached::Record(record),
            _ => Cached::Unknown(state.generation),
        }
    }

    /// Keeps a record that was read, unless it changed meanwhile.
    pub(crate) fn cache_read_record(&self, changed: (i64, u32), record: Option<Record>, generation: u64) {
        let mut state = self.state.lock();
        if state.generation == generation {
            state.record = Some((changed, record));
            self.note_set_id(record);
        }
    }

    /// Keeps a record that was written.
    pub(crate) fn cache_record(&self, changed: (i64, u32), record: Option<Record>) {
        let mut state = self.state.lock();
        state.generation += 1;
        state.record = Some((changed, record));
        self.note_set_id(record);
    }

    fn note_set_id(&self, record: Option<Record>) {
        if let Some(record) = record {
            self.set_id.store(has_set_id(record.mode), Ordering::Relaxed);
        }
    }

    /// Notes that the record is about to change.
    pub(crate) fn record_changes(&self) {
        let mut state = self.state.lock();
        state.generation += 1;
        state.record = None;
    }

    pub(crate) fn has_set_id(&self) -> bool {
        self.set_id.load(Ordering::Relaxed)
    }

    pub(crate) fn lock_file(&self) -> Option<Arc<HostLocks>> {
        self.state.lock().locks.upgrade()
    }

    /// Notes the file that holds the locks, unless there is one.
    pub(crate) fn set_lock_file(&self, file: Arc<HostLocks>) -> Arc<HostLocks> {
        let mut state = self.state.lock();
        if let Some(known) = state.locks.upgrade() {
            return known;
        }
        state.locks = Arc::downgrade(&file);
        file
    }

    /// Notes an open file of this inode.
    pub(crate) fn note_open(&self, file: &Arc<OwnedFd>) {
        let mut state = self.state.lock();
        if state.open.len() >= state.sweep_at {
            state.open.retain(|open| open.strong_count() > 0);
            state.sweep_at = state.open.len() * 2 + 1;
        }
        state.open.push(Arc::downgrade(file));
    }

    /// A descriptor of an open file of it.
    fn open_file(&self) -> Option<Arc<OwnedFd>> {
        let state = self.state.lock();
        state.pinned.clone().or_else(|| state.open.iter().rev().find_map(Weak::upgrade))
    }

    pub(crate) fn was_used(&self) -> bool {
        self.used.swap(false, Ordering::Relaxed)
    }

    pub(crate) fn give_up_dir_fd(&self) -> Option<Arc<DirFd>> {
        self.state.lock().dir_fd.take()
    }

    fn cached_dir_fd(&self) -> Option<Arc<DirFd>> {
        if self.is_root() {
            return Some(self.fs.root_fd.clone());
        }
        let cached = self.state.lock().dir_fd.clone();
        if cached.is_some() {
            self.used.store(true, Ordering::Relaxed);
        }
        cached
    }

    /// The descriptor of this directory. `ESTALE` when it is no longer where it was found, `ENOENT` when it was removed.
    pub(crate) fn dir_fd(&self, this: &Arc<Inode>) -> SysResult<Arc<DirFd>> {
        if let Some(cached) = self.cached_dir_fd() {
            return Ok(cached);
        }
        self.fs.moves.past_them(|| self.find_dir(this))
    }

    fn find_dir(&self, this: &Arc<Inode>) -> SysResult<Arc<DirFd>> {
        // Up to the nearest ancestor that has one (trees can be deep: no recursion), and down again.
        let mut missing = vec![this.clone()];
        // Without a place it was removed through us.
        let mut parent = self.parent().ok_or(Errno::ENOENT)?;
        let mut at = loop {
            let node = parent.downcast::<HostNode>().ok_or_else(stale)?;
            if let Some(cached) = node.cached_dir_fd() {
                break cached;
            }
            let next = node.parent().ok_or(Errno::ENOENT)?;
            missing.push(std::mem::replace(&mut parent, next));
            if missing.len() > DEEPEST {
                return Err(stale());
            }
        };
        for inode in missing.iter().rev() {
            at = inode.downcast::<HostNode>().ok_or_else(stale)?.open_dir_in(inode, &at)?;
        }
        Ok(at)
    }

    /// Opens this directory in its parent.
    fn open_dir_in(&self, this: &Arc<Inode>, parent: &DirFd) -> SysResult<Arc<DirFd>> {
        let name = self.state.lock().places.first().map(|place| place.name.clone()).ok_or_else(stale)?;
        let (fd, stat) = self.open_in(parent, &name, OFlags::DIRECTORY)?;
        let dir = Arc::new(DirFd { fd, mount: stat.mount, id: stat.id });
        self.state.lock().dir_fd = Some(dir.clone());
        self.used.store(true, Ordering::Relaxed);
        self.fs.descriptors.note(this);
        Ok(dir)
    }

    /// Opens this file as `name` in `dir` with `O_PATH`, and makes sure that it is this one.
    fn open_in(&self, dir: &DirFd, name: &[u8], extra: OFlags) -> SysResult<(OwnedFd, HostStat)> {
        let view = self.view.as_deref();
        let fd = match self.fs.open_path(&dir.fd, name, extra, false) {
            Err(rustix::io::Errno::XDEV) => self.fs.open_path(&dir.fd, name, extra, true),
            other => other,
        };
        let fd = fd.map_err(moved)?;
        let stat = HostStat::of(&fd).map_err(moved)?;
        let right = stat.id == self.id
            && (stat.mount == dir.mount || self.fs.may_cross(view, &fd, &stat)?)
            && self.fs.may_show(&stat);
        if right { Ok((fd, stat)) } else { Err(stale()) }
    }

    /// Runs `act` on the first place at which the file still is found.
    fn at_a_place<T>(&self, act: impl Fn(&DirFd, &[u8]) -> SysResult<T>) -> SysResult<T> {
        self.fs.moves.past_them(|| {
            let mut result = Err(stale());
            for place in self.places() {
                let Some(dir) = place.dir.downcast::<HostNode>() else { continue };
                result = dir.dir_fd(&place.dir).and_then(|dir| act(&dir, &place.name));
                match result {
                    Ok(_) => break,
                    // The directory is gone: the file was moved out before.
                    Err(SysError::Errno(Errno::ENOENT)) => result = Err(stale()),
                    Err(_) => {}
                }
            }
            result
        })
    }

    /// Something that stands for the file itself, whatever happens to its names. For regular files and directories
    /// it can be [reopened](HostFs::reopen).
    pub(crate) fn handle(&self, this: &Arc<Inode>) -> SysResult<Handle> {
        // The root of a file system may be a file.
        if this.is_dir() || self.is_root() {
            return self.dir_fd(this).map(Handle::Dir);
        }
        if let Some(file) = self.open_file() {
            return Ok(Handle::Open(file));
        }
        self.at_a_place(|dir, name| self.open_in(dir, name, OFlags::empty())).map(|(fd, _)| Handle::Path(fd))
    }

    /// The same for a regular file that is to be opened by its name.
    pub(crate) fn handle_to_open(&self, this: &Arc<Inode>) -> SysResult<Handle> {
        if self.is_root() {
            return Ok(Handle::Dir(self.fs.root_fd.clone()));
        }
        // This operation has asked what the name leads to: a descriptor of just that will do.
        if let Some(held) = seen::found(&self.fs, self.id, |stat| self.fs.kept.get(&self.opens, stat)) {
            return Ok(Handle::Open(held));
        }
        if let Some(file) = self.open_file() {
            return Ok(Handle::Open(file));
        }
        let (fd, stat) = self.at_a_place(|dir, name| self.open_in(dir, name, OFlags::empty()))?;
        // Never open what only was a regular file when it was looked up.
        if stat.file_type() != this.file_type {
            return Err(stale());
        }
        Ok(self.fs.kept.note(&self.opens, &stat, fd))
    }

    /// What the host says of it now.
    pub(crate) fn stat(&self) -> SysResult<HostStat> {
        if let Some(dir) = self.cached_dir_fd() {
            return HostStat::of(&dir.fd).map_err(moved);
        }
        if let Some(file) = self.open_file() {
            return HostStat::of(&file).map_err(moved);
        }
        self.at_a_place(|dir, name| {
            let stat = HostStat::at(&dir.fd, name).map_err(moved)?;
            if stat.id == self.id { Ok(stat) } else { Err(stale()) }
        })
    }

    /// The guest's attributes for what the host says.
    pub(crate) fn shown(&self, this: &Arc<Inode>, stat: &HostStat) -> SysResult<Attributes> {
        Ok(self.shown_with(stat, self.record(this, stat)?))
    }

    /// The same, unless the host is to be asked for a record.
    pub(crate) fn shown_if_known(&self, stat: &HostStat) -> Option<Attributes> {
        let record = match self.fs.keeps_records().then(|| self.cached_record(stat.changed())) {
            None => None,
            Some(Cached::Record(record)) => record,
            Some(Cached::Unknown(_)) => return None,
        };
        Some(self.shown_with(stat, record))
    }

    fn shown_with(&self, stat: &HostStat, record: Option<Record>) -> Attributes {
        let mut shown = stat.attributes(self.fs.shown_dev(stat.id.dev));
        (shown.uid, shown.gid) = self.fs.options.owners.shown(shown.uid, shown.gid);
        if let Some(record) = record {
            record.apply(stat, &mut shown);
        }
        self.set_id.store(has_set_id(shown.mode), Ordering::Relaxed);
        shown
    }
}

fn has_set_id(mode: FileMode) -> bool {
    mode.intersects(FileMode::SUID | FileMode::SGID)
}

impl Drop for HostNode {
    /// Lets go of the chain of parents one by one: dropped each by the next, a deep tree would exhaust the stack.
    fn drop(&mut self) {
        self.fs.kept.forget(&self.opens, self.id);
        let mut places = std::mem::take(&mut self.state.get_mut().places);
        while let Some(place) = places.pop() {
            if let Some(inode) = Arc::into_inner(place.dir)
                && let Some(node) = inode.downcast::<HostNode>()
            {
                places.append(&mut node.state.lock().places);
            }
        }
    }
}
