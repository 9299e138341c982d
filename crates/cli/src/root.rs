//! The name space that guests see.

use std::sync::Arc;

use anyhow::{Context, anyhow};
use fs_host::{HostFs, HostFsOptions, OwnerMap};
use vfs::{FileSystem, MountFlags, MountTable, NoSpecialFiles, Path, SpecialFiles};

use crate::options::RunOptions;

/// What is mounted, and where a program begins.
pub(crate) struct NameSpace {
    pub mounts: Arc<MountTable>,
    pub root: Path,
    /// The directory to start in, unless --workdir says otherwise.
    pub workdir: Vec<u8>,
}

/// Opens what the options name on the host and mounts it.
pub(crate) fn compose(options: &RunOptions) -> anyhow::Result<NameSpace> {
    let dir = options.root.as_deref().unwrap_or(std::path::Path::new("/"));
    let host = HostFs::open(dir, HostFsOptions::named(options.rw, OwnerMap::Same))
        .with_context(|| format!("cannot use {} as the root", dir.display()))?;
    let fs: Arc<dyn FileSystem> = host;
    let mounts = MountTable::new(&fs, "host", MountFlags::empty());
    let root = mounts.root().ok_or_else(|| anyhow!("the name space has no root"))?;
    Ok(NameSpace { mounts, root, workdir: b"/".to_vec() })
}

/// The kernel's devices and FIFOs.
pub(crate) fn special_files() -> Box<dyn SpecialFiles + Send + Sync> {
    Box::new(NoSpecialFiles)
}
