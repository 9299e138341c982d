//! The walk along a path (Linux: `fs/namei.c`).
//!
//! [`FsContext::lookup`] gives what a path leads to, [`FsContext::parent`] the directory and the last component for
//! what will be made or removed. The walk never leaves the caller's root, crosses mounts both ways, follows at
//! most 40 links and holds no lock over a step. Links are spliced into the rest of the path, so there is no
//! recursion on what a guest wrote.
//!
//! Names of file systems that change outside: directories on the way are trusted as cached, the last component
//! is always asked for. If a trusted one is stale the file system says `ESTALE`, and the operation is redone once
//! without trust (`FsContext::retry_stale`).
//!
//! Neighbours: `dentry` (names), `mount` (crossing), `permission` (search), `ops` (what calls it).

use std::borrow::Cow;
use std::sync::Arc;

use abi::{AT_FDCWD, Errno, ResolveFlags};
use sync::SysResult;

use crate::dentry::DirectoryChange;
use crate::{Dentry, FsContext, MagicTarget, Path};

mod walk;

pub(crate) use walk::{Followed, Tail, Walk};

bitflags::bitflags! {
    /// How a walk goes.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct Lookup: u32 {
        /// Follow a link in the last component.
        const FOLLOW = 1;
        /// The result must be a directory.
        const DIRECTORY = 2;
        /// An empty path means `dirfd` itself (AT_EMPTY_PATH).
        const EMPTY = 4;
    }
}

/// The last component of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Last {
    Name(Vec<u8>),
    Dot,
    DotDot,
    /// The path was only slashes.
    Root,
}

/// The directory that a path's last component is in.
#[derive(Debug)]
pub struct Parent {
    pub dir: Path,
    pub last: Last,
    /// Slashes stood behind the last component.
    pub slash: bool,
}

impl FsContext<'_> {
    /// What `path` leads to, seen from `dirfd` (`AT_FDCWD`: the current directory).
    pub fn lookup(&self, dirfd: i32, path: &[u8], how: Lookup) -> SysResult<MagicTarget> {
        self.lookup_resolve(dirfd, path, how, ResolveFlags::empty())
    }

    /// The same with the restrictions of `openat2`.
    pub(crate) fn lookup_resolve(
        &self,
        dirfd: i32,
        path: &[u8],
        how: Lookup,
        resolve: ResolveFlags,
    ) -> SysResult<MagicTarget> {
        if path.is_empty() {
            if !how.contains(Lookup::EMPTY) {
                return Err(Errno::ENOENT.into());
            }
            let target = self.start_object(dirfd)?;
            let is_dir = matches!(&target, MagicTarget::Path(path) if path.inode().is_dir());
            let wrong = how.contains(Lookup::DIRECTORY) && !is_dir;
            return if wrong { Err(Errno::ENOTDIR.into()) } else { Ok(target) };
        }
        Walk::start(self, dirfd, path, resolve)?.walk_all(path, how)
    }

    /// The place that `path` leads to, for operations on names and inodes: an open file without a path is `EINVAL`.
    pub fn lookup_path(&self, dirfd: i32, path: &[u8], how: Lookup) -> SysResult<Path> {
        self.lookup(dirfd, path, how)?.path_or(Errno::EINVAL)
    }

    /// The directory in which `path`'s last component is, or is to be.
    pub fn parent(&self, dirfd: i32, path: &[u8]) -> SysResult<Parent> {
        if path.is_empty() {
            return Err(Errno::ENOENT.into());
        }
        let mut walk = Walk::start(self, dirfd, path, ResolveFlags::empty())?;
        let mut text = Cow::Borrowed(path);
        let (last, slash) = walk.walk_to_last(&mut text)?;
        let last = match last {
            Tail::Name(name) => Last::Name(text.get(name).unwrap_or(&[]).to_vec()),
            Tail::Dot => Last::Dot,
            Tail::DotDot => Last::DotDot,
            Tail::Root => Last::Root,
        };
        Ok(Parent { dir: walk.into_at(), last, slash })
    }

    /// `dirfd` itself.
    fn start_object(&self, dirfd: i32) -> SysResult<MagicTarget> {
        if dirfd == AT_FDCWD {
            return Ok(MagicTarget::Path(self.place.cwd.clone()));
        }
        let file = self.files.get_any(dirfd)?;
        Ok(match &file.path {
            Some(path) => MagicTarget::Path(path.clone()),
            None => MagicTarget::File(file),
        })
    }

    /// The child `name` of `dir`, from the cache or the file system. `last`: the name is the path's last.
    pub(crate) fn child(&self, dir: &Arc<Dentry>, name: &[u8], last: bool) -> SysResult<Arc<Dentry>> {
        if let Some(child) = self.cached_child(dir, name, last) {
            return Ok(child);
        }
        let child = dir.lookup(name, self.waiter())?;
        self.mounts.dentries.keep(&child);
        Ok(child)
    }

    fn cached_child(&self, dir: &Arc<Dentry>, name: &[u8], last: bool) -> Option<Arc<Dentry>> {
        let before = dir.generation();
        let child = dir.cached_child(name)?;
        let ask = dir.tree.changes_outside && (last || dir.tree.is_generated || self.revalidate_all.get());
        if ask && !dir.inode.ops.revalidate(&dir.inode, name, &child.inode) {
            if dir.forget_unless_changed(name, &child, before) {
                self.mounts.dentries.let_go(&child);
            }
            return None;
        }
        self.mounts.dentries.keep(&child);
        Some(child)
    }

    /// The child `name` of a directory that the caller is changing; `None` if there is none.
    pub(crate) fn child_changing(
        &self,
        dir: &Arc<Dentry>,
        change: &DirectoryChange<'_>,
        name: &[u8],
    ) -> SysResult<Option<Arc<Dentry>>> {
        if !dir.tree.changes_outside
            && let Some(child) = dir.cached_child(name)
        {
            return Ok(Some(child));
        }
        match dir.lookup_changing(change, name) {
            Ok(child) => Ok(Some(child)),
            Err(error) if error.errno() == Some(Errno::ENOENT) && !dir.tree.is_generated => Ok(None),
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests;
