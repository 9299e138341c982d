//! Who may do what with an inode (Linux: `generic_permission` and the checks around it in `fs/namei.c`).
//!
//! No ACLs. Capabilities override as in Linux: CAP_DAC_READ_SEARCH reads and searches, CAP_DAC_OVERRIDE does all
//! but execute what nobody may.
//!
//! Neighbours: `namei` and `ops` ask here; a file system answers itself where
//! [`InodeOps::permission`](crate::InodeOps::permission) does (proc).

use std::any::Any;
use std::sync::Arc;

use abi::{Errno, FileMode, UserAddr};
use sync::{SysResult, Waiter};

use crate::{Attributes, Caller, Capability, Cred, Dentry, Inode};

/// Execute a file, search a directory.
pub const MAY_EXEC: u32 = 1;
pub const MAY_WRITE: u32 = 2;
pub const MAY_READ: u32 = 4;

/// `EACCES` unless mode bits, groups and capabilities allow all of `mask`.
pub fn generic_permission(attributes: &Attributes, cred: &Cred, mask: u32) -> SysResult<()> {
    let mode = attributes.mode.permissions();
    let granted = if cred.fsuid == attributes.uid {
        mode >> 6
    } else if mode & 0o70 != (mode & 0o7) << 3 && cred.in_group(attributes.gid) {
        mode >> 3
    } else {
        mode
    };
    if mask & !granted & 7 == 0 {
        return Ok(());
    }
    let search = cred.capable(Capability::DAC_READ_SEARCH);
    let all = cred.capable(Capability::DAC_OVERRIDE);
    let allowed = if attributes.mode.is_dir() {
        (search && mask & MAY_WRITE == 0) || all
    } else {
        (search && mask & 7 == MAY_READ) || (all && (mask & MAY_EXEC == 0 || mode & 0o111 != 0))
    };
    if allowed { Ok(()) } else { Err(Errno::EACCES.into()) }
}

/// Whether the caller may use the inode in the ways of `mask`.
pub fn inode_permission(inode: &Arc<Inode>, caller: &dyn Caller, mask: u32) -> SysResult<()> {
    if let Some(answer) = inode.ops.permission(inode, caller, mask) {
        return answer;
    }
    let cred = caller.cred();
    // Whoever overrides everything on directories, and on files what they are read for, need not ask for mode and owner. (Who
    // is to write asks all the same: file systems see by that whether there are set-id bits to clear.)
    if (inode.is_dir() || mask & !MAY_READ == 0) && cred.capable(Capability::DAC_OVERRIDE) {
        return Ok(());
    }
    generic_permission(&inode.ops.attributes(inode)?, cred, mask)
}

/// Whether the caller may search a directory.
pub(crate) fn may_search(inode: &Arc<Inode>, caller: &dyn Caller) -> SysResult<()> {
    inode_permission(inode, caller, MAY_EXEC)
}

/// Whether the caller owns the inode or stands above owners (Linux: `inode_owner_or_capable`).
pub fn is_owner(attributes: &Attributes, cred: &Cred) -> bool {
    cred.fsuid == attributes.uid || cred.capable(Capability::FOWNER)
}

/// Whether a new name may be made in `dir`: `ENOENT` in a removed one, `EACCES` (Linux: `may_create`).
pub(crate) fn may_create(dir: &Arc<Dentry>, caller: &dyn Caller) -> SysResult<()> {
    if dir.is_removed() {
        return Err(Errno::ENOENT.into());
    }
    inode_permission(&dir.inode, caller, MAY_WRITE | MAY_EXEC)
}

/// Whether `victim` may be removed from `dir`, or be replaced there: by a directory (`Some(true)`), by something
/// else (`Some(false)`), as it is (`None`) (Linux: `may_delete`).
pub(crate) fn may_delete(
    dir: &Arc<Dentry>,
    victim: &Arc<Inode>,
    as_dir: Option<bool>,
    caller: &dyn Caller,
) -> SysResult<()> {
    inode_permission(&dir.inode, caller, MAY_WRITE | MAY_EXEC)?;
    check_sticky(&dir.inode, victim, caller.cred())?;
    match as_dir {
        Some(true) if !victim.is_dir() => return Err(Errno::ENOTDIR.into()),
        Some(false) if victim.is_dir() => return Err(Errno::EISDIR.into()),
        _ => {}
    }
    if dir.is_removed() { Err(Errno::ENOENT.into()) } else { Ok(()) }
}

/// `EPERM` if the directory is sticky and neither it nor the victim is the caller's.
fn check_sticky(dir: &Arc<Inode>, victim: &Arc<Inode>, cred: &Cred) -> SysResult<()> {
    if cred.capable(Capability::FOWNER) {
        return Ok(());
    }
    let dir = dir.ops.attributes(dir)?;
    if !dir.mode.contains(FileMode::SVTX) || dir.uid == cred.fsuid {
        return Ok(());
    }
    if victim.ops.attributes(victim)?.uid == cred.fsuid { Ok(()) } else { Err(Errno::EPERM.into()) }
}

/// A caller with other credentials (`access(2)` checks the real ids).
pub(crate) struct WithCred<'a> {
    pub(crate) caller: &'a dyn Caller,
    pub(crate) cred: Cred,
}

impl Caller for WithCred<'_> {
    fn waiter(&self) -> &Waiter {
        self.caller.waiter()
    }
    fn cred(&self) -> &Cred {
        &self.cred
    }
    fn file_size_limit(&self) -> u64 {
        self.caller.file_size_limit()
    }
    fn file_too_big(&self) {
        self.caller.file_too_big();
    }
    fn broken_pipe(&self) {
        self.caller.broken_pipe();
    }
    fn read_user(&self, from: UserAddr, into: &mut [u8]) -> SysResult<()> {
        self.caller.read_user(from, into)
    }
    fn write_user(&self, to: UserAddr, bytes: &[u8]) -> SysResult<()> {
        self.caller.write_user(to, bytes)
    }
    fn as_any(&self) -> &dyn Any {
        self.caller.as_any()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use abi::FileType;

    fn allowed(file_type: FileType, mode: u32, cred: &Cred, mask: u32) -> bool {
        let mode = FileMode::new(file_type, mode);
        let attributes = Attributes { mode, uid: 1000, gid: 100, ..Default::default() };
        generic_permission(&attributes, cred, mask).is_ok()
    }

    #[test]
    fn the_first_class_that_matches_decides() {
        let (owner, group) = (Cred::user(1000, 1, &[]), Cred::user(7, 1, &[100]));
        let other = Cred::user(7, 1, &[]);
        assert!(!allowed(FileType::REG, 0o077, &owner, MAY_READ));
        assert!(allowed(FileType::REG, 0o077, &group, MAY_READ));
        assert!(!allowed(FileType::REG, 0o707, &group, MAY_READ));
        assert!(allowed(FileType::REG, 0o707, &other, MAY_READ | MAY_WRITE | MAY_EXEC));
        assert!(allowed(FileType::REG, 0, &other, 0));
    }

    #[test]
    fn capabilities_override_but_not_execution_of_what_nobody_may() {
        let root = Cred::root();
        assert!(allowed(FileType::REG, 0, &root, MAY_READ | MAY_WRITE));
        assert!(!allowed(FileType::REG, 0o666, &root, MAY_EXEC));
        assert!(allowed(FileType::REG, 0o001, &root, MAY_EXEC));
        assert!(allowed(FileType::DIR, 0, &root, MAY_EXEC | MAY_WRITE));
        let mut searcher = Cred::user(7, 1, &[]);
        searcher.effective = searcher.effective.with(Capability::DAC_READ_SEARCH);
        assert!(allowed(FileType::REG, 0, &searcher, MAY_READ));
        assert!(!allowed(FileType::REG, 0, &searcher, MAY_READ | MAY_WRITE));
        assert!(allowed(FileType::DIR, 0, &searcher, MAY_READ | MAY_EXEC));
        assert!(!allowed(FileType::DIR, 0, &searcher, MAY_WRITE));
    }
}
