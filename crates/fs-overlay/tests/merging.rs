//! Lower layers as one tree.

#[path = "../../fs-host/tests/support/mod.rs"]
mod support;

use std::fs;
use std::path::Path;
use std::sync::Arc;

use abi::{Errno, FileType, OpenFlags};
use fs_host::{HostFs, HostFsOptions, OwnerMap};
use fs_overlay::Overlay;
use support::*;
use vfs::{FileSystem, Inode, NewNodeKind, Seek};

fn layer(dir: &Path) -> Arc<Inode> {
    HostFs::open(dir, HostFsOptions::named(false, OwnerMap::Same)).expect("served").root()
}

fn tree(files: &[(&str, &str)]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().expect("a directory");
    for (path, content) in files {
        let path = dir.path().join(path);
        fs::create_dir_all(path.parent().expect("a parent")).expect("mkdir");
        fs::write(path, content).expect("write");
    }
    dir
}

#[test]
fn the_topmost_file_shows_and_directories_merge() {
    let top =
        tree(&[("both", "top"), ("dir/a", "top a"), ("file-over-dir", "file"), ("dir-over-file/x", "x")]);
    let bottom = tree(&[
        ("both", "bottom"),
        ("dir/a", "bottom a"),
        ("dir/b", "b"),
        ("file-over-dir/y", "y"),
        ("dir-over-file", "f"),
    ]);
    let overlay =
        Overlay::new(&[layer(top.path()), layer(bottom.path())], None, String::new()).expect("an overlay");
    for (path, content) in [
        ("both", "top"),
        ("dir/a", "top a"),
        ("dir/b", "b"),
        ("file-over-dir", "file"),
        ("dir-over-file/x", "x"),
    ] {
        let inode = walk(&overlay, path).expect(path);
        assert_eq!(read(&inode).expect(path), content.as_bytes());
        let attributes = inode.ops.attributes(&inode).expect("attributes");
        assert_eq!(attributes.dev, overlay.dev());
        let file = open(&inode, OpenFlags::RDONLY).expect("opened");
        assert_eq!(file.ops.attributes().expect("of the file"), Ok(attributes));
    }
    assert_eq!(names(&overlay.root()).expect("listed"), ["both", "dir", "dir-over-file", "file-over-dir"]);
    let dir = walk(&overlay, "dir").expect("found");
    assert_eq!(names(&dir).expect("listed"), ["a", "b"]);
    assert_eq!(dir.ops.attributes(&dir).expect("attributes").nlink, 1);
    assert!(Arc::ptr_eq(&dir, &walk(&overlay, "dir").expect("found again")));
    let root = overlay.root();
    assert!(root.ops.revalidate(&root, b"dir", &dir));
    assert_eq!(errno(create(&root, "new", NewNodeKind::File, 0o644)), Some(Errno::EROFS));
    assert_eq!(errno(open(&walk(&overlay, "both").expect("found"), OpenFlags::RDWR)), Some(Errno::EROFS));
}

#[test]
fn entries_have_the_numbers_that_stat_shows_and_stable_positions() {
    let top = tree(&[("d/a", ""), ("d/sub/x", "")]);
    let bottom = tree(&[("d/a", ""), ("d/b", ""), ("d/c", "")]);
    let overlay =
        Overlay::new(&[layer(top.path()), layer(bottom.path())], None, String::new()).expect("an overlay");
    let dir = walk(&overlay, "d").expect("found");
    let file = open(&dir, OpenFlags::RDONLY).expect("opened");
    let all = list_some(&file, 1).expect("listed").found;
    assert_eq!(all.len(), 6);
    for (name, ino, kind, _) in &all {
        if name == b"." || name == b".." {
            assert_eq!(*kind, FileType::DIR);
            continue;
        }
        let child = dir.ops.lookup(&dir, name).expect("found");
        assert_eq!(child.ops.attributes(&child).expect("attributes").ino, *ino);
        assert_eq!(child.file_type, *kind);
    }
    file.ops.seek(&file, Seek::Set(all[3].3 as i64)).expect("seek");
    let mut one = Entries { room: 1, ..Default::default() };
    file.ops.read_dir(&file, &TestCaller::root(), &mut one).expect("read");
    assert_eq!(one.found, [all[4].clone()]);
}
