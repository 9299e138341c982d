//! Many threads on one overlay: the lock order holds (debug builds check it), nothing hangs, and the tree is sound
//! afterwards.

#[path = "../../fs-host/tests/support/mod.rs"]
mod support;

use std::fs;
use std::sync::Arc;
use std::time::{Duration, Instant};

use abi::{Errno, FileType, OpenFlags};
use fs_host::{HostFs, HostFsOptions, OwnerMap};
use fs_overlay::Overlay;
use fs_tmpfs::{SelfFds, TmpFs, TmpFsOptions};
use support::*;
use vfs::{AttributeChange, FileSystem, Inode, NewNodeKind, RenameMode, XattrMode};

/// A small generator of numbers, so that threads do different things.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

fn name(numbers: &mut Numbers) -> &'static str {
    ["a", "b", "c", "d"][usize::try_from(numbers.below(4)).expect("small")]
}

fn directory(root: &Arc<Inode>, numbers: &mut Numbers) -> Arc<Inode> {
    let mut dir = root.clone();
    for _ in 0..numbers.below(3) {
        match dir.ops.lookup(&dir, name(numbers).as_bytes()) {
            Ok(below) if below.is_dir() => dir = below,
            _ => break,
        }
    }
    dir
}

/// One operation; what fails fails, but only with what a file system may say.
fn act(root: &Arc<Inode>, numbers: &mut Numbers) {
    let dir = directory(root, numbers);
    let name = name(numbers);
    let found = dir.ops.lookup(&dir, name.as_bytes());
    let result = match (numbers.below(12), &found) {
        (0, _) => create(&dir, name, NewNodeKind::File, 0o644).map(drop),
        (1, _) => create(&dir, name, NewNodeKind::Directory, 0o755).map(drop),
        (2, _) => create(&dir, name, NewNodeKind::Symlink(b"x"), 0o777).map(drop),
        (3, Ok(child)) if child.is_dir() => dir.ops.rmdir(&dir, name.as_bytes(), child),
        (3, Ok(child)) => dir.ops.unlink(&dir, name.as_bytes(), child),
        (4 | 5, Ok(_)) => {
            let to = directory(root, numbers);
            let modes = [RenameMode::Replace, RenameMode::NoReplace, RenameMode::Exchange];
            let mode = modes[usize::try_from(numbers.below(3)).expect("small")];
            // The layer above keeps directories out of themselves.
            if found.as_ref().is_ok_and(|child| child.is_dir()) && !Arc::ptr_eq(&dir, &to) {
                return;
            }
            let to_name = self::name(numbers);
            let over = to.ops.lookup(&to, to_name.as_bytes());
            if over.is_ok_and(|over| over.is_dir()) && !Arc::ptr_eq(&dir, &to) {
                return;
            }
            dir.ops.rename(&dir, name.as_bytes(), &to, to_name.as_bytes(), mode)
        }
        (6, Ok(child)) if !child.is_dir() => {
            let to = directory(root, numbers);
            to.ops.link(&to, self::name(numbers).as_bytes(), child)
        }
        (7, Ok(child)) if child.file_type == FileType::REG => write(child, b"content").map(drop),
        (8, Ok(child)) if child.file_type == FileType::REG => read(child).map(drop),
        (9, Ok(child)) => {
            let change = AttributeChange { permissions: Some(0o700), ..Default::default() };
            if child.file_type == FileType::LNK { Ok(()) } else { child.ops.set_attributes(child, &change) }
        }
        (10, Ok(child)) if child.file_type == FileType::REG => {
            child.ops.set_xattr(child, b"user.x", b"1", XattrMode::Any)
        }
        _ => names(&dir).map(drop),
    };
    let allowed = [
        Errno::ENOENT,
        Errno::EEXIST,
        Errno::ENOTEMPTY,
        Errno::ENOTDIR,
        Errno::EISDIR,
        Errno::EXDEV,
        Errno::ESTALE,
        Errno::EINVAL,
        Errno::ELOOP,
    ];
    if let Some(error) = errno(result) {
        assert!(allowed.contains(&error), "{error:?}");
    }
}

/// Everything that is listed is found, and has the number and type that the listing says.
fn check(dir: &Arc<Inode>) {
    let listed = list_some(&open(dir, OpenFlags::RDONLY).expect("opened"), 100).expect("listed").found;
    for (name, ino, file_type, _) in listed {
        if name == b"." || name == b".." {
            continue;
        }
        let child = dir.ops.lookup(dir, &name).expect("what is listed is found");
        let attributes = child.ops.attributes(&child).expect("attributes");
        assert_eq!((attributes.ino, child.file_type), (ino, file_type));
        if child.is_dir() {
            check(&child);
        }
    }
}

fn stress(upper: impl Fn(&std::path::Path) -> Arc<dyn FileSystem>) {
    let (lower_dir, upper_dir) =
        (tempfile::tempdir().expect("a directory"), tempfile::tempdir().expect("a directory"));
    for path in ["a/a", "a/b", "b/c/d", "c/a/b", "d"] {
        let path = lower_dir.path().join(path);
        fs::create_dir_all(path.parent().expect("a parent")).expect("mkdir");
        fs::write(path, b"lower").expect("write");
    }
    let lower =
        HostFs::open(lower_dir.path(), HostFsOptions::named(false, OwnerMap::own_as_root())).expect("served");
    let overlay =
        Overlay::new(&[lower.root()], Some(upper(upper_dir.path())), String::new()).expect("an overlay");
    std::thread::scope(|scope| {
        for thread in 1..5 {
            let root = overlay.root();
            scope.spawn(move || {
                let mut numbers = Numbers(0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(thread));
                let start = Instant::now();
                while start.elapsed() < Duration::from_secs(2) {
                    act(&root, &mut numbers);
                }
            });
        }
    });
    check(&overlay.root());
}

#[test]
fn threads_on_an_overlay_in_memory() {
    stress(|_| TmpFs::new(vfs::anonymous_dev(), TmpFsOptions::default(), SelfFds::open().expect("/proc")));
}

#[test]
fn threads_on_an_overlay_on_the_host() {
    stress(|dir| HostFs::open(dir, HostFsOptions::named(true, OwnerMap::own_as_root())).expect("served"));
}
