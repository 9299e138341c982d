//! `open`, `openat`, `openat2`, `creat`.

use std::any::Any;
use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use abi::{AccessMode, Errno, FileMode, FileType, OpenFlags, ResolveFlags};
use sync::{SysError, SysResult};

use super::attr::truncate_change;
use super::create::new_node;
use crate::context::kept_flags;
use crate::file::OpenForWriting;
use crate::namei::{Followed, Tail, Walk};
use crate::{
    FileDescription, FileOps, FsContext, Inode, Lookup, MAY_EXEC, MAY_READ, MAY_WRITE, MagicTarget,
    MountFlags, NewNodeKind, OpenHow, Path, generic_permission, inode_permission, is_owner,
};

/// The arguments of an `open`, checked against each other (Linux: `build_open_flags`).
#[derive(Clone, Copy, Debug)]
pub struct OpenRequest {
    flags: OpenFlags,
    /// Permission bits of a new file, before the umask.
    mode: u32,
    resolve: ResolveFlags,
}

/// What goes with O_PATH.
const PATH_FLAGS: OpenFlags =
    OpenFlags::PATH.union(OpenFlags::DIRECTORY).union(OpenFlags::NOFOLLOW).union(OpenFlags::CLOEXEC);

/// The bit of O_TMPFILE beside O_DIRECTORY.
const TMPFILE_BIT: u32 = OpenFlags::TMPFILE.bits() & !OpenFlags::DIRECTORY.bits();
/// The bit of O_SYNC beside O_DSYNC.
const SYNC_BIT: u32 = OpenFlags::SYNC.bits() & !OpenFlags::DSYNC.bits();

fn is_tmpfile(flags: OpenFlags) -> bool {
    flags.bits() & TMPFILE_BIT != 0
}

impl OpenRequest {
    /// For `open`, `openat` and `creat`, which ignore bits that they do not know.
    pub fn open(flags: OpenFlags, mode: u32) -> SysResult<OpenRequest> {
        let mut flags = (flags & OpenFlags::VALID) | OpenFlags::LARGEFILE;
        if flags.contains(OpenFlags::PATH) {
            flags &= PATH_FLAGS;
        }
        OpenRequest::checked(flags, mode & FileMode::PERMISSION_MASK, ResolveFlags::empty())
    }

    /// For `openat2`, which refuses what it does not know.
    pub fn openat2(how: &abi::OpenHow) -> SysResult<OpenRequest> {
        let flags = u32::try_from(how.flags).map_err(|_| Errno::EINVAL)?;
        let flags = OpenFlags::from_bits_retain(flags);
        if !(flags & !OpenFlags::VALID).is_empty() || how.resolve.has_unknown() {
            return Err(Errno::EINVAL.into());
        }
        if how.resolve.contains(ResolveFlags::BENEATH | ResolveFlags::IN_ROOT) {
            return Err(Errno::EINVAL.into());
        }
        let creates = flags.contains(OpenFlags::CREAT) || is_tmpfile(flags);
        let allowed = if creates { u64::from(FileMode::PERMISSION_MASK) } else { 0 };
        if how.mode & !allowed != 0 {
            return Err(Errno::EINVAL.into());
        }
        let mode = u32::try_from(how.mode).unwrap_or(0);
        let mut request = OpenRequest::checked(flags, mode, how.resolve)?;
        if !flags.contains(OpenFlags::PATH) {
            request.flags |= OpenFlags::LARGEFILE;
        }
        // Linux serves RESOLVE_CACHED from its cache or not at all, and callers must be ready for a no.
        if how.resolve.contains(ResolveFlags::CACHED) { Err(Errno::EAGAIN.into()) } else { Ok(request) }
    }

    fn checked(mut flags: OpenFlags, mode: u32, resolve: ResolveFlags) -> SysResult<OpenRequest> {
        if flags.contains(OpenFlags::DIRECTORY | OpenFlags::CREAT) {
            return Err(Errno::EINVAL.into());
        }
        if is_tmpfile(flags) && !(flags.contains(OpenFlags::DIRECTORY) && writes(flags)) {
            return Err(Errno::EINVAL.into());
        }
        if flags.contains(OpenFlags::PATH) && !(flags & !PATH_FLAGS).is_empty() {
            return Err(Errno::EINVAL.into());
        }
        if flags.bits() & SYNC_BIT != 0 {
            flags |= OpenFlags::DSYNC;
        }
        Ok(OpenRequest { flags, mode, resolve })
    }

    /// Whether the descriptor is to be closed by exec.
    pub fn is_cloexec(&self) -> bool {
        self.flags.contains(OpenFlags::CLOEXEC)
    }

    fn excludes_existing(&self) -> bool {
        self.flags.contains(OpenFlags::CREAT | OpenFlags::EXCL)
    }

    fn follows(&self) -> bool {
        !self.flags.contains(OpenFlags::NOFOLLOW) && !self.excludes_existing()
    }

    fn lookup(&self) -> Lookup {
        let mut how = Lookup::empty();
        how.set(Lookup::FOLLOW, self.follows());
        how.set(Lookup::DIRECTORY, self.flags.contains(OpenFlags::DIRECTORY));
        how
    }

    /// The permissions that opening an existing file takes.
    fn access_mask(&self) -> u32 {
        let access = match self.flags.access_mode() {
            AccessMode::RDONLY => MAY_READ,
            AccessMode::WRONLY => MAY_WRITE,
            _ => MAY_READ | MAY_WRITE,
        };
        let truncates = self.flags.contains(OpenFlags::TRUNC);
        if truncates { access | MAY_WRITE } else { access }
    }
}

/// Access modes 1 to 3, which are checked for writing.
fn writes(flags: OpenFlags) -> bool {
    flags.access_mode() != AccessMode::RDONLY
}

/// Opens what `path` leads to, making it where the request says so.
pub fn open(
    ctx: &FsContext<'_>,
    dirfd: i32,
    path: &[u8],
    request: &OpenRequest,
) -> SysResult<Arc<FileDescription>> {
    ctx.retry_stale(|| {
        if is_tmpfile(request.flags) {
            return open_tmpfile(ctx, dirfd, path, request);
        }
        if !request.flags.contains(OpenFlags::CREAT) {
            let target = ctx.lookup_resolve(dirfd, path, request.lookup(), request.resolve)?;
            return open_target(ctx, target, request);
        }
        open_creating(ctx, dirfd, path, request)
    })
}

/// Opens a place that a walk has found already.
pub fn open_path(ctx: &FsContext<'_>, path: Path, request: &OpenRequest) -> SysResult<Arc<FileDescription>> {
    open_target(ctx, MagicTarget::Path(path), request)
}

/// With O_CREAT: the walk may end at something that is there, or make it (Linux: `open_last_lookups`).
fn open_creating(
    ctx: &FsContext<'_>,
    dirfd: i32,
    path: &[u8],
    request: &OpenRequest,
) -> SysResult<Arc<FileDescription>> {
    if path.is_empty() {
        return Err(Errno::ENOENT.into());
    }
    let mut walk = Walk::start(ctx, dirfd, path, request.resolve)?;
    let mut text = Cow::Borrowed(path);
    let dir = loop {
        let (last, slash) = walk.walk_to_last(&mut text)?;
        let Tail::Name(name) = last else {
            let dir = walk.at().clone();
            walk.step_dots(&last)?;
            break dir;
        };
        let name = text.get(name).unwrap_or(&[]);
        if slash {
            return Err(Errno::EISDIR.into());
        }
        let found = match walk.step(name, true) {
            Ok(found) => found,
            Err(SysError::Errno(Errno::ENOENT)) => match create_last(ctx, walk.at(), name, request)? {
                (path, true) => return open_found(ctx, path, request, true),
                (path, false) => walk.cross(path)?,
            },
            Err(error) => return Err(error),
        };
        if found.inode().file_type != FileType::LNK || !request.follows() {
            break walk.go(found);
        }
        match walk.follow(&found, true)? {
            Followed::Text(body) => text = Cow::Owned(body),
            Followed::Object(target) => return open_target(ctx, target, request),
        }
    };
    walk.check_scope()?;
    check_kind(walk.at(), request)?;
    may_create_in_sticky(ctx, &dir, walk.at().inode())?;
    open_found(ctx, walk.into_at(), request, false)
}

/// Linux: the function of this name. Opening with O_CREAT what somebody else has put into a sticky directory is
/// refused (`EACCES`), lest a program takes it for its own: files and FIFOs as `protections` say, all else always.
fn may_create_in_sticky(ctx: &FsContext<'_>, dir: &Path, inode: &Arc<Inode>) -> SysResult<()> {
    let protections = &ctx.mounts.protections;
    let level = match inode.file_type {
        FileType::REG => protections.regular.load(Ordering::Relaxed),
        FileType::FIFO => protections.fifos.load(Ordering::Relaxed),
        _ => 1,
    };
    if level == 0 {
        return Ok(());
    }
    let dir = dir.inode().ops.attributes(dir.inode())?;
    let open_to_others =
        dir.mode.contains(FileMode::WOTH) || (level >= 2 && dir.mode.contains(FileMode::WGRP));
    if !dir.mode.contains(FileMode::SVTX) || !open_to_others {
        return Ok(());
    }
    let owner = inode.ops.attributes(inode)?.uid;
    if owner == dir.uid || owner == ctx.cred().fsuid { Ok(()) } else { Err(Errno::EACCES.into()) }
}

/// Makes the file `name` in `dir`; `false` with it: it was there when the directory could be changed.
fn create_last(
    ctx: &FsContext<'_>,
    dir: &Path,
    name: &[u8],
    request: &OpenRequest,
) -> SysResult<(Path, bool)> {
    let change = dir.dentry.begin_change(ctx.waiter())?;
    let at = |dentry| Path { mount: dir.mount.clone(), dentry };
    if dir.dentry.is_removed() {
        return Err(Errno::ENOENT.into());
    }
    if let Some(found) = ctx.child_changing(&dir.dentry, &change, name)? {
        return Ok((at(found), false));
    }
    dir.check_writable()?;
    inode_permission(dir.inode(), ctx.caller, MAY_WRITE | MAY_EXEC)?;
    let node = new_node(ctx, dir.inode(), NewNodeKind::File, request.mode & !ctx.place.umask)?;
    let inode = dir.inode().ops.create(dir.inode(), name, &node)?;
    let dentry = dir.dentry.enter_new(&change, name, inode)?;
    ctx.mounts.dentries.keep(&dentry);
    Ok((at(dentry), true))
}

/// `O_TMPFILE`: a file without a name, in the file system of the directory `path`.
fn open_tmpfile(
    ctx: &FsContext<'_>,
    dirfd: i32,
    path: &[u8],
    request: &OpenRequest,
) -> SysResult<Arc<FileDescription>> {
    let dir = ctx.lookup_resolve(dirfd, path, request.lookup(), request.resolve)?.path_or(Errno::ENOTDIR)?;
    dir.check_writable()?;
    inode_permission(dir.inode(), ctx.caller, MAY_WRITE | MAY_EXEC)?;
    let node = new_node(ctx, dir.inode(), NewNodeKind::File, request.mode & !ctx.place.umask)?;
    let inode = dir.inode().ops.create_unnamed(dir.inode(), &node)?;
    let linkable = !request.flags.contains(OpenFlags::EXCL);
    inode.attached.linkable.store(linkable, Ordering::Relaxed);
    let name = format!("#{}", inode.ops.attributes(&inode)?.ino);
    let dentry = dir.dentry.new_unlinked(name.as_bytes(), inode);
    open_found(ctx, Path { mount: dir.mount, dentry }, request, true)
}

fn open_target(
    ctx: &FsContext<'_>,
    target: MagicTarget,
    request: &OpenRequest,
) -> SysResult<Arc<FileDescription>> {
    match target {
        MagicTarget::Path(path) => open_found(ctx, path, request, false),
        MagicTarget::File(file) => match file.path.clone() {
            Some(path) => open_found(ctx, path, request, false),
            None => reopen(ctx, &file, request),
        },
    }
}

/// Opens once more what an open file without a path stands for.
fn reopen(
    ctx: &FsContext<'_>,
    file: &Arc<FileDescription>,
    request: &OpenRequest,
) -> SysResult<Arc<FileDescription>> {
    if request.excludes_existing() {
        return Err(Errno::EEXIST.into());
    }
    if request.flags.contains(OpenFlags::PATH) {
        // Linux gives a handle on the object; without a path ours is the open file itself.
        return Ok(file.clone());
    }
    generic_permission(&file.attributes()?, ctx.cred(), request.access_mask())?;
    ctx.special.reopen(file, OpenHow { flags: kept_flags(request.flags) }, ctx.caller)
}

/// Opens what is there (Linux: `do_open`); `created`: by this very call, so it needs no permission.
fn open_found(
    ctx: &FsContext<'_>,
    path: Path,
    request: &OpenRequest,
    created: bool,
) -> SysResult<Arc<FileDescription>> {
    let flags = request.flags;
    let inode = path.inode().clone();
    if flags.contains(OpenFlags::PATH) {
        let kept = kept_flags(flags);
        return Ok(FileDescription::opened(Box::new(PathOnly), path, kept, None));
    }
    if !created {
        check_kind(&path, request)?;
    }
    let is_regular = inode.file_type == FileType::REG;
    let truncates = !created && is_regular && flags.contains(OpenFlags::TRUNC);
    if truncates {
        path.check_writable()?;
    }
    may_open(ctx, &path, request, if created { 0 } else { request.access_mask() })?;
    let how = OpenHow { flags: kept_flags(flags) };
    let access = if flags.is_writable() && is_regular { Some(OpenForWriting::new(&path)?) } else { None };
    if truncates {
        let _while_truncating = if access.is_none() { Some(inode.write_access()?) } else { None };
        let mut change = truncate_change(&inode, ctx.cred(), 0)?;
        change.mtime = Some(crate::SetTime::Now);
        inode.ops.set_attributes(&inode, &change)?;
    }
    let ops: Box<dyn FileOps> = match inode.file_type {
        FileType::REG | FileType::DIR => inode.ops.open(&inode, how, ctx.caller)?,
        _ if inode.ops.opens_itself() => inode.ops.open(&inode, how, ctx.caller)?,
        FileType::SOCK => return Err(Errno::ENXIO.into()),
        kind => {
            let dev = inode.ops.attributes(&inode)?.rdev;
            // A terminal needs to know whether it may become the controlling one.
            let special = OpenHow { flags: how.flags | (flags & OpenFlags::NOCTTY) };
            ctx.special.open(&inode, kind, dev, special, ctx.caller)?
        }
    };
    Ok(FileDescription::opened(ops, path, how.flags, access))
}

fn check_kind(path: &Path, request: &OpenRequest) -> SysResult<()> {
    let is_dir = path.inode().is_dir();
    if request.excludes_existing() {
        return Err(Errno::EEXIST.into());
    }
    if request.flags.contains(OpenFlags::CREAT) && is_dir {
        return Err(Errno::EISDIR.into());
    }
    if request.flags.contains(OpenFlags::DIRECTORY) && !is_dir && !is_tmpfile(request.flags) {
        return Err(Errno::ENOTDIR.into());
    }
    Ok(())
}

/// Linux: `may_open`.
fn may_open(ctx: &FsContext<'_>, path: &Path, request: &OpenRequest, mask: u32) -> SysResult<()> {
    let inode = path.inode();
    match inode.file_type {
        FileType::LNK => return Err(Errno::ELOOP.into()),
        FileType::DIR if mask & MAY_WRITE != 0 => return Err(Errno::EISDIR.into()),
        FileType::CHR | FileType::BLK if path.mount.flags().contains(MountFlags::NODEV) => {
            return Err(Errno::EACCES.into());
        }
        _ => {}
    }
    if mask != 0 {
        inode_permission(inode, ctx.caller, mask)?;
    }
    if request.flags.contains(OpenFlags::NOATIME) && !is_owner(&inode.ops.attributes(inode)?, ctx.cred()) {
        return Err(Errno::EPERM.into());
    }
    Ok(())
}

/// A file opened with O_PATH: a place, no I/O.
struct PathOnly;

impl FileOps for PathOnly {
    fn as_any(&self) -> &dyn Any {
        self
    }
}
