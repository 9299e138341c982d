//! Opening a program for `execve`.

use std::sync::Arc;

use abi::{AtFlags, Errno, FileType, OpenFlags};
use sync::SysResult;

use crate::file::FileDescription;
use crate::{DenyWrite, FsContext, Lookup, MAY_EXEC, MountFlags, OpenHow, inode_permission};

/// A program that was found and may be executed.
pub struct Executable {
    /// Open for reading, whether or not the caller may read it.
    pub file: Arc<FileDescription>,
    /// Nobody opens it for writing while this lives.
    pub deny_write: Arc<DenyWrite>,
}

/// Finds a program and opens it (Linux: `do_open_execat`): `EACCES` unless it is a regular file that the caller may
/// execute, on a mount that allows it; `ETXTBSY` while it is open for writing. Flags: AT_EMPTY_PATH,
/// AT_SYMLINK_NOFOLLOW.
pub fn open_exec(ctx: &FsContext<'_>, dirfd: i32, path: &[u8], flags: AtFlags) -> SysResult<Executable> {
    let known = AtFlags::EMPTY_PATH | AtFlags::SYMLINK_NOFOLLOW;
    if !(flags & !known).is_empty() {
        return Err(Errno::EINVAL.into());
    }
    let mut how = Lookup::empty();
    how.set(Lookup::FOLLOW, !flags.contains(AtFlags::SYMLINK_NOFOLLOW));
    how.set(Lookup::EMPTY, flags.contains(AtFlags::EMPTY_PATH));
    ctx.retry_stale(|| {
        let path = ctx.lookup(dirfd, path, how)?.path_or(Errno::EACCES)?;
        let inode = path.inode().clone();
        match inode.file_type {
            FileType::LNK => return Err(Errno::ELOOP.into()),
            FileType::REG if !path.mount.flags().contains(MountFlags::NOEXEC) => {}
            _ => return Err(Errno::EACCES.into()),
        }
        inode_permission(&inode, ctx.caller, MAY_EXEC)?;
        let flags = OpenFlags::RDONLY | OpenFlags::LARGEFILE;
        let ops = inode.ops.open(&inode, OpenHow { flags }, ctx.caller)?;
        let file = FileDescription::opened(ops, path, flags, None);
        Ok(Executable { file, deny_write: Arc::new(inode.deny_write()?) })
    })
}
