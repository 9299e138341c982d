//! A walk in progress.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use abi::{AT_FDCWD, Errno, FileMode, FileType, NAME_MAX, PATH_MAX, ResolveFlags};
use sync::SysResult;

use super::Lookup;
use crate::permission::may_search;
use crate::{FsContext, Inode, MagicTarget, MountFlags, Path};

/// The most links that one walk follows (Linux: MAXSYMLINKS).
const LINKS_MAX: u32 = 40;

/// A walk in progress (Linux: `struct nameidata`).
pub(crate) struct Walk<'c, 'a> {
    ctx: &'c FsContext<'a>,
    resolve: ResolveFlags,
    /// What `/` and `..` do not leave: the caller's root, or the start with RESOLVE_BENEATH and RESOLVE_IN_ROOT.
    root: Cow<'c, Path>,
    at: Cow<'c, Path>,
    links: u32,
}

/// The last component of a path: where its name is in the text.
pub(crate) enum Tail {
    Name(Range<usize>),
    Dot,
    DotDot,
    /// The path was only slashes.
    Root,
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
            Cow::Borrowed(&ctx.place.root)
        } else {
            let start = match dirfd {
                AT_FDCWD => Cow::Borrowed(&ctx.place.cwd),
                _ => Cow::Owned(ctx.start_object(dirfd)?.path_or(Errno::ENOTDIR)?),
            };
            if !start.inode().is_dir() {
                return Err(Errno::ENOTDIR.into());
            }
            start
        };
        let root = if scoped { at.clone() } else { Cow::Borrowed(&ctx.place.root) };
        Ok(Walk { ctx, resolve, root, at, links: 0 })
    }

    /// Where the walk has come to.
    pub(crate) fn at(&self) -> &Path {
        &self.at
    }

    pub(crate) fn into_at(self) -> Path {
        self.at.into_owned()
    }

    /// Goes there; gives where it was.
    pub(crate) fn go(&mut self, to: Path) -> Path {
        std::mem::replace(&mut self.at, Cow::Owned(to)).into_owned()
    }

    fn is_scoped(&self) -> bool {
        self.resolve.intersects(ResolveFlags::BENEATH | ResolveFlags::IN_ROOT)
    }

    fn forbids(&self, flag: ResolveFlags, errno: Errno) -> SysResult<()> {
        if self.resolve.contains(flag) { Err(errno.into()) } else { Ok(()) }
    }

    /// Walks the whole of `text`.
    pub(crate) fn walk_all(mut self, path: &[u8], how: Lookup) -> SysResult<MagicTarget> {
        let mut text = Cow::Borrowed(path);
        loop {
            let (last, slash) = self.walk_to_last(&mut text)?;
            let Tail::Name(name) = last else {
                self.step_dots(&last)?;
                break;
            };
            let directory = slash || how.contains(Lookup::DIRECTORY);
            let child = self.step(text.get(name).unwrap_or(&[]), true)?;
            if child.inode().file_type == FileType::LNK && (slash || how.contains(Lookup::FOLLOW)) {
                match self.follow(&child, true)? {
                    Followed::Text(body) => {
                        text = Cow::Owned(splice(body, if slash { b"/" } else { b"" }));
                        continue;
                    }
                    Followed::Object(MagicTarget::Path(path)) => self.at = Cow::Owned(path),
                    Followed::Object(_) if directory => return Err(Errno::ENOTDIR.into()),
                    Followed::Object(file) => return Ok(file),
                }
            } else {
                self.at = Cow::Owned(child);
            }
            if directory && !self.at.inode().is_dir() {
                return Err(Errno::ENOTDIR.into());
            }
            break;
        }
        self.check_scope()?;
        Ok(MagicTarget::Path(self.into_at()))
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
    pub(crate) fn walk_to_last(&mut self, text: &mut Cow<'_, [u8]>) -> SysResult<(Tail, bool)> {
        if text.is_empty() {
            return Err(Errno::ENOENT.into());
        }
        if text.first() == Some(&b'/') {
            self.jump_to_root()?;
        }
        let mut at = skip_slashes(text, 0);
        if at == text.len() {
            return Ok((Tail::Root, false));
        }
        loop {
            may_search(self.at.inode(), self.ctx.caller)?;
            let rest = text.get(at..).unwrap_or(&[]);
            let name = rest.split(|byte| *byte == b'/').next().unwrap_or(&[]);
            let end = at.saturating_add(name.len());
            let next = skip_slashes(text, end);
            if next == text.len() {
                let last = match name {
                    b"." => Tail::Dot,
                    b".." => Tail::DotDot,
                    _ => Tail::Name(at..end),
                };
                return Ok((last, next > end));
            }
            match name {
                b"." => {}
                b".." => self.step_up()?,
                name => {
                    let child = self.step(name, false)?;
                    if child.inode().file_type == FileType::LNK {
                        match self.follow(&child, false)? {
                            Followed::Text(body) => {
                                *text = Cow::Owned(splice(body, text.get(end..).unwrap_or(&[])));
                                at = self.restart(text)?;
                                continue;
                            }
                            Followed::Object(target) => {
                                self.at = Cow::Owned(target.path_or(Errno::ENOTDIR)?);
                            }
                        }
                    } else {
                        self.at = Cow::Owned(child);
                    }
                }
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

    pub(crate) fn step_dots(&mut self, last: &Tail) -> SysResult<()> {
        match last {
            Tail::DotDot => self.step_up(),
            _ => Ok(()),
        }
    }

    /// `..`: not beyond the root, up through mounts, down again into what is mounted on the parent.
    fn step_up(&mut self) -> SysResult<()> {
        let mut at = self.at().clone();
        loop {
            if at == *self.root {
                self.forbids(ResolveFlags::BENEATH, Errno::EXDEV)?;
                // Linux stays, but at the root itself, not below what hides it.
                self.at = Cow::Owned(self.cross(at)?);
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
        self.at = Cow::Owned(self.cross(at)?);
        // A rename may have moved us out: then `..` could pass by the root (Linux: EAGAIN).
        if self.is_scoped() && !self.at.is_at_or_below(&self.root) {
            return Err(Errno::EAGAIN.into());
        }
        Ok(())
    }

    /// What the link at `link` in this directory leads to (Linux: `pick_link`). `last`: it is the path's last
    /// component, which is where traps are laid.
    pub(crate) fn follow(&mut self, link: &Path, last: bool) -> SysResult<Followed> {
        self.links = self.links.saturating_add(1);
        if self.links > LINKS_MAX {
            return Err(Errno::ELOOP.into());
        }
        if last {
            self.may_follow(link.inode())?;
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

    /// Linux: `may_follow_link`. In a sticky directory that everybody may write to, only links of the follower's or
    /// of the directory's owner are followed (`EACCES`).
    fn may_follow(&self, link: &Arc<Inode>) -> SysResult<()> {
        if self.ctx.mounts.protections.symlinks.load(Ordering::Relaxed) == 0 {
            return Ok(());
        }
        let dir = self.at.inode();
        let dir = dir.ops.attributes(dir)?;
        if !dir.mode.contains(FileMode::SVTX | FileMode::WOTH) {
            return Ok(());
        }
        let owner = link.ops.attributes(link)?.uid;
        if owner == self.ctx.cred().fsuid || owner == dir.uid { Ok(()) } else { Err(Errno::EACCES.into()) }
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
