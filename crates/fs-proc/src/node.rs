//! Inodes: places of the tree.

use std::any::Any;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::SystemTime;

use abi::{Errno, FileMode, FileType, Timespec};
use sync::SysResult;
use vfs::{AttributeChange, Attributes, Caller, FileOps, Inode, InodeOps, MagicTarget, OpenHow};

use crate::dir;
use crate::entry::{Cx, Entry, Kind, Of};
use crate::file::Text;
use crate::fs::ProcFs;
use crate::{fd, pid, sysfs, system};

/// A place of the tree.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) enum Place {
    Root,
    /// `/proc/PID`.
    Process(i32),
    /// `/proc/PID/task/TID`.
    Thread(i32, i32),
    /// A fixed name: in a process's directory or outside of any, by its path of indices in the tables.
    Fixed(Option<(i32, Option<i32>)>, Vec<u16>),
    /// The root of sysfs, and what is below it.
    Sys(Vec<u16>),
    /// `/proc/PID/fd/N`, `/proc/PID/fdinfo/N`.
    Descriptor {
        pid: i32,
        tid: Option<i32>,
        number: i32,
        info: bool,
    },
}

impl Place {
    /// The process (and thread) that it belongs to.
    pub(crate) fn owner(&self) -> Option<(i32, Option<i32>)> {
        match self {
            Place::Root | Place::Sys(_) => None,
            Place::Process(pid) => Some((*pid, None)),
            Place::Thread(pid, tid) => Some((*pid, Some(*tid))),
            Place::Fixed(owner, _) => *owner,
            Place::Descriptor { pid, tid, .. } => Some((*pid, *tid)),
        }
    }

    /// The table entry of a fixed place.
    pub(crate) fn entry(&self) -> Option<&'static Entry> {
        let (mut table, path) = match self {
            Place::Sys(path) => (sysfs::ENTRIES, path),
            Place::Fixed(None, path) => (system::ENTRIES, path),
            Place::Fixed(Some((_, None)), path) => (pid::PROCESS, path),
            Place::Fixed(Some((_, Some(_))), path) => (pid::THREAD, path),
            _ => return None,
        };
        let mut found = None;
        for index in path {
            let entry = table.get(usize::from(*index))?;
            found = Some(entry);
            table = if let Kind::Directory(below) = entry.kind { below } else { &[] };
        }
        found
    }

    /// The fixed names in this directory.
    pub(crate) fn table(&self) -> &'static [Entry] {
        match self {
            Place::Root => system::ENTRIES,
            Place::Process(_) => pid::PROCESS,
            Place::Thread(..) => pid::THREAD,
            Place::Sys(path) if path.is_empty() => sysfs::ENTRIES,
            Place::Fixed(..) | Place::Sys(_) => match self.entry().map(|entry| entry.kind) {
                Some(Kind::Directory(below)) => below,
                _ => &[],
            },
            Place::Descriptor { .. } => &[],
        }
    }

    /// The place of the table's entry at `index`.
    pub(crate) fn fixed_child(&self, index: usize) -> Option<Place> {
        let index = u16::try_from(index).ok()?;
        let path = match self {
            Place::Sys(path) => return Some(Place::Sys([path.as_slice(), &[index]].concat())),
            Place::Fixed(_, path) => [path.as_slice(), &[index]].concat(),
            _ => vec![index],
        };
        Some(Place::Fixed(self.owner(), path))
    }

    pub(crate) fn file_type(&self) -> FileType {
        match self {
            Place::Root | Place::Process(_) | Place::Thread(..) => FileType::DIR,
            Place::Sys(path) if path.is_empty() => FileType::DIR,
            Place::Descriptor { info: false, .. } => FileType::LNK,
            Place::Descriptor { info: true, .. } => FileType::REG,
            Place::Fixed(..) | Place::Sys(_) => match self.entry().map(|entry| entry.kind) {
                Some(Kind::File(_) | Kind::Checked(..) | Kind::Opened(_) | Kind::Setting(..)) | None => {
                    FileType::REG
                }
                Some(Kind::Link(_) | Kind::Object(_)) => FileType::LNK,
                Some(Kind::Directory(_) | Kind::Descriptors { .. } | Kind::Threads) => FileType::DIR,
            },
        }
    }

    pub(crate) fn ino(&self) -> u64 {
        // Stable while the system runs; PROC_ROOT_INO for the root, as Linux.
        match self {
            Place::Root => 1,
            Place::Sys(path) if path.is_empty() => 1,
            place => {
                let mut hasher = DefaultHasher::new();
                place.hash(&mut hasher);
                (hasher.finish() >> 16) | 1 << 40
            }
        }
    }
}

/// An inode of proc.
pub(crate) struct Node {
    pub fs: Weak<ProcFs>,
    pub place: Place,
}

impl Node {
    pub(crate) fn fs(&self) -> SysResult<Arc<ProcFs>> {
        self.fs.upgrade().ok_or(Errno::ENOENT.into())
    }

    /// The process behind the place. `ENOENT`: it has gone.
    pub(crate) fn of(&self) -> SysResult<Option<Of>> {
        let Some((pid, tid)) = self.place.owner() else { return Ok(None) };
        let kernel = self.fs()?.kernel()?;
        let tasks = kernel.tasks.lock();
        // A thread's own number names a directory too: of that thread, with all threads of its process in `task`.
        let (entry, tid) = match (tasks.groups.get(&pid), tasks.tasks.get(&pid)) {
            (Some(entry), _) => (Some(entry), tid),
            (None, Some(thread)) => (tasks.groups.get(&thread.group.pid), tid.or(Some(pid))),
            (None, None) => (None, tid),
        };
        let entry = entry.ok_or(Errno::ENOENT)?;
        let task = match tid {
            Some(tid) => {
                let thread = entry.threads.iter().find(|thread| thread.tid() == tid);
                Some(thread.ok_or(Errno::ENOENT)?.clone())
            }
            None => entry.threads.first().cloned(),
        };
        Ok(Some(Of { group: entry.group.clone(), task, single: tid.is_some() }))
    }

    /// Calls `make` with what texts are made from.
    pub(crate) fn with<T>(
        &self,
        caller: &dyn Caller,
        make: impl FnOnce(&Cx<'_>) -> SysResult<T>,
    ) -> SysResult<T> {
        let kernel = self.fs()?.kernel()?;
        let reader = kernel::task::current(caller)?;
        // A process that has gone is ESRCH to those who have a file of it open.
        let of = self.of().map_err(|_| Errno::ESRCH)?;
        make(&Cx { kernel: &kernel, reader, of })
    }

    fn mode(&self) -> FileMode {
        let bits = match &self.place {
            Place::Root | Place::Process(_) | Place::Thread(..) => 0o555,
            Place::Descriptor { info: true, .. } => 0o444,
            Place::Descriptor { info: false, .. } => 0o777,
            Place::Sys(path) if path.is_empty() => 0o555,
            Place::Fixed(..) | Place::Sys(_) => self.place.entry().map_or(0, |entry| entry.mode),
        };
        FileMode::new(self.place.file_type(), bits)
    }
}

fn now() -> Timespec {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    kernel::time::timespec(since)
}

impl InodeOps for Node {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn attributes(&self, _: &Arc<Inode>) -> SysResult<Attributes> {
        let fs = self.fs()?;
        let (uid, gid) = self.owner()?;
        let time = now();
        let mut mode = self.mode();
        if let Place::Descriptor { info: false, .. } = self.place {
            mode = FileMode::new(FileType::LNK, fd::link_mode(self).unwrap_or(0o700));
        }
        let nlink = match self.place.entry().map(|entry| entry.kind) {
            _ if self.place.file_type() != FileType::DIR => 1,
            Some(Kind::Threads) => 2 + crate::dir::numbers(self)?.len() as u64,
            _ => {
                let is_directory = |entry: &&Entry| matches!(entry.kind, Kind::Directory(_));
                2 + self.place.table().iter().filter(is_directory).count() as u64
            }
        };
        Ok(Attributes {
            dev: vfs::FileSystem::dev(&*fs),
            ino: self.place.ino(),
            mode,
            nlink,
            uid,
            gid,
            block_size: 1024,
            size: self.size(),
            atime: time,
            mtime: time,
            ctime: time,
            ..Attributes::default()
        })
    }

    fn set_attributes(&self, _: &Arc<Inode>, change: &AttributeChange) -> SysResult<()> {
        // Opening a setting for writing with O_TRUNC truncates nothing.
        let only_size = change.permissions.is_none() && change.uid.is_none() && change.gid.is_none();
        if only_size && matches!(self.place.entry().map(|entry| entry.kind), Some(Kind::Setting(..))) {
            return Ok(());
        }
        Err(Errno::EPERM.into())
    }

    fn permission(&self, this: &Arc<Inode>, caller: &dyn Caller, mask: u32) -> Option<SysResult<()>> {
        match (&self.place, self.place.entry().map(|entry| entry.kind)) {
            // Linux: `proc_pid_permission` finds no task.
            (Place::Process(_), _) if self.of().is_err() => Some(Err(Errno::ESRCH.into())),
            // A process sees its own descriptors whoever it has become (Linux: `proc_fd_permission`).
            (_, Some(Kind::Descriptors { .. })) => {
                let usual = this
                    .ops
                    .attributes(this)
                    .and_then(|attributes| vfs::generic_permission(&attributes, caller.cred(), mask));
                let is_own = || {
                    let (reader, of) = (kernel::task::current(caller).ok()?, self.of().ok()??);
                    Some(Arc::ptr_eq(reader.group(), &of.group))
                };
                Some(if usual.is_err() && is_own() == Some(true) { Ok(()) } else { usual })
            }
            _ => None,
        }
    }

    fn open(&self, this: &Arc<Inode>, _: OpenHow, caller: &dyn Caller) -> SysResult<Box<dyn FileOps>> {
        if self.place.file_type() == FileType::DIR {
            if let Some(Kind::Descriptors { .. }) = self.place.entry().map(|entry| entry.kind) {
                self.with(caller, |cx| cx.check_access())?;
            }
            let inode = this.clone();
            return Ok(Box::new(vfs::ListedDirectory::new(move || dir::list(&inode))));
        }
        match self.place.entry().map(|entry| entry.kind) {
            Some(Kind::Checked(_, check)) => self.with(caller, check)?,
            Some(Kind::Opened(open)) => return self.with(caller, open),
            _ => {}
        }
        Ok(Box::new(Text::new(this.clone())))
    }

    fn lookup(&self, _: &Arc<Inode>, name: &[u8]) -> SysResult<Arc<Inode>> {
        let place = crate::dir::find(self, name)?.ok_or(Errno::ENOENT)?;
        self.fs()?.inode(place)
    }

    fn revalidate(&self, _: &Arc<Inode>, _: &[u8], child: &Arc<Inode>) -> bool {
        // Places are for ever, but processes come and go.
        child.downcast::<Node>().is_some_and(|node| node.exists())
    }

    fn read_link_as(&self, _: &Arc<Inode>, caller: &dyn Caller) -> SysResult<Vec<u8>> {
        match (&self.place, self.place.entry().map(|entry| entry.kind)) {
            (Place::Descriptor { number, info: false, .. }, _) => {
                self.with(caller, |cx| fd::link_text(cx, *number))
            }
            (_, Some(Kind::Link(render))) => self.with(caller, render),
            (_, Some(Kind::Object(follow))) => self.with(caller, |cx| {
                let target = follow(cx)?;
                Ok(fd::target_text(cx, &target))
            }),
            _ => Err(Errno::EINVAL.into()),
        }
    }

    fn follow(&self, _: &Arc<Inode>, caller: &dyn Caller) -> Option<SysResult<MagicTarget>> {
        match (&self.place, self.place.entry().map(|entry| entry.kind)) {
            (Place::Descriptor { number, info: false, .. }, _) => {
                Some(self.with(caller, |cx| fd::target(cx, *number)))
            }
            (_, Some(Kind::Object(follow))) => Some(self.with(caller, follow)),
            _ => None,
        }
    }
}

impl Node {
    /// Who owns it (Linux: `task_dump_owner`): the process's user; root, where a process may not be dumped or has no
    /// memory left, except for directories that everybody may list.
    fn owner(&self) -> SysResult<(u32, u32)> {
        let Some(of) = self.of()? else { return Ok((0, 0)) };
        let is_open_directory = self.place.file_type() == FileType::DIR && self.mode().permissions() == 0o555;
        let Some(task) = of.task else {
            let kernel = self.fs()?.kernel()?;
            let tasks = kernel.tasks.lock();
            let zombie = tasks.groups.get(&of.group.pid).and_then(|entry| entry.zombie);
            return Ok(zombie
                .filter(|_| is_open_directory)
                .map_or((0, 0), |zombie| (zombie.uid, zombie.gid)));
        };
        let has_memory = task.shared.lock().mm.is_some();
        let is_dumpable = of.group.dumpable.load(Ordering::Relaxed) == 1;
        if !(is_open_directory || has_memory && is_dumpable) {
            return Ok((0, 0));
        }
        let cred = task.cred();
        Ok((cred.euid, cred.egid))
    }

    /// Links of descriptors say 64, the directory of descriptors how many there are (Linux 6.2); all else 0.
    fn size(&self) -> u64 {
        match (&self.place, self.place.entry().map(|entry| entry.kind)) {
            (Place::Descriptor { info: false, .. }, _) => 64,
            (_, Some(Kind::Descriptors { info: false })) => {
                fd::numbers(self).map_or(0, |numbers| numbers.len() as u64)
            }
            _ => 0,
        }
    }

    fn exists(&self) -> bool {
        let descriptor_is_open = || match self.place {
            Place::Descriptor { number, .. } => fd::is_open(self, number),
            _ => true,
        };
        self.of().is_ok() && descriptor_is_open()
    }
}
