//! A caller and a few steps that the tests share.
#![allow(dead_code, reason = "each test file uses some of it")]

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use abi::{Errno, FileType, OpenFlags, UserAddr};
use sync::{SysError, SysResult, Waiter};
use vfs::{
    Caller, Cred, DirSink, FileDescription, FileSystem, Inode, NewNode, NewNodeKind, OpenHow, SliceSource,
    UserWrite,
};

pub(crate) struct TestCaller {
    pub(crate) waiter: Waiter,
    pub(crate) cred: Cred,
    pub(crate) file_size_limit: u64,
    pub(crate) too_big: AtomicBool,
}

impl TestCaller {
    pub(crate) fn root() -> TestCaller {
        TestCaller {
            waiter: Waiter::new(),
            cred: Cred::root(),
            file_size_limit: u64::MAX,
            too_big: AtomicBool::new(false),
        }
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
        self.too_big.store(true, Ordering::Relaxed);
    }
    fn broken_pipe(&self) {}
    fn read_user(&self, _: UserAddr, _: &mut [u8]) -> SysResult<()> {
        Err(Errno::EFAULT.into())
    }
    fn write_user(&self, _: UserAddr, _: &[u8]) -> SysResult<()> {
        Err(Errno::EFAULT.into())
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// The inode at a path of plain names.
pub(crate) fn walk(fs: &Arc<impl FileSystem>, path: &str) -> SysResult<Arc<Inode>> {
    walk_from(fs.root(), path)
}

pub(crate) fn walk_from(start: Arc<Inode>, path: &str) -> SysResult<Arc<Inode>> {
    path.split('/')
        .filter(|name| !name.is_empty())
        .try_fold(start, |dir, name| dir.ops.lookup(&dir, name.as_bytes()))
}

pub(crate) fn open(inode: &Arc<Inode>, flags: OpenFlags) -> SysResult<Arc<FileDescription>> {
    let ops = inode.ops.open(inode, OpenHow { flags }, &TestCaller::root())?;
    Ok(FileDescription::new(ops, None, flags))
}

/// All of a file.
pub(crate) fn read(inode: &Arc<Inode>) -> SysResult<Vec<u8>> {
    let file = open(inode, OpenFlags::RDONLY)?;
    read_file(&file)
}

pub(crate) fn read_file(file: &FileDescription) -> SysResult<Vec<u8>> {
    let caller = TestCaller::root();
    let mut all = Sink { bytes: Vec::new(), room: usize::MAX };
    loop {
        all.room = 100_000;
        if file.ops.read(file, &caller, &mut all)? == 0 {
            return Ok(all.bytes);
        }
    }
}

pub(crate) fn write(inode: &Arc<Inode>, bytes: &[u8]) -> SysResult<usize> {
    let file = open(inode, OpenFlags::WRONLY)?;
    file.ops.write(&file, &TestCaller::root(), &mut SliceSource { bytes, taken: 0 })
}

/// Takes `room` bytes, then faults.
pub(crate) struct Sink {
    pub(crate) bytes: Vec<u8>,
    pub(crate) room: usize,
}

impl UserWrite for Sink {
    fn room(&self) -> usize {
        self.room
    }
    fn put(&mut self, bytes: &[u8]) -> usize {
        let count = bytes.len().min(self.room);
        self.bytes.extend_from_slice(&bytes[..count]);
        self.room -= count;
        count
    }
}

/// Entries of a directory, `room` at a time.
#[derive(Default)]
pub(crate) struct Entries {
    pub(crate) found: Vec<(Vec<u8>, u64, FileType, u64)>,
    pub(crate) room: usize,
}

impl DirSink for Entries {
    fn entry(&mut self, name: &[u8], ino: u64, file_type: FileType, next: u64) -> bool {
        if self.room == 0 {
            return false;
        }
        self.room -= 1;
        self.found.push((name.to_vec(), ino, file_type, next));
        true
    }
}

pub(crate) fn list_some(file: &FileDescription, at_once: usize) -> SysResult<Entries> {
    let mut entries = Entries::default();
    loop {
        let before = entries.found.len();
        entries.room = at_once;
        file.ops.read_dir(file, &TestCaller::root(), &mut entries)?;
        if entries.found.len() == before {
            return Ok(entries);
        }
    }
}

/// The names in a directory, sorted, without `.` and `..`.
pub(crate) fn names(inode: &Arc<Inode>) -> SysResult<Vec<String>> {
    let file = open(inode, OpenFlags::RDONLY)?;
    let entries = list_some(&file, 1000)?;
    let names = entries.found.into_iter().map(|(name, ..)| String::from_utf8_lossy(&name).into_owned());
    let mut names: Vec<String> = names.filter(|name| name != "." && name != "..").collect();
    names.sort();
    Ok(names)
}

pub(crate) fn create(
    dir: &Arc<Inode>,
    name: &str,
    kind: NewNodeKind<'_>,
    permissions: u32,
) -> SysResult<Arc<Inode>> {
    dir.ops.create(dir, name.as_bytes(), &NewNode { kind, permissions, uid: 0, gid: 0 })
}

pub(crate) fn errno<T>(result: SysResult<T>) -> Option<Errno> {
    result.err().and_then(SysError::errno)
}

/// Opens by path, as guests do.
pub(crate) struct Paths {
    mounts: Arc<vfs::MountTable>,
    files: vfs::FdTable,
    caller: TestCaller,
}

impl Paths {
    pub(crate) fn new(host: &Arc<fs_host::HostFs>) -> Paths {
        Paths::with_flags(host, vfs::MountFlags::empty())
    }

    pub(crate) fn with_flags(host: &Arc<fs_host::HostFs>, flags: vfs::MountFlags) -> Paths {
        let fs = host.clone() as Arc<dyn FileSystem>;
        Paths {
            mounts: vfs::MountTable::new(&fs, "host", flags),
            files: vfs::FdTable::new(),
            caller: TestCaller::root(),
        }
    }

    fn context(&self) -> vfs::FsContext<'_> {
        let place = vfs::FsPlace::at_root(self.mounts.root().expect("a root"), 0);
        vfs::FsContext::new(&self.mounts, place, &self.files, &self.caller, &vfs::NoSpecialFiles)
    }

    pub(crate) fn open(&self, path: &str, flags: OpenFlags) -> SysResult<Arc<FileDescription>> {
        let request = vfs::ops::OpenRequest::open(flags, 0o644)?;
        vfs::ops::open(&self.context(), abi::AT_FDCWD, path.as_bytes(), &request)
    }

    /// Opens and closes it often enough for the file system to hold it.
    pub(crate) fn hold(&self, path: &str) {
        for _ in 0..3 {
            self.open(path, OpenFlags::RDONLY).expect("opened");
        }
    }

    /// Does something as one operation.
    pub(crate) fn during<T>(&self, act: impl FnOnce() -> T) -> T {
        let _context = self.context();
        act()
    }
}
