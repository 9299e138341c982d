//! What operations on hostfs cost, beside the host's own: `cargo run --release -p fs-host --example costs`. Under
//! `strace -f` the calls between the marks (`getppid`) are those of one operation. With a word, only the operations in whose
//! name it is, and long enough for a profile.

use std::time::Instant;

use abi::OpenFlags;
use fs_host::{HostFs, HostFsOptions, OwnerMap, Records};
use sync::SysResult;
use vfs::{
    FdTable, FileSystem, FsContext, FsPlace, KernelCaller, Lookup, MountFlags, MountTable, NewNode,
    NewNodeKind, NoSpecialFiles, OpenHow,
};

fn measure(what: &str, mut act: impl FnMut()) {
    let wanted = std::env::args().nth(1);
    if wanted.as_ref().is_some_and(|word| !what.contains(word)) {
        return;
    }
    act();
    let _ = rustix::process::getppid();
    act();
    let _ = rustix::process::getppid();
    let rounds = if wanted.is_some() { 1_000_000u32 } else { 20_000 };
    let start = Instant::now();
    for _ in 0..rounds {
        act();
    }
    println!("{what:40} {:6} ns", start.elapsed().as_nanos() / u128::from(rounds));
}

fn main() -> SysResult<()> {
    let Ok(dir) = tempfile::tempdir() else { return Err(abi::Errno::EIO.into()) };
    let _ = std::fs::create_dir(dir.path().join("sub"));
    let _ = std::fs::write(dir.path().join("sub/file"), b"content");
    for records in [Records::None, Records::Attributes] {
        println!("{records:?}");
        let options = HostFsOptions { records, ..HostFsOptions::named(true, OwnerMap::own_as_root()) };
        let Ok(host) = HostFs::open(dir.path(), options) else { return Err(abi::Errno::EIO.into()) };
        let root = host.root();
        let sub = root.ops.lookup(&root, b"sub")?;
        let file = sub.ops.lookup(&sub, b"file")?;
        let caller = KernelCaller::new();
        let open = || file.ops.open(&file, OpenHow { flags: OpenFlags::RDONLY }, &caller);
        measure("attributes", || _ = file.ops.attributes(&file));
        let opened = open()?;
        measure("attributes of an open file", || _ = opened.attributes());
        drop(opened);
        measure("revalidate", || _ = sub.ops.revalidate(&sub, b"file", &file));
        measure("lookup, in use", || _ = sub.ops.lookup(&sub, b"file"));
        measure("lookup, missing", || _ = sub.ops.lookup(&sub, b"none"));
        measure("open and close", || _ = open());
        let mounts =
            MountTable::new(&(host.clone() as std::sync::Arc<dyn FileSystem>), "host", MountFlags::empty());
        let Some(root) = mounts.root() else { return Err(abi::Errno::EIO.into()) };
        let (place, files) = (FsPlace::at_root(root, 0), FdTable::default());
        let context = || FsContext::new(&mounts, place.clone(), &files, &caller, &NoSpecialFiles);
        measure("stat of a path", || {
            _ = vfs::ops::stat(&context(), abi::AT_FDCWD, b"/sub/file", abi::AtFlags::empty());
        });
        measure("open and close of a path", || {
            if let Ok(request) = vfs::ops::OpenRequest::open(OpenFlags::RDONLY, 0) {
                _ = vfs::ops::open(&context(), abi::AT_FDCWD, b"/sub/file", &request);
            }
        });
        let path = dir.path().join("sub/file");
        let context = context();
        measure("walk of a cached path", || _ = context.lookup_path(abi::AT_FDCWD, b"/sub", Lookup::FOLLOW));
        measure("  the host's stat", || _ = std::fs::symlink_metadata(&path));
        measure("  the host's open and close", || _ = std::fs::File::open(&path));
        measure("create and unlink", || {
            let node = NewNode { kind: NewNodeKind::File, permissions: 0o644, uid: 0, gid: 0 };
            if let Ok(made) = sub.ops.create(&sub, b"new", &node) {
                let _ = sub.ops.unlink(&sub, b"new", &made);
            }
        });
        let new = dir.path().join("sub/new");
        measure("  the host's create and unlink", || {
            drop(std::fs::File::create(&new));
            let _ = std::fs::remove_file(&new);
        });
    }
    Ok(())
}
