//! One file's bytes against a file on the host's tmpfs.
#![allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "small numbers of a test")]

use std::fs::File;
use std::os::unix::fs::{FileExt, MetadataExt};

use abi::{FallocFlags, OpenFlags};
use proptest::prelude::*;
use rustix::fs::{FallocateFlags, OFlags, SeekFrom};
use vfs::{Mapping, Seek, SliceSource, ops, rw};

use super::*;

#[derive(Clone, Debug)]
enum Op {
    Write(usize),
    WriteAt(u64, usize),
    Read(usize),
    ReadAt(u64, usize),
    SeekTo(Whence, i64),
    Truncate(i64),
    Allocate(bool, bool, i64, i64),
    Append(bool),
    /// Ours goes into a memfd.
    Map,
    /// Another description of ours takes over, as the host's does.
    Reopen,
}

#[derive(Clone, Copy, Debug)]
enum Whence {
    Set,
    Current,
    End,
    Data,
    Hole,
}

fn offset() -> impl Strategy<Value = u64> {
    prop_oneof![
        4 => 0..20_000_u64,
        4 => (0..24_u64).prop_map(|page| page * 4096),
        1 => (1_u64 << 40) - 5000..(1_u64 << 40) + 5000,
        1 => Just(i64::MAX as u64 - 1),
    ]
}

fn length() -> impl Strategy<Value = usize> {
    prop_oneof![0..10_usize, 0..9000_usize, 60_000..150_000_usize]
}

fn op() -> impl Strategy<Value = Op> {
    let signed = || prop_oneof![offset().prop_map(|at| at as i64), -9000..1_i64];
    let whence = prop_oneof![
        Just(Whence::Set),
        Just(Whence::Current),
        Just(Whence::End),
        Just(Whence::Data),
        Just(Whence::Hole)
    ];
    prop_oneof![
        4 => length().prop_map(Op::Write),
        4 => (offset(), length()).prop_map(|(at, len)| Op::WriteAt(at, len)),
        3 => length().prop_map(Op::Read),
        3 => (offset(), length()).prop_map(|(at, len)| Op::ReadAt(at, len)),
        5 => (whence, signed()).prop_map(|(whence, by)| Op::SeekTo(whence, by)),
        2 => signed().prop_map(Op::Truncate),
        3 => (any::<bool>(), any::<bool>(), 0..100_000_i64, -1..30_000_i64).prop_map(|(k, p, at, len)| Op::Allocate(k, p, at, len)),
        1 => any::<bool>().prop_map(Op::Append),
        1 => Just(Op::Map),
        1 => Just(Op::Reopen),
    ]
}

fn pattern(seed: usize, len: usize) -> Vec<u8> {
    (0..len).map(|i| (seed.wrapping_mul(31).wrapping_add(i * 7) % 251 + 1) as u8).collect()
}

fn host_error(error: &std::io::Error) -> Errno {
    Errno::from_raw(error.raw_os_error().unwrap())
}

fn ours<T>(result: SysResult<T>) -> Result<T, Errno> {
    result.map_err(|error| error.errno().unwrap())
}

fn theirs<T>(result: rustix::io::Result<T>) -> Result<T, Errno> {
    result.map_err(|error| host_error(&error.into()))
}

fn apply(
    index: usize,
    op: &Op,
    ctx: &FsContext<'_>,
    file: &mut Arc<FileDescription>,
    host: &mut File,
    path: &std::path::Path,
) -> Result<(), TestCaseError> {
    let caller = ctx.caller;
    match *op {
        Op::Write(len) => {
            let bytes = pattern(index, len);
            let mine = ours(rw::write(file, caller, &mut SliceSource { bytes: &bytes, taken: 0 }));
            prop_assert_eq!(mine, theirs(rustix::io::write(&*host, &bytes)));
        }
        Op::WriteAt(at, len) => {
            let bytes = pattern(index, len);
            let mine =
                ours(rw::write_at(file, caller, at as i64, &mut SliceSource { bytes: &bytes, taken: 0 }));
            prop_assert_eq!(mine, theirs(rustix::io::pwrite(&*host, &bytes, at)));
        }
        Op::Read(len) => {
            let (mut mine, mut its) = (vec![0; len], vec![0; len]);
            let got = ours(rw::read(file, caller, &mut vfs::SliceSink { bytes: &mut mine, filled: 0 }));
            prop_assert_eq!(got, theirs(rustix::io::read(&*host, &mut its[..])));
            prop_assert!(mine == its);
        }
        Op::ReadAt(at, len) => {
            let (mut mine, mut its) = (vec![0; len], vec![0; len]);
            let got = ours(rw::read_at(
                file,
                caller,
                at as i64,
                &mut vfs::SliceSink { bytes: &mut mine, filled: 0 },
            ));
            prop_assert_eq!(got, theirs(rustix::io::pread(&*host, &mut its[..], at)));
            prop_assert!(mine == its);
        }
        // In the last page of all Linux's own rounding overflows, and it finds nothing there.
        Op::SeekTo(Whence::Data | Whence::Hole, _)
            if file.attributes().unwrap().size > i64::MAX as u64 - 4096 => {}
        Op::SeekTo(whence, by) => {
            let (mine, its) = match whence {
                Whence::Set => (Seek::Set(by), SeekFrom::Start(by as u64)),
                Whence::Current => (Seek::Current(by), SeekFrom::Current(by)),
                Whence::End => (Seek::End(by), SeekFrom::End(by)),
                Whence::Data => (Seek::Data(by), SeekFrom::Data(by as u64)),
                Whence::Hole => (Seek::Hole(by), SeekFrom::Hole(by as u64)),
            };
            prop_assert_eq!(ours(file.ops.seek(file, mine)), theirs(rustix::fs::seek(&*host, its)));
        }
        Op::Truncate(size) => {
            let mine = ours(ops::ftruncate(file, size, caller));
            prop_assert_eq!(mine, theirs(rustix::fs::ftruncate(&*host, size as u64)));
        }
        Op::Allocate(keep, punch, at, len) => {
            let bits = u32::from(keep) | u32::from(punch) << 1;
            let mine = ours(ops::fallocate(file, FallocFlags::from_bits_retain(bits), at, len, caller));
            let flags = FallocateFlags::from_bits_retain(bits);
            prop_assert_eq!(mine, theirs(rustix::fs::fallocate(&*host, flags, at as u64, len as u64)));
        }
        Op::Append(on) => {
            let flag = if on { OpenFlags::APPEND } else { OpenFlags::empty() };
            file.set_flags(OpenFlags::APPEND, flag);
            file.ops.flags_changed(file, OpenFlags::APPEND).unwrap();
            rustix::fs::fcntl_setfl(&*host, if on { OFlags::APPEND } else { OFlags::empty() }).unwrap();
        }
        Op::Map => prop_assert!(matches!(file.ops.mapping(file, true), Ok(Mapping::Host(_)))),
        Op::Reopen => {
            *file = open(ctx, "/file", OpenFlags::RDWR).unwrap();
            *host = File::options().read(true).write(true).open(path).unwrap();
        }
    }
    let (mine, its) = (file.attributes().unwrap(), host.metadata().unwrap());
    prop_assert_eq!((mine.size, mine.blocks), (its.size(), its.blocks()));
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn a_file_does_what_the_hosts_does(ops in prop::collection::vec(op(), 1..40)) {
        let (fs, world) = world(TmpFsOptions::default());
        let caller = TestCaller::root();
        let ctx = world.context(&caller);
        let dir = host_dir();
        let path = dir.path().join("file");
        let mut host = File::options().read(true).write(true).create_new(true).open(&path).unwrap();
        let mut file = open(&ctx, "/file", OpenFlags::RDWR | OpenFlags::CREAT | OpenFlags::EXCL).unwrap();
        for (index, op) in ops.iter().enumerate() {
            apply(index, op, &ctx, &mut file, &mut host, &path)?;
        }
        // The beginning, byte by byte.
        let (mut mine, mut its) = (vec![0; 200_000], vec![0; 200_000]);
        let got = rw::read_at(&file, &caller, 0, &mut vfs::SliceSink { bytes: &mut mine, filled: 0 }).unwrap();
        prop_assert_eq!(got, host.read_at(&mut its, 0).unwrap());
        prop_assert!(mine == its);
        // All of its space comes back.
        ops::unlink(&ctx, AT_FDCWD, b"/file").unwrap();
        prop_assert!(fs.space.used() > 0 || file.attributes().unwrap().blocks == 0);
        drop(file);
        prop_assert_eq!(fs.space.used(), 0);
        prop_assert_eq!(fs.inodes.used(), 1);
    }
}
