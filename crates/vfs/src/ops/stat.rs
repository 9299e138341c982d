//! What asks and changes nothing: `stat`, `access`, `readlink`, `statfs`; and the targets of `chdir` and `chroot`.

use std::sync::Arc;

use abi::{AccessFlags, AtFlags, Errno, FileType, StatfsFlags};
use sync::SysResult;

use crate::permission::WithCred;
use crate::{
    Attributes, CapSet, Capability, Cred, FileDescription, FsContext, FsStat, Lookup, MAY_EXEC, MagicTarget,
    Mount, MountFlags, Path, generic_permission, inode_permission,
};

/// What `statx` tells.
#[derive(Clone, Copy, Debug)]
pub struct Stat {
    pub attributes: Attributes,
    /// Of the mount it was found in; 0 for what has no path.
    pub mount_id: u32,
    pub is_mount_root: bool,
}

impl Stat {
    /// Of an open file.
    pub fn of_file(file: &FileDescription) -> SysResult<Stat> {
        let attributes = file.attributes()?;
        Ok(match &file.path {
            Some(path) => Stat { attributes, mount_id: path.mount.id, is_mount_root: path.is_mount_root() },
            None => Stat { attributes, mount_id: 0, is_mount_root: false },
        })
    }

    fn of_path(path: &Path) -> SysResult<Stat> {
        let attributes = path.inode().ops.attributes(path.inode())?;
        Ok(Stat { attributes, mount_id: path.mount.id, is_mount_root: path.is_mount_root() })
    }
}

/// Attributes of what `path` leads to. Flags: AT_SYMLINK_NOFOLLOW, AT_EMPTY_PATH, and those that mean nothing here
/// (AT_NO_AUTOMOUNT, AT_STATX_*).
pub fn stat(ctx: &FsContext<'_>, dirfd: i32, path: &[u8], flags: AtFlags) -> SysResult<Stat> {
    let known = AtFlags::SYMLINK_NOFOLLOW
        | AtFlags::EMPTY_PATH
        | AtFlags::NO_AUTOMOUNT
        | AtFlags::STATX_FORCE_SYNC
        | AtFlags::STATX_DONT_SYNC;
    if !(flags & !known).is_empty() {
        return Err(Errno::EINVAL.into());
    }
    let mut how = Lookup::empty();
    how.set(Lookup::FOLLOW, !flags.contains(AtFlags::SYMLINK_NOFOLLOW));
    how.set(Lookup::EMPTY, flags.contains(AtFlags::EMPTY_PATH));
    if path.is_empty() && how.contains(Lookup::EMPTY) && dirfd != abi::AT_FDCWD {
        return Stat::of_file(&*ctx.files.get_any(dirfd)?);
    }
    ctx.retry_stale(|| match ctx.lookup(dirfd, path, how)? {
        MagicTarget::Path(path) => Stat::of_path(&path),
        MagicTarget::File(file) => Stat::of_file(&file),
    })
}

/// Who the caller is by its real ids (Linux: `access_override_creds`).
fn with_real_ids(cred: &Cred) -> Cred {
    const NO_SETUID_FIXUP: u32 = 1 << 2;
    let mut real = Cred { fsuid: cred.uid, fsgid: cred.gid, ..cred.clone() };
    if cred.securebits & NO_SETUID_FIXUP == 0 {
        real.effective = if cred.uid == 0 { cred.permitted } else { CapSet::EMPTY };
    }
    real
}

/// `EACCES` unless the caller may access what `path` leads to, by its real ids (by the effective ones with
/// AT_EACCESS). `EROFS` for writing through a read-only mount.
pub fn access(
    ctx: &FsContext<'_>,
    dirfd: i32,
    path: &[u8],
    mode: AccessFlags,
    flags: AtFlags,
) -> SysResult<()> {
    let known = AtFlags::EACCESS | AtFlags::SYMLINK_NOFOLLOW | AtFlags::EMPTY_PATH;
    if mode.has_unknown() || !(flags & !known).is_empty() {
        return Err(Errno::EINVAL.into());
    }
    let mut how = Lookup::empty();
    how.set(Lookup::FOLLOW, !flags.contains(AtFlags::SYMLINK_NOFOLLOW));
    how.set(Lookup::EMPTY, flags.contains(AtFlags::EMPTY_PATH));
    if flags.contains(AtFlags::EACCESS) {
        return access_as(ctx, dirfd, path, mode, how);
    }
    let real = WithCred { caller: ctx.caller, cred: with_real_ids(ctx.cred()) };
    access_as(&ctx.as_caller(&real), dirfd, path, mode, how)
}

fn access_as(ctx: &FsContext<'_>, dirfd: i32, path: &[u8], mode: AccessFlags, how: Lookup) -> SysResult<()> {
    ctx.retry_stale(|| {
        let path = match ctx.lookup(dirfd, path, how)? {
            MagicTarget::Path(path) => path,
            MagicTarget::File(file) => {
                return generic_permission(&file.attributes()?, ctx.cred(), mode.bits());
            }
        };
        let inode = path.inode();
        let is_regular = inode.file_type == FileType::REG;
        if mode.contains(AccessFlags::X_OK) && is_regular && path.mount.flags().contains(MountFlags::NOEXEC) {
            return Err(Errno::EACCES.into());
        }
        inode_permission(inode, ctx.caller, mode.bits())?;
        let plain = is_regular || inode.is_dir() || inode.file_type == FileType::LNK;
        if mode.contains(AccessFlags::W_OK) && plain { path.check_writable() } else { Ok(()) }
    })
}

/// The text of a link. `EINVAL` for what is none; an empty path means `dirfd` itself (`ENOENT` if it is no link).
pub fn readlink(ctx: &FsContext<'_>, dirfd: i32, path: &[u8]) -> SysResult<Vec<u8>> {
    let not_a_link = if path.is_empty() { Errno::ENOENT } else { Errno::EINVAL };
    if path.is_empty() && dirfd == abi::AT_FDCWD {
        return Err(Errno::ENOENT.into());
    }
    ctx.retry_stale(|| {
        let path = ctx.lookup(dirfd, path, Lookup::EMPTY)?.path_or(not_a_link)?;
        let inode = path.inode();
        match inode.file_type {
            FileType::LNK => inode.ops.read_link_as(inode, ctx.caller),
            _ => Err(not_a_link.into()),
        }
    })
}

/// What `statfs` tells of the file system of what `path` leads to.
pub fn statfs(ctx: &FsContext<'_>, path: &[u8]) -> SysResult<(FsStat, StatfsFlags)> {
    ctx.retry_stale(|| {
        let path = ctx.lookup(abi::AT_FDCWD, path, Lookup::FOLLOW)?.path_or(Errno::ENOSYS)?;
        Ok((path.mount.fs.stat()?, mount_statfs_flags(&path.mount)))
    })
}

/// A mount's flags as `statfs` shows them (Linux: `calculate_f_flags`).
pub fn mount_statfs_flags(mount: &Mount) -> StatfsFlags {
    let flags = mount.flags();
    let mut shown = StatfsFlags::VALID;
    for (flag, bit) in [
        (MountFlags::RDONLY, StatfsFlags::RDONLY),
        (MountFlags::NOSUID, StatfsFlags::NOSUID),
        (MountFlags::NODEV, StatfsFlags::NODEV),
        (MountFlags::NOEXEC, StatfsFlags::NOEXEC),
        (MountFlags::NOATIME, StatfsFlags::NOATIME),
        (MountFlags::NODIRATIME, StatfsFlags::NODIRATIME),
        (MountFlags::RELATIME, StatfsFlags::RELATIME),
        (MountFlags::NOSYMFOLLOW, StatfsFlags::NOSYMFOLLOW),
    ] {
        shown.set(bit, flags.contains(flag));
    }
    shown | StatfsFlags::VALID
}

fn searchable_dir(ctx: &FsContext<'_>, path: &[u8]) -> SysResult<Path> {
    ctx.retry_stale(|| {
        let how = Lookup::FOLLOW | Lookup::DIRECTORY;
        let path = ctx.lookup(abi::AT_FDCWD, path, how)?.path_or(Errno::ENOTDIR)?;
        inode_permission(path.inode(), ctx.caller, MAY_EXEC)?;
        Ok(path)
    })
}

/// The directory that `chdir` goes to: one that the caller may search.
pub fn chdir(ctx: &FsContext<'_>, path: &[u8]) -> SysResult<Path> {
    searchable_dir(ctx, path)
}

/// The directory that `fchdir` goes to.
pub fn fchdir(ctx: &FsContext<'_>, file: &Arc<FileDescription>) -> SysResult<Path> {
    let path = file.path.clone().filter(|path| path.inode().is_dir()).ok_or(Errno::ENOTDIR)?;
    inode_permission(path.inode(), ctx.caller, MAY_EXEC)?;
    Ok(path)
}

/// The directory that becomes the root by `chroot`. `EPERM` without CAP_SYS_CHROOT.
pub fn chroot_target(ctx: &FsContext<'_>, path: &[u8]) -> SysResult<Path> {
    let path = searchable_dir(ctx, path)?;
    if ctx.cred().capable(Capability::SYS_CHROOT) { Ok(path) } else { Err(Errno::EPERM.into()) }
}
