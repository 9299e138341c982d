//! Random operations over few names, so that they meet.

use abi::OpenFlags;
use proptest::prelude::*;
use vfs::RenameMode;

use super::Op;

fn component() -> impl Strategy<Value = &'static str> {
    prop_oneof![6 => Just("a"), 6 => Just("b"), 4 => Just("c"), 1 => Just("."), 1 => Just("..")]
}

fn path() -> impl Strategy<Value = String> {
    let plain = prop::collection::vec(component(), 1..4).prop_map(|parts| parts.join("/"));
    let slashed = (prop::collection::vec(component(), 1..3), prop_oneof![Just("/"), Just("//"), Just("/.")])
        .prop_map(|(parts, end)| parts.join("//") + end);
    prop_oneof![
        12 => plain,
        2 => slashed,
        1 => prop_oneof![Just(String::new()), Just("a".repeat(255)), Just("a".repeat(256)), Just("b/".to_owned() + &"x".repeat(256))],
    ]
}

fn target() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => path(),
        1 => Just("a/".to_owned()),
        1 => Just("../b".to_owned()),
        1 => Just("c".to_owned()),
        1 => Just("x".repeat(200)),
    ]
}

fn mode() -> impl Strategy<Value = u32> {
    prop_oneof![
        4 => prop_oneof![Just(0o777_u32), Just(0o755), Just(0o700), Just(0o644)],
        2 => prop_oneof![Just(0_u32), Just(0o070), Just(0o007), Just(0o111), Just(0o555), Just(0o333)],
        2 => prop_oneof![Just(0o1777_u32), Just(0o2775), Just(0o2755), Just(0o4755), Just(0o6777), Just(0o2745), Just(0o3777)],
    ]
}

fn open_flags() -> impl Strategy<Value = u32> {
    let bits = [
        (OpenFlags::CREAT, 50),
        (OpenFlags::EXCL, 20),
        (OpenFlags::TRUNC, 20),
        (OpenFlags::APPEND, 10),
        (OpenFlags::DIRECTORY, 15),
        (OpenFlags::NOFOLLOW, 20),
        (OpenFlags::PATH, 10),
        (OpenFlags::NOATIME, 10),
        (OpenFlags::TMPFILE, 7),
    ];
    let choice = (0..4_u32, prop::array::uniform9(0..100_u32));
    choice.prop_map(move |(access, dice)| {
        let chosen = bits.iter().zip(dice).filter(|((_, percent), die)| die < percent);
        chosen.fold(access | OpenFlags::NONBLOCK.bits(), |all, ((flag, _), _)| all | flag.bits())
    })
}

fn id() -> impl Strategy<Value = Option<u32>> {
    prop_oneof![2 => Just(None), 1 => Just(Some(0)), 2 => Just(Some(1000)), 1 => Just(Some(2000)), 1 => Just(Some(3000))]
}

fn rename_mode() -> impl Strategy<Value = RenameMode> {
    prop_oneof![4 => Just(RenameMode::Replace), 1 => Just(RenameMode::NoReplace), 2 => Just(RenameMode::Exchange)]
}

/// S_IFIFO, S_IFREG, S_IFSOCK, S_IFDIR, S_IFLNK: types that mknod takes or refuses.
fn node_type() -> impl Strategy<Value = u32> {
    prop_oneof![Just(0o010_000_u32), Just(0o100_000), Just(0o140_000), Just(0o040_000), Just(0o120_000)]
}

pub(super) fn op() -> impl Strategy<Value = Op> {
    let yes = any::<bool>();
    prop_oneof![
        8 => (path(), open_flags(), mode()).prop_map(|(p, f, m)| Op::Open(p, f, m)),
        6 => (path(), mode()).prop_map(|(p, m)| Op::Mkdir(p, m)),
        2 => (path(), node_type(), mode()).prop_map(|(p, t, m)| Op::Mknod(p, t | m)),
        4 => (target(), path()).prop_map(|(t, p)| Op::Symlink(t, p)),
        4 => (path(), path(), yes).prop_map(|(a, b, f)| Op::Link(a, b, f)),
        3 => path().prop_map(Op::Unlink),
        3 => path().prop_map(Op::Rmdir),
        8 => (path(), path(), rename_mode()).prop_map(|(a, b, m)| Op::Rename(a, b, m)),
        3 => (path(), mode()).prop_map(|(p, m)| Op::Chmod(p, m)),
        3 => (path(), id(), id(), yes).prop_map(|(p, u, g, f)| Op::Chown(p, u, g, f)),
        3 => (path(), yes).prop_map(|(p, f)| Op::Stat(p, f)),
        1 => path().prop_map(Op::Readlink),
        3 => (path(), 0..8_u32, yes).prop_map(|(p, m, e)| Op::Access(p, m, e)),
        2 => (path(), yes).prop_map(|(p, now)| Op::Touch(p, now)),
        1 => path().prop_map(Op::Chdir),
        4 => (path(), prop_oneof![Just(8_u64), Just(0x10), Just(4), Just(1), Just(0xc), Just(0x18), Just(0x40)]).prop_map(|(p, r)| Op::Resolve(p, r)),
    ]
}
