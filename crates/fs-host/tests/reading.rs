//! A host directory as guests read it.

mod support;

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::sync::Arc;

use abi::{Errno, FileType, OpenFlags};
use fs_host::{HostFs, HostFsOptions, OwnerMap, Submounts, View};
use support::*;
use vfs::{FileSystem, Mapping, Seek};

fn serve(dir: &Path) -> Arc<HostFs> {
    HostFs::open(dir, HostFsOptions::named(false, OwnerMap::Same)).expect("served")
}

#[test]
fn files_read_as_on_the_host() {
    let dir = tempfile::tempdir().expect("a directory");
    let content: Vec<u8> = (0..700_000u32).map(|i| (i % 251) as u8).collect();
    fs::create_dir_all(dir.path().join("a/b")).expect("mkdir");
    fs::write(dir.path().join("a/b/file"), &content).expect("write");
    symlink("b/file", dir.path().join("a/link")).expect("symlink");
    let host = serve(dir.path());

    let file = walk(&host, "a/b/file").expect("found");
    assert_eq!(read(&file).expect("read"), content);
    let on_host = fs::metadata(dir.path().join("a/b/file")).expect("stat");
    let shown = file.ops.attributes(&file).expect("attributes");
    assert_eq!(
        (shown.ino, shown.size, shown.mode.bits(), shown.nlink, shown.mtime.sec, shown.uid),
        (on_host.ino(), on_host.size(), on_host.mode(), on_host.nlink(), on_host.mtime(), on_host.uid())
    );
    assert_eq!(shown.dev, host.dev());

    let link = walk(&host, "a/link").expect("found");
    assert_eq!(link.ops.read_link(&link).expect("target"), b"b/file");
    assert_eq!(errno(file.ops.read_link(&file)), Some(Errno::EINVAL));
    assert_eq!(errno(walk(&host, "a/none")), Some(Errno::ENOENT));
    assert!(Arc::ptr_eq(&file, &walk(&host, "a/b/file").expect("found again")));
}

#[test]
fn offsets_faults_and_holes_are_the_host_description_s() {
    let dir = tempfile::tempdir().expect("a directory");
    let content: Vec<u8> = (0..300_000u32).map(|i| (i % 241) as u8).collect();
    fs::write(dir.path().join("file"), &content).expect("write");
    let host = serve(dir.path());
    let file = open(&walk(&host, "file").expect("found"), OpenFlags::RDONLY).expect("opened");
    let caller = TestCaller::root();

    struct Faulting(usize);
    impl vfs::UserWrite for Faulting {
        fn room(&self) -> usize {
            10_000
        }
        fn put(&mut self, bytes: &[u8]) -> usize {
            let count = bytes.len().min(self.0);
            self.0 -= count;
            count
        }
    }
    assert_eq!(file.ops.read(&file, &caller, &mut Faulting(4096)), Ok(4096));
    assert_eq!(file.ops.seek(&file, Seek::Current(0)), Ok(4096));
    assert_eq!(errno(file.ops.read(&file, &caller, &mut Faulting(0))), Some(Errno::EFAULT));
    assert_eq!(file.ops.seek(&file, Seek::Current(0)), Ok(4096));

    let mut sink = Sink { bytes: Vec::new(), room: 500_000 };
    assert_eq!(file.ops.read_at(&file, &caller, 299_990, &mut sink), Ok(10));
    assert_eq!(sink.bytes, content[299_990..]);
    assert_eq!(file.ops.seek(&file, Seek::Data(0)), Ok(0));
    assert_eq!(file.ops.seek(&file, Seek::Hole(0)), Ok(300_000));
    assert_eq!(errno(file.ops.seek(&file, Seek::Data(300_000))), Some(Errno::ENXIO));
    assert_eq!(errno(file.ops.seek(&file, Seek::Set(-1))), Some(Errno::EINVAL));
    assert!(matches!(file.ops.mapping(&file, false), Ok(Mapping::Host(_))));
}

#[test]
fn directories_list_whatever_the_buffer_and_seek_to_any_entry() {
    let dir = tempfile::tempdir().expect("a directory");
    for i in 0..2000 {
        fs::write(dir.path().join(format!("entry-{i}")), b"").expect("write");
    }
    fs::create_dir(dir.path().join("sub")).expect("mkdir");
    let host = serve(dir.path());
    let root = host.root();
    let file = open(&root, OpenFlags::RDONLY).expect("opened");
    let all = list_some(&file, 7).expect("listed").found;
    let mut names: Vec<_> = all.iter().map(|(name, ..)| name.clone()).collect();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), 2003);
    let root_ino = root.ops.attributes(&root).expect("attributes").ino;
    let dots: Vec<_> =
        all.iter().filter(|(name, ..)| name.starts_with(b".")).map(|(_, ino, ..)| *ino).collect();
    assert_eq!(dots, [root_ino, root_ino], "the root's `..` is itself");
    assert!(all.iter().any(|(name, _, kind, _)| name == b"sub" && *kind == FileType::DIR));

    let (at, next) = (all[500].clone(), all[501].clone());
    file.ops.seek(&file, Seek::Set(at.3 as i64)).expect("seek");
    let mut one = Entries { room: 1, ..Default::default() };
    file.ops.read_dir(&file, &TestCaller::root(), &mut one).expect("read");
    assert_eq!(one.found, [next]);
    assert_eq!(errno(file.ops.read(&file, &TestCaller::root(), &mut Vec::new())), Some(Errno::EISDIR));
}

#[test]
fn a_file_renamed_on_the_host_is_looked_up_again() {
    let dir = tempfile::tempdir().expect("a directory");
    fs::create_dir(dir.path().join("a")).expect("mkdir");
    fs::write(dir.path().join("a/file"), b"x").expect("write");
    let host = serve(dir.path());
    let parent = walk(&host, "a").expect("found");
    let file = walk(&host, "a/file").expect("found");
    assert!(parent.ops.revalidate(&parent, b"file", &file));

    fs::rename(dir.path().join("a/file"), dir.path().join("moved")).expect("rename");
    assert!(!parent.ops.revalidate(&parent, b"file", &file));
    assert_eq!(errno(file.ops.attributes(&file)), Some(Errno::ESTALE));
    assert!(Arc::ptr_eq(&walk(&host, "moved").expect("found"), &file));
    assert_eq!(file.ops.attributes(&file).expect("attributes").size, 1);

    fs::write(dir.path().join("a/file"), b"other").expect("write");
    assert!(!Arc::ptr_eq(&walk(&host, "a/file").expect("found"), &file));
}

#[test]
fn an_open_file_is_reached_without_a_name() {
    let dir = tempfile::tempdir().expect("a directory");
    fs::write(dir.path().join("file"), b"content").expect("write");
    let host = serve(dir.path());
    let inode = walk(&host, "file").expect("found");
    let file = open(&inode, OpenFlags::RDONLY).expect("opened");
    fs::remove_file(dir.path().join("file")).expect("unlink");
    assert_eq!(inode.ops.attributes(&inode).expect("attributes").nlink, 0);
    assert_eq!(read(&inode).expect("reopened"), b"content");
    drop(file);
    assert_eq!(errno(inode.ops.attributes(&inode)), Some(Errno::ESTALE));
}

#[test]
fn trees_deeper_than_a_path_can_name_work() {
    let dir = tempfile::tempdir().expect("a directory");
    let host = serve(dir.path());
    let mut at =
        rustix::fs::open(dir.path(), rustix::fs::OFlags::PATH, rustix::fs::Mode::empty()).expect("open");
    let name = "d".repeat(50);
    for _ in 0..3000 {
        rustix::fs::mkdirat(&at, name.as_str(), rustix::fs::Mode::RWXU).expect("mkdir");
        at = rustix::fs::openat(&at, name.as_str(), rustix::fs::OFlags::PATH, rustix::fs::Mode::empty())
            .expect("open");
    }
    let mut inode = host.root();
    for _ in 0..3000 {
        inode = inode.ops.lookup(&inode, name.as_bytes()).expect("found");
    }
    assert_eq!(names(&inode).expect("listed"), Vec::<String>::new());
    drop(inode);
    // The directory is too deep for the standard library's recursion.
    let removed = std::process::Command::new("rm").arg("-rf").arg(dir.path()).status().expect("rm");
    assert!(removed.success());
}

#[test]
fn special_files_are_names_only() {
    let dir = tempfile::tempdir().expect("a directory");
    let fifo = dir.path().join("fifo");
    rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR)
        .expect("mkfifo");
    let _socket = std::os::unix::net::UnixListener::bind(dir.path().join("socket")).expect("bind");
    let host = serve(dir.path());
    for (name, kind) in [("fifo", FileType::FIFO), ("socket", FileType::SOCK)] {
        let inode = walk(&host, name).expect("found");
        assert_eq!(inode.file_type, kind);
        assert_eq!(errno(open(&inode, OpenFlags::RDWR)), Some(Errno::ENXIO));
    }
    // Nobody opened the FIFO: a writer that does not wait finds no reader.
    let flags = rustix::fs::OFlags::WRONLY | rustix::fs::OFlags::NONBLOCK;
    let writer = rustix::fs::open(&fifo, flags, rustix::fs::Mode::empty());
    assert_eq!(writer.err(), Some(rustix::io::Errno::NXIO));
}

#[test]
fn file_systems_of_the_host_kernel_are_refused() {
    for dir in ["/proc", "/sys", "/dev", "/dev/pts", "/proc/self/fd"] {
        assert!(HostFs::open(Path::new(dir), HostFsOptions::named(false, OwnerMap::Same)).is_err(), "{dir}");
    }
    for submounts in [Submounts::Hidden, Submounts::Shown] {
        let options = HostFsOptions { submounts, ..HostFsOptions::named(false, OwnerMap::Same) };
        let host = HostFs::open(Path::new("/"), options).expect("served");
        for name in ["proc", "sys", "dev"] {
            let dir = walk(&host, name).expect("a stand-in");
            assert_eq!(names(&dir).expect("listed"), Vec::<String>::new(), "{name}");
            assert_eq!(errno(dir.ops.lookup(&dir, b"self")), Some(Errno::ENOENT));
            assert_eq!(errno(dir.ops.lookup(&dir, b"null")), Some(Errno::ENOENT));
            let root = host.root();
            assert!(root.ops.revalidate(&root, name.as_bytes(), &dir));
        }
    }
}

#[test]
fn a_view_hides_names_and_what_not_everybody_can_read() {
    let dir = tempfile::tempdir().expect("a directory");
    for name in ["etc/ssl", "usr", "home"] {
        fs::create_dir_all(dir.path().join(name)).expect("mkdir");
    }
    for (name, mode) in
        [("etc/passwd", 0o644), ("etc/shadow", 0o644), ("etc/secret", 0o640), ("etc/ssl/key", 0o600)]
    {
        fs::write(dir.path().join(name), b"x").expect("write");
        fs::set_permissions(dir.path().join(name), fs::Permissions::from_mode(mode)).expect("chmod");
    }
    let options = HostFsOptions {
        view: Some(Arc::new(View::only().show("usr").show("etc").hide("etc/shadow*"))),
        world_readable_only: true,
        ..HostFsOptions::named(false, OwnerMap::Same)
    };
    let host = HostFs::open(dir.path(), options).expect("served");
    assert_eq!(names(&host.root()).expect("listed"), ["etc", "usr"]);
    assert_eq!(names(&walk(&host, "etc").expect("found")).expect("listed"), ["passwd", "ssl"]);
    assert_eq!(names(&walk(&host, "etc/ssl").expect("found")).expect("listed"), Vec::<String>::new());
    for hidden in ["home", "etc/shadow", "etc/secret", "etc/ssl/key"] {
        assert_eq!(errno(walk(&host, hidden)), Some(Errno::ENOENT), "{hidden}");
    }
    // A file that is closed to others after it was found cannot be opened any more.
    let passwd = walk(&host, "etc/passwd").expect("found");
    fs::set_permissions(dir.path().join("etc/passwd"), fs::Permissions::from_mode(0o600)).expect("chmod");
    assert_eq!(errno(open(&passwd, OpenFlags::RDONLY)), Some(Errno::ESTALE));
}
