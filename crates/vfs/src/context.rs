//! What a path operation works with: the caller's place in the name space.
//!
//! Neighbours: the kernel makes an [`FsContext`] for each call; `namei` and `ops` take it.

use std::cell::Cell;
use std::sync::Arc;

use abi::{Errno, FileType, OpenFlags};
use sync::{SysError, SysResult, Waiter};

use crate::{Caller, Cred, FdTable, FileDescription, FileOps, Inode, MountTable, OpenHow, Operation, Path};

/// How FIFOs, sockets and devices are opened: by the kernel, whose objects they are.
pub trait SpecialFiles {
    /// Opens the object that the inode names: `kind` is FIFO, CHR or BLK, `dev` the device number. May block (a FIFO
    /// that waits for its other end). `ENXIO` for a device that does not exist.
    fn open(
        &self,
        inode: &Arc<Inode>,
        kind: FileType,
        dev: u64,
        how: OpenHow,
        caller: &dyn Caller,
    ) -> SysResult<Box<dyn FileOps>>;

    /// A new description of the object of `file`, which has no path: `/proc/self/fd/N` of a pipe was opened.
    /// `ENXIO` for what cannot be opened so (sockets).
    fn reopen(
        &self,
        file: &Arc<FileDescription>,
        how: OpenHow,
        caller: &dyn Caller,
    ) -> SysResult<Arc<FileDescription>>;
}

/// No special file can be opened.
pub struct NoSpecialFiles;

impl SpecialFiles for NoSpecialFiles {
    fn open(
        &self,
        _inode: &Arc<Inode>,
        _kind: FileType,
        _dev: u64,
        _how: OpenHow,
        _caller: &dyn Caller,
    ) -> SysResult<Box<dyn FileOps>> {
        Err(Errno::ENXIO.into())
    }

    fn reopen(
        &self,
        _file: &Arc<FileDescription>,
        _how: OpenHow,
        _caller: &dyn Caller,
    ) -> SysResult<Arc<FileDescription>> {
        Err(Errno::ENXIO.into())
    }
}

/// Where a task is in the name space, and its umask (Linux: `struct fs_struct`).
#[derive(Clone)]
pub struct FsPlace {
    pub root: Path,
    pub cwd: Path,
    pub umask: u32,
}

impl FsPlace {
    /// In the directory that is the root too.
    pub fn at_root(root: Path, umask: u32) -> Arc<FsPlace> {
        Arc::new(FsPlace { cwd: root.clone(), root, umask })
    }
}

/// Who calls, from where: all that a path operation depends on, besides its arguments.
pub struct FsContext<'a> {
    pub mounts: &'a MountTable,
    pub place: Arc<FsPlace>,
    /// What `dirfd` arguments are looked up in.
    pub files: &'a FdTable,
    pub caller: &'a dyn Caller,
    pub special: &'a dyn SpecialFiles,
    /// Trust no name that changes outside: the second try after `ESTALE` (Linux: LOOKUP_REVAL).
    pub(crate) revalidate_all: Cell<bool>,
    _operation: Operation,
}

impl<'a> FsContext<'a> {
    pub fn new(
        mounts: &'a MountTable,
        place: Arc<FsPlace>,
        files: &'a FdTable,
        caller: &'a dyn Caller,
        special: &'a dyn SpecialFiles,
    ) -> FsContext<'a> {
        let revalidate_all = Cell::new(false);
        let _operation = Operation::begin();
        FsContext { mounts, place, files, caller, special, revalidate_all, _operation }
    }

    /// Makes `cwd` the current directory of what is done from now on.
    pub fn enter(&mut self, cwd: Path) {
        self.place = Arc::new(FsPlace { cwd, ..FsPlace::clone(&self.place) });
    }

    pub(crate) fn cred(&self) -> &Cred {
        self.caller.cred()
    }

    pub(crate) fn waiter(&self) -> &Waiter {
        self.caller.waiter()
    }

    /// The same for another caller (one with other credentials).
    pub(crate) fn as_caller<'b>(&self, caller: &'b dyn Caller) -> FsContext<'b>
    where
        'a: 'b,
    {
        FsContext {
            mounts: self.mounts,
            place: self.place.clone(),
            files: self.files,
            caller,
            special: self.special,
            revalidate_all: self.revalidate_all.clone(),
            _operation: Operation::begin(),
        }
    }

    /// Carries `operation` out; if a trusted directory turns out to have been moved on the host (`ESTALE`), once
    /// more without trust. An operation that gives `ESTALE` has changed nothing.
    pub(crate) fn retry_stale<T>(&self, operation: impl Fn() -> SysResult<T>) -> SysResult<T> {
        match operation() {
            Err(SysError::Errno(Errno::ESTALE)) if !self.revalidate_all.get() => {
                self.revalidate_all.set(true);
                let result = operation();
                self.revalidate_all.set(false);
                result
            }
            result => result,
        }
    }
}

/// The flags that an open file keeps of those it was opened with (Linux: `do_dentry_open`).
pub(crate) fn kept_flags(flags: OpenFlags) -> OpenFlags {
    let creation =
        OpenFlags::CREAT | OpenFlags::EXCL | OpenFlags::NOCTTY | OpenFlags::TRUNC | OpenFlags::CLOEXEC;
    flags & !creation
}
