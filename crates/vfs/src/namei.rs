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

use std::sync::Arc;

use abi::{AT_FDCWD, Errno, FileType, NAME_MAX, PATH_MAX, ResolveFlags};
use sync::SysResult;

use crate::dentry::DirectoryChange;
use crate::permission::may_search;
use crate::{Dentry, FsContext, MagicTarget, MountFlags, Path};

/// The most links that one walk follows (Linux: MAXSYMLINKS).
const LINKS_MAX: u32 = 40;

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
        Walk::start(self, dirfd, path, resolve)?.walk_all(path.to_vec(), how)
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
        let (last, slash) = walk.walk_to_last(&mut path.to_vec())?;
        Ok(Parent { dir: walk.at, last, slash })
    }

    /// `dirfd` itself.
    fn start_object(&self, dirfd: i32) -> SysResult<MagicTarget> {
        if dirfd == AT_FDCWD {
            return Ok(MagicTarget::Path(self.cwd.clone()));
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
        let child = dir.cached_child(name)?;
        let ask = dir.tree.changes_outside && (last || self.revalidate_all.get());
        if ask && !dir.inode.ops.revalidate(&dir.inode, name, &child.inode) {
            dir.forget(&child);
            self.mounts.dentries.let_go(&child);
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
            Err(error) if error.errno() == Some(Errno::ENOENT) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// A walk in progress (Linux: `struct nameidata`).
pub(crate) struct Walk<'c, 'a> {
    ctx: &'c FsContext<'a>,
    resolve: ResolveFlags,
    /// What `/` and `..` do not leave: the caller's root, or the start with RESOLVE_BENEATH and RESOLVE_IN_ROOT.
    root: Path,
    pub(crate) at: Path,
    links: u32,
}

/// What a link leads to.
pub(crate) enum Followed {
    /// More path.
    Text(Vec<u8>),
    Object(MagicTarget),
}

impl<'c, 'a> Walk<'c, 'a> {
    pub(crate) fn start(
        ctx: &'c FsContext<'a>,
        dirfd: i32,
        path: &[u8],
        resolve: ResolveFlags,
    ) -> SysResult<Walk<'c, 'a>> {
        if path.len() >= PATH_MAX {
            return Err(Errno::ENAMETOOLONG.into());
        }
        let absolute = path.first() == Some(&b'/');
        if absolute && resolve.contains(ResolveFlags::BENEATH) {
            return Err(Errno::EXDEV.into());
        }
        let scoped = resolve.intersects(ResolveFlags::BENEATH | ResolveFlags::IN_ROOT);
        let at = if absolute && !scoped {
            ctx.root.clone()
        } else {
            let start = ctx.start_object(dirfd)?.path_or(Errno::ENOTDIR)?;
            if !start.inode().is_dir() {
                return Err(Errno::ENOTDIR.into());
            }
            start
        };
        let root = if scoped { at.clone() } else { ctx.root.clone() };
        Ok(Walk { ctx, resolve, root, at, links: 0 })
    }

    fn is_scoped(&self) -> bool {
        self.resolve.intersects(ResolveFlags::BENEATH | ResolveFlags::IN_ROOT)
    }

    fn forbids(&self, flag: ResolveFlags, errno: Errno) -> SysResult<()> {
        if self.resolve.contains(flag) { Err(errno.into()) } else { Ok(()) }
    }

    /// Walks the whole of `text`.
    pub(crate) fn walk_all(mut self, mut text: Vec<u8>, how: Lookup) -> SysResult<MagicTarget> {
        loop {
            let (last, slash) = self.walk_to_last(&mut text)?;
            let Last::Name(name) = last else {
                self.step_dots(&last)?;
                break;
            };
            let directory = slash || how.contains(Lookup::DIRECTORY);
            let child = self.step(&name, true)?;
            if child.inode().file_type == FileType::LNK && (slash || how.contains(Lookup::FOLLOW)) {
                match self.follow(&child)? {
                    Followed::Text(body) => {
                        text = splice(body, if slash { b"/" } else { b"" });
                        continue;
                    }
                    Followed::Object(MagicTarget::Path(path)) => self.at = path,
                    Followed::Object(_) if directory => return Err(Errno::ENOTDIR.into()),
                    Followed::Object(file) => return Ok(file),
                }
            } else {
                self.at = child;
            }
            if directory && !self.at.inode().is_dir() {
                return Err(Errno::ENOTDIR.into());
            }
            break;
        }
        self.check_scope()?;
        Ok(MagicTarget::Path(self.at))
    }

    /// Linux: `complete_walk`. A rename beside a scoped walk must not have led it out.
    pub(crate) fn check_scope(&self) -> SysResult<()> {
        if self.is_scoped() && !self.at.is_at_or_below(&self.root) {
            return Err(Errno::EXDEV.into());
        }
        Ok(())
    }

    /// Walks all but the last component, which it gives together with whether slashes follow it. `self.at` is a
    /// directory then, in which the caller may search.
    pub(crate) fn walk_to_last(&mut self, text: &mut Vec<u8>) -> SysResult<(Last, bool)> {
        if text.is_empty() {
            return Err(Errno::ENOENT.into());
        }
        if text.first() == Some(&b'/') {
            self.jump_to_root()?;
        }
        let mut at = skip_slashes(text, 0);
        if at == text.len() {
            return Ok((Last::Root, false));
        }
        loop {
            may_search(self.at.inode(), self.ctx.caller)?;
            let rest = text.get(at..).unwrap_or(&[]);
            let name = rest.split(|byte| *byte == b'/').next().unwrap_or(&[]);
            let end = at.saturating_add(name.len());
            let next = skip_slashes(text, end);
            let last = match name {
                b"." => Last::Dot,
                b".." => Last::DotDot,
                name => Last::Name(name.to_vec()),
            };
            if next == text.len() {
                return Ok((last, next > end));
            }
            match last {
                Last::Name(name) => {
                    let child = self.step(&name, false)?;
                    if child.inode().file_type == FileType::LNK {
                        match self.follow(&child)? {
                            Followed::Text(body) => {
                                *text = splice(body, text.get(end..).unwrap_or(&[]));
                                at = self.restart(text)?;
                                continue;
                            }
                            Followed::Object(target) => self.at = target.path_or(Errno::ENOTDIR)?,
                        }
                    } else {
                        self.at = child;
                    }
                }
                dots => self.step_dots(&dots)?,
            }
            if !self.at.inode().is_dir() {
                return Err(Errno::ENOTDIR.into());
            }
            at = next;
        }
    }

    /// The position of the first component of a link's text, which is walked from where the link is.
    fn restart(&mut self, text: &[u8]) -> SysResult<usize> {
        if text.first() == Some(&b'/') {
            self.jump_to_root()?;
        }
        Ok(skip_slashes(text, 0))
    }

    fn jump_to_root(&mut self) -> SysResult<()> {
        self.forbids(ResolveFlags::BENEATH, Errno::EXDEV)?;
        if !Arc::ptr_eq(&self.at.mount, &self.root.mount) {
            self.forbids(ResolveFlags::NO_XDEV, Errno::EXDEV)?;
        }
        self.at = self.root.clone();
        Ok(())
    }

    /// The child `name`, and over what is mounted on it.
    pub(crate) fn step(&self, name: &[u8], last: bool) -> SysResult<Path> {
        if name.len() > NAME_MAX {
            return Err(Errno::ENAMETOOLONG.into());
        }
        let dentry = self.ctx.child(&self.at.dentry, name, last)?;
        self.cross(Path { mount: self.at.mount.clone(), dentry })
    }

    /// Down into what is mounted here.
    pub(crate) fn cross(&self, path: Path) -> SysResult<Path> {
        if !path.dentry.has_mounts() {
            return Ok(path);
        }
        let over = self.ctx.mounts.topmost(path.clone());
        if over != path {
            self.forbids(ResolveFlags::NO_XDEV, Errno::EXDEV)?;
        }
        Ok(over)
    }

    pub(crate) fn step_dots(&mut self, last: &Last) -> SysResult<()> {
        match last {
            Last::DotDot => self.step_up(),
            _ => Ok(()),
        }
    }

    /// `..`: not beyond the root, up through mounts, down again into what is mounted on the parent.
    fn step_up(&mut self) -> SysResult<()> {
        let mut at = self.at.clone();
        loop {
            if at == self.root {
                self.forbids(ResolveFlags::BENEATH, Errno::EXDEV)?;
                // Linux stays, but at the root itself, not below what hides it.
                self.at = self.cross(at)?;
                return Ok(());
            }
            if !at.is_mount_root() {
                break;
            }
            let Some(below) = at.mount.at() else { return Ok(()) };
            self.forbids(ResolveFlags::NO_XDEV, Errno::EXDEV)?;
            at = below;
        }
        if let Some(parent) = at.dentry.parent() {
            at.dentry = parent;
        }
        self.at = self.cross(at)?;
        // A rename may have moved us out: then `..` could pass by the root (Linux: EAGAIN).
        if self.is_scoped() && !self.at.is_at_or_below(&self.root) {
            return Err(Errno::EAGAIN.into());
        }
        Ok(())
    }

    /// What the link at `link` leads to (Linux: `pick_link`).
    pub(crate) fn follow(&mut self, link: &Path) -> SysResult<Followed> {
        self.links = self.links.saturating_add(1);
        if self.links > LINKS_MAX {
            return Err(Errno::ELOOP.into());
        }
        self.forbids(ResolveFlags::NO_SYMLINKS, Errno::ELOOP)?;
        if link.mount.flags().contains(MountFlags::NOSYMFOLLOW) {
            return Err(Errno::ELOOP.into());
        }
        let inode = link.inode();
        let Some(target) = inode.ops.follow(inode, self.ctx.caller) else {
            let body = inode.ops.read_link_as(inode, self.ctx.caller)?;
            // No link is empty; a host's file system might say so all the same.
            let valid = !body.is_empty() && body.len() < PATH_MAX;
            return if valid { Ok(Followed::Text(body)) } else { Err(Errno::ENOENT.into()) };
        };
        self.forbids(ResolveFlags::NO_MAGICLINKS, Errno::ELOOP)?;
        let target = target?;
        if let MagicTarget::Path(path) = &target
            && !Arc::ptr_eq(&path.mount, &self.at.mount)
        {
            self.forbids(ResolveFlags::NO_XDEV, Errno::EXDEV)?;
        }
        if self.is_scoped() {
            return Err(Errno::EXDEV.into());
        }
        Ok(Followed::Object(target))
    }
}

fn skip_slashes(text: &[u8], from: usize) -> usize {
    let rest = text.get(from..).unwrap_or(&[]);
    rest.iter().position(|byte| *byte != b'/').map_or(text.len(), |skip| from.saturating_add(skip))
}

/// A link's text with the rest of the path behind it.
fn splice(mut body: Vec<u8>, rest: &[u8]) -> Vec<u8> {
    body.extend_from_slice(rest);
    body
}

#[cfg(test)]
mod tests;
