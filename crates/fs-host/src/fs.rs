//! The file system: its root, its table of inodes, its device numbers.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Weak};

use abi::{Errno, FileType};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{Mode, OFlags, ResolveFlags};
use rustix::io::Errno as HostErrno;
use rustix::path::DecInt;
use smallvec::SmallVec;
use sync::order::{FileSystem as FileSystemLevel, Leaf};
use sync::{Mutex, SysResult};
use vfs::{FileSystem, FsStat, Inode};

use crate::blocked::Blocked;
use crate::check::{self, Verdict};
use crate::descriptors::{Descriptors, DirFd};
use crate::error::{errno, retry};
use crate::kept::Kept;
use crate::moves::Moves;
use crate::node::HostNode;
use crate::stat::{FileId, HostStat};
use crate::{HostFsOptions, Records, Submounts, View};

/// A host directory, served as a file system.
pub struct HostFs {
    me: Weak<HostFs>,
    pub(crate) options: HostFsOptions,
    /// The root: usually a directory, see `root_type`.
    pub(crate) root_fd: Arc<DirFd>,
    root_type: FileType,
    /// The host's `/proc/self/fd`, through which a descriptor is opened again.
    pub(crate) proc_fd: OwnedFd,
    pub(crate) descriptors: Descriptors,
    pub(crate) kept: Kept,
    pub(crate) moves: Moves,
    dev: u64,
    /// The `st_dev` shown for each of the host's but the root's.
    devices: Mutex<Leaf, SmallVec<[(u64, u64); 1]>>,
    mounts: Mutex<Leaf, Vec<MountVerdict>>,
    inodes: Mutex<FileSystemLevel, Table>,
}

/// Whether a mount below the root is shown, by the host's mount id and device.
type MountVerdict = ((u64, u64), bool);

#[derive(Default)]
struct Table {
    known: HashMap<Key, Weak<Inode>>,
    /// Dead entries are swept when there are this many.
    sweep_at: usize,
}

/// A file, or the empty stand-in for something that is not shown.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Key {
    id: FileId,
    blocked: bool,
}

/// Why a directory cannot be served.
#[derive(Debug)]
pub enum OpenError {
    /// The host refuses.
    Host(rustix::io::Errno),
    /// Its file system is an interface of the host's kernel, or of a kind that is served only by name.
    Refused,
    /// It is neither a directory nor a regular file.
    Special,
}

impl std::fmt::Display for OpenError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            OpenError::Host(error) => error.fmt(f),
            OpenError::Refused => f.write_str("its file system cannot be shown to guests"),
            OpenError::Special => f.write_str("neither a directory nor a regular file"),
        }
    }
}

impl std::error::Error for OpenError {}

impl From<rustix::io::Errno> for OpenError {
    fn from(error: rustix::io::Errno) -> OpenError {
        OpenError::Host(error)
    }
}

impl HostFs {
    /// Serves the host directory (or regular file, to be mounted on one) `path`. To be called by the process that will
    /// serve it (not before a fork), since it opens that process's `/proc/self/fd`.
    pub fn open(path: &Path, options: HostFsOptions) -> Result<Arc<HostFs>, OpenError> {
        let file = rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
        HostFs::serve(file, options)
    }

    /// Serves a directory or regular file opened already (`O_PATH` suffices).
    pub fn serve(root: OwnedFd, options: HostFsOptions) -> Result<Arc<HostFs>, OpenError> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let proc_fd = rustix::fs::open("/proc/self/fd", flags, Mode::empty())?;
        let stat = HostStat::of(&root)?;
        let root_type = stat.file_type();
        if !matches!(root_type, FileType::DIR | FileType::REG) {
            return Err(OpenError::Special);
        }
        let kept = match check::of(&root, stat.mount)? {
            Verdict::Plain => Kept::new(Some(stat.mount)),
            Verdict::IfNamed if options.named => Kept::new(None),
            _ => return Err(OpenError::Refused),
        };
        let dev = vfs::anonymous_dev();
        Ok(Arc::new_cyclic(|me| HostFs {
            me: me.clone(),
            options,
            root_fd: Arc::new(DirFd { fd: root, mount: stat.mount, id: stat.id }),
            root_type,
            proc_fd,
            descriptors: Descriptors::default(),
            kept,
            moves: Moves::default(),
            dev,
            devices: Mutex::default(),
            mounts: Mutex::default(),
            inodes: Mutex::default(),
        }))
    }

    /// The `st_dev` shown for files of the host's device `host_dev`.
    pub(crate) fn shown_dev(&self, host_dev: u64) -> u64 {
        if host_dev == self.root_fd.id.dev {
            return self.dev;
        }
        let mut devices = self.devices.lock();
        match devices.iter().find(|(host, _)| *host == host_dev) {
            Some((_, shown)) => *shown,
            None => {
                let shown = vfs::anonymous_dev();
                devices.push((host_dev, shown));
                shown
            }
        }
    }

    pub(crate) fn keeps_records(&self) -> bool {
        self.options.records != Records::None
    }

    /// The owner that files made by this process show.
    pub(crate) fn own_ids(&self) -> (u32, u32) {
        let (uid, gid) = host::user::file_ids();
        self.options.owners.shown(uid, gid)
    }

    /// Whether a file may be shown at all, by its permissions.
    pub(crate) fn may_show(&self, stat: &HostStat) -> bool {
        !self.options.world_readable_only || stat.is_for_all()
    }

    pub(crate) fn root_inode(&self) -> SysResult<Arc<Inode>> {
        let view = self.options.view.clone();
        self.inode(self.root_fd.id, false, self.root_type, |me| {
            Box::new(HostNode::new(me, self.root_fd.id, view))
        })
    }

    /// The inode of what `stat` tells of. The caller notes where it was found.
    pub(crate) fn intern(
        &self,
        stat: &HostStat,
        file_type: FileType,
        view: Option<Arc<View>>,
    ) -> SysResult<Arc<Inode>> {
        self.inode(stat.id, false, file_type, |me| Box::new(HostNode::new(me, stat.id, view)))
    }

    /// The inode of a file that has no name.
    pub(crate) fn intern_unnamed(&self, stat: &HostStat, fd: Arc<OwnedFd>) -> SysResult<Arc<Inode>> {
        self.inode(stat.id, false, FileType::REG, |me| {
            let node = HostNode::new(me, stat.id, None);
            node.pin(fd);
            Box::new(node)
        })
    }

    /// An empty stand-in for a mount that is not shown.
    pub(crate) fn intern_blocked(&self, dir: &Arc<Inode>, stat: &HostStat) -> SysResult<Arc<Inode>> {
        let file_type = if stat.mode().is_dir() { FileType::DIR } else { FileType::REG };
        self.inode(stat.id, true, file_type, |_| Box::new(Blocked::new(dir, stat, self.dev)))
    }

    /// The inode of that identity if it is in use.
    pub(crate) fn known(&self, id: FileId) -> Option<Arc<Inode>> {
        self.inodes.lock().known.get(&Key { id, blocked: false }).and_then(Weak::upgrade)
    }

    fn inode(
        &self,
        id: FileId,
        blocked: bool,
        file_type: FileType,
        make: impl FnOnce(Arc<HostFs>) -> Box<dyn vfs::InodeOps>,
    ) -> SysResult<Arc<Inode>> {
        let key = Key { id, blocked };
        let mut table = self.inodes.lock();
        if let Some(inode) = table.known.get(&key).and_then(Weak::upgrade)
            && inode.file_type == file_type
        {
            return Ok(inode);
        }
        if table.known.len() >= table.sweep_at {
            table.known.retain(|_, inode| inode.strong_count() > 0);
            table.sweep_at = (table.known.len() * 2).max(1024);
        }
        // It is in use, so the weak reference to it holds.
        let me = self.me.upgrade().ok_or(Errno::EIO)?;
        let inode = Inode::new(me.clone(), file_type, make(me));
        table.known.insert(key, Arc::downgrade(&inode));
        Ok(inode)
    }

    /// Runs a host call that makes a descriptor; if the host has none left, again with fewer cached ones.
    pub(crate) fn with_descriptors<T>(
        &self,
        call: impl Fn() -> rustix::io::Result<T>,
    ) -> rustix::io::Result<T> {
        match retry(&call) {
            Err(HostErrno::MFILE | HostErrno::NFILE) => {
                self.shrink_descriptors();
                retry(&call)
            }
            other => other,
        }
    }

    /// Closes descriptors that are only kept to be quick.
    pub(crate) fn shrink_descriptors(&self) {
        self.kept.clear();
        self.descriptors.shrink();
    }

    /// Opens `name` in `dir` with `O_PATH`, following nothing. With `cross`, also into another mount: the caller
    /// [checks](HostFs::may_cross) that one.
    pub(crate) fn open_path(
        &self,
        dir: &OwnedFd,
        name: &[u8],
        extra: OFlags,
        cross: bool,
    ) -> rustix::io::Result<OwnedFd> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC | extra;
        let mut resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        if !cross {
            resolve |= ResolveFlags::NO_XDEV;
        }
        self.with_descriptors(|| rustix::fs::openat2(dir, name, flags, Mode::empty(), resolve))
    }

    /// Opens a file again that is open (or held `O_PATH`) as `file`. The caller knows it to be a regular file or
    /// a directory: opening anything else might do something.
    pub(crate) fn reopen(&self, file: impl AsFd, flags: OFlags) -> rustix::io::Result<OwnedFd> {
        let number = DecInt::from_fd(&file);
        let flags = flags | OFlags::CLOEXEC | OFlags::NOCTTY | OFlags::NONBLOCK;
        self.with_descriptors(|| rustix::fs::openat(&self.proc_fd, number.as_c_str(), flags, Mode::empty()))
    }

    /// Whether the mount `mount`, found below the root as `file`, is shown.
    pub(crate) fn may_cross(&self, view: Option<&View>, file: &OwnedFd, stat: &HostStat) -> SysResult<bool> {
        if self.options.submounts == Submounts::Hidden && !view.is_some_and(View::may_be_mount) {
            return Ok(false);
        }
        let key = (stat.mount, stat.id.dev);
        if let Some((_, shown)) = self.mounts.lock().iter().find(|(known, _)| *known == key) {
            return Ok(*shown);
        }
        let shown = match check::of(file, stat.mount).map_err(errno)? {
            Verdict::Plain => true,
            Verdict::IfNamed => self.options.named,
            Verdict::Refused => false,
        };
        self.mounts.lock().push((key, shown));
        Ok(shown)
    }
}

impl FileSystem for HostFs {
    fn kind(&self) -> &'static str {
        "hostfs"
    }

    fn dev(&self) -> u64 {
        self.dev
    }

    fn root(&self) -> Arc<Inode> {
        match self.root_inode() {
            Ok(root) => root,
            // Not reached: whoever calls has the file system by a strong reference.
            Err(_) => std::process::abort(),
        }
    }

    fn stat(&self) -> SysResult<FsStat> {
        let stat = rustix::fs::fstatfs(&self.root_fd.fd).map_err(errno)?;
        let unsigned = |value: i64| u64::try_from(value).unwrap_or(0);
        Ok(FsStat {
            magic: stat.f_type,
            block_size: unsigned(stat.f_bsize),
            blocks: stat.f_blocks,
            blocks_free: stat.f_bfree,
            blocks_available: stat.f_bavail,
            files: stat.f_files,
            files_free: stat.f_ffree,
            name_max: unsigned(stat.f_namelen),
            // The host's own id stays its own.
            fsid: [i32::try_from(self.dev & 0x7fff_ffff).unwrap_or(0), 0],
        })
    }

    fn changes_outside(&self) -> bool {
        true
    }

    fn sync(&self) -> SysResult<()> {
        if !self.options.writable {
            return Ok(());
        }
        let root = self.reopen(&self.root_fd.fd, OFlags::RDONLY).map_err(errno)?;
        rustix::fs::syncfs(root).map_err(errno)
    }
}
