//! Locks on writable roots are taken on the host too, or a database that is shared with the host corrupts: the guests
//! together hold them as one open file of the host.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use abi::{Errno, FileType};
use host::lock::{RecordLock, record_conflict, set_record};
use rustix::fs::{FlockOperation, OFlags};
use rustix::io::Errno as HostErrno;
use sync::SysResult;
use vfs::Inode;
use vfs::locks::{LockKind, LockRange, OutsideLocks};

use crate::error::{errno, retry};
use crate::node::HostNode;

/// The open file that holds the guests' locks on one file; they go with it.
pub(crate) struct HostLocks {
    file: OwnedFd,
}

impl HostNode {
    /// The holder of this file's locks on the host; `None` where the host gives none.
    pub(crate) fn host_locks(&self, this: &Arc<Inode>) -> Option<Arc<dyn OutsideLocks>> {
        if !self.fs.options.writable || !matches!(this.file_type, FileType::REG | FileType::DIR) {
            return None;
        }
        if let Some(locks) = self.lock_file() {
            return Some(locks);
        }
        let handle = self.handle(this).ok()?;
        let access = if this.is_dir() { OFlags::RDONLY } else { OFlags::RDWR };
        // A file that we may only read can be locked too, if not exclusively.
        let file = self.fs.reopen(&handle, access).or_else(|_| self.fs.reopen(&handle, OFlags::RDONLY));
        Some(self.set_lock_file(Arc::new(HostLocks { file: file.ok()? })))
    }
}

/// What a failed lock means: somebody has it, or the host cannot keep it, and then the guests have it among themselves.
fn refused(error: HostErrno) -> SysResult<bool> {
    match error {
        HostErrno::AGAIN | HostErrno::ACCESS => Ok(false),
        HostErrno::NOLCK => Err(Errno::ENOLCK.into()),
        HostErrno::BADF | HostErrno::OPNOTSUPP | HostErrno::NOSYS | HostErrno::INVAL => Ok(true),
        other => Err(errno(other)),
    }
}

impl OutsideLocks for HostLocks {
    fn set_record(&self, range: LockRange, kind: Option<LockKind>) -> SysResult<bool> {
        match set_record(&self.file, host_kind(kind), range.start(), range.len()) {
            Ok(()) => Ok(true),
            Err(error) => refused(HostErrno::from_io_error(&error).unwrap_or(HostErrno::IO)),
        }
    }

    fn record_conflict(&self, range: LockRange, kind: LockKind) -> Option<(LockRange, LockKind)> {
        let found = record_conflict(&self.file, host_kind(Some(kind)), range.start(), range.len()).ok()??;
        let (kind, start, len) = found;
        let kind = if kind == RecordLock::Shared { LockKind::Shared } else { LockKind::Exclusive };
        Some((LockRange::new(0, start, len).ok()?, kind))
    }

    fn set_flock(&self, kind: Option<LockKind>) -> SysResult<bool> {
        let operation = match kind {
            Some(LockKind::Shared) => FlockOperation::NonBlockingLockShared,
            Some(LockKind::Exclusive) => FlockOperation::NonBlockingLockExclusive,
            None => FlockOperation::NonBlockingUnlock,
        };
        match retry(|| rustix::fs::flock(&self.file, operation)) {
            Ok(()) => Ok(true),
            Err(error) => refused(error),
        }
    }
}

fn host_kind(kind: Option<LockKind>) -> RecordLock {
    match kind {
        Some(LockKind::Shared) => RecordLock::Shared,
        Some(LockKind::Exclusive) => RecordLock::Exclusive,
        None => RecordLock::None,
    }
}
