//! Against the host's own tmpfs where that can be asked, against what Linux documents elsewhere.

mod bytes;
mod copies;
mod limits;
mod names;
mod plain;
mod threads;

use std::sync::Arc;

use abi::{AT_FDCWD, Errno, FileMode, FileType, OpenFlags};
use sync::SysResult;
use vfs::test_caller::{TestCaller, TestWorld};
use vfs::{Cred, FileDescription, FileSystem, FsContext, ops};

use crate::{SelfFds, TmpFs, TmpFsOptions};

/// A file system with these limits, as a world's root.
fn world(options: TmpFsOptions) -> (Arc<TmpFs>, TestWorld) {
    let fs = TmpFs::new(abi::makedev(0, 42), options, SelfFds::open().unwrap());
    let as_dyn: Arc<dyn FileSystem> = fs.clone();
    let world = TestWorld::new(&as_dyn).unwrap();
    (fs, world)
}

/// A directory on the host's tmpfs.
fn host_dir() -> tempfile::TempDir {
    let shm = std::path::Path::new("/dev/shm");
    let place = if shm.is_dir() { shm.to_owned() } else { std::env::temp_dir() };
    tempfile::tempdir_in(place).unwrap()
}

fn open(ctx: &FsContext<'_>, path: &str, flags: OpenFlags) -> SysResult<Arc<FileDescription>> {
    ops::open(ctx, AT_FDCWD, path.as_bytes(), &ops::OpenRequest::open(flags, 0o666)?)
}

fn errno<T>(result: SysResult<T>) -> Option<Errno> {
    result.err().and_then(|error| error.errno())
}

fn make(ctx: &FsContext<'_>, path: &str) {
    ops::mknod(ctx, AT_FDCWD, path.as_bytes(), FileMode::new(FileType::REG, 0o666), 0).unwrap();
}
