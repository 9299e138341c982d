//! A calling task for the tests of file systems: a waiter, credentials, and a record of the signals it got.
//!
//! Only with the feature `test-caller`.

use std::any::Any;
use std::cell::Cell;
use std::sync::Arc;

use abi::{Errno, UserAddr};
use sync::{SysResult, Waiter};

use crate::{
    Caller, Cred, FdTable, FileSystem, FsContext, FsPlace, MountFlags, MountTable, NoSpecialFiles, Path,
};

/// A task that is nothing but a caller. It has no memory: `read_user` and `write_user` fault.
pub struct TestCaller {
    waiter: Waiter,
    pub cred: Cred,
    /// RLIMIT_FSIZE.
    pub file_size_limit: u64,
    /// How often it got SIGXFSZ.
    pub too_big: Cell<u32>,
    /// How often it got SIGPIPE.
    pub pipes_broken: Cell<u32>,
}

impl TestCaller {
    /// A caller with these credentials, on the calling thread.
    pub fn new(cred: Cred) -> TestCaller {
        TestCaller {
            waiter: Waiter::new(),
            cred,
            file_size_limit: u64::MAX,
            too_big: Cell::new(0),
            pipes_broken: Cell::new(0),
        }
    }

    /// The superuser.
    pub fn root() -> TestCaller {
        TestCaller::new(Cred::root())
    }
}

impl Caller for TestCaller {
    fn waiter(&self) -> &Waiter {
        &self.waiter
    }
    fn cred(&self) -> &Cred {
        &self.cred
    }
    fn file_size_limit(&self) -> u64 {
        self.file_size_limit
    }
    fn file_too_big(&self) {
        self.too_big.set(self.too_big.get().saturating_add(1));
    }
    fn broken_pipe(&self) {
        self.pipes_broken.set(self.pipes_broken.get().saturating_add(1));
    }
    fn read_user(&self, _from: UserAddr, _into: &mut [u8]) -> SysResult<()> {
        Err(Errno::EFAULT.into())
    }
    fn write_user(&self, _to: UserAddr, _bytes: &[u8]) -> SysResult<()> {
        Err(Errno::EFAULT.into())
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// A name space with one file system as its root, to make [`FsContext`]s in.
pub struct TestWorld {
    pub mounts: Arc<MountTable>,
    pub files: FdTable,
    pub root: Path,
}

impl TestWorld {
    /// # Panics
    /// Never: a fresh table has a root.
    #[allow(clippy::missing_panics_doc, reason = "documented above")]
    pub fn new(fs: &Arc<dyn FileSystem>) -> Option<TestWorld> {
        let mounts = MountTable::new(fs, "test", MountFlags::empty());
        let root = mounts.root()?;
        Some(TestWorld { mounts, files: FdTable::new(), root })
    }

    /// A context at the root.
    pub fn context<'a>(&'a self, caller: &'a TestCaller) -> FsContext<'a> {
        FsContext::new(
            &self.mounts,
            FsPlace::at_root(self.root.clone(), 0o022),
            &self.files,
            caller,
            &NoSpecialFiles,
        )
    }
}
