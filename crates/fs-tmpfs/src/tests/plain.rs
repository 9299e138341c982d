//! Directories, times, open files, memfds.

use abi::{AtFlags, FileType, Timespec};
use vfs::{DirSink, Mapping, Mount, MountFlags, RenameMode, Seek, SetTime, SliceSource, d_path, rw};

use super::*;
use crate::{MemfdOptions, memfd};

/// Takes a number of entries.
struct Names {
    room: usize,
    names: Vec<String>,
}

impl DirSink for Names {
    fn entry(&mut self, name: &[u8], ino: u64, file_type: FileType, _next: u64) -> bool {
        assert!(ino != 0 && file_type.name().is_some());
        if self.names.len() == self.room {
            return false;
        }
        self.names.push(String::from_utf8(name.to_vec()).unwrap());
        true
    }
}

fn list(dir: &FileDescription, room: usize) -> Vec<String> {
    let mut sink = Names { room, names: Vec::new() };
    dir.ops.read_dir(dir, &TestCaller::root(), &mut sink).unwrap();
    sink.names
}

#[test]
fn listing_goes_on_where_it_was_whatever_happens_meanwhile() {
    let (_, world) = world(TmpFsOptions::default());
    let caller = TestCaller::root();
    let ctx = world.context(&caller);
    for name in ["a", "b", "c", "d", "e"] {
        make(&ctx, name);
    }
    let dir = open(&ctx, "/", OpenFlags::DIRECTORY).unwrap();
    assert_eq!(list(&dir, 4), [".", "..", "e", "d"]);
    let here = dir.ops.seek(&dir, Seek::Current(0)).unwrap();
    // The next one, one before, and new ones: none disturbs the rest.
    for gone in ["c", "e"] {
        ops::unlink(&ctx, AT_FDCWD, gone.as_bytes()).unwrap();
    }
    make(&ctx, "f");
    ops::rename(&ctx, AT_FDCWD, b"d", AT_FDCWD, b"dd", RenameMode::Replace).unwrap();
    assert_eq!(list(&dir, 9), ["b", "a"]);
    assert_eq!(list(&dir, 9), [""; 0]);
    dir.ops.seek(&dir, Seek::Set(i64::try_from(here).unwrap())).unwrap();
    assert_eq!(list(&dir, 9), ["b", "a"]);
    dir.ops.seek(&dir, Seek::Set(0)).unwrap();
    assert_eq!(list(&dir, 9), [".", "..", "dd", "f", "b", "a"]);
    assert_eq!(errno(dir.ops.seek(&dir, Seek::End(0))), Some(Errno::EINVAL));
    assert_eq!(errno(rw::read(&dir, &caller, &mut Vec::new())), Some(Errno::EISDIR));
}

#[test]
fn directories_count_their_entries_and_subdirectories() {
    let (_, world) = world(TmpFsOptions::default());
    let caller = TestCaller::root();
    let ctx = world.context(&caller);
    for dir in ["d", "d/x", "e"] {
        ops::mkdir(&ctx, AT_FDCWD, dir.as_bytes(), 0o755).unwrap();
    }
    make(&ctx, "d/f");
    let stat = |path: &str| {
        let now = ops::stat(&ctx, AT_FDCWD, path.as_bytes(), AtFlags::empty()).unwrap().attributes;
        (now.nlink, now.size)
    };
    assert_eq!((stat("/"), stat("d"), stat("e")), ((4, 80), (3, 80), (2, 40)));
    ops::rename(&ctx, AT_FDCWD, b"d/x", AT_FDCWD, b"e/x", RenameMode::Replace).unwrap();
    assert_eq!((stat("d"), stat("e")), ((2, 60), (3, 60)));
    ops::rename(&ctx, AT_FDCWD, b"d/f", AT_FDCWD, b"e/x", RenameMode::Exchange).unwrap();
    assert_eq!((stat("d"), stat("e")), ((3, 60), (2, 60)));
    let removed = open(&ctx, "d/f", OpenFlags::DIRECTORY).unwrap();
    ops::mkdir(&ctx, AT_FDCWD, b"y", 0o755).unwrap();
    ops::rename(&ctx, AT_FDCWD, b"y", AT_FDCWD, b"d/f", RenameMode::Replace).unwrap();
    assert_eq!((stat("d"), stat("/"), removed.attributes().unwrap().nlink), ((3, 60), (4, 80), 0));
    let mut sink = Names { room: 9, names: Vec::new() };
    assert_eq!(errno(removed.ops.read_dir(&removed, &caller, &mut sink)), Some(Errno::ENOENT));
}

#[test]
fn times_follow_what_is_done() {
    let (_, world) = world(TmpFsOptions::default());
    let caller = TestCaller::root();
    let ctx = world.context(&caller);
    let old = Timespec { sec: 1000, nsec: 5 };
    let set_old = |path: &str| {
        let times = ops::TimesChange { atime: Some(SetTime::At(old)), mtime: Some(SetTime::At(old)) };
        ops::utimens(&ctx, AT_FDCWD, path.as_bytes(), times, AtFlags::empty()).unwrap();
    };
    // Which of access, modification and change time have moved since.
    let moved = |path: &str| {
        let now = ops::stat(&ctx, AT_FDCWD, path.as_bytes(), AtFlags::empty()).unwrap().attributes;
        (now.atime != old, now.mtime != old)
    };
    let file = open(&ctx, "/f", OpenFlags::RDWR | OpenFlags::CREAT).unwrap();
    for map_first in [false, true] {
        if map_first {
            assert!(matches!(file.ops.mapping(&file, false), Ok(Mapping::Host(_))));
        }
        set_old("/f");
        assert_eq!(moved("/f"), (false, false));
        rw::read(&file, &caller, &mut vfs::SliceSink { bytes: &mut [0; 4], filled: 0 }).unwrap();
        assert_eq!(moved("/f"), (true, false));
        set_old("/f");
        rw::write(&file, &caller, &mut SliceSource { bytes: b"x", taken: 0 }).unwrap();
        assert_eq!(moved("/f"), (false, true));
        set_old("/f");
        ops::truncate(&ctx, b"/f", i64::try_from(file.attributes().unwrap().size).unwrap()).unwrap();
        assert_eq!(moved("/f"), (false, false));
        drop(open(&ctx, "/f", OpenFlags::WRONLY | OpenFlags::TRUNC).unwrap());
        assert_eq!(moved("/f"), (false, true));
        set_old("/");
        make(&ctx, if map_first { "/g" } else { "/h" });
        assert_eq!(moved("/"), (false, true));
    }
    // No access times where the mount or the description says so.
    set_old("/f");
    let quiet = open(&ctx, "/f", OpenFlags::NOATIME).unwrap();
    rw::read(&quiet, &caller, &mut vfs::SliceSink { bytes: &mut [0; 4], filled: 0 }).unwrap();
    world.mounts.remount(&ctx.place.root, MountFlags::NOATIME).unwrap();
    rw::read(&file, &caller, &mut vfs::SliceSink { bytes: &mut [0; 4], filled: 0 }).unwrap();
    assert_eq!(moved("/f"), (false, false));
}

#[test]
fn moving_into_a_memfd_is_no_change() {
    let (_, world) = world(TmpFsOptions::default());
    let caller = TestCaller::root();
    let ctx = world.context(&caller);
    let ctime = || ops::stat(&ctx, AT_FDCWD, b"/f", AtFlags::empty()).unwrap().attributes.ctime;
    let file = open(&ctx, "/f", OpenFlags::RDWR | OpenFlags::CREAT).unwrap();
    let write = || rw::write(&file, &caller, &mut SliceSource { bytes: b"x", taken: 0 }).unwrap();
    let wait = || std::thread::sleep(std::time::Duration::from_millis(20));
    write();
    let before = ctime();
    wait();
    assert!(matches!(file.ops.mapping(&file, true), Ok(Mapping::Host(_))));
    assert_eq!(ctime(), before);
    wait();
    write();
    let written = ctime();
    assert!(written > before);
    wait();
    // Written without the kernel.
    rustix::io::pwrite(host_of(&file), b"y", 0).unwrap();
    assert!(ctime() > written);
}

#[test]
fn descriptions_keep_their_offsets_when_the_file_moves_into_a_memfd() {
    let (_, world) = world(TmpFsOptions::default());
    let caller = TestCaller::root();
    let ctx = world.context(&caller);
    let write = |file: &FileDescription, bytes: &[u8]| {
        rw::write(file, &caller, &mut SliceSource { bytes, taken: 0 }).unwrap()
    };
    let read = |file: &FileDescription| {
        let mut bytes = [0; 3];
        let mut sink = vfs::SliceSink { bytes: &mut bytes, filled: 0 };
        rw::read(file, &caller, &mut sink).unwrap();
        bytes
    };
    let one = open(&ctx, "/f", OpenFlags::RDWR | OpenFlags::CREAT).unwrap();
    let two = open(&ctx, "/f", OpenFlags::RDONLY).unwrap();
    let three = open(&ctx, "/f", OpenFlags::WRONLY | OpenFlags::APPEND).unwrap();
    write(&one, b"abcdefghi");
    assert_eq!(&read(&two), b"abc");
    assert!(matches!(two.ops.mapping(&two, false), Ok(Mapping::Host(_))));
    assert_eq!(&read(&two), b"def");
    write(&one, b"jkl");
    write(&three, b"mno");
    assert_eq!(one.ops.seek(&one, Seek::Current(0)), Ok(12));
    assert_eq!(three.ops.seek(&three, Seek::Current(0)), Ok(15));
    // The read-only description's host descriptor cannot write.
    let host = host_of(&two);
    assert_eq!(rustix::io::pwrite(&host, b"x", 0), Err(rustix::io::Errno::BADF));
    // The host's offset is the description's.
    let host = host_of(&one);
    rustix::fs::seek(&host, rustix::fs::SeekFrom::Start(1)).unwrap();
    assert_eq!(&read(&one), b"bcd");
}

#[test]
fn unnamed_files_can_get_a_name_unless_excluded() {
    let (fs, world) = world(TmpFsOptions::default());
    let caller = TestCaller::root();
    let ctx = world.context(&caller);
    let tmpfile = OpenFlags::TMPFILE | OpenFlags::RDWR;
    let file = open(&ctx, "/", tmpfile).unwrap();
    assert_eq!(file.attributes().unwrap().nlink, 0);
    let shown = format!("/#{} (deleted)", file.attributes().unwrap().ino);
    assert_eq!(d_path(file.path.as_ref().unwrap(), &ctx.place.root), shown.as_bytes());
    let fd = world.files.install(file, 9, false).unwrap();
    ops::link(&ctx, fd, b"", AT_FDCWD, b"/named", AtFlags::EMPTY_PATH).unwrap();
    assert_eq!(ops::stat(&ctx, AT_FDCWD, b"/named", AtFlags::empty()).unwrap().attributes.nlink, 1);
    let excluded =
        world.files.install(open(&ctx, "/", tmpfile | OpenFlags::EXCL).unwrap(), 9, false).unwrap();
    let link = ops::link(&ctx, excluded, b"", AT_FDCWD, b"/other", AtFlags::EMPTY_PATH);
    assert_eq!(errno(link), Some(Errno::ENOENT));
    world.files.remove_all();
    assert_eq!(fs.inodes.used(), 2);
}

/// The host's description of an open file.
fn host_of(file: &FileDescription) -> Arc<std::os::fd::OwnedFd> {
    match file.ops.mapping(file, false) {
        Ok(Mapping::Host(host)) => host,
        _ => panic!("no file of the host"),
    }
}

#[test]
fn memfds_are_the_hosts_with_a_name_of_their_own() {
    let (_, world) = world(TmpFsOptions::default());
    let caller = TestCaller::root();
    let ctx = world.context(&caller);
    let fs = TmpFs::new(1, TmpFsOptions::default(), SelfFds::open().unwrap());
    let as_dyn: Arc<dyn FileSystem> = fs.clone();
    let at = Mount::internal(&as_dyn, "tmpfs");
    let file = memfd(&fs, &at, MemfdOptions { name: b"foo", flags: 2 }, &caller).unwrap();
    assert_eq!(d_path(file.path.as_ref().unwrap(), &ctx.place.root), b"/memfd:foo (deleted)");
    let now = file.attributes().unwrap();
    assert_eq!((now.mode.permissions(), now.nlink, now.size), (0o777, 0, 0));
    rw::write(&file, &caller, &mut SliceSource { bytes: b"hello", taken: 0 }).unwrap();
    let host = host_of(&file);
    let seals = |file: &FileDescription, seals: rustix::fs::SealFlags| {
        file.ops.fcntl(file, &caller, abi::FcntlCmd::ADD_SEALS, seals.bits().into())
    };
    seals(&file, rustix::fs::SealFlags::SHRINK | rustix::fs::SealFlags::WRITE).unwrap();
    // What is the kernel's to keep, the host does not know.
    assert_eq!(rustix::fs::fcntl_get_seals(&host).unwrap(), rustix::fs::SealFlags::WRITE);
    seals(&file, rustix::fs::SealFlags::SEAL).unwrap();
    assert_eq!(errno(seals(&file, rustix::fs::SealFlags::GROW)), Some(Errno::EPERM));
    assert_eq!(errno(ops::ftruncate(&file, 1, &caller)), Some(Errno::EPERM));
    let write = rw::write(&file, &caller, &mut SliceSource { bytes: b"x", taken: 0 });
    assert_eq!(errno(write), Some(Errno::EPERM));
    // An ordinary file cannot be sealed, as on Linux.
    let plain = open(&ctx, "/f", OpenFlags::RDWR | OpenFlags::CREAT).unwrap();
    assert!(matches!(plain.ops.mapping(&plain, true), Ok(Mapping::Host(_))));
    let seals = plain.ops.fcntl(&plain, &caller, abi::FcntlCmd::GET_SEALS, 0).unwrap();
    assert_eq!(seals, rustix::fs::SealFlags::SEAL.bits() as usize);
    drop(file);
    assert_eq!(fs.space.used(), 0);
}

#[test]
fn appends_of_several_threads_do_not_mix() {
    let (_, world) = world(TmpFsOptions::default());
    let caller = TestCaller::root();
    let ctx = world.context(&caller);
    const RECORD: usize = 200_000;
    let files: Vec<_> = (0..4_u8)
        .map(|_| open(&ctx, "/f", OpenFlags::WRONLY | OpenFlags::APPEND | OpenFlags::CREAT).unwrap())
        .collect();
    std::thread::scope(|scope| {
        for (file, byte) in files.iter().zip(b'a'..) {
            scope.spawn(move || {
                for _ in 0..5 {
                    let bytes = vec![byte; RECORD];
                    let caller = TestCaller::root();
                    let wrote = rw::write(file, &caller, &mut SliceSource { bytes: &bytes, taken: 0 });
                    assert_eq!(wrote, Ok(RECORD));
                }
            });
        }
    });
    let mut all = vec![0; RECORD * 20];
    let file = open(&ctx, "/f", OpenFlags::RDONLY).unwrap();
    let got = rw::read(&file, &caller, &mut vfs::SliceSink { bytes: &mut all, filled: 0 });
    assert_eq!(got, Ok(RECORD * 20));
    assert!(all.chunks(RECORD).all(|record| record.iter().all(|byte| *byte == record[0])));
}

#[test]
fn an_unmounted_file_system_goes_unless_a_file_is_open() {
    let (fs, world) = world(TmpFsOptions::default());
    let caller = TestCaller::root();
    let ctx = world.context(&caller);
    ops::mkdir(&ctx, AT_FDCWD, b"/d", 0o755).unwrap();
    let file = open(&ctx, "/d/f", OpenFlags::RDWR | OpenFlags::CREAT).unwrap();
    let weak = Arc::downgrade(&fs);
    drop(fs);
    drop(ctx);
    drop(world);
    assert!(weak.upgrade().is_some());
    rw::write(&file, &caller, &mut SliceSource { bytes: b"x", taken: 0 }).unwrap();
    drop(file);
    assert!(weak.upgrade().is_none());
}

#[test]
fn truncate_is_for_regular_files() {
    let (_, world) = world(TmpFsOptions::default());
    let caller = TestCaller::root();
    let ctx = world.context(&caller);
    ops::mkdir(&ctx, AT_FDCWD, b"/d", 0o755).unwrap();
    ops::mknod(&ctx, AT_FDCWD, b"/p", FileMode::new(FileType::FIFO, 0o666), 0).unwrap();
    make(&ctx, "/f");
    ops::symlink(&ctx, b"f", AT_FDCWD, b"/l").unwrap();
    let truncate = |path: &str, size| errno(ops::truncate(&ctx, path.as_bytes(), size));
    assert_eq!(truncate("/d", 0), Some(Errno::EISDIR));
    assert_eq!(truncate("/p", 0), Some(Errno::EINVAL));
    assert_eq!(truncate("/none", -1), Some(Errno::EINVAL));
    assert_eq!(truncate("/none", 1), Some(Errno::ENOENT));
    assert_eq!(truncate("/l", 5), None);
    let user = TestCaller::new(Cred::user(7, 7, &[]));
    assert_eq!(errno(ops::truncate(&world.context(&user), b"/f", 0)), Some(Errno::EACCES));
    let program = ops::open_exec(&ctx, AT_FDCWD, b"/f", AtFlags::empty());
    assert_eq!(errno(program), Some(Errno::EACCES));
    ops::chmod(&ctx, AT_FDCWD, b"/f", 0o755, AtFlags::empty()).unwrap();
    let program = ops::open_exec(&ctx, AT_FDCWD, b"/l", AtFlags::empty()).unwrap();
    assert_eq!(truncate("/f", 0), Some(Errno::ETXTBSY));
    assert_eq!(errno(open(&ctx, "/f", OpenFlags::WRONLY)), Some(Errno::ETXTBSY));
    drop(program);
    let writer = open(&ctx, "/f", OpenFlags::WRONLY).unwrap();
    assert_eq!(errno(ops::open_exec(&ctx, AT_FDCWD, b"/f", AtFlags::empty())), Some(Errno::ETXTBSY));
    drop(writer);
    assert!(ops::open_exec(&ctx, AT_FDCWD, b"/f", AtFlags::empty()).is_ok());
}
