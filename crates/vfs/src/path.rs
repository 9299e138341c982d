//! Paths: places in the name space, and how they are written.
//!
//! Neighbours: `mount` and `dentry` below; /proc, getcwd and the mount texts use what is written here.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use abi::{Errno, PATH_MAX};
use sync::SysResult;

use crate::{Dentry, FileDescription, Inode, Mount, MountFlags};

/// A place in the name space: a dentry as seen in a mount (Linux: `struct path`).
#[derive(Clone)]
pub struct Path {
    pub mount: Arc<Mount>,
    pub dentry: Arc<Dentry>,
}

/// Where a link leads that names an object (`/proc/PID/fd/N`), and what a walk finds.
#[derive(Clone)]
pub enum MagicTarget {
    Path(Path),
    /// An open file, which may have no path: opening it makes a new description of the same object.
    File(Arc<FileDescription>),
}

impl MagicTarget {
    /// The place; `errno` for a file that has none.
    pub fn path_or(self, errno: Errno) -> SysResult<Path> {
        match self {
            MagicTarget::Path(path) => Ok(path),
            MagicTarget::File(file) => file.path.clone().ok_or(errno.into()),
        }
    }
}

impl Path {
    pub fn inode(&self) -> &Arc<Inode> {
        &self.dentry.inode
    }

    /// Whether it is the root of its mount.
    pub fn is_mount_root(&self) -> bool {
        Arc::ptr_eq(&self.dentry, &self.mount.root)
    }

    /// `EROFS` if nothing may be written through this mount.
    pub fn check_writable(&self) -> SysResult<()> {
        if self.mount.flags().contains(MountFlags::RDONLY) { Err(Errno::EROFS.into()) } else { Ok(()) }
    }

    /// Whether this is `other` or lies below it, through mounts too.
    pub(crate) fn is_at_or_below(&self, other: &Path) -> bool {
        let mut at = self.clone();
        loop {
            if at == *other {
                return true;
            }
            match at.up() {
                Some(up) => at = up,
                None => return false,
            }
        }
    }

    /// The directory above, across mounts; `None` at the root of the whole name space (or of a detached mount).
    pub(crate) fn up(&self) -> Option<Path> {
        let mut at = self.clone();
        while at.is_mount_root() {
            at = at.mount.at()?;
        }
        let parent = at.dentry.parent()?;
        Some(Path { mount: at.mount, dentry: parent })
    }
}

impl PartialEq for Path {
    fn eq(&self, other: &Path) -> bool {
        Arc::ptr_eq(&self.mount, &other.mount) && Arc::ptr_eq(&self.dentry, &other.dentry)
    }
}

impl std::fmt::Debug for Path {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names = Names::of(self, None);
        write!(f, "{}", String::from_utf8_lossy(&names.bytes))
    }
}

/// What /proc shows of a path, seen from `root`: `/dir/name`, with ` (deleted)` where the name is gone (Linux:
/// `d_path`). What does not lie below `root` is written from where the way up ends.
pub fn d_path(path: &Path, root: &Path) -> Vec<u8> {
    let mut bytes = Names::of(path, Some(root)).bytes;
    if path.dentry.is_removed() {
        bytes.extend_from_slice(b" (deleted)");
    }
    bytes
}

/// What `getcwd` gives: `ENOENT` for a directory that was removed, `(unreachable)` before what does not lie
/// below `root`, `ENAMETOOLONG` beyond PATH_MAX.
pub fn getcwd(cwd: &Path, root: &Path) -> SysResult<Vec<u8>> {
    if cwd.dentry.is_removed() {
        return Err(Errno::ENOENT.into());
    }
    let names = Names::of(cwd, Some(root));
    let mut bytes = if names.below_root { Vec::new() } else { b"(unreachable)".to_vec() };
    bytes.extend_from_slice(&names.bytes);
    if bytes.len() >= PATH_MAX { Err(Errno::ENAMETOOLONG.into()) } else { Ok(bytes) }
}

/// The path below `root`, or `None` if it does not lie there (Linux: `seq_path_root`).
pub(crate) fn path_below(path: &Path, root: &Path) -> Option<Vec<u8>> {
    let names = Names::of(path, Some(root));
    names.below_root.then_some(names.bytes)
}

/// The path of a dentry within its file system's tree.
pub(crate) fn path_in_tree(dentry: &Arc<Dentry>) -> Vec<u8> {
    let mut reversed = Vec::new();
    let mut at = dentry.clone();
    while let (Some(parent), name) = at.place() {
        push_reversed(&mut reversed, &name);
        at = parent;
    }
    finish(reversed)
}

/// A path as text, and whether the way up met the root that was given.
struct Names {
    bytes: Vec<u8>,
    below_root: bool,
}

impl Names {
    /// Tries again when a rename came in between, a few times: a torn answer is possible on Linux's side of
    /// a rename too, it just never lasts.
    fn of(path: &Path, root: Option<&Path>) -> Names {
        let moves = &path.dentry.tree.moves;
        for _ in 0..8 {
            let before = moves.load(Ordering::SeqCst);
            let names = Names::once(path, root);
            if before.is_multiple_of(2) && moves.load(Ordering::SeqCst) == before {
                return names;
            }
        }
        Names::once(path, root)
    }

    fn once(path: &Path, root: Option<&Path>) -> Names {
        let mut reversed = Vec::new();
        let mut at = path.clone();
        let below_root = loop {
            if root.is_some_and(|root| at == *root) {
                break true;
            }
            if at.is_mount_root() {
                match at.mount.at() {
                    Some(below) => at = below,
                    None => break root.is_none(),
                }
                continue;
            }
            match at.dentry.place() {
                (Some(parent), name) => {
                    push_reversed(&mut reversed, &name);
                    at.dentry = parent;
                }
                (None, _) => break false,
            }
        };
        Names { bytes: finish(reversed), below_root }
    }
}

fn push_reversed(reversed: &mut Vec<u8>, name: &[u8]) {
    reversed.extend(name.iter().rev());
    reversed.push(b'/');
}

fn finish(mut reversed: Vec<u8>) -> Vec<u8> {
    if reversed.is_empty() {
        reversed.push(b'/');
    }
    reversed.reverse();
    reversed
}
