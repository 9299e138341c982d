//! Files opened by their path again and again: the host's file may be held for that, and is what the path leads to all the
//! same.

mod support;

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::sync::Arc;

use abi::{Errno, OpenFlags};
use fs_host::{HostFs, HostFsOptions, OwnerMap};
use support::*;
use vfs::{FileSystem, NewNodeKind, OpenHow, RenameMode, SliceSource};

fn serve(dir: &Path, writable: bool) -> Arc<HostFs> {
    HostFs::open(dir, HostFsOptions::named(writable, OwnerMap::own_as_root())).expect("served")
}

/// A directory with a file in it that was opened often enough to be held.
fn with_file() -> (tempfile::TempDir, Arc<HostFs>, Paths) {
    let dir = tempfile::tempdir().expect("a directory");
    fs::write(dir.path().join("file"), b"content").expect("written");
    let host = serve(dir.path(), true);
    let paths = Paths::new(&host);
    paths.hold("/file");
    assert_eq!(held(dir.path()), ["file"]);
    (dir, host, paths)
}

/// The names of the files below `dir` that this process has open, sorted.
fn held(dir: &Path) -> Vec<String> {
    let mut found: Vec<String> = fs::read_dir("/proc/self/fd")
        .expect("listed")
        .filter_map(|entry| fs::read_link(entry.ok()?.path()).ok())
        .filter_map(|path| Some(path.strip_prefix(dir).ok()?.to_str()?.to_owned()))
        .filter(|name| !name.is_empty())
        .collect();
    found.sort();
    found
}

fn content(paths: &Paths, path: &str) -> Result<Vec<u8>, Option<Errno>> {
    let file = paths.open(path, OpenFlags::RDONLY).map_err(|error| error.errno())?;
    read_file(&file).map_err(|error| error.errno())
}

#[test]
fn each_open_is_a_description_of_its_own() {
    let (dir, _, paths) = with_file();
    let one = paths.open("/file", OpenFlags::RDWR).expect("opened");
    let two = paths.open("/file", OpenFlags::RDONLY).expect("opened");
    assert_eq!(read_file(&one).expect("read"), b"content");
    assert_eq!(read_file(&two).expect("read"), b"content", "at the start");
    let write = |file: &vfs::FileDescription| {
        file.ops.write(file, &TestCaller::root(), &mut SliceSource { bytes: b"!", taken: 0 })
    };
    assert_eq!(errno(write(&two)), Some(Errno::EBADF));
    assert_eq!(write(&one), Ok(1));
    drop((one, two));
    let append = paths.open("/file", OpenFlags::WRONLY | OpenFlags::APPEND).expect("opened");
    assert_eq!(errno(read_file(&append)), Some(Errno::EBADF));
    assert_eq!(write(&append), Ok(1));
    assert_eq!(fs::read(dir.path().join("file")).expect("read"), b"content!!");
}

#[test]
fn flags_of_open_hold() {
    let (dir, _, paths) = with_file();
    let open = |flags| errno(paths.open("/file", flags));
    assert_eq!(open(OpenFlags::CREAT | OpenFlags::EXCL), Some(Errno::EEXIST));
    assert_eq!(open(OpenFlags::DIRECTORY), Some(Errno::ENOTDIR));
    assert_eq!(errno(paths.open("/file/", OpenFlags::RDONLY)), Some(Errno::ENOTDIR));
    assert_eq!(open(OpenFlags::NOATIME), None);
    assert_eq!(open(OpenFlags::RDWR | OpenFlags::SYNC | OpenFlags::CREAT), None);
    assert_eq!(content(&paths, "/file"), Ok(b"content".to_vec()));
    assert_eq!(open(OpenFlags::WRONLY | OpenFlags::TRUNC), None);
    assert_eq!(fs::read(dir.path().join("file")).expect("read"), b"");
    assert_eq!(content(&paths, "/file"), Ok(Vec::new()));
    // The host's description has what the guest's has.
    for flags in [OpenFlags::RDONLY | OpenFlags::NOATIME, OpenFlags::WRONLY | OpenFlags::APPEND] {
        let file = paths.open("/file", flags).expect("opened");
        let vfs::Mapping::Host(fd) = file.ops.mapping(&file, false).expect("a host file") else {
            panic!("no file of the host")
        };
        let has = rustix::fs::fcntl_getfl(&*fd).expect("flags").bits();
        assert_eq!(has & flags.bits(), flags.bits());
        assert_eq!(has & 3, flags.bits() & 3);
    }
}

#[test]
fn nothing_is_written_to_what_is_served_read_only() {
    let dir = tempfile::tempdir().expect("a directory");
    fs::write(dir.path().join("file"), b"content").expect("written");
    let host = serve(dir.path(), false);
    let paths = Paths::new(&host);
    paths.hold("/file");
    for flags in [OpenFlags::WRONLY, OpenFlags::RDWR, OpenFlags::RDONLY | OpenFlags::TRUNC] {
        assert_eq!(errno(paths.open("/file", flags)), Some(Errno::EROFS));
    }
    let read_only = Paths::with_flags(&serve(dir.path(), true), vfs::MountFlags::RDONLY);
    read_only.hold("/file");
    assert_eq!(errno(read_only.open("/file", OpenFlags::WRONLY)), Some(Errno::EROFS));
    assert_eq!(fs::read(dir.path().join("file")).expect("read"), b"content");
}

/// What the host puts in a held file's place is what is opened.
#[test]
fn a_name_that_leads_elsewhere_is_followed_there() {
    let (dir, _, paths) = with_file();
    let (file, outside) = (dir.path().join("file"), tempfile::NamedTempFile::new().expect("a file"));
    fs::write(outside.path(), b"outside").expect("written");
    fs::write(dir.path().join("other"), b"other").expect("written");

    fs::rename(dir.path().join("other"), &file).expect("renamed");
    assert_eq!(content(&paths, "/file"), Ok(b"other".to_vec()));
    paths.hold("/file");
    fs::remove_file(&file).expect("removed");
    assert_eq!(content(&paths, "/file"), Err(Some(Errno::ENOENT)));
    // The same inode number, maybe; never the same file.
    fs::write(&file, b"again").expect("written");
    assert_eq!(content(&paths, "/file"), Ok(b"again".to_vec()));
    paths.hold("/file");
    fs::remove_file(&file).expect("removed");
    symlink(outside.path(), &file).expect("symlink");
    assert_eq!(content(&paths, "/file"), Err(Some(Errno::ENOENT)), "links lead where guests see them lead");
    fs::remove_file(&file).expect("removed");
    fs::create_dir(&file).expect("made");
    assert_eq!(content(&paths, "/file"), Err(Some(Errno::EISDIR)));
    fs::remove_dir(&file).expect("removed");
    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    rustix::fs::mkfifoat(rustix::fs::CWD, &file, mode).expect("mkfifo");
    assert_eq!(errno(paths.open("/file", OpenFlags::RDWR)), Some(Errno::ENXIO));
    let flags = rustix::fs::OFlags::WRONLY | rustix::fs::OFlags::NONBLOCK;
    let writer = rustix::fs::open(&file, flags, rustix::fs::Mode::empty());
    assert_eq!(writer.err(), Some(rustix::io::Errno::NXIO), "nobody opened it");
}

/// Replaced when it has been looked up and is about to be opened: what was found is opened, or nothing.
#[test]
fn a_file_replaced_before_it_is_opened_is_opened_itself() {
    for is_held in [false, true] {
        for replacement in ["link", "fifo", "other", "dir"] {
            let dir = tempfile::tempdir().expect("a directory");
            let at = |name: &str| dir.path().join(name);
            fs::write(at("file"), b"content").expect("written");
            fs::write(at("other"), b"other").expect("written");
            fs::create_dir(at("dir")).expect("made");
            symlink(at("other"), at("link")).expect("symlink");
            let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
            rustix::fs::mkfifoat(rustix::fs::CWD, at("fifo"), mode).expect("mkfifo");
            let host = serve(dir.path(), true);
            let paths = Paths::new(&host);
            if is_held {
                paths.hold("/file");
            }
            let opened = paths.during(|| {
                let root = host.root();
                let inode = root.ops.lookup(&root, b"file").expect("found");
                fs::rename(at("file"), at("away")).expect("renamed");
                fs::rename(at(replacement), at("file")).expect("renamed");
                inode.ops.open(&inode, OpenHow { flags: OpenFlags::RDWR }, &TestCaller::root())
            });
            match opened {
                Ok(ops) => {
                    let file = vfs::FileDescription::new(ops, None, OpenFlags::RDWR);
                    assert!(is_held);
                    assert_eq!(read_file(&file).expect("read"), b"content", "{replacement}");
                }
                Err(error) => {
                    assert!(!is_held);
                    assert_eq!(error.errno(), Some(Errno::ESTALE), "{replacement}");
                }
            }
            if replacement == "fifo" {
                let flags = rustix::fs::OFlags::WRONLY | rustix::fs::OFlags::NONBLOCK;
                let writer = rustix::fs::open(at("file"), flags, rustix::fs::Mode::empty());
                assert_eq!(writer.err(), Some(rustix::io::Errno::NXIO), "somebody opened the FIFO");
            }
        }
    }
}

/// Without an operation that has just looked its name up, a held file is looked for like any other.
#[test]
fn a_held_file_is_opened_only_by_who_has_found_its_name() {
    let (dir, host, paths) = with_file();
    let file = walk(&host, "file").expect("found");
    fs::remove_file(dir.path().join("file")).expect("removed");
    assert_eq!(errno(open(&file, OpenFlags::RDONLY)), Some(Errno::ESTALE));
    paths.during(|| assert_eq!(errno(open(&file, OpenFlags::RDONLY)), Some(Errno::ESTALE)));
}

#[test]
fn what_the_host_closes_to_us_stays_closed() {
    let (dir, host, _) = with_file();
    let read_only = serve(dir.path(), false);
    let paths = Paths::new(&read_only);
    paths.hold("/file");
    fs::set_permissions(dir.path().join("file"), fs::Permissions::from_mode(0o000)).expect("chmod");
    let is_root = rustix::process::geteuid().is_root();
    assert_eq!(errno(paths.open("/file", OpenFlags::RDONLY)), (!is_root).then_some(Errno::EACCES));
    drop(host);
}

#[test]
fn what_guests_remove_is_let_go_at_once() {
    let (dir, host, _) = with_file();
    let root = host.root();
    let file = walk(&host, "file").expect("found");
    root.ops.unlink(&root, b"file", &file).expect("removed");
    assert_eq!(held(dir.path()), Vec::<String>::new());

    let paths = Paths::new(&host);
    create(&root, "file", NewNodeKind::File, 0o644).expect("created");
    create(&root, "new", NewNodeKind::File, 0o644).expect("created");
    paths.hold("/file");
    assert_eq!(held(dir.path()), ["file"]);
    root.ops.rename(&root, b"new", &root, b"file", RenameMode::Replace).expect("renamed");
    assert_eq!(held(dir.path()), Vec::<String>::new());
}

#[test]
fn few_files_are_held_and_no_large_ones() {
    let dir = tempfile::tempdir().expect("a directory");
    for index in 0..30 {
        fs::write(dir.path().join(format!("file-{index}")), b"content").expect("written");
    }
    let large = fs::File::create(dir.path().join("large")).expect("created");
    large.set_len(5 << 20).expect("made longer");
    drop(large);
    let host = serve(dir.path(), true);
    let paths = Paths::new(&host);
    paths.hold("/large");
    assert_eq!(held(dir.path()), Vec::<String>::new());
    for index in 0..30 {
        paths.hold(&format!("/file-{index}"));
    }
    assert!((1..=8).contains(&held(dir.path()).len()), "{:?}", held(dir.path()));
    // One that has grown meanwhile is looked for as ever.
    let grown = fs::File::options().append(true).open(dir.path().join("file-29")).expect("opened");
    grown.set_len(6 << 20).expect("made longer");
    drop(grown);
    assert_eq!(content(&paths, "/file-29").expect("read").len(), 6 << 20);
    drop((paths, host));
    assert_eq!(held(dir.path()), Vec::<String>::new());
}

/// A file opened once is not held: most are opened once.
#[test]
fn a_file_opened_once_is_not_held() {
    let dir = tempfile::tempdir().expect("a directory");
    fs::write(dir.path().join("file"), b"content").expect("written");
    let host = serve(dir.path(), true);
    let paths = Paths::new(&host);
    assert_eq!(content(&paths, "/file"), Ok(b"content".to_vec()));
    assert_eq!(held(dir.path()), Vec::<String>::new());
}
