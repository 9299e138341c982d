//! Guests rename files while others use them: what was found stays what it is, whatever its name does.

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use abi::OpenFlags;
use fs_host::{HostFs, HostFsOptions, OwnerMap};
use support::*;
use vfs::{AttributeChange, FileSystem, Inode, NewNodeKind, RenameMode};

const ROUNDS: usize = 4000;

fn serve() -> (tempfile::TempDir, Arc<HostFs>) {
    let dir = tempfile::tempdir().expect("a directory");
    let fs = HostFs::open(dir.path(), HostFsOptions::named(true, OwnerMap::own_as_root())).expect("served");
    (dir, fs)
}

fn rename(from: (&Arc<Inode>, &[u8]), to: (&Arc<Inode>, &[u8]), mode: RenameMode) {
    from.0.ops.rename(from.0, from.1, to.0, to.1, mode).expect("renamed");
}

/// Runs `looks` in threads of their own, again and again, while `moves` runs [`ROUNDS`] times. Each look says whether it
/// found what it looked for; it must do so at times.
fn beside(moves: impl Fn(), looks: &[&(dyn Fn() -> bool + Sync)]) {
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let lookers: Vec<_> = looks
            .iter()
            .map(|look| {
                let done = &done;
                scope.spawn(move || {
                    let mut found = 0;
                    while !done.load(Ordering::Relaxed) || found == 0 {
                        found += usize::from(look());
                    }
                })
            })
            .collect();
        for _ in 0..ROUNDS {
            moves();
        }
        done.store(true, Ordering::Relaxed);
        for looker in lookers {
            looker.join().expect("what was found stayed");
        }
    });
}

/// Uses a regular file in all ways that need the host's file behind it.
fn use_file(inode: &Arc<Inode>) {
    assert_eq!(inode.ops.attributes(inode).expect("attributes").size, 5);
    let permissions = Some(0o600);
    let change = AttributeChange { permissions, ..AttributeChange::default() };
    inode.ops.set_attributes(inode, &change).expect("changed");
    assert!(
        inode
            .ops
            .get_xattr(inode, b"user.none")
            .is_err_and(|error| errno(Err::<(), _>(error)) != Some(abi::Errno::ESTALE))
    );
    open(inode, OpenFlags::RDONLY).expect("opened");
}

#[test]
fn a_file_that_is_moved_between_directories_stays_usable() {
    let (_dir, fs) = serve();
    let root = fs.root();
    let sub = create(&root, "sub", NewNodeKind::Directory, 0o755).expect("created");
    let file = create(&root, "file", NewNodeKind::File, 0o644).expect("created");
    write(&file, b"words").expect("written");
    drop(file);
    let look = |dir: &Arc<Inode>, name: &[u8]| match dir.ops.lookup(dir, name) {
        Ok(inode) => {
            use_file(&inode);
            true
        }
        Err(error) => {
            assert_eq!(errno(Err::<(), _>(error)), Some(abi::Errno::ENOENT));
            false
        }
    };
    beside(
        || {
            rename((&root, b"file"), (&sub, b"other"), RenameMode::Replace);
            rename((&sub, b"other"), (&root, b"file"), RenameMode::Replace);
        },
        &[&|| look(&root, b"file"), &|| look(&sub, b"other")],
    );
}

#[test]
fn names_that_are_exchanged_stay_those_of_their_files() {
    let (_dir, fs) = serve();
    let root = fs.root();
    for name in ["a", "b"] {
        let file = create(&root, name, NewNodeKind::File, 0o644).expect("created");
        write(&file, b"words").expect("written");
    }
    let look = |name: &[u8]| {
        use_file(&root.ops.lookup(&root, name).expect("always there"));
        true
    };
    beside(|| rename((&root, b"a"), (&root, b"b"), RenameMode::Exchange), &[&|| look(b"a"), &|| look(b"b")]);
}

#[test]
fn a_directory_whose_parent_is_moved_stays_usable() {
    let (_dir, fs) = serve();
    let root = fs.root();
    let outer = create(&root, "outer", NewNodeKind::Directory, 0o755).expect("created");
    let inner = create(&outer, "inner", NewNodeKind::Directory, 0o755).expect("created");
    let file = create(&inner, "file", NewNodeKind::File, 0o644).expect("created");
    write(&file, b"words").expect("written");
    drop((outer, inner, file));
    let find = |dir: &Arc<Inode>, name: &[u8]| match dir.ops.lookup(dir, name) {
        Ok(inode) => Some(inode),
        Err(error) => {
            assert_eq!(errno(Err::<(), _>(error)), Some(abi::Errno::ENOENT));
            None
        }
    };
    let look = |name: &[u8]| {
        let Some(outer) = find(&root, name) else { return false };
        let inner = outer.ops.lookup(&outer, b"inner").expect("always in it");
        let file = inner.ops.lookup(&inner, b"file").expect("always in it");
        use_file(&file);
        true
    };
    beside(
        || {
            rename((&root, b"outer"), (&root, b"away"), RenameMode::Replace);
            rename((&root, b"away"), (&root, b"outer"), RenameMode::Replace);
        },
        &[&|| look(b"outer"), &|| look(b"away")],
    );
}
