//! Extended attributes (Linux: `fs/xattr.c`).

use std::sync::Arc;

use abi::{AtFlags, Errno, FileMode, FileType};
use sync::SysResult;

use super::attr::lookup_flags;
use crate::{
    Caller, Capability, FileDescription, FsContext, Inode, MAY_READ, MAY_WRITE, Path, XattrMode,
    inode_permission, is_owner,
};

/// Most bytes of an attribute's value (XATTR_SIZE_MAX) and of a list of names (XATTR_LIST_MAX).
const SIZE_MAX: usize = 65536;
const NAME_MAX: usize = 255;

/// Whose attributes are meant.
pub struct XattrTarget {
    inode: Arc<Inode>,
    path: Option<Path>,
}

impl XattrTarget {
    /// An open file's. `EBADF` for O_PATH is the caller's to give; `EOPNOTSUPP` for what has no inode.
    pub fn of_file(file: &FileDescription) -> SysResult<XattrTarget> {
        let inode = file.inode.clone().ok_or(Errno::EOPNOTSUPP)?;
        Ok(XattrTarget { inode, path: file.path.clone() })
    }
}

/// What `path` leads to.
pub fn xattr_target(ctx: &FsContext<'_>, dirfd: i32, path: &[u8], flags: AtFlags) -> SysResult<XattrTarget> {
    let how = lookup_flags(flags)?;
    ctx.retry_stale(|| {
        let path = ctx.lookup(dirfd, path, how)?.path_or(Errno::EOPNOTSUPP)?;
        Ok(XattrTarget { inode: path.inode().clone(), path: Some(path) })
    })
}

fn check_name(name: &[u8]) -> SysResult<()> {
    if name.is_empty() || name.len() > NAME_MAX { Err(Errno::ERANGE.into()) } else { Ok(()) }
}

/// Linux: `xattr_permission` and the capability checks of the security module.
fn check(inode: &Arc<Inode>, name: &[u8], writes: bool, caller: &dyn Caller) -> SysResult<()> {
    let cred = caller.cred();
    let is = |prefix: &[u8]| name.starts_with(prefix);
    let hidden = if writes { Errno::EPERM } else { Errno::ENODATA };
    if is(b"security.") || is(b"system.") {
        let capability =
            if name == b"security.capability" { Capability::SETFCAP } else { Capability::SYS_ADMIN };
        let refused = is(b"security.") && writes && !cred.capable(capability);
        return if refused { Err(Errno::EPERM.into()) } else { Ok(()) };
    }
    if is(b"trusted.") {
        return if cred.capable(Capability::SYS_ADMIN) { Ok(()) } else { Err(hidden.into()) };
    }
    if is(b"user.") {
        if !matches!(inode.file_type, FileType::REG | FileType::DIR) {
            return Err(hidden.into());
        }
        if inode.is_dir() && writes {
            let now = inode.ops.attributes(inode)?;
            if now.mode.contains(FileMode::SVTX) && !is_owner(&now, cred) {
                return Err(Errno::EPERM.into());
            }
        }
    }
    inode_permission(inode, caller, if writes { MAY_WRITE } else { MAY_READ })
}

fn check_writable(target: &XattrTarget) -> SysResult<()> {
    target.path.as_ref().map_or(Ok(()), Path::check_writable)
}

/// An attribute's value. `ENODATA` if it has none of this name.
pub fn get_xattr(target: &XattrTarget, name: &[u8], caller: &dyn Caller) -> SysResult<Vec<u8>> {
    check_name(name)?;
    check(&target.inode, name, false, caller)?;
    target.inode.ops.get_xattr(&target.inode, name)
}

/// Sets an attribute. `E2BIG` beyond 64 KiB.
pub fn set_xattr(
    target: &XattrTarget,
    name: &[u8],
    value: &[u8],
    mode: XattrMode,
    caller: &dyn Caller,
) -> SysResult<()> {
    check_name(name)?;
    if value.len() > SIZE_MAX {
        return Err(Errno::E2BIG.into());
    }
    check_writable(target)?;
    check(&target.inode, name, true, caller)?;
    target.inode.attached.without_privileges.store(false, std::sync::atomic::Ordering::Relaxed);
    let set = target.inode.ops.set_xattr(&target.inode, name, value, mode);
    if name.starts_with(b"security.") {
        target.inode.attached.privileges_given();
    }
    set
}

/// Removes an attribute. `ENODATA`.
pub fn remove_xattr(target: &XattrTarget, name: &[u8], caller: &dyn Caller) -> SysResult<()> {
    check_name(name)?;
    check_writable(target)?;
    check(&target.inode, name, true, caller)?;
    target.inode.ops.remove_xattr(&target.inode, name)
}

/// The names as `listxattr` gives them, each with a zero behind it; `trusted.*` only with CAP_SYS_ADMIN.
pub fn list_xattrs(target: &XattrTarget, caller: &dyn Caller) -> SysResult<Vec<u8>> {
    let all = caller.cred().capable(Capability::SYS_ADMIN);
    let mut list = Vec::new();
    for name in target.inode.ops.list_xattrs(&target.inode)? {
        if all || !name.starts_with(b"trusted.") {
            list.extend_from_slice(&name);
            list.push(0);
        }
    }
    if list.len() > SIZE_MAX { Err(Errno::E2BIG.into()) } else { Ok(list) }
}
