//! `sendfile` and `copy_file_range` as `vfs` does them, with files that have bytes.

use vfs::rw::{self, CopyOffset};
use vfs::{Seek, SliceSource};

use super::*;

fn filled(ctx: &FsContext<'_>, path: &str, bytes: &[u8], flags: OpenFlags) -> Arc<FileDescription> {
    let file = open(ctx, path, OpenFlags::RDWR | OpenFlags::CREAT | flags).unwrap();
    rw::write_at(&file, ctx.caller, 0, &mut SliceSource { bytes, taken: 0 }).unwrap();
    file
}

fn bytes(file: &FileDescription) -> Vec<u8> {
    let mut all = vec![0; usize::try_from(file.attributes().unwrap().size).unwrap()];
    let mut sink = vfs::SliceSink { bytes: &mut all, filled: 0 };
    rw::read_at(file, &TestCaller::root(), 0, &mut sink).unwrap();
    all
}

fn offset(file: &FileDescription) -> u64 {
    file.ops.seek(file, Seek::Current(0)).unwrap()
}

#[test]
fn sendfile_moves_what_is_there() {
    let (_, world) = world(TmpFsOptions::default());
    let caller = TestCaller::root();
    let ctx = world.context(&caller);
    // More than one buffer's worth, and into a memfd.
    let text: Vec<u8> = (0..200_000_u32).map(|i| i.to_le_bytes()[0]).collect();
    let (from, to) =
        (filled(&ctx, "/a", &text, OpenFlags::empty()), filled(&ctx, "/b", b"", OpenFlags::empty()));
    from.ops.seek(&from, Seek::Set(10)).unwrap();
    let sent = rw::send_file(&to, &from, CopyOffset::File, 1_000_000, &caller);
    assert_eq!(sent, Ok((199_990, 200_000)));
    assert_eq!((offset(&from), offset(&to)), (200_000, 199_990));
    assert!(bytes(&to) == text[10..]);
    assert_eq!(rw::send_file(&to, &from, CopyOffset::At(199_999), 5, &caller), Ok((1, 200_000)));
    assert_eq!(rw::send_file(&to, &from, CopyOffset::At(300_000), 5, &caller), Ok((0, 300_000)));
    let appending = open(&ctx, "/b", OpenFlags::WRONLY | OpenFlags::APPEND).unwrap();
    assert_eq!(errno(rw::send_file(&appending, &from, CopyOffset::File, 5, &caller)), Some(Errno::EINVAL));
    assert_eq!(errno(rw::send_file(&from, &appending, CopyOffset::File, 5, &caller)), Some(Errno::EBADF));
    let dir = open(&ctx, "/", OpenFlags::DIRECTORY).unwrap();
    assert_eq!(errno(rw::send_file(&to, &dir, CopyOffset::File, 5, &caller)), Some(Errno::EISDIR));
}

#[test]
fn copy_file_range_checks_before_it_copies() {
    let (_, world) = world(TmpFsOptions::default());
    let caller = TestCaller::root();
    let ctx = world.context(&caller);
    let from = filled(&ctx, "/a", b"0123456789", OpenFlags::empty());
    let to = filled(&ctx, "/b", b"abc", OpenFlags::empty());
    let copy = |to: &Arc<FileDescription>, at, from: &Arc<FileDescription>, start, count| {
        rw::copy_range(to, CopyOffset::At(at), from, CopyOffset::At(start), count, &caller)
    };
    assert_eq!(copy(&to, 2, &from, 4, 100), Ok(6));
    assert_eq!(bytes(&to), b"ab456789");
    assert_eq!((offset(&from), offset(&to)), (0, 0));
    assert_eq!(rw::copy_range(&to, CopyOffset::File, &from, CopyOffset::File, 3, &caller), Ok(3));
    assert_eq!((bytes(&to), offset(&from), offset(&to)), (b"01256789"[..].to_vec(), 3, 3));
    assert_eq!(copy(&to, 0, &from, 10, 5), Ok(0));
    // Within one file, if the parts do not meet.
    assert_eq!(copy(&from, 5, &from, 0, 5), Ok(5));
    assert_eq!(bytes(&from), b"0123401234");
    assert_eq!(errno(copy(&from, 4, &from, 0, 5)), Some(Errno::EINVAL));
    assert_eq!(errno(copy(&to, u64::MAX / 2, &from, 0, 5)), Some(Errno::EOVERFLOW));
    let read_only = open(&ctx, "/b", OpenFlags::RDONLY).unwrap();
    assert_eq!(errno(copy(&read_only, 0, &from, 0, 5)), Some(Errno::EBADF));
    let appending = open(&ctx, "/b", OpenFlags::WRONLY | OpenFlags::APPEND).unwrap();
    assert_eq!(errno(copy(&appending, 0, &from, 0, 5)), Some(Errno::EBADF));
    let dir = open(&ctx, "/", OpenFlags::DIRECTORY).unwrap();
    assert_eq!(errno(copy(&to, 0, &dir, 0, 5)), Some(Errno::EISDIR));
    let (_, other) = super::world(TmpFsOptions::default());
    let foreign = filled(&other.context(&caller), "/a", b"x", OpenFlags::empty());
    assert_eq!(errno(copy(&to, 0, &foreign, 0, 5)), Some(Errno::EXDEV));
}

#[test]
fn writing_takes_set_id_bits_unless_the_writer_may_set_them() {
    let (_, world) = world(TmpFsOptions { mode: 0o777, ..Default::default() });
    let (root, user) = (TestCaller::root(), TestCaller::new(Cred::user(7, 7, &[])));
    let (as_root, as_user) = (world.context(&root), world.context(&user));
    let mode =
        || ops::stat(&as_root, AT_FDCWD, b"/f", abi::AtFlags::empty()).unwrap().attributes.mode.permissions();
    let file = filled(&as_user, "/f", b"x", OpenFlags::empty());
    let write = |caller: &TestCaller| {
        rw::write_at(&file, caller, 0, &mut SliceSource { bytes: b"y", taken: 0 }).unwrap();
    };
    let set = || ops::chmod(&as_user, AT_FDCWD, b"/f", 0o6775, abi::AtFlags::empty()).unwrap();
    set();
    write(&root);
    assert_eq!(mode(), 0o6775);
    write(&user);
    assert_eq!(mode(), 0o775);
    // Known to have none by now, until they are set again.
    write(&user);
    set();
    ops::ftruncate(&file, 0, &user).unwrap();
    assert_eq!(mode(), 0o775);
    set();
    ops::truncate(&as_user, b"/f", 5).unwrap();
    assert_eq!(mode(), 0o775);
    set();
    drop(open(&as_user, "/f", OpenFlags::WRONLY | OpenFlags::TRUNC).unwrap());
    assert_eq!(mode(), 0o775);
}
