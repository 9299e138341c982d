//! `size=` and `nr_inodes=`, and what a guest could try to exhaust.

use abi::FallocFlags;
use vfs::{SliceSource, XattrMode, rw};

use super::*;

fn limited(pages: u64, inodes: u64) -> (Arc<TmpFs>, TestWorld) {
    world(TmpFsOptions { size: pages * 4096, inodes, ..Default::default() })
}

fn write(file: &FileDescription, caller: &TestCaller, at: i64, len: usize) -> SysResult<usize> {
    let bytes = vec![7; len];
    rw::write_at(file, caller, at, &mut SliceSource { bytes: &bytes, taken: 0 })
}

#[test]
fn a_full_file_system_takes_what_fits_and_then_nothing() {
    // Small files in the kernel, a large one in a memfd: both count.
    for (pages, first) in [(4, 1000), (40, 100_000)] {
        let (fs, world) = limited(pages, 0);
        let caller = TestCaller::root();
        let ctx = world.context(&caller);
        let file = open(&ctx, "/a", OpenFlags::RDWR | OpenFlags::CREAT).unwrap();
        assert_eq!(write(&file, &caller, 0, first), Ok(first));
        let all = usize::try_from(pages).unwrap() * 4096;
        assert_eq!(write(&file, &caller, i64::try_from(first).unwrap(), all), Ok(all - first));
        let end = i64::try_from(all).unwrap();
        assert_eq!(errno(write(&file, &caller, end, 1)), Some(Errno::ENOSPC));
        // What is there can be written again.
        assert_eq!(write(&file, &caller, 0, all), Ok(all));
        assert_eq!((fs.stat().unwrap().blocks, fs.stat().unwrap().blocks_free), (pages, 0));
        let other = open(&ctx, "/b", OpenFlags::RDWR | OpenFlags::CREAT).unwrap();
        assert_eq!(errno(write(&other, &caller, 0, 1)), Some(Errno::ENOSPC));
        ops::ftruncate(&file, 4096, &caller).unwrap();
        assert_eq!(fs.stat().unwrap().blocks_free, pages - 1);
        assert_eq!(errno(ops::fallocate(&other, FallocFlags::empty(), 0, end, &caller)), Some(Errno::ENOSPC));
        assert_eq!(fs.stat().unwrap().blocks_free, pages - 1);
        ops::fallocate(&other, FallocFlags::KEEP_SIZE, 0, end - 4096, &caller).unwrap();
        assert_eq!((other.attributes().unwrap().size, fs.stat().unwrap().blocks_free), (0, 0));
        // What was allocated can be written.
        assert_eq!(write(&other, &caller, 0, all - 4096), Ok(all - 4096));
        assert_eq!(errno(write(&other, &caller, end - 4096, 1)), Some(Errno::ENOSPC));
        ops::unlink(&ctx, AT_FDCWD, b"/b").unwrap();
        assert_eq!(fs.stat().unwrap().blocks_free, 0);
        drop(other);
        assert_eq!(fs.stat().unwrap().blocks_free, pages - 1);
    }
}

#[test]
fn inodes_run_out_and_come_back() {
    let (fs, world) = limited(0, 3);
    let caller = TestCaller::root();
    let ctx = world.context(&caller);
    make(&ctx, "/a");
    ops::mkdir(&ctx, AT_FDCWD, b"/d", 0o755).unwrap();
    assert_eq!(errno(ops::symlink(&ctx, b"x", AT_FDCWD, b"/l")), Some(Errno::ENOSPC));
    assert_eq!(errno(open(&ctx, "/", OpenFlags::TMPFILE | OpenFlags::RDWR)), Some(Errno::ENOSPC));
    // A second name is no second inode.
    ops::link(&ctx, AT_FDCWD, b"/a", AT_FDCWD, b"/b", abi::AtFlags::empty()).unwrap();
    assert_eq!((fs.stat().unwrap().files, fs.stat().unwrap().files_free), (3, 0));
    ops::unlink(&ctx, AT_FDCWD, b"/a").unwrap();
    ops::unlink(&ctx, AT_FDCWD, b"/b").unwrap();
    ops::rmdir(&ctx, AT_FDCWD, b"/d").unwrap();
    assert_eq!(fs.stat().unwrap().files_free, 2);
    // Failures leave nothing behind.
    assert_eq!(errno(ops::mkdir(&ctx, AT_FDCWD, b"/none/x", 0o755)), Some(Errno::ENOENT));
    assert_eq!(fs.inodes.used(), 1);
}

#[test]
fn long_links_and_attributes_count() {
    let (fs, world) = limited(3, 0);
    let caller = TestCaller::root();
    let ctx = world.context(&caller);
    let used = || fs.space.used();
    ops::symlink(&ctx, &[b'x'; 127], AT_FDCWD, b"/short").unwrap();
    assert_eq!(used(), 0);
    ops::symlink(&ctx, &[b'x'; 128], AT_FDCWD, b"/long").unwrap();
    assert_eq!(used(), 1);
    make(&ctx, "/f");
    let target = ops::xattr_target(&ctx, AT_FDCWD, b"/f", abi::AtFlags::empty()).unwrap();
    let set = |len, mode| ops::set_xattr(&target, b"user.a", &vec![1; len], mode, &caller);
    set(10, XattrMode::Create).unwrap();
    assert_eq!((used(), errno(set(1, XattrMode::Create))), (2, Some(Errno::EEXIST)));
    assert_eq!(errno(set(9000, XattrMode::Any)), Some(Errno::ENOSPC));
    assert_eq!(ops::get_xattr(&target, b"user.a", &caller), Ok(vec![1; 10]));
    assert_eq!(errno(ops::get_xattr(&target, b"user.b", &caller)), Some(Errno::ENODATA));
    assert_eq!(errno(ops::get_xattr(&target, b"system.posix_acl_access", &caller)), Some(Errno::EOPNOTSUPP));
    set(5000, XattrMode::Replace).unwrap();
    assert_eq!(used(), 3);
    ops::set_xattr(&target, b"trusted.t", b"v", XattrMode::Any, &caller).unwrap();
    assert_eq!(ops::list_xattrs(&target, &caller), Ok(b"trusted.t\0user.a\0".to_vec()));
    let user = TestCaller::new(Cred::user(7, 7, &[]));
    assert_eq!(ops::list_xattrs(&target, &user), Ok(b"user.a\0".to_vec()));
    ops::remove_xattr(&target, b"user.a", &caller).unwrap();
    assert_eq!(errno(ops::remove_xattr(&target, b"user.a", &caller)), Some(Errno::ENODATA));
    ops::unlink(&ctx, AT_FDCWD, b"/f").unwrap();
    drop(target);
    assert_eq!(used(), 1);
}

#[test]
fn a_write_far_out_costs_one_page_and_stays_in_the_kernel() {
    let (fs, world) = limited(0, 0);
    let caller = TestCaller::root();
    let ctx = world.context(&caller);
    let file = open(&ctx, "/a", OpenFlags::RDWR | OpenFlags::CREAT).unwrap();
    assert_eq!(write(&file, &caller, 1 << 40, 1), Ok(1));
    assert_eq!(write(&file, &caller, i64::MAX - 1, 1), Ok(1));
    assert_eq!(fs.space.used(), 2);
    assert!(file.ops.hand_out(&file, false).is_none());
    assert_eq!(file.attributes().unwrap().size, i64::MAX.cast_unsigned());
}

#[test]
fn a_very_deep_tree_is_dropped_without_recursion() {
    let (fs, world) = limited(0, 0);
    let fs_weak = Arc::downgrade(&fs);
    let node = vfs::NewNode { kind: vfs::NewNodeKind::Directory, permissions: 0o755, uid: 0, gid: 0 };
    let mut at = fs.root();
    drop(world);
    for _ in 0..200_000 {
        at = at.ops.create(&at, b"d", &node).unwrap();
    }
    // Only the deepest is held, then nothing: what holds the root is the chain's beginning.
    let root = fs.root();
    drop((at, fs));
    let drop_it = move || drop(root);
    std::thread::Builder::new().stack_size(64 * 1024).spawn(drop_it).unwrap().join().unwrap();
    assert!(fs_weak.upgrade().is_none());
}

#[test]
fn the_file_size_limit_signals() {
    let (_, world) = limited(0, 0);
    let mut caller = TestCaller::root();
    caller.file_size_limit = 5000;
    let ctx = world.context(&caller);
    let file = open(&ctx, "/a", OpenFlags::RDWR | OpenFlags::CREAT).unwrap();
    assert_eq!(write(&file, &caller, 4000, 3000), Ok(1000));
    assert_eq!(caller.too_big.get(), 0);
    assert_eq!(errno(write(&file, &caller, 5000, 1)), Some(Errno::EFBIG));
    assert_eq!(errno(ops::ftruncate(&file, 5001, &caller)), Some(Errno::EFBIG));
    assert_eq!(errno(ops::truncate(&ctx, b"/a", 5001)), Some(Errno::EFBIG));
    assert_eq!(caller.too_big.get(), 3);
    ops::ftruncate(&file, 5000, &caller).unwrap();
}
