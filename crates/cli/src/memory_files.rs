//! Where the files of `memfd_create` come from: a tmpfs that is mounted nowhere.

use std::sync::Arc;

use fs_tmpfs::{MemfdOptions, SelfFds, TmpFs, TmpFsOptions};
use kernel::mm::memfd::MemoryFiles;
use sync::SysResult;
use vfs::{Caller, FileDescription, FileSystem, Mount, Path};

#[derive(Clone)]
pub(crate) struct Memfds {
    fs: Arc<TmpFs>,
    root: Path,
}

impl Memfds {
    pub(crate) fn new(options: TmpFsOptions, self_fds: SelfFds) -> Memfds {
        let fs = TmpFs::new(vfs::anonymous_dev(), options, self_fds);
        let mounted: Arc<dyn FileSystem> = fs.clone();
        let root = Mount::internal(&mounted, "tmpfs");
        Memfds { fs, root }
    }
}

impl MemoryFiles for Memfds {
    fn create(&self, name: &[u8], flags: u32, caller: &dyn Caller) -> SysResult<Arc<FileDescription>> {
        fs_tmpfs::memfd(&self.fs, &self.root, MemfdOptions { name, flags }, caller)
    }
}
