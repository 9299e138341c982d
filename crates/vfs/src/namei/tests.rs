//! Walks over the test tree.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use abi::{AT_FDCWD, Errno, FileType, ResolveFlags};

use super::*;
use crate::ops;
use crate::test_caller::TestCaller;
use crate::test_support::{TestFs, TestInode, errno, find, user, world, world_on};
use crate::{FileSystem, MountFlags, d_path, getcwd};

fn shown(ctx: &FsContext<'_>, path: &str) -> Result<String, Errno> {
    find(ctx, path).map(|found| String::from_utf8(d_path(&found, &ctx.place.root)).unwrap())
}

#[test]
fn paths_lead_where_linux_says() {
    let (_, world) = world();
    let caller = TestCaller::root();
    let ctx = world.context(&caller);
    for (path, leads_to) in [
        ("/", Ok("/")),
        ("///", Ok("/")),
        (".", Ok("/")),
        ("..", Ok("/")),
        ("/../../dir", Ok("/dir")),
        ("dir/./sub/../file", Ok("/dir/file")),
        ("dir//sub///", Ok("/dir/sub")),
        ("rel", Ok("/dir/file")),
        ("abs/sub/..", Ok("/dir")),
        ("slash/file", Ok("/dir/file")),
        ("slash", Ok("/dir")),
        ("abs/", Ok("/dir")),
        ("", Err(Errno::ENOENT)),
        ("none", Err(Errno::ENOENT)),
        ("none/x", Err(Errno::ENOENT)),
        ("dir/file/", Err(Errno::ENOTDIR)),
        ("dir/file/x", Err(Errno::ENOTDIR)),
        ("dir/file/.", Err(Errno::ENOTDIR)),
        ("dir/file/..", Err(Errno::ENOTDIR)),
        ("rel/", Err(Errno::ENOTDIR)),
        ("rel/..", Err(Errno::ENOTDIR)),
        ("loop", Err(Errno::ELOOP)),
        ("loop/x", Err(Errno::ELOOP)),
        ("dangling", Err(Errno::ENOENT)),
    ] {
        assert_eq!(shown(&ctx, path), leads_to.map(String::from), "{path}");
    }
    let long = "a".repeat(256);
    assert_eq!(shown(&ctx, &long), Err(Errno::ENAMETOOLONG));
    assert_eq!(shown(&ctx, &format!("{long}/x")), Err(Errno::ENAMETOOLONG));
    assert_eq!(shown(&ctx, &"/.".repeat(2047)), Ok("/".into()));
    assert_eq!(shown(&ctx, &"/.".repeat(2048)), Err(Errno::ENAMETOOLONG));
}

#[test]
fn forty_links_are_followed_and_no_more() {
    let (_, world) = world();
    let caller = TestCaller::root();
    let ctx = world.context(&caller);
    ops::symlink(&ctx, b"dir", AT_FDCWD, b"l1").unwrap();
    for i in 2..=41 {
        let text = format!("l{}", i - 1);
        ops::symlink(&ctx, text.as_bytes(), AT_FDCWD, format!("l{i}").as_bytes()).unwrap();
    }
    assert_eq!(shown(&ctx, "l40/sub"), Ok("/dir/sub".into()));
    assert_eq!(shown(&ctx, "l41"), Err(Errno::ELOOP));
    assert_eq!(shown(&ctx, "l40/../l1"), Err(Errno::ELOOP));
}

#[test]
fn the_last_link_is_followed_only_when_asked_or_behind_a_slash() {
    let (_, world) = world();
    let caller = TestCaller::root();
    let ctx = world.context(&caller);
    let file_type = |path: &[u8], how| {
        ctx.lookup_path(AT_FDCWD, path, how)
            .map(|path| path.inode().file_type)
            .map_err(|e| e.errno().unwrap())
    };
    assert_eq!(file_type(b"abs", Lookup::empty()), Ok(FileType::LNK));
    assert_eq!(file_type(b"abs/", Lookup::empty()), Ok(FileType::DIR));
    assert_eq!(file_type(b"abs", Lookup::DIRECTORY), Err(Errno::ENOTDIR));
    assert_eq!(file_type(b"abs", Lookup::DIRECTORY | Lookup::FOLLOW), Ok(FileType::DIR));
}

#[test]
fn directories_that_may_not_be_searched_stop_the_walk() {
    let (_, world) = world();
    let (root, other) = (TestCaller::root(), user(7));
    ops::chmod(&world.context(&root), AT_FDCWD, b"dir", 0o744, abi::AtFlags::empty()).unwrap();
    let ctx = world.context(&other);
    assert_eq!(shown(&ctx, "dir"), Ok("/dir".into()));
    for path in ["dir/file", "dir/none", "dir/.", "dir/..", "rel"] {
        assert_eq!(shown(&ctx, path), Err(Errno::EACCES), "{path}");
    }
    assert_eq!(shown(&world.context(&root), "rel"), Ok("/dir/file".into()));
}

#[test]
fn the_walk_stays_below_the_root_it_was_given() {
    let (_, world) = world();
    let caller = TestCaller::root();
    let mut ctx = world.context(&caller);
    ops::symlink(&ctx, b"/../../file", AT_FDCWD, b"dir/up").unwrap();
    ops::symlink(&ctx, b"../..", AT_FDCWD, b"dir/sub/up").unwrap();
    let root = find(&ctx, "/dir").unwrap();
    ctx.place = Arc::new(crate::FsPlace { root, ..(*ctx.place).clone() });
    for (path, leads_to) in [("/..", "/"), ("/../file", "/file"), ("/up", "/file"), ("/sub/up/..", "/")] {
        assert_eq!(shown(&ctx, path), Ok(leads_to.into()), "{path}");
    }
    // The current directory is outside: it can be walked from, and shows as unreachable.
    assert_eq!(getcwd(&ctx.place.cwd, &ctx.place.root), Ok(b"(unreachable)/".to_vec()));
    ctx.place = crate::FsPlace::at_root(ctx.place.root.clone(), 0);
    assert_eq!(getcwd(&ctx.place.cwd, &ctx.place.root), Ok(b"/".to_vec()));
}

#[test]
fn mounts_are_crossed_both_ways() {
    let (_, world) = world();
    let caller = TestCaller::root();
    let ctx = world.context(&caller);
    let (other, _) = crate::test_support::world();
    let other: Arc<dyn FileSystem> = other;
    let at = find(&ctx, "/mnt").unwrap();
    world.mounts.mount(&other, "other", MountFlags::empty(), &at).unwrap();
    assert_eq!(shown(&ctx, "/mnt/dir/file"), Ok("/mnt/dir/file".into()));
    assert_eq!(shown(&ctx, "/mnt/dir/../../dir"), Ok("/dir".into()));
    assert_eq!(shown(&ctx, "/mnt/abs"), Ok("/dir".into()));
    let inside = find(&ctx, "/mnt/dir").unwrap();
    assert!(Arc::ptr_eq(&inside.mount.fs, &other));
    let xdev = |path: &[u8]| errno(ctx.lookup_resolve(AT_FDCWD, path, Lookup::FOLLOW, ResolveFlags::NO_XDEV));
    assert_eq!(xdev(b"mnt"), Some(Errno::EXDEV));
    assert_eq!(xdev(b"dir"), None);
}

#[test]
fn resolve_flags_scope_the_walk() {
    let (_, world) = world();
    let caller = TestCaller::root();
    let ctx = world.context(&caller);
    ops::symlink(&ctx, b"../rel", AT_FDCWD, b"dir/out").unwrap();
    ops::symlink(&ctx, b"/sub", AT_FDCWD, b"dir/in").unwrap();
    let dir = ops::OpenRequest::open(abi::OpenFlags::PATH, 0).unwrap();
    let dirfd = world.files.install(ops::open(&ctx, AT_FDCWD, b"dir", &dir).unwrap(), 9, false).unwrap();
    let resolve =
        |path: &str, flags| errno(ctx.lookup_resolve(dirfd, path.as_bytes(), Lookup::FOLLOW, flags));
    for (path, beneath, in_root, no_links) in [
        ("file", None, None, None),
        ("sub/../file", None, None, None),
        ("..", Some(Errno::EXDEV), None, None),
        ("sub/../../dir", Some(Errno::EXDEV), Some(Errno::ENOENT), None),
        ("/file", Some(Errno::EXDEV), None, Some(Errno::ENOENT)),
        ("out", Some(Errno::EXDEV), Some(Errno::ENOENT), Some(Errno::ELOOP)),
        ("in", Some(Errno::EXDEV), None, Some(Errno::ELOOP)),
    ] {
        assert_eq!(resolve(path, ResolveFlags::BENEATH), beneath, "beneath {path}");
        assert_eq!(resolve(path, ResolveFlags::IN_ROOT), in_root, "in root {path}");
        assert_eq!(resolve(path, ResolveFlags::NO_SYMLINKS), no_links, "no links {path}");
    }
}

#[test]
fn magic_links_jump_and_can_be_refused() {
    let (_, world) = world();
    let caller = TestCaller::root();
    let ctx = world.context(&caller);
    ops::symlink(&ctx, b"shown only", AT_FDCWD, b"magic").unwrap();
    let link = ctx.lookup_path(AT_FDCWD, b"magic", Lookup::empty()).unwrap();
    let target = find(&ctx, "/dir").unwrap();
    link.inode().downcast::<TestInode>().unwrap().make_magic(MagicTarget::Path(target));
    assert_eq!(shown(&ctx, "magic/sub"), Ok("/dir/sub".into()));
    assert_eq!(shown(&ctx, "magic/"), Ok("/dir".into()));
    let refused = |flags| errno(ctx.lookup_resolve(AT_FDCWD, b"magic", Lookup::FOLLOW, flags));
    assert_eq!(refused(ResolveFlags::NO_MAGICLINKS), Some(Errno::ELOOP));
    assert_eq!(refused(ResolveFlags::BENEATH), Some(Errno::EXDEV));
    // To an open file without a path: it ends the walk.
    let pipe = crate::FileDescription::new(Box::new(crate::test_support::Opened), None, abi::OpenFlags::RDWR);
    link.inode().downcast::<TestInode>().unwrap().make_magic(MagicTarget::File(pipe));
    assert!(matches!(ctx.lookup(AT_FDCWD, b"magic", Lookup::FOLLOW), Ok(MagicTarget::File(_))));
    assert_eq!(errno(ctx.lookup(AT_FDCWD, b"magic/x", Lookup::FOLLOW)), Some(Errno::ENOTDIR));
    assert_eq!(errno(ctx.lookup(AT_FDCWD, b"magic/", Lookup::FOLLOW)), Some(Errno::ENOTDIR));
}

#[test]
fn what_changes_outside_is_asked_for_at_the_end_only() {
    let (fs, world) = world_on(TestFs::with(true));
    let caller = TestCaller::root();
    let ctx = world.context(&caller);
    let found = find(&ctx, "/dir/file").unwrap();
    fs.asked.store(0, Ordering::Relaxed);
    assert_eq!(find(&ctx, "/dir/file").unwrap(), found);
    assert_eq!(fs.asked.load(Ordering::Relaxed), 1);
    // Replaced on the host: the name is another file now.
    let dir = find(&ctx, "/dir").unwrap();
    let node = crate::NewNode { kind: crate::NewNodeKind::File, permissions: 0, uid: 0, gid: 0 };
    dir.inode().downcast::<TestInode>().unwrap().put(b"file", Some(fs.make(&node)));
    let now = find(&ctx, "/dir/file").unwrap();
    assert!(found.dentry.is_removed() && !Arc::ptr_eq(found.inode(), now.inode()));
    // And gone.
    dir.inode().downcast::<TestInode>().unwrap().put(b"file", None);
    assert_eq!(find(&ctx, "/dir/file"), Err(Errno::ENOENT));
}

#[test]
fn a_stale_directory_makes_the_walk_start_again_without_trust() {
    let (fs, world) = world_on(TestFs::with(true));
    let caller = TestCaller::root();
    let ctx = world.context(&caller);
    world.mounts.dentries.clear();
    fs.stale.store(true, Ordering::Relaxed);
    assert!(ops::stat(&ctx, AT_FDCWD, b"/dir/sub/../file", abi::AtFlags::empty()).is_ok());
    assert!(!fs.stale.load(Ordering::Relaxed));
    assert!(!ctx.revalidate_all.get());
}
