//! The overlay against a plain directory: the same operations on both, the same results and the same tree.

#[path = "../../fs-host/tests/support/mod.rs"]
mod support;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use abi::{Errno, FileType, OpenFlags};
use fs_host::{HostFs, HostFsOptions, OwnerMap};
use fs_overlay::Overlay;
use fs_tmpfs::{SelfFds, TmpFs, TmpFsOptions};
use proptest::prelude::*;
use support::*;
use vfs::{AttributeChange, FileSystem, Inode, NewNodeKind, RenameMode, SliceSource};

fn host(dir: &Path, writable: bool) -> Arc<HostFs> {
    HostFs::open(dir, HostFsOptions::named(writable, OwnerMap::own_as_root())).expect("served")
}

fn memory() -> Arc<TmpFs> {
    TmpFs::new(vfs::anonymous_dev(), TmpFsOptions::default(), SelfFds::open().expect("/proc"))
}

/// A change of a tree. Paths are lists of names out of three.
#[derive(Clone, Debug)]
enum Change {
    File(Vec<u8>),
    Directory(Vec<u8>),
    Symlink(Vec<u8>),
    Remove(Vec<u8>),
    Rename(Vec<u8>, Vec<u8>, u8),
    Link(Vec<u8>, Vec<u8>),
    Write(Vec<u8>, u16, u8),
    Truncate(Vec<u8>, u16),
    Chmod(Vec<u8>, u16),
}

/// A kind of change, and what chooses its paths among those that there are.
#[derive(Clone, Copy, Debug)]
struct Choice {
    kind: u8,
    path: u16,
    other: u16,
    name: u8,
    number: u16,
}

fn choice() -> impl Strategy<Value = Choice> {
    (0..14u8, any::<u16>(), any::<u16>(), 0..3u8, any::<u16>())
        .prop_map(|(kind, path, other, name, number)| Choice { kind, path, other, name, number })
}

/// The changes that a choice means for the tree as it is: several for a whole tree to be removed.
fn changes(root: &Arc<Inode>, choice: &Choice) -> Vec<Change> {
    let all = whole(root);
    let numbers = |path: &String| -> Vec<u8> {
        path.split('/').skip(1).map(|name| name.as_bytes()[0] - b'a').collect()
    };
    let paths: Vec<Vec<u8>> = all.keys().map(numbers).collect();
    let dirs: Vec<Vec<u8>> =
        all.iter().filter(|(_, seen)| seen.0 & 0o170000 == 0o040000).map(|(path, _)| numbers(path)).collect();
    let existing = paths[usize::from(choice.path) % paths.len()].clone();
    let mut new = dirs[usize::from(choice.other) % dirs.len()].clone();
    new.push(choice.name);
    let makes = choice.kind <= 4;
    if (existing.is_empty() && !makes) || new.len() > 4 {
        return Vec::new();
    }
    let Choice { number, .. } = *choice;
    vec![match choice.kind {
        0 | 1 => Change::File(new),
        2 | 3 => Change::Directory(new),
        4 => Change::Symlink(new),
        5 => Change::Remove(existing),
        6 => {
            let below = paths.into_iter().rev().filter(|path| path.starts_with(&existing));
            return below.map(Change::Remove).collect();
        }
        7 | 8 => Change::Rename(existing, new, 0),
        9 => Change::Rename(existing, new, 1),
        10 => Change::Rename(existing, paths[usize::from(number) % paths.len()].clone(), 2),
        11 => Change::Link(existing, new),
        12 => Change::Write(existing, number, choice.name + 1),
        _ if number % 2 == 0 => Change::Truncate(existing, number % 5000),
        _ => Change::Chmod(existing, number % 0o1000),
    }]
}

type Outcome = Result<(), Errno>;

fn name(number: u8) -> &'static [u8] {
    [b"a", b"b", b"c"][usize::from(number)]
}

fn find(root: &Arc<Inode>, path: &[u8]) -> Result<Arc<Inode>, Errno> {
    path.iter().try_fold(root.clone(), |dir, number| {
        if !dir.is_dir() {
            return Err(Errno::ENOTDIR);
        }
        dir.ops.lookup(&dir, name(*number)).map_err(|error| error.errno().expect("an errno"))
    })
}

fn parent(root: &Arc<Inode>, path: &[u8]) -> Result<(Arc<Inode>, &'static [u8]), Errno> {
    let (last, dir) = path.split_last().expect("not empty");
    let dir_inode = find(root, dir)?;
    if dir_inode.is_dir() { Ok((dir_inode, name(*last))) } else { Err(Errno::ENOTDIR) }
}

fn apply(root: &Arc<Inode>, change: &Change) -> Outcome {
    let made = |path: &[u8], kind, permissions| -> Outcome {
        let (dir, name) = parent(root, path)?;
        let name = std::str::from_utf8(name).expect("a letter");
        create(&dir, name, kind, permissions).map(drop).map_err(|error| error.errno().expect("an errno"))
    };
    let done = |result: sync::SysResult<()>| result.map_err(|error| error.errno().expect("an errno"));
    match change {
        Change::File(path) => made(path, NewNodeKind::File, 0o644),
        Change::Directory(path) => made(path, NewNodeKind::Directory, 0o755),
        Change::Symlink(path) => made(path, NewNodeKind::Symlink(b"somewhere"), 0o777),
        Change::Remove(path) => {
            let child = find(root, path)?;
            let (dir, name) = parent(root, path)?;
            done(if child.is_dir() {
                dir.ops.rmdir(&dir, name, &child)
            } else {
                dir.ops.unlink(&dir, name, &child)
            })
        }
        Change::Rename(from, to, mode) => {
            // What the layer above refuses before: a directory into itself, an ancestor replaced.
            if to.starts_with(from) || from.starts_with(to) {
                return Err(Errno::EINVAL);
            }
            let mode = [RenameMode::Replace, RenameMode::NoReplace, RenameMode::Exchange][usize::from(*mode)];
            find(root, from)?;
            let ((dir, name), (to_dir, to_name)) = (parent(root, from)?, parent(root, to)?);
            done(dir.ops.rename(&dir, name, &to_dir, to_name, mode))
        }
        Change::Link(from, to) => {
            let target = find(root, from)?;
            if target.is_dir() {
                return Err(Errno::EPERM);
            }
            let (dir, name) = parent(root, to)?;
            done(dir.ops.link(&dir, name, &target))
        }
        Change::Write(path, at, byte) => {
            let inode = find(root, path)?;
            if inode.file_type != FileType::REG {
                return Err(Errno::EISDIR);
            }
            let file = open(&inode, OpenFlags::WRONLY).map_err(|error| error.errno().expect("an errno"))?;
            let mut source = SliceSource { bytes: &[*byte; 100], taken: 0 };
            let wrote = file.ops.write_at(&file, &TestCaller::root(), u64::from(*at), &mut source);
            wrote.map(drop).map_err(|error| error.errno().expect("an errno"))
        }
        Change::Truncate(path, size) => {
            let inode = find(root, path)?;
            if inode.file_type != FileType::REG {
                return Err(Errno::EISDIR);
            }
            let change = AttributeChange { size: Some(u64::from(*size)), ..Default::default() };
            done(inode.ops.set_attributes(&inode, &change))
        }
        Change::Chmod(path, mode) => {
            let inode = find(root, path)?;
            if inode.file_type == FileType::LNK {
                return Err(Errno::EOPNOTSUPP);
            }
            let change = AttributeChange { permissions: Some(u32::from(*mode)), ..Default::default() };
            done(inode.ops.set_attributes(&inode, &change))
        }
    }
}

/// What can be seen of a file: mode, links (not of directories), size, content.
type Seen = (u32, u64, u64, Vec<u8>);

fn tree(inode: &Arc<Inode>, path: String, into: &mut BTreeMap<String, Seen>) {
    let attributes = inode.ops.attributes(inode).expect("attributes");
    let seen = match inode.file_type {
        FileType::DIR => {
            for name in names(inode).expect("listed") {
                let child = inode.ops.lookup(inode, name.as_bytes()).expect("what is listed is found");
                tree(&child, format!("{path}/{name}"), into);
            }
            (attributes.mode.bits(), 0, 0, Vec::new())
        }
        FileType::REG => {
            (attributes.mode.bits(), attributes.nlink, attributes.size, read(inode).expect("read"))
        }
        _ => (
            attributes.mode.bits(),
            attributes.nlink,
            attributes.size,
            inode.ops.read_link(inode).expect("target"),
        ),
    };
    into.insert(path, seen);
}

fn whole(root: &Arc<Inode>) -> BTreeMap<String, Seen> {
    let mut all = BTreeMap::new();
    tree(root, String::new(), &mut all);
    all
}

/// Inode numbers by path, of what has one name.
fn numbers(root: &Arc<Inode>) -> BTreeMap<String, u64> {
    let mut all = BTreeMap::new();
    for path in whole(root).into_keys() {
        let inode = walk_from(root.clone(), &path).expect("found");
        let attributes = inode.ops.attributes(&inode).expect("attributes");
        let (dir, name) = path.rsplit_once('/').unwrap_or(("", ""));
        if !name.is_empty() {
            // What a listing says is what stat says.
            let dir = walk_from(root.clone(), dir).expect("found");
            let listed =
                list_some(&open(&dir, OpenFlags::RDONLY).expect("opened"), 10).expect("listed").found;
            let entry = listed.iter().find(|(listed, ..)| listed == name.as_bytes()).expect("listed");
            assert_eq!((entry.1, entry.2), (attributes.ino, inode.file_type), "{path}");
        }
        if attributes.nlink <= 1 || inode.is_dir() {
            all.insert(path, attributes.ino);
        }
    }
    all
}

fn compare(before: &[Choice], after: &[Choice], split: bool, in_memory: bool) -> Result<(), TestCaseError> {
    let dirs: Vec<_> = (0..4).map(|_| tempfile::tempdir().expect("a directory")).collect();
    let (plain_dir, upper_dir) = (dirs[0].path(), dirs[1].path());
    let plain = host(plain_dir, true).root();
    // What is there before: in one lower layer, or the later half in a layer of its own above it.
    let lower = host(dirs[2].path(), true).root();
    let at = if split { before.len() / 2 } else { before.len() };
    // Copy-up breaks lower hard links: there are none.
    let below = |choice: &Choice| -> Vec<Change> {
        let all = changes(&plain, choice);
        all.into_iter().filter(|change| !matches!(change, Change::Link(..))).collect()
    };
    for change in before[..at].iter().flat_map(below) {
        let _ = (apply(&plain, &change), apply(&lower, &change));
    }
    let lowers = if split {
        let middle =
            Overlay::new(&[lower], Some(host(dirs[3].path(), true)), String::new()).expect("an overlay");
        for change in before[at..].iter().flat_map(below) {
            prop_assert_eq!(
                apply(&middle.root(), &change),
                apply(&plain, &change),
                "in the middle: {:?}",
                change
            );
        }
        drop(middle);
        vec![host(&dirs[3].path().join("upper"), false).root(), host(dirs[2].path(), false).root()]
    } else {
        vec![host(dirs[2].path(), false).root()]
    };
    let upper: Arc<dyn FileSystem> = if in_memory { memory() } else { host(upper_dir, true) };
    // What is in memory lasts while it is in use.
    let _kept = upper.root();
    let overlay = || Overlay::new(&lowers, Some(upper.clone()), String::new()).expect("an overlay");
    let mounted = overlay();
    let root = mounted.root();
    prop_assert_eq!(whole(&root), whole(&plain), "before any change");
    for (index, choice) in after.iter().enumerate() {
        // Every other operation meets inodes in use.
        let known = whole(&root).into_keys().map(|path| walk_from(root.clone(), &path).expect("found"));
        let _held: Vec<_> = if index % 2 == 0 { known.collect() } else { Vec::new() };
        for change in changes(&plain, choice) {
            prop_assert_eq!(apply(&root, &change), apply(&plain, &change), "{:?}", change);
            prop_assert_eq!(whole(&root), whole(&plain), "after {:?}", change);
        }
    }
    let before = numbers(&root);
    drop((root, mounted));
    let again = overlay().root();
    prop_assert_eq!(whole(&again), whole(&plain), "mounted again");
    prop_assert_eq!(numbers(&again), before, "numbers stay");
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, max_shrink_iters: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn an_overlay_behaves_as_a_plain_directory(
        before in prop::collection::vec(choice(), 0..25),
        after in prop::collection::vec(choice(), 0..30),
    ) {
        compare(&before, &after, false, false)?;
    }

    #[test]
    fn so_does_one_with_an_upper_layer_in_memory(
        before in prop::collection::vec(choice(), 0..25),
        after in prop::collection::vec(choice(), 0..30),
    ) {
        compare(&before, &after, false, true)?;
    }

    #[test]
    fn two_lower_layers_behave_as_a_plain_directory(
        before in prop::collection::vec(choice(), 10..40),
        after in prop::collection::vec(choice(), 0..20),
    ) {
        compare(&before, &after, true, true)?;
    }
}
