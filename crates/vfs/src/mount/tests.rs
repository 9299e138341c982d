//! Mounting, binding, unmounting, and the texts.

use std::sync::Arc;

use abi::{AT_FDCWD, Errno, OpenFlags};

use super::*;
use crate::test_caller::TestCaller;
use crate::test_support::{TestFs, errno, find, world};
use crate::{FsContext, d_path, getcwd, ops};

fn new_fs() -> Arc<dyn FileSystem> {
    TestFs::new()
}

fn open(ctx: &FsContext<'_>, path: &str, flags: OpenFlags) -> SysResult<Arc<crate::FileDescription>> {
    ops::open(ctx, AT_FDCWD, path.as_bytes(), &ops::OpenRequest::open(flags, 0o644)?)
}

#[test]
fn the_last_mounted_is_on_top_and_comes_off_first() {
    let (_, world) = world();
    let caller = TestCaller::root();
    let ctx = world.context(&caller);
    let first =
        world.mounts.mount(&new_fs(), "a", MountFlags::empty(), &find(&ctx, "/mnt").unwrap()).unwrap();
    let second =
        world.mounts.mount(&new_fs(), "b", MountFlags::empty(), &find(&ctx, "/mnt").unwrap()).unwrap();
    assert!(Arc::ptr_eq(&find(&ctx, "/mnt").unwrap().mount, &second));
    drop(second);
    world.mounts.umount(find(&ctx, "/mnt").unwrap(), UmountFlags::empty()).unwrap();
    assert!(Arc::ptr_eq(&find(&ctx, "/mnt").unwrap().mount, &first));
    drop(first);
    world.mounts.umount(find(&ctx, "/mnt").unwrap(), UmountFlags::empty()).unwrap();
    assert_eq!(
        errno(world.mounts.umount(find(&ctx, "/mnt").unwrap(), UmountFlags::empty())),
        Some(Errno::EINVAL)
    );
    assert_eq!(find(&ctx, "/mnt").unwrap().dentry.mounts_here.load(Ordering::Relaxed), 0);
}

#[test]
fn a_mount_in_use_is_busy_and_detaching_leaves_it_usable() {
    let (_, world) = world();
    let caller = TestCaller::root();
    let ctx = world.context(&caller);
    let at = find(&ctx, "/mnt").unwrap();
    assert_eq!(
        errno(world.mounts.mount(&new_fs(), "", MountFlags::empty(), &find(&ctx, "/dir/file").unwrap())),
        Some(Errno::ENOTDIR)
    );
    world.mounts.mount(&new_fs(), "t", MountFlags::empty(), &at).unwrap();
    ops::mkdir(&ctx, AT_FDCWD, b"/mnt/deep", 0o755).unwrap();
    assert_eq!(errno(ops::rmdir(&ctx, AT_FDCWD, b"/mnt")), Some(Errno::EBUSY));
    let inner =
        world.mounts.mount(&new_fs(), "u", MountFlags::empty(), &find(&ctx, "/mnt/deep").unwrap()).unwrap();
    drop(inner);
    assert_eq!(
        errno(world.mounts.umount(find(&ctx, "/mnt").unwrap(), UmountFlags::empty())),
        Some(Errno::EBUSY)
    );
    world.mounts.umount(find(&ctx, "/mnt/deep").unwrap(), UmountFlags::empty()).unwrap();
    let cwd = find(&ctx, "/mnt/deep").unwrap();
    assert_eq!(
        errno(world.mounts.umount(find(&ctx, "/mnt").unwrap(), UmountFlags::empty())),
        Some(Errno::EBUSY)
    );
    world.mounts.umount(find(&ctx, "/mnt").unwrap(), UmountFlags::DETACH).unwrap();
    assert_eq!(find(&ctx, "/mnt/deep"), Err(Errno::ENOENT));
    assert_eq!(getcwd(&cwd, &ctx.place.root), Ok(b"(unreachable)/deep".to_vec()));
    assert_eq!(d_path(&cwd, &ctx.place.root), b"/deep");
}

#[test]
fn read_only_mounts_refuse_writers_and_writers_refuse_read_only() {
    let (_, world) = world();
    let caller = TestCaller::root();
    let ctx = world.context(&caller);
    let writer = open(&ctx, "/dir/file", OpenFlags::RDWR).unwrap();
    assert_eq!(errno(world.mounts.remount(&ctx.place.root, MountFlags::RDONLY)), Some(Errno::EBUSY));
    drop(writer);
    world.mounts.remount(&ctx.place.root, MountFlags::RDONLY).unwrap();
    let rofs = Some(Errno::EROFS);
    assert_eq!(errno(open(&ctx, "/dir/file", OpenFlags::RDWR)), rofs);
    assert_eq!(errno(open(&ctx, "/dir/file", OpenFlags::TRUNC)), rofs);
    assert_eq!(errno(open(&ctx, "/dir/file", OpenFlags::CREAT)), None);
    assert_eq!(errno(open(&ctx, "/dir/new", OpenFlags::CREAT)), rofs);
    assert_eq!(errno(ops::mkdir(&ctx, AT_FDCWD, b"/dir", 0o755)), Some(Errno::EEXIST));
    assert_eq!(errno(ops::mkdir(&ctx, AT_FDCWD, b"/new", 0o755)), rofs);
    assert_eq!(errno(ops::unlink(&ctx, AT_FDCWD, b"/none")), rofs);
    assert_eq!(errno(ops::chmod(&ctx, AT_FDCWD, b"/dir", 0, abi::AtFlags::empty())), rofs);
    assert_eq!(
        errno(ops::access(&ctx, AT_FDCWD, b"/dir", abi::AccessFlags::W_OK, abi::AtFlags::empty())),
        rofs
    );
    assert_eq!(world.mounts.root().unwrap().mount.writers.load(Ordering::Relaxed), 0);
}

#[test]
fn binds_show_the_same_names_elsewhere() {
    let (_, world) = world();
    let caller = TestCaller::root();
    let ctx = world.context(&caller);
    world.mounts.mount(&new_fs(), "inner", MountFlags::empty(), &find(&ctx, "/dir/sub").unwrap()).unwrap();
    ops::mkdir(&ctx, AT_FDCWD, b"/dir/sub/mark", 0o755).unwrap();
    let dir = find(&ctx, "/dir").unwrap();
    world.mounts.bind(&dir, &find(&ctx, "/mnt").unwrap(), false).unwrap();
    assert!(Arc::ptr_eq(&find(&ctx, "/mnt/file").unwrap().dentry, &find(&ctx, "/dir/file").unwrap().dentry));
    assert_eq!(find(&ctx, "/mnt/sub/mark"), Err(Errno::ENOENT));
    world.mounts.umount(find(&ctx, "/mnt").unwrap(), UmountFlags::empty()).unwrap();
    world.mounts.bind(&dir, &find(&ctx, "/mnt").unwrap(), true).unwrap();
    assert!(find(&ctx, "/mnt/sub/mark").is_ok());
    // A file over a file; its name cannot be removed meanwhile, also by another way.
    ops::mkdir(&ctx, AT_FDCWD, b"/other", 0o755).unwrap();
    open(&ctx, "/other/a", OpenFlags::CREAT).unwrap();
    world.mounts.bind(&find(&ctx, "/dir/file").unwrap(), &find(&ctx, "/other/a").unwrap(), false).unwrap();
    assert!(Arc::ptr_eq(&find(&ctx, "/other/a").unwrap().dentry, &find(&ctx, "/dir/file").unwrap().dentry));
    assert_eq!(errno(ops::unlink(&ctx, AT_FDCWD, b"/other/a")), Some(Errno::EBUSY));
}

#[test]
fn mounts_move_with_what_is_below() {
    let (_, world) = world();
    let caller = TestCaller::root();
    let ctx = world.context(&caller);
    world.mounts.mount(&new_fs(), "t", MountFlags::empty(), &find(&ctx, "/mnt").unwrap()).unwrap();
    ops::mkdir(&ctx, AT_FDCWD, b"/mnt/a", 0o755).unwrap();
    let (mount, inside) = (find(&ctx, "/mnt").unwrap(), find(&ctx, "/mnt/a").unwrap());
    assert_eq!(errno(world.mounts.move_mount(&mount, &inside)), Some(Errno::ELOOP));
    assert_eq!(errno(world.mounts.move_mount(&inside, &mount)), Some(Errno::EINVAL));
    world.mounts.move_mount(&mount, &find(&ctx, "/dir/sub").unwrap()).unwrap();
    assert_eq!(d_path(&inside, &ctx.place.root), b"/dir/sub/a");
    assert_eq!(find(&ctx, "/mnt/a"), Err(Errno::ENOENT));
}

#[test]
fn the_texts_escape_and_show_only_what_lies_below_the_root() {
    let (_, world) = world();
    let caller = TestCaller::root();
    let ctx = world.context(&caller);
    ops::mkdir(&ctx, AT_FDCWD, b"/dir/a b\\c", 0o755).unwrap();
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::RDONLY;
    world.mounts.mount(&new_fs(), "x #y", flags, &find(&ctx, "/dir/a b\\c").unwrap()).unwrap();
    world.mounts.bind(&find(&ctx, "/dir").unwrap(), &find(&ctx, "/mnt").unwrap(), false).unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    assert_eq!(
        text(world.mounts.mountinfo(&ctx.place.root)),
        "1 1 0:7 / / rw,relatime - testfs test rw,size=1k\n\
         2 1 0:7 / /dir/a\\040b\\134c ro,nosuid,nodev,relatime - testfs x\\040\\043y ro,size=1k\n\
         3 1 0:7 /dir /mnt rw,relatime - testfs test rw,size=1k\n"
    );
    assert_eq!(
        text(world.mounts.mounts(&find(&ctx, "/dir").unwrap())),
        "x\\040\\043y /a\\040b\\134c testfs ro,nosuid,nodev,relatime,size=1k 0 0\n"
    );
}
