//! Copy-up, and what it leaves as it was.

#[path = "../../fs-host/tests/support/mod.rs"]
mod support;

use std::fs;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::path::Path;
use std::sync::Arc;

use abi::{Errno, FileType, OpenFlags, Timespec};
use fs_host::{HostFs, HostFsOptions, OwnerMap};
use fs_overlay::Overlay;
use support::*;
use vfs::{
    AttributeChange, FileSystem, Inode, NewNode, NewNodeKind, RenameMode, Seek, SliceSource, XattrMode,
};

struct Layers {
    lower: tempfile::TempDir,
    upper: tempfile::TempDir,
}

impl Layers {
    fn new() -> Layers {
        let directory = || tempfile::tempdir().expect("a directory");
        Layers { lower: directory(), upper: directory() }
    }

    fn mount(&self) -> Arc<Overlay> {
        let host = |dir: &Path, writable| {
            HostFs::open(dir, HostFsOptions::named(writable, OwnerMap::own_as_root())).expect("served")
        };
        let lower = host(self.lower.path(), false);
        Overlay::new(&[lower.root()], Some(host(self.upper.path(), true)), String::new()).expect("an overlay")
    }

    fn below(&self, path: &str, content: &[u8]) {
        let path = self.lower.path().join(path);
        fs::create_dir_all(path.parent().expect("a parent")).expect("mkdir");
        fs::write(path, content).expect("write");
    }
}

fn attributes(inode: &Arc<Inode>) -> vfs::Attributes {
    inode.ops.attributes(inode).expect("attributes")
}

#[test]
fn all_that_belongs_to_a_file_goes_up_and_the_lower_layer_stays() {
    let layers = Layers::new();
    layers.below("a/b/file", b"content");
    let below = layers.lower.path().join("a/b/file");
    fs::set_permissions(&below, fs::Permissions::from_mode(0o4751)).expect("chmod");
    rustix::fs::setxattr(&below, "user.mine", b"value", rustix::fs::XattrFlags::empty()).expect("set");
    fs::set_permissions(layers.lower.path().join("a"), fs::Permissions::from_mode(0o1775)).expect("chmod");
    let past = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000);
    fs::File::options().write(true).open(&below).expect("open").set_modified(past).expect("utimens");
    fs::set_permissions(&below, fs::Permissions::from_mode(0o4751)).expect("chmod");

    let overlay = layers.mount();
    let inode = walk(&overlay, "a/b/file").expect("found");
    let (before, dir_before) = (attributes(&inode), attributes(&walk(&overlay, "a").expect("found")));
    let writer = open(&inode, OpenFlags::RDWR).expect("opened");
    let after = attributes(&inode);
    assert_eq!(
        (after.ino, after.dev, after.mode, after.mtime),
        (before.ino, before.dev, before.mode, before.mtime)
    );
    assert_eq!(after.mtime, Timespec { sec: 1_000_000, nsec: 0 });
    assert_eq!(after.mode.bits(), 0o104751);
    assert_eq!(inode.ops.get_xattr(&inode, b"user.mine").expect("there"), b"value");
    assert_eq!(inode.ops.list_xattrs(&inode).expect("listed"), [b"user.mine".to_vec()]);
    assert_eq!(read(&inode).expect("read"), b"content");
    let dir_after = attributes(&walk(&overlay, "a").expect("found"));
    assert_eq!(
        (dir_after.ino, dir_after.mode, dir_after.mtime),
        (dir_before.ino, dir_before.mode, dir_before.mtime)
    );
    writer
        .ops
        .write(&writer, &TestCaller::root(), &mut SliceSource { bytes: b"CON", taken: 0 })
        .expect("written");
    assert_eq!(read(&inode).expect("read"), b"CONtent");
    assert_eq!(fs::read(&below).expect("read"), b"content");
    // Nobody is left who remembers: the layer does.
    drop((writer, inode, overlay));
    let inode = walk(&layers.mount(), "a/b/file").expect("found");
    assert_eq!(attributes(&inode).ino, before.ino);
    assert_eq!(read(&inode).expect("read"), b"CONtent");
}

#[test]
fn holes_stay_holes() {
    let layers = Layers::new();
    layers.below("file", b"");
    let below = fs::File::options().write(true).open(layers.lower.path().join("file")).expect("open");
    for at in [0, 5 << 20, 40 << 20] {
        below.write_all_at(&[7; 5000], at).expect("write");
    }
    below.set_len(100 << 20).expect("truncate");
    let overlay = layers.mount();
    let inode = walk(&overlay, "file").expect("found");
    let file = open(&inode, OpenFlags::RDWR).expect("opened");
    let after = attributes(&inode);
    assert_eq!(after.size, 100 << 20);
    assert!(after.blocks * 512 < 1 << 20, "{} blocks", after.blocks);
    assert_eq!(file.ops.seek(&file, Seek::Data(6 << 20)), Ok(40 << 20));
    let mut sink = Sink { bytes: Vec::new(), room: 6000 };
    file.ops.read_at(&file, &TestCaller::root(), 5 << 20, &mut sink).expect("read");
    assert!(
        sink.bytes[..5000].iter().all(|byte| *byte == 7) && sink.bytes[5000..].iter().all(|byte| *byte == 0)
    );
}

#[test]
fn a_descriptor_opened_read_only_keeps_the_lower_file() {
    let layers = Layers::new();
    layers.below("file", b"old");
    let overlay = layers.mount();
    let inode = walk(&overlay, "file").expect("found");
    let reader = open(&inode, OpenFlags::RDONLY).expect("opened");
    assert_eq!(write(&inode, b"new"), Ok(3));
    assert_eq!(read_file(&reader).expect("read"), b"old");
    assert_eq!(read(&inode).expect("read"), b"new");
    // What fchmod on it changes is what fstat shows.
    let change = AttributeChange { permissions: Some(0o600), ..Default::default() };
    inode.ops.set_attributes(&inode, &change).expect("changed");
    let shown = reader.ops.attributes().unwrap_or_else(|| inode.ops.attributes(&inode));
    assert_eq!(shown.expect("attributes").mode.permissions(), 0o600);
}

#[test]
fn truncation_copies_only_what_stays() {
    let layers = Layers::new();
    layers.below("file", &vec![1; 1 << 20]);
    let overlay = layers.mount();
    let inode = walk(&overlay, "file").expect("found");
    let change = AttributeChange { size: Some(10), ..Default::default() };
    inode.ops.set_attributes(&inode, &change).expect("truncated");
    assert_eq!(read(&inode).expect("read"), [1; 10]);
    assert_eq!(fs::metadata(layers.lower.path().join("file")).expect("stat").len(), 1 << 20);
}

#[test]
fn lower_hard_links_are_broken() {
    let layers = Layers::new();
    layers.below("one", b"old");
    fs::hard_link(layers.lower.path().join("one"), layers.lower.path().join("two")).expect("link");
    let overlay = layers.mount();
    let (one, two) = (walk(&overlay, "one").expect("found"), walk(&overlay, "two").expect("found"));
    assert_eq!(attributes(&one).ino, attributes(&two).ino);
    write(&one, b"new").expect("written");
    assert_eq!((read(&one), read(&two)), (Ok(b"new".to_vec()), Ok(b"old".to_vec())));
    assert_ne!(attributes(&one).ino, attributes(&two).ino);
    assert_eq!(attributes(&one).nlink, 1);
}

#[test]
fn a_lower_directory_moves_with_all_in_it_unless_it_is_large() {
    let layers = Layers::new();
    layers.below("dir/sub/file", b"content");
    layers.below("dir/gone", b"");
    layers.below("large/file", b"");
    let file = fs::File::options().write(true).open(layers.lower.path().join("large/file")).expect("open");
    file.set_len(1 << 30).expect("truncated");
    let overlay = layers.mount();
    let root = overlay.root();
    let dir = walk(&overlay, "dir").expect("found");
    let number = attributes(&dir).ino;
    dir.ops.unlink(&dir, b"gone", &walk(&overlay, "dir/gone").expect("found")).expect("unlinked");
    root.ops.rename(&root, b"dir", &root, b"moved", RenameMode::NoReplace).expect("renamed");
    assert_eq!(names(&root).expect("listed"), ["large", "moved"]);
    assert!(Arc::ptr_eq(&walk(&overlay, "moved").expect("found"), &dir));
    assert_eq!(attributes(&dir).ino, number);
    assert_eq!(names(&dir).expect("listed"), ["sub"]);
    assert_eq!(read(&walk(&overlay, "moved/sub/file").expect("found")).expect("read"), b"content");
    // Something new of the old name does not merge with what lies below.
    create(&root, "dir", NewNodeKind::Directory, 0o755).expect("created");
    assert_eq!(names(&walk(&overlay, "dir").expect("found")).expect("listed"), Vec::<String>::new());
    assert_eq!(
        errno(root.ops.rename(&root, b"large", &root, b"other", RenameMode::Replace)),
        Some(Errno::EXDEV)
    );
    assert_eq!(
        errno(root.ops.rename(&root, b"moved", &root, b"large", RenameMode::Replace)),
        Some(Errno::ENOTEMPTY)
    );
    assert!(layers.lower.path().join("dir/gone").exists());
}

#[test]
fn the_format_is_overlayfs_s() {
    let layers = Layers::new();
    layers.below("gone", b"");
    layers.below("dir/inner", b"");
    let overlay = layers.mount();
    let root = overlay.root();
    let gone = walk(&overlay, "gone").expect("found");
    root.ops.unlink(&root, b"gone", &gone).expect("unlinked");
    let dir = walk(&overlay, "dir").expect("found");
    assert_eq!(errno(root.ops.rmdir(&root, b"dir", &dir)), Some(Errno::ENOTEMPTY));
    let inner = walk(&overlay, "dir/inner").expect("found");
    dir.ops.unlink(&dir, b"inner", &inner).expect("unlinked");
    root.ops.rmdir(&root, b"dir", &dir).expect("removed");
    create(&root, "dir", NewNodeKind::Directory, 0o755).expect("created again");
    assert_eq!(names(&root).expect("listed"), ["dir"]);
    assert_eq!(names(&walk(&overlay, "dir").expect("found")).expect("listed"), Vec::<String>::new());
    drop((root, overlay));

    let upper = HostFs::open(layers.upper.path(), HostFsOptions::named(false, OwnerMap::own_as_root()))
        .expect("served");
    let whiteout = walk(&upper, "upper/gone").expect("a whiteout");
    assert_eq!((whiteout.file_type, attributes(&whiteout).rdev), (FileType::CHR, 0));
    let dir = walk(&upper, "upper/dir").expect("a directory");
    assert_eq!(dir.ops.get_xattr(&dir, b"trusted.overlay.opaque").expect("opaque"), b"y");
    assert_eq!(names(&walk(&upper, "work").expect("found")).expect("listed"), Vec::<String>::new());
    assert_eq!(
        fs::symlink_metadata(layers.upper.path().join("upper/gone")).expect("stat").mode() & 0o170000,
        0o100000
    );
}

#[test]
fn what_is_the_overlay_s_own_is_not_the_guest_s() {
    let layers = Layers::new();
    layers.below("file", b"");
    let overlay = layers.mount();
    let root = overlay.root();
    // What would be a whiteout in a layer is a device like others to guests, and to the next mount.
    create(&root, "zero", NewNodeKind::CharDevice(0), 0o600).expect("made");
    for overlay in [&overlay, &layers.mount()] {
        let zero = walk(overlay, "zero").expect("found");
        assert_eq!((zero.file_type, attributes(&zero).rdev), (FileType::CHR, 0));
        assert!(names(&overlay.root()).expect("listed").contains(&"zero".to_string()));
    }
    let zero = walk(&overlay, "zero").expect("found");
    root.ops.unlink(&root, b"zero", &zero).expect("removed");
    let file = walk(&overlay, "file").expect("found");
    for name in [b"trusted.overlay.opaque".as_slice(), b"trusted.overlay.origin"] {
        assert_eq!(errno(file.ops.set_xattr(&file, name, b"y", XattrMode::Any)), Some(Errno::EOPNOTSUPP));
        assert_eq!(errno(file.ops.get_xattr(&file, name)), Some(Errno::EOPNOTSUPP));
    }
    write(&file, b"x").expect("copied up");
    assert_eq!(file.ops.list_xattrs(&file).expect("listed"), Vec::<Vec<u8>>::new());
    // What is not there is missed without a copy-up.
    layers.below("other", b"");
    let other = walk(&overlay, "other").expect("found");
    assert_eq!(errno(other.ops.remove_xattr(&other, b"user.none")), Some(Errno::ENODATA));
    assert!(!layers.upper.path().join("upper/other").exists());
}

#[test]
fn a_removed_lower_file_lives_on_while_it_is_used() {
    let layers = Layers::new();
    layers.below("file", b"old");
    let overlay = layers.mount();
    let root = overlay.root();
    let inode = walk(&overlay, "file").expect("found");
    root.ops.unlink(&root, b"file", &inode).expect("unlinked");
    assert_eq!(attributes(&inode).nlink, 0);
    write(&inode, b"new").expect("copied up without a name");
    assert_eq!(read(&inode).expect("read"), b"new");
    assert_eq!(errno(walk(&overlay, "file")), Some(Errno::ENOENT));
    let again = create(&root, "file", NewNodeKind::File, 0o644).expect("created");
    assert!(!Arc::ptr_eq(&again, &inode));
    assert_eq!(read(&again).expect("read"), b"");
}

#[test]
fn a_removed_directory_takes_nothing_new() {
    let layers = Layers::new();
    layers.below("dir/file", b"");
    let overlay = layers.mount();
    let root = overlay.root();
    let dir = walk(&overlay, "dir").expect("found");
    let file = walk(&overlay, "dir/file").expect("found");
    dir.ops.unlink(&dir, b"file", &file).expect("unlinked");
    root.ops.rmdir(&root, b"dir", &dir).expect("removed");
    assert_eq!(errno(create(&dir, "new", NewNodeKind::File, 0o644)), Some(Errno::ENOENT));
    assert_eq!(names(&walk(&overlay, "").expect("the root")).expect("listed"), Vec::<String>::new());
}

#[test]
fn files_without_names_are_made_in_the_upper_layer() {
    let layers = Layers::new();
    layers.below("dir/file", b"");
    let overlay = layers.mount();
    let dir = walk(&overlay, "dir").expect("found");
    let node = NewNode { kind: NewNodeKind::File, permissions: 0o600, uid: 0, gid: 0 };
    let inode = dir.ops.create_unnamed(&dir, &node).expect("created");
    write(&inode, b"content").expect("written");
    dir.ops.link(&dir, b"named", &inode).expect("linked");
    assert!(Arc::ptr_eq(&walk(&overlay, "dir/named").expect("found"), &inode));
    assert_eq!(read(&inode).expect("read"), b"content");
}

#[test]
fn threads_that_write_first_at_once_write_to_one_file() {
    for _ in 0..30 {
        let layers = Layers::new();
        layers.below("a/b/file", &[0; 64]);
        let overlay = layers.mount();
        std::thread::scope(|scope| {
            for thread in 0..4u8 {
                let overlay = &overlay;
                scope.spawn(move || {
                    let inode = walk(overlay, "a/b/file").expect("found");
                    let file = open(&inode, OpenFlags::WRONLY).expect("opened");
                    let mut source = SliceSource { bytes: &[thread + 1; 16], taken: 0 };
                    file.ops
                        .write_at(&file, &TestCaller::root(), u64::from(thread) * 16, &mut source)
                        .expect("written");
                });
            }
        });
        let content = read(&walk(&overlay, "a/b/file").expect("found")).expect("read");
        let expected: Vec<u8> = (0..64).map(|i| i / 16 + 1).collect();
        assert_eq!(content, expected);
    }
}

/// While one name moves away again and again, it is never seen to be the lower file that it hides.
#[test]
fn a_rename_never_shows_the_lower_file_again() {
    let layers = Layers::new();
    layers.below("file", b"lower");
    let overlay = layers.mount();
    let root = overlay.root();
    write(&walk(&overlay, "file").expect("found"), b"upper").expect("written");
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        let looker = scope.spawn(|| {
            let mut seen = 0;
            while !done.load(std::sync::atomic::Ordering::Relaxed) {
                if let Ok(inode) = walk(&overlay, "file") {
                    assert_eq!(attributes(&inode).size, 5);
                    assert_eq!(read(&inode).expect("read"), b"upper");
                    seen += 1;
                }
            }
            seen
        });
        for _ in 0..2000 {
            root.ops.rename(&root, b"file", &root, b"other", RenameMode::Replace).expect("away");
            root.ops.rename(&root, b"other", &root, b"file", RenameMode::Replace).expect("back");
        }
        done.store(true, std::sync::atomic::Ordering::Relaxed);
        assert!(looker.join().expect("no lower file was seen") > 0);
    });
}
