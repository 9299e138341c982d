//! A writable host directory: what guests change, and what the host gets to see of it.

mod support;

use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use abi::{Errno, FileType, OpenFlags, Timespec, makedev};
use fs_host::{HostFs, HostFsOptions, OwnerMap, Records};
use support::*;
use vfs::{
    AttributeChange, CapSet, Cred, FileSystem, Inode, NewNode, NewNodeKind, RenameMode, Seek, SetTime,
    SliceSource, XattrMode,
};

fn options(records: Records) -> HostFsOptions {
    HostFsOptions { records, ..HostFsOptions::named(true, OwnerMap::own_as_root()) }
}

fn serve(dir: &Path) -> Arc<HostFs> {
    HostFs::open(dir, options(Records::Attributes)).expect("served")
}

/// Runs a test with records in attributes and in side files.
fn both_ways(test: impl Fn(&Path, &dyn Fn() -> Arc<HostFs>)) {
    for records in [Records::Attributes, Records::SideFiles] {
        let dir = tempfile::tempdir().expect("a directory");
        test(dir.path(), &|| HostFs::open(dir.path(), options(records)).expect("served"));
    }
}

fn set(inode: &Arc<Inode>, change: AttributeChange) {
    inode.ops.set_attributes(inode, &change).expect("changed");
}

fn chmod(inode: &Arc<Inode>, permissions: u32) {
    set(inode, AttributeChange { permissions: Some(permissions), ..Default::default() });
}

fn chown(inode: &Arc<Inode>, uid: u32, gid: u32) {
    set(inode, AttributeChange { uid: Some(uid), gid: Some(gid), ..Default::default() });
}

/// Mode, owner and group as the guest sees them.
fn seen(inode: &Arc<Inode>) -> (u32, u32, u32) {
    let attributes = inode.ops.attributes(inode).expect("attributes");
    (attributes.mode.bits(), attributes.uid, attributes.gid)
}

/// All that the host may show of a file which a guest made.
fn assert_harmless(path: &Path) {
    let on_host = fs::symlink_metadata(path).expect("stat");
    let own = rustix::process::geteuid().as_raw();
    assert_eq!(on_host.uid(), own, "{path:?}");
    assert_eq!(on_host.gid(), rustix::process::getegid().as_raw(), "{path:?}");
    assert_eq!(on_host.mode() & 0o7000, 0, "{path:?}");
    let kind = on_host.file_type();
    assert!(kind.is_file() || kind.is_dir() || kind.is_symlink(), "{path:?}");
    assert!(!kind.is_char_device() && !kind.is_block_device() && !kind.is_fifo() && !kind.is_socket());
    if !kind.is_symlink() {
        assert_eq!(on_host.mode() & 0o600, 0o600, "{path:?}");
    }
}

#[test]
fn owners_and_modes_last_and_the_host_sees_nothing_of_them() {
    both_ways(|dir, serve| {
        let host = serve();
        let root = host.root();
        let file = create(&root, "file", NewNodeKind::File, 0o640).expect("created");
        assert_eq!(seen(&file), (0o100640, 0, 0));
        write(&file, b"content").expect("written");
        chmod(&file, 0o4755);
        chown(&file, 1000, 1001);
        let sub = create(&root, "sub", NewNodeKind::Directory, 0o755).expect("created");
        chmod(&sub, 0o1555);
        let link = create(&sub, "link", NewNodeKind::Symlink(b"../file"), 0o777).expect("created");
        chown(&link, 7, 8);
        let owned = NewNode { kind: NewNodeKind::Directory, permissions: 0o2070, uid: 5, gid: 6 };
        let owned = sub.ops.create(&sub, b"owned", &owned).expect("created");
        assert_eq!(seen(&owned), (0o042070, 5, 6));
        drop((root, file, sub, link, owned, host));

        let host = serve();
        let expect = |path, what| assert_eq!(seen(&walk(&host, path).expect(path)), what, "{path}");
        expect("file", (0o104755, 1000, 1001));
        expect("sub", (0o041555, 0, 0));
        expect("sub/link", (0o120777, 7, 8));
        expect("sub/owned", (0o042070, 5, 6));
        for name in ["file", "sub", "sub/link", "sub/owned"] {
            assert_harmless(&dir.join(name));
        }
        assert_eq!(names(&walk(&host, "sub").expect("found")).expect("listed"), ["link", "owned"]);
        assert_eq!(names(&host.root()).expect("listed"), ["file", "sub"]);

        // Back to what the host's file says by itself.
        let file = walk(&host, "file").expect("found");
        chown(&file, 0, 0);
        chmod(&file, 0o644);
        assert_eq!(seen(&file), (0o100644, 0, 0));
        assert_eq!(fs::metadata(dir.join("file")).expect("stat").mode(), 0o100644);
    });
}

#[test]
fn special_files_are_stand_ins_on_the_host() {
    both_ways(|dir, serve| {
        let host = serve();
        let root = host.root();
        let all = [
            ("null", NewNodeKind::CharDevice(makedev(1, 3)), FileType::CHR, makedev(1, 3)),
            ("sda", NewNodeKind::BlockDevice(makedev(8, 0)), FileType::BLK, makedev(8, 0)),
            ("fifo", NewNodeKind::Fifo, FileType::FIFO, 0),
            ("socket", NewNodeKind::Socket, FileType::SOCK, 0),
        ];
        for (name, kind, file_type, _) in all {
            let made = create(&root, name, kind, 0o666).expect("created");
            assert_eq!(made.file_type, file_type);
        }
        create(&root, "plain", NewNodeKind::File, 0o666).expect("created");
        drop((root, host));
        let host = serve();
        let root = host.root();
        let listed = list_some(&open(&root, OpenFlags::RDONLY).expect("opened"), 3).expect("listed").found;
        for (name, _, file_type, rdev) in all {
            let inode = walk(&host, name).expect("found");
            let attributes = inode.ops.attributes(&inode).expect("attributes");
            assert_eq!(
                (inode.file_type, attributes.mode.bits(), attributes.rdev),
                (file_type, file_type.0 | 0o666, rdev)
            );
            assert!(
                listed.iter().any(|(listed, _, kind, _)| listed == name.as_bytes() && *kind == file_type),
                "{name}"
            );
            assert_harmless(&dir.join(name));
            assert_eq!(fs::metadata(dir.join(name)).expect("stat").len(), 0);
            assert_eq!(fs::metadata(dir.join(name)).expect("stat").mode() & 0o777, 0o600);
        }
        // They keep what they are elsewhere, and under other names.
        let sub = create(&root, "sub", NewNodeKind::Directory, 0o755).expect("created");
        root.ops.rename(&root, b"fifo", &sub, b"moved", RenameMode::Replace).expect("renamed");
        let null = walk(&host, "null").expect("found");
        sub.ops.link(&sub, b"linked", &null).expect("linked");
        drop((root, sub, null, host));
        let host = serve();
        assert_eq!(walk(&host, "sub/moved").expect("found").file_type, FileType::FIFO);
        assert_eq!(walk(&host, "sub/linked").expect("found").file_type, FileType::CHR);
        let sub = walk(&host, "sub").expect("found");
        let listed = list_some(&open(&sub, OpenFlags::RDONLY).expect("opened"), 3).expect("listed").found;
        assert!(listed.iter().any(|(name, _, kind, _)| name == b"moved" && *kind == FileType::FIFO));
    });
}

#[test]
fn our_own_attributes_and_names_are_hidden() {
    let dir = tempfile::tempdir().expect("a directory");
    let host = serve(dir.path());
    let root = host.root();
    let file = create(&root, "file", NewNodeKind::File, 0o4755).expect("created");
    file.ops.set_xattr(&file, b"user.mine", b"1", XattrMode::Create).expect("set");
    assert_eq!(errno(file.ops.set_xattr(&file, b"user.mine", b"1", XattrMode::Create)), Some(Errno::EEXIST));
    assert_eq!(
        errno(file.ops.set_xattr(&file, b"user.none", b"1", XattrMode::Replace)),
        Some(Errno::ENODATA)
    );
    file.ops.set_xattr(&file, b"security.capability", b"caps", XattrMode::Any).expect("kept");
    file.ops.set_xattr(&file, b"trusted.x", b"y", XattrMode::Any).expect("kept");
    for name in
        [b"user.umlaut.attributes".as_slice(), b"user.umlaut.security.capability", b"system.posix_acl_access"]
    {
        assert_eq!(errno(file.ops.get_xattr(&file, name)), Some(Errno::EOPNOTSUPP));
        assert_eq!(
            errno(file.ops.set_xattr(&file, name, b"1 0 0 104777 0", XattrMode::Any)),
            Some(Errno::EOPNOTSUPP)
        );
        assert_eq!(errno(file.ops.remove_xattr(&file, name)), Some(Errno::EOPNOTSUPP));
    }
    let mut listed = file.ops.list_xattrs(&file).expect("listed");
    listed.sort();
    assert_eq!(listed, [b"security.capability".to_vec(), b"trusted.x".to_vec(), b"user.mine".to_vec()]);
    assert_eq!(file.ops.get_xattr(&file, b"security.capability").expect("kept"), b"caps");
    let mut real = [0; 64];
    let host_caps = rustix::fs::getxattr(dir.path().join("file"), "security.capability", &mut real[..]);
    assert_eq!(host_caps, Err(rustix::io::Errno::NODATA), "the host knows of no capabilities");
    file.ops.remove_xattr(&file, b"user.mine").expect("removed");
    assert_eq!(errno(file.ops.get_xattr(&file, b"user.mine")), Some(Errno::ENODATA));

    for name in [".umlaut.side", ".umlaut.new.1"] {
        assert_eq!(errno(create(&root, name, NewNodeKind::File, 0o644)), Some(Errno::EPERM));
        assert_eq!(
            errno(root.ops.rename(&root, b"file", &root, name.as_bytes(), RenameMode::Replace)),
            Some(Errno::EPERM)
        );
        assert_eq!(errno(root.ops.link(&root, name.as_bytes(), &file)), Some(Errno::EPERM));
    }
    fs::write(dir.path().join(".umlaut.side"), "1 0 0 0 0 x\n").expect("write");
    assert_eq!(errno(walk(&host, ".umlaut.side")), Some(Errno::ENOENT));
    assert_eq!(names(&root).expect("listed"), ["file"]);
}

#[test]
fn directories_with_side_files_are_removed_and_replaced() {
    both_ways(|dir, serve| {
        let host = serve();
        let root = host.root();
        for name in ["a", "b"] {
            let sub = create(&root, name, NewNodeKind::Directory, 0o755).expect("created");
            let link = create(&sub, "link", NewNodeKind::Symlink(b"x"), 0o777).expect("created");
            chown(&link, 5, 5);
            assert_eq!(errno(root.ops.rmdir(&root, name.as_bytes(), &sub)), Some(Errno::ENOTEMPTY));
            sub.ops.unlink(&sub, b"link", &link).expect("unlinked");
        }
        let other = create(&root, "other", NewNodeKind::Directory, 0o700).expect("created");
        root.ops.rename(&root, b"other", &root, b"a", RenameMode::Replace).expect("replaced");
        assert!(Arc::ptr_eq(&walk(&host, "a").expect("found"), &other));
        let b = walk(&host, "b").expect("found");
        root.ops.rmdir(&root, b"b", &b).expect("removed");
        assert!(!dir.join("b").exists());
        assert_eq!(names(&root).expect("listed"), ["a"]);
    });
}

#[test]
fn names_move_with_their_records() {
    both_ways(|_, serve| {
        let host = serve();
        let root = host.root();
        let sub = create(&root, "sub", NewNodeKind::Directory, 0o755).expect("created");
        for (name, uid) in [("one", 1), ("two", 2)] {
            chown(&create(&root, name, NewNodeKind::Symlink(b"x"), 0o777).expect("created"), uid, uid);
        }
        root.ops.rename(&root, b"one", &sub, b"three", RenameMode::NoReplace).expect("renamed");
        sub.ops.rename(&sub, b"three", &root, b"two", RenameMode::Exchange).expect("exchanged");
        assert_eq!(
            errno(root.ops.rename(&root, b"two", &sub, b"three", RenameMode::NoReplace)),
            Some(Errno::EEXIST)
        );
        assert_eq!(
            errno(root.ops.rename(&root, b"none", &sub, b"three", RenameMode::Replace)),
            Some(Errno::ENOENT)
        );
        let two = walk(&host, "two").expect("found");
        sub.ops.link(&sub, b"hard", &two).expect("linked");
        drop((root, sub, two, host));
        let host = serve();
        for (path, uid) in [("two", 1), ("sub/three", 2), ("sub/hard", 1)] {
            assert_eq!(seen(&walk(&host, path).expect(path)), (0o120777, uid, uid), "{path}");
        }
    });
}

#[test]
fn writing_goes_to_the_host_description() {
    let dir = tempfile::tempdir().expect("a directory");
    let host = serve(dir.path());
    let root = host.root();
    let inode = create(&root, "file", NewNodeKind::File, 0o644).expect("created");
    let caller = TestCaller::root();
    let content: Vec<u8> = (0..600_000u32).map(|i| (i % 253) as u8).collect();
    let file = open(&inode, OpenFlags::RDWR).expect("opened");
    assert_eq!(file.ops.write(&file, &caller, &mut SliceSource { bytes: &content, taken: 0 }), Ok(600_000));
    assert_eq!(file.ops.seek(&file, Seek::Current(0)), Ok(600_000));
    assert_eq!(fs::read(dir.path().join("file")).expect("read"), content);
    let append = open(&inode, OpenFlags::WRONLY | OpenFlags::APPEND).expect("opened");
    append.ops.write(&append, &caller, &mut SliceSource { bytes: b"end", taken: 0 }).expect("written");
    file.ops.write_at(&file, &caller, 1, &mut SliceSource { bytes: b"XY", taken: 0 }).expect("written");
    let now = fs::read(dir.path().join("file")).expect("read");
    assert_eq!((&now[..4], &now[600_000..]), (&[0, b'X', b'Y', 3][..], &b"end"[..]));
    file.ops.truncate(&file, &caller, 10).expect("truncated");
    file.ops.allocate(&file, &caller, 0, 0, 4096).expect("allocated");
    assert_eq!(inode.ops.attributes(&inode).expect("attributes").size, 4096);
    set(&inode, AttributeChange { size: Some(5), ..Default::default() });
    assert_eq!(fs::metadata(dir.path().join("file")).expect("stat").len(), 5);
    file.ops.sync(true).expect("synced");
    host.sync().expect("synced");

    let times = (Timespec { sec: 1, nsec: 2 }, Timespec { sec: -3, nsec: 4 });
    set(
        &inode,
        AttributeChange {
            atime: Some(SetTime::At(times.0)),
            mtime: Some(SetTime::At(times.1)),
            ..Default::default()
        },
    );
    let attributes = inode.ops.attributes(&inode).expect("attributes");
    assert_eq!((attributes.atime, attributes.mtime), times);
    let link = create(&root, "link", NewNodeKind::Symlink(b"file"), 0o777).expect("created");
    set(&link, AttributeChange { mtime: Some(SetTime::At(times.0)), ..Default::default() });
    assert_eq!(link.ops.attributes(&link).expect("attributes").mtime, times.0);
    assert_eq!(inode.ops.attributes(&inode).expect("attributes").mtime, times.1);
}

#[test]
fn the_file_size_limit_is_the_guest_s() {
    let dir = tempfile::tempdir().expect("a directory");
    let host = serve(dir.path());
    let inode = create(&host.root(), "file", NewNodeKind::File, 0o644).expect("created");
    let file = open(&inode, OpenFlags::RDWR).expect("opened");
    let caller = TestCaller { file_size_limit: 100, ..TestCaller::root() };
    assert_eq!(file.ops.write(&file, &caller, &mut SliceSource { bytes: &[1; 150], taken: 0 }), Ok(100));
    assert!(!caller.too_big.load(Ordering::Relaxed));
    assert_eq!(
        errno(file.ops.write(&file, &caller, &mut SliceSource { bytes: &[1; 1], taken: 0 })),
        Some(Errno::EFBIG)
    );
    assert!(caller.too_big.swap(false, Ordering::Relaxed));
    assert_eq!(errno(file.ops.truncate(&file, &caller, 101)), Some(Errno::EFBIG));
    assert!(caller.too_big.load(Ordering::Relaxed));
    assert_eq!(fs::metadata(dir.path().join("file")).expect("stat").len(), 100);
}

#[test]
fn a_write_without_cap_fsetid_clears_set_id_bits() {
    let dir = tempfile::tempdir().expect("a directory");
    let host = serve(dir.path());
    let inode = create(&host.root(), "file", NewNodeKind::File, 0o6755).expect("created");
    let file = open(&inode, OpenFlags::WRONLY).expect("opened");
    let source = || SliceSource { bytes: b"x", taken: 0 };
    file.ops.write(&file, &TestCaller::root(), &mut source()).expect("written");
    assert_eq!(seen(&inode).0, 0o106755);
    let user =
        TestCaller { cred: Cred { effective: CapSet::EMPTY, ..Cred::user(5, 5, &[]) }, ..TestCaller::root() };
    file.ops.write(&file, &user, &mut source()).expect("written");
    assert_eq!(seen(&inode).0, 0o100755);
    chmod(&inode, 0o6644);
    file.ops.write(&file, &user, &mut source()).expect("written");
    assert_eq!(seen(&inode).0, 0o102644, "set-group-id without execution by the group is not a set-id bit");
}

#[test]
fn files_without_names_get_one_by_link() {
    let dir = tempfile::tempdir().expect("a directory");
    let host = serve(dir.path());
    let root = host.root();
    let node = NewNode { kind: NewNodeKind::File, permissions: 0o4600, uid: 3, gid: 4 };
    let inode = root.ops.create_unnamed(&root, &node).expect("created");
    write(&inode, b"content").expect("written");
    assert_eq!(inode.ops.attributes(&inode).expect("attributes").nlink, 0);
    assert_eq!(names(&root).expect("listed"), Vec::<String>::new());
    root.ops.link(&root, b"named", &inode).expect("linked");
    let found = walk(&host, "named").expect("found");
    assert!(Arc::ptr_eq(&found, &inode));
    assert_eq!(read(&found).expect("read"), b"content");
    assert_eq!(seen(&found), (0o104600, 3, 4));
}

#[test]
fn hard_links_are_one_file() {
    let dir = tempfile::tempdir().expect("a directory");
    let host = serve(dir.path());
    let root = host.root();
    let inode = create(&root, "a", NewNodeKind::File, 0o644).expect("created");
    root.ops.link(&root, b"b", &inode).expect("linked");
    assert_eq!(errno(root.ops.link(&root, b"b", &inode)), Some(Errno::EEXIST));
    assert!(Arc::ptr_eq(&walk(&host, "b").expect("found"), &inode));
    root.ops.rename(&root, b"a", &root, b"b", RenameMode::Replace).expect("nothing happens");
    assert_eq!(names(&root).expect("listed"), ["a", "b"]);
    root.ops.unlink(&root, b"a", &inode).expect("unlinked");
    assert_eq!(inode.ops.attributes(&inode).expect("by its other name").nlink, 1);
    assert_eq!(errno(root.ops.unlink(&root, b"a", &inode)), Some(Errno::ENOENT));
}

#[test]
fn errors_are_those_of_the_host() {
    let dir = tempfile::tempdir().expect("a directory");
    let host = serve(dir.path());
    let root = host.root();
    let sub = create(&root, "sub", NewNodeKind::Directory, 0o755).expect("created");
    let file = create(&sub, "file", NewNodeKind::File, 0o644).expect("created");
    let top = create(&root, "top", NewNodeKind::File, 0o644).expect("created");
    for kind in [NewNodeKind::File, NewNodeKind::Directory, NewNodeKind::Fifo, NewNodeKind::Symlink(b"x")] {
        assert_eq!(errno(create(&root, "sub", kind, 0o4755)), Some(Errno::EEXIST));
        assert_eq!(errno(create(&root, "sub", kind, 0o755)), Some(Errno::EEXIST));
    }
    assert_eq!(errno(root.ops.rmdir(&root, b"sub", &sub)), Some(Errno::ENOTEMPTY));
    assert_eq!(
        errno(root.ops.rename(&root, b"top", &root, b"sub", RenameMode::Replace)),
        Some(Errno::EISDIR)
    );
    assert_eq!(
        errno(root.ops.rename(&root, b"sub", &root, b"top", RenameMode::Replace)),
        Some(Errno::ENOTDIR)
    );
    assert_eq!(errno(root.ops.rename(&root, b"sub", &sub, b"in", RenameMode::Replace)), Some(Errno::EINVAL));
    assert_eq!(
        errno(root.ops.rename(&root, b"top", &sub, b"none", RenameMode::Exchange)),
        Some(Errno::ENOENT)
    );
    let long = "x".repeat(256);
    assert_eq!(errno(create(&root, &long, NewNodeKind::File, 0o644)), Some(Errno::ENAMETOOLONG));
    drop((file, top));
}

#[test]
fn a_read_only_root_stays_as_it_is() {
    let dir = tempfile::tempdir().expect("a directory");
    fs::write(dir.path().join("file"), b"x").expect("write");
    let host = HostFs::open(dir.path(), HostFsOptions::named(false, OwnerMap::Same)).expect("served");
    let root = host.root();
    let file = walk(&host, "file").expect("found");
    let refused =
        [
            errno(open(&file, OpenFlags::RDWR)),
            errno(open(&file, OpenFlags::WRONLY)),
            errno(create(&root, "new", NewNodeKind::File, 0o644)),
            errno(create(&root, "new", NewNodeKind::Directory, 0o644)),
            errno(root.ops.unlink(&root, b"file", &file)),
            errno(root.ops.rename(&root, b"file", &root, b"other", RenameMode::Replace)),
            errno(root.ops.link(&root, b"other", &file)),
            errno(file.ops.set_attributes(&file, &AttributeChange { size: Some(0), ..Default::default() })),
            errno(file.ops.set_xattr(&file, b"user.x", b"", XattrMode::Any)),
            errno(root.ops.create_unnamed(
                &root,
                &NewNode { kind: NewNodeKind::File, permissions: 0o600, uid: 0, gid: 0 },
            )),
        ];
    assert!(refused.iter().all(|error| *error == Some(Errno::EROFS)), "{refused:?}");
    assert_eq!(fs::read(dir.path().join("file")).expect("read"), b"x");
}

#[test]
fn without_records_only_what_the_host_has_can_be_had() {
    let dir = tempfile::tempdir().expect("a directory");
    let host = HostFs::open(dir.path(), options(Records::None)).expect("served");
    let root = host.root();
    let file = create(&root, "file", NewNodeKind::File, 0o4755).expect("created");
    assert_eq!(seen(&file), (0o100755, 0, 0));
    let to_other = AttributeChange { uid: Some(5), ..Default::default() };
    assert_eq!(errno(file.ops.set_attributes(&file, &to_other)), Some(Errno::EPERM));
    chown(&file, 0, 0);
    chmod(&file, 0o600);
    assert_eq!(fs::metadata(dir.path().join("file")).expect("stat").mode(), 0o100600);
    assert_eq!(errno(create(&root, "fifo", NewNodeKind::Fifo, 0o644)), Some(Errno::EPERM));
}

#[test]
fn what_the_host_closes_to_its_owner_is_opened_up() {
    let dir = tempfile::tempdir().expect("a directory");
    fs::create_dir(dir.path().join("closed")).expect("mkdir");
    fs::write(dir.path().join("closed/file"), b"x").expect("write");
    fs::set_permissions(dir.path().join("closed/file"), fs::Permissions::from_mode(0o200)).expect("chmod");
    fs::set_permissions(dir.path().join("closed"), fs::Permissions::from_mode(0o555)).expect("chmod");
    let host = serve(dir.path());
    let file = walk(&host, "closed/file").expect("found");
    assert_eq!(read(&file).expect("read"), b"x");
    assert_eq!(seen(&file).0, 0o100200);
    let closed = walk(&host, "closed").expect("found");
    create(&closed, "new", NewNodeKind::File, 0o644).expect("created");
    closed.ops.rename(&closed, b"new", &closed, b"newer", RenameMode::Replace).expect("renamed");
    assert_eq!(seen(&closed).0, 0o040555);
}

#[test]
fn a_single_file_can_be_served() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("file");
    fs::write(&path, b"content").expect("write");
    let host = HostFs::open(&path, options(Records::Attributes)).expect("served");
    let root = host.root();
    assert_eq!(root.file_type, FileType::REG);
    assert_eq!(read(&root).expect("read"), b"content");
    write(&root, b"CON").expect("written");
    chown(&root, 5, 6);
    assert_eq!(seen(&root), (0o100644, 5, 6));
    assert_eq!(fs::read(&path).expect("read"), b"CONtent");
    host.sync().expect("synced");
    let fifo = dir.path().join("fifo");
    rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, rustix::fs::Mode::RUSR).expect("mkfifo");
    assert!(HostFs::open(&fifo, options(Records::Attributes)).is_err());
}

/// What the host's own processes do, by other open files.
mod on_the_host {
    use std::fs::File;
    use std::path::Path;

    use host::lock::{RecordLock, set_record};

    pub(crate) fn open(path: &Path) -> File {
        File::options().read(true).write(true).open(path).expect("open")
    }

    pub(crate) fn takes(file: &File, kind: RecordLock, start: i64, len: i64) -> bool {
        set_record(file, kind, start, len).is_ok()
    }
}

#[test]
fn record_locks_are_taken_on_the_host_too() {
    use host::lock::RecordLock;
    use vfs::locks::{LockKind, LockOwner, LockRange, LockWait, get_record, set_record};
    let dir = tempfile::tempdir().expect("a directory");
    let host = serve(dir.path());
    let inode = create(&host.root(), "file", NewNodeKind::File, 0o644).expect("created");
    let guest = open_at(&inode);
    let native = on_the_host::open(&dir.path().join("file"));
    let range = |start, len| LockRange::new(0, start, len).expect("a range");
    let owner = |id| LockOwner::Process { id, pid: 1 };
    let set = |id, kind, start, len| {
        errno(set_record(&guest, owner(id), kind, range(start, len), LockWait::No, &TestCaller::root()))
    };
    let free = |kind, start, len| {
        let taken = on_the_host::takes(&native, kind, start, len);
        taken && on_the_host::takes(&native, RecordLock::None, start, len)
    };
    assert_eq!(set(1, Some(LockKind::Exclusive), 0, 10), None);
    assert_eq!(set(1, Some(LockKind::Shared), 20, 10), None);
    assert_eq!(set(2, Some(LockKind::Shared), 25, 10), None);
    assert!(!free(RecordLock::Shared, 5, 1) && free(RecordLock::Exclusive, 10, 10));
    assert!(free(RecordLock::Shared, 20, 15) && !free(RecordLock::Exclusive, 34, 1));
    // One guest's unlock leaves what another holds.
    assert_eq!(set(1, None, 0, 0), None);
    assert!(free(RecordLock::Exclusive, 0, 25) && !free(RecordLock::Exclusive, 25, 1));
    assert!(on_the_host::takes(&native, RecordLock::Exclusive, 50, 5));
    assert_eq!(set(2, Some(LockKind::Shared), 54, 1), Some(Errno::EAGAIN));
    let found =
        get_record(&guest, owner(2), LockKind::Shared, range(40, 0), abi::Flock::default()).expect("asked");
    assert_eq!((found.lock_type, found.start, found.len, found.pid), (abi::LockType::WRLCK, 50, 5, -1));
    // A guest that waits gets it when the host lets go.
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| {
            let deadlocks = vfs::locks::Deadlocks::default();
            set_record(
                &guest,
                owner(3),
                Some(LockKind::Exclusive),
                range(50, 1),
                LockWait::Yes(&deadlocks),
                &TestCaller::root(),
            )
        });
        std::thread::sleep(std::time::Duration::from_millis(50));
        assert!(on_the_host::takes(&native, RecordLock::None, 50, 5));
        assert_eq!(waiter.join().expect("no panic"), Ok(()));
    });
    assert!(!free(RecordLock::Shared, 50, 1));
}

#[test]
fn flocks_are_taken_on_the_host_too() {
    use abi::FlockOp;
    use rustix::fs::{FlockOperation, flock};
    let dir = tempfile::tempdir().expect("a directory");
    let host = serve(dir.path());
    let inode = create(&host.root(), "file", NewNodeKind::File, 0o644).expect("created");
    let (one, two) = (open_at(&inode), open_at(&inode));
    let native = on_the_host::open(&dir.path().join("file"));
    let guest = |file: &vfs::FileDescription, op| {
        errno(vfs::locks::flock(file, op | FlockOp::NB, &TestCaller::root()))
    };
    assert_eq!((guest(&one, FlockOp::SH), guest(&two, FlockOp::SH)), (None, None));
    assert!(flock(&native, FlockOperation::NonBlockingLockExclusive).is_err());
    assert_eq!(guest(&one, FlockOp::UN), None);
    assert!(
        flock(&native, FlockOperation::NonBlockingLockExclusive).is_err(),
        "the other guest's is still there"
    );
    drop(two);
    assert!(flock(&native, FlockOperation::NonBlockingLockExclusive).is_ok());
    assert_eq!(guest(&one, FlockOp::SH), Some(Errno::EWOULDBLOCK));
    assert!(flock(&native, FlockOperation::Unlock).is_ok());
    assert_eq!(guest(&one, FlockOp::EX), None);
    assert!(flock(&native, FlockOperation::NonBlockingLockShared).is_err());
    drop(one);
    assert!(flock(&native, FlockOperation::NonBlockingLockShared).is_ok());
}

/// An open file that knows its inode, as those opened by path do.
fn open_at(inode: &Arc<Inode>) -> Arc<vfs::FileDescription> {
    let mounts = vfs::MountTable::new(&inode.fs, "host", vfs::MountFlags::empty());
    let root = mounts.root().expect("a root");
    let caller = TestCaller::root();
    let files = vfs::FdTable::new();
    let place = vfs::FsPlace::at_root(root, 0);
    let context = vfs::FsContext::new(&mounts, place, &files, &caller, &vfs::NoSpecialFiles);
    let request = vfs::ops::OpenRequest::open(OpenFlags::RDWR, 0).expect("a request");
    vfs::ops::open(&context, abi::AT_FDCWD, b"/file", &request).expect("opened")
}
