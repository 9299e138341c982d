//! Open files.

use std::any::Any;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

use abi::{Errno, FcntlCmd, FileType, OpenFlags};
use smallvec::SmallVec;
use sync::{SysResult, WaitQueue};

use crate::inode_state::WriteAccess;
use crate::locks::FileLocks;
use crate::{Attributes, Caller, Inode, Mount, Path, Ready, UserRead, UserWrite};

/// How a file is opened: the access and status flags of `open` (creation flags have been dealt with).
#[derive(Clone, Copy, Debug)]
pub struct OpenHow {
    pub flags: OpenFlags,
}

/// `lseek`, decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seek {
    Set(i64),
    Current(i64),
    End(i64),
    Data(i64),
    Hole(i64),
}

/// What `mmap` of a file maps.
pub enum Mapping {
    /// This host file (or memfd), at the same offsets as the guest's file.
    Host(Arc<OwnedFd>),
    /// Fresh zero pages (`/dev/zero`).
    Zero,
}

/// A host description that a guest process may use in place of the file's operations, with the same effect.
pub struct HandOut {
    /// The very one that the operations use, so that its offset is shared.
    pub file: Arc<OwnedFd>,
    /// Whether writes to it need nothing of the file system.
    pub may_write: bool,
    /// Bytes after which a write is to come to the file system again, which keeps account of its space.
    pub budget: Option<u64>,
}

/// Takes directory entries; `false`: no more room, stop (the entry was not taken).
pub trait DirSink {
    /// `next` is the position behind this entry: what `lseek` and the next `read_dir` go on with.
    fn entry(&mut self, name: &[u8], ino: u64, file_type: FileType, next: u64) -> bool;
}

/// The operations of an open file (Linux: `file_operations`). Blocking ones wait with the caller's waiter
/// unless the description is non-blocking (`EAGAIN` then). Offsets are the file's own business, because a host
/// file's lies in the host's open file description.
#[allow(unused_variables, reason = "defaults ignore their arguments")]
pub trait FileOps: Any + Send + Sync {
    fn as_any(&self) -> &dyn Any;

    /// Reads at the file's offset and moves it; returns bytes put, 0 at the end. A fault after some bytes gives
    /// their count, before any `EFAULT`.
    fn read(&self, file: &FileDescription, caller: &dyn Caller, to: &mut dyn UserWrite) -> SysResult<usize> {
        Err(Errno::EINVAL.into())
    }

    /// Writes at the file's offset (the end with `O_APPEND`) and moves it.
    fn write(
        &self,
        file: &FileDescription,
        caller: &dyn Caller,
        from: &mut dyn UserRead,
    ) -> SysResult<usize> {
        Err(Errno::EINVAL.into())
    }

    /// Reads at `offset`. `ESPIPE` for what cannot seek.
    fn read_at(
        &self,
        file: &FileDescription,
        caller: &dyn Caller,
        offset: u64,
        to: &mut dyn UserWrite,
    ) -> SysResult<usize> {
        Err(Errno::ESPIPE.into())
    }

    fn write_at(
        &self,
        file: &FileDescription,
        caller: &dyn Caller,
        offset: u64,
        from: &mut dyn UserRead,
    ) -> SysResult<usize> {
        Err(Errno::ESPIPE.into())
    }

    /// Moves the offset; returns the new one.
    fn seek(&self, file: &FileDescription, to: Seek) -> SysResult<u64> {
        Err(Errno::ESPIPE.into())
    }

    /// Gives the entries behind the description's position, `.` and `..` among them, and moves it past those
    /// taken. `EINVAL` from the caller if not even one fitted.
    fn read_dir(&self, file: &FileDescription, caller: &dyn Caller, to: &mut dyn DirSink) -> SysResult<()> {
        Err(Errno::ENOTDIR.into())
    }

    /// Fresh attributes, for files without a path (pipes, sockets) and for those whose open host file is
    /// the truth. `None`: ask the inode.
    fn attributes(&self) -> Option<SysResult<Attributes>> {
        None
    }

    /// Changes attributes of a file without an inode (`fchmod`, `fchown` of pipes and sockets).
    fn set_attributes(&self, change: &crate::AttributeChange) -> SysResult<()> {
        Err(Errno::EPERM.into())
    }

    /// Sets the size, and modification and change time even if it stays. Permissions and limits have been checked.
    fn truncate(&self, file: &FileDescription, caller: &dyn Caller, size: u64) -> SysResult<()> {
        Err(Errno::EINVAL.into())
    }

    fn allocate(
        &self,
        file: &FileDescription,
        caller: &dyn Caller,
        mode: u32,
        offset: u64,
        len: u64,
    ) -> SysResult<()> {
        Err(Errno::EOPNOTSUPP.into())
    }

    fn sync(&self, data_only: bool) -> SysResult<()> {
        Err(Errno::EINVAL.into())
    }

    /// What to map. `writable_shared`: a shared mapping that may be written to. `ENODEV`: cannot be mapped.
    fn mapping(&self, file: &FileDescription, writable_shared: bool) -> SysResult<Mapping> {
        Err(Errno::ENODEV.into())
    }

    fn ioctl(
        &self,
        file: &FileDescription,
        caller: &dyn Caller,
        command: u32,
        argument: u64,
    ) -> SysResult<usize> {
        Err(Errno::ENOTTY.into())
    }

    /// `fcntl` commands that only some files have (pipes their size, memory files their seals).
    fn fcntl(
        &self,
        file: &FileDescription,
        caller: &dyn Caller,
        command: FcntlCmd,
        argument: u64,
    ) -> SysResult<usize> {
        Err(Errno::EINVAL.into())
    }

    /// What is ready now. Regular files are always readable and writable.
    fn poll(&self, file: &FileDescription) -> Ready {
        Ready::READABLE | Ready::WRITABLE
    }

    /// The queues woken when `poll`'s answer may have changed. Empty: it never changes, and epoll refuses the
    /// file with `EPERM`.
    fn wait_queues(&self) -> SmallVec<[&WaitQueue; 2]> {
        SmallVec::new()
    }

    /// `F_SETFL` changed the status flags; `changed` are those that did.
    fn flags_changed(&self, file: &FileDescription, changed: OpenFlags) -> SysResult<()> {
        Ok(())
    }

    /// `O_ASYNC` was set or cleared: its owner is to get signals, or none any more (Linux: `fasync`). `ENOTTY`: it sends
    /// none.
    fn fasync(&self, file: &Arc<FileDescription>, caller: &dyn Caller, on: bool) -> SysResult<()> {
        Err(Errno::ENOTTY.into())
    }

    /// Where the locks are of a file that has no inode but is shared by several open files: a pipe, a socket.
    fn locks(&self) -> Option<&FileLocks> {
        None
    }

    /// A descriptor of it was closed by `close`, `dup2`, exec or exit (Linux: `flush`).
    fn flush(&self, file: &FileDescription, caller: &dyn Caller) -> SysResult<()> {
        Ok(())
    }

    /// What to hand to a guest thread that keeps reading or writing the file. `often`: it has done so many times, so that
    /// something may be made for it.
    fn hand_out(&self, file: &FileDescription, often: bool) -> Option<HandOut> {
        None
    }

    /// The lines that `/proc/PID/fdinfo` shows of this kind of file only; each with its newline.
    fn details(&self) -> String {
        String::new()
    }

    /// What /proc/PID/fd shows for a file without a path: `pipe:[5]`, `anon_inode:[eventpoll]`.
    fn link_name(&self) -> Option<String> {
        None
    }
}

/// One open file (Linux: `struct file`), shared by all descriptors made by `dup`, `fork` and `SCM_RIGHTS`.
pub struct FileDescription {
    pub ops: Box<dyn FileOps>,
    /// The inode, where the file has one.
    pub inode: Option<Arc<Inode>>,
    /// Where it was opened; `None` for pipes, sockets and the like.
    pub path: Option<Path>,
    flags: AtomicU32,
    /// Who gets its events.
    pub state: crate::description_state::DescriptionState,
    /// The epolls that watch it.
    pub watchers: crate::Watchers,
    /// Held while it is open for writing.
    write_access: Option<OpenForWriting>,
    /// Locks on a file without an inode or an object that has them (Linux: all eventfds and their like have one inode, so
    /// that the locks of one stand in the way of another; here each has its own).
    own_locks: OnceLock<Box<FileLocks>>,
}

/// Counts an open file among the writers of its inode and its mount.
pub(crate) struct OpenForWriting {
    _inode: WriteAccess,
    mount: Arc<Mount>,
}

impl OpenForWriting {
    /// `ETXTBSY` while the file runs as a program, then `EROFS` through a read-only mount.
    pub(crate) fn new(path: &Path) -> SysResult<OpenForWriting> {
        let inode = path.inode().write_access()?;
        path.mount.writers.fetch_add(1, Ordering::SeqCst);
        let access = OpenForWriting { _inode: inode, mount: path.mount.clone() };
        path.check_writable()?;
        Ok(access)
    }
}

impl Drop for OpenForWriting {
    fn drop(&mut self) {
        self.mount.writers.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Drop for FileDescription {
    /// The last reference is gone (Linux: `release`): its flocks and OFD locks go, and nobody watches it any more.
    fn drop(&mut self) {
        for watcher in self.watchers.take() {
            watcher.file_closed(self);
        }
        if let Some(locks) = self.existing_locks() {
            locks.description_closed(self.lock_owner());
        }
    }
}

impl FileDescription {
    pub fn new(ops: Box<dyn FileOps>, path: Option<Path>, flags: OpenFlags) -> Arc<FileDescription> {
        let inode = path.as_ref().map(|path| path.inode().clone());
        Arc::new(FileDescription {
            ops,
            inode,
            path,
            flags: AtomicU32::new(flags.bits()),
            state: Default::default(),
            watchers: Default::default(),
            write_access: None,
            own_locks: OnceLock::new(),
        })
    }

    /// An open file that a path was opened as.
    pub(crate) fn opened(
        ops: Box<dyn FileOps>,
        path: Path,
        flags: OpenFlags,
        write_access: Option<OpenForWriting>,
    ) -> Arc<FileDescription> {
        let inode = Some(path.inode().clone());
        let state = Default::default();
        Arc::new(FileDescription {
            ops,
            inode,
            path: Some(path),
            flags: AtomicU32::new(flags.bits()),
            state,
            watchers: Default::default(),
            write_access,
            own_locks: OnceLock::new(),
        })
    }

    /// Whether it counts as a writer of its inode: it was opened, not made, for writing.
    pub fn holds_write_access(&self) -> bool {
        self.write_access.is_some()
    }

    /// The locks on the file.
    pub(crate) fn locks(&self) -> &FileLocks {
        match (&self.inode, self.ops.locks()) {
            (Some(inode), _) => inode.attached.locks(),
            (None, Some(locks)) => locks,
            (None, None) => self.own_locks.get_or_init(Default::default),
        }
    }

    /// The locks, if anybody may have taken one.
    pub(crate) fn existing_locks(&self) -> Option<&FileLocks> {
        match &self.inode {
            Some(inode) => inode.attached.existing_locks(),
            None => self.ops.locks().or(self.own_locks.get().map(|locks| &**locks)),
        }
    }

    /// What names it as the owner of flocks and OFD locks: nothing else has it while it is open.
    pub(crate) fn lock_owner(&self) -> u64 {
        std::ptr::from_ref(self).addr() as u64
    }

    /// Carries out what a closed descriptor of it means: the record locks of `owner` (the process, as the kernel
    /// names it) on the file go, even if others of its descriptors stay open; then the file's own `flush`.
    pub fn descriptor_closed(&self, owner: u64, caller: &dyn Caller) -> SysResult<()> {
        if self.is_path_only() {
            return Ok(());
        }
        let flushed = self.ops.flush(self, caller);
        if let Some(locks) = self.existing_locks() {
            locks.owner_closed(owner);
        }
        flushed
    }

    /// Fresh attributes.
    pub fn attributes(&self) -> SysResult<Attributes> {
        if let Some(own) = self.ops.attributes() {
            return own;
        }
        let inode = self.inode.as_ref().ok_or(Errno::EBADF)?;
        inode.ops.attributes(inode)
    }

    /// Access mode and status flags, as `F_GETFL` gives them.
    pub fn flags(&self) -> OpenFlags {
        OpenFlags::from_bits_retain(self.flags.load(Ordering::Relaxed))
    }

    /// Replaces the status flags in `mask` by those of `new`.
    pub fn set_flags(&self, mask: OpenFlags, new: OpenFlags) {
        let (mask, new) = (mask.bits(), new.bits());
        // The closure always gives a value, so this cannot fail.
        let _ = self
            .flags
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |old| Some(old & !mask | new & mask));
    }

    pub fn is_nonblocking(&self) -> bool {
        self.flags().contains(OpenFlags::NONBLOCK)
    }

    pub fn is_readable(&self) -> bool {
        !self.is_path_only() && matches!(self.flags().bits() & 3, 0 | 2)
    }

    pub fn is_writable(&self) -> bool {
        !self.is_path_only() && matches!(self.flags().bits() & 3, 1 | 2)
    }

    /// Opened with `O_PATH`: no I/O.
    pub fn is_path_only(&self) -> bool {
        self.flags().contains(OpenFlags::PATH)
    }

    /// The kernel's own type behind it, if it is `T`.
    pub fn downcast<T: FileOps>(&self) -> Option<&T> {
        self.ops.as_any().downcast_ref()
    }
}
