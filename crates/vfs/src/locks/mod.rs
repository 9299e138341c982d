//! Locks on files: flock, POSIX record locks, record locks of an open file description (Linux: `fs/locks.c`).
//!
//! [`FileLocks`] hangs on the inode. [`flock`], [`set_record`] and [`get_record`] are what the kernel's handlers
//! call. Who owns a record lock is an opaque number of the kernel's (a process's table of descriptors, as on
//! Linux) or an open file. Waits for POSIX locks that would never end are found by [`Deadlocks`].
//!
//! Neighbours: `FileDescription` releases its own locks when it goes and those of a process when it closes.

mod deadlock;
mod range;
mod records;

use abi::{Errno, Flock, FlockOp, LockType, Whence};
use sync::order::FileLocks as FileLocksLevel;
use sync::{Mutex, SysResult, WaitQueue};

use crate::{Caller, FileDescription, Inode, Seek};

pub use deadlock::Deadlocks;
pub use range::LockRange;
use records::{Owner, Record, Records};

/// Shared or exclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockKind {
    Shared,
    Exclusive,
}

impl LockKind {
    fn conflicts(self, other: LockKind) -> bool {
        self == LockKind::Exclusive || other == LockKind::Exclusive
    }

    /// `F_RDLCK` and `F_WRLCK`; `None` for `F_UNLCK`. `EINVAL` for anything else.
    pub fn decode(lock_type: LockType) -> SysResult<Option<LockKind>> {
        match lock_type {
            LockType::RDLCK => Ok(Some(LockKind::Shared)),
            LockType::WRLCK => Ok(Some(LockKind::Exclusive)),
            LockType::UNLCK => Ok(None),
            _ => Err(Errno::EINVAL.into()),
        }
    }

    fn lock_type(self) -> LockType {
        match self {
            LockKind::Shared => LockType::RDLCK,
            LockKind::Exclusive => LockType::WRLCK,
        }
    }
}

/// Who takes a record lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockOwner {
    /// A process (`F_SETLK`): `id` as the kernel names it, `pid` as `F_GETLK` shows it.
    Process { id: u64, pid: i32 },
    /// The open file itself (`F_OFD_SETLK`).
    Description,
}

/// The locks held on a file.
#[derive(Default)]
pub struct FileLocks {
    state: Mutex<FileLocksLevel, State>,
    /// Woken when a lock went or became weaker.
    released: WaitQueue,
}

#[derive(Default)]
struct State {
    records: Records,
    flocks: Vec<(u64, LockKind)>,
}

/// The most record locks on one file, so that a guest cannot fill the kernel's memory with them.
const RECORDS_MAX: usize = 65536;

impl FileLocks {
    /// The last reference to an open file went.
    pub(crate) fn description_closed(&self, owner: u64) {
        let mut state = self.state.lock();
        let before = state.flocks.len();
        state.flocks.retain(|(holder, _)| *holder != owner);
        let gone = state.flocks.len() < before;
        let gone = state.records.remove_owner(Owner::Description(owner)) || gone;
        drop(state);
        if gone {
            self.released.wake(0);
        }
    }

    /// A descriptor of the file was closed by a process.
    pub(crate) fn owner_closed(&self, owner: u64) {
        let gone = self.state.lock().records.remove_owner(Owner::Process(owner));
        if gone {
            self.released.wake(0);
        }
    }

    /// Takes (or with `None` gives back) what `want` says, or gives the owner that stands in the way.
    fn try_record(&self, want: Record, kind: Option<LockKind>) -> Result<SysResult<()>, Owner> {
        let mut state = self.state.lock();
        if kind.is_some()
            && let Some(other) = state.records.conflict(&want)
        {
            return Err(other.owner);
        }
        if state.records.len() >= RECORDS_MAX {
            return Ok(Err(Errno::ENOLCK.into()));
        }
        let weaker = state.records.set(want, kind.is_none());
        drop(state);
        if weaker {
            self.released.wake(0);
        }
        Ok(Ok(()))
    }

    /// Takes or gives back the flock of `owner`; `false` if another's stands in the way. A lock of another kind
    /// that `owner` holds is gone first, in any case: changing a flock is not atomic on Linux.
    fn try_flock(&self, owner: u64, kind: Option<LockKind>) -> bool {
        let mut state = self.state.lock();
        let held = state.flocks.iter().find(|(holder, _)| *holder == owner).map(|(_, held)| *held);
        if held == kind {
            return true;
        }
        state.flocks.retain(|(holder, _)| *holder != owner);
        let taken = match kind {
            Some(kind) if state.flocks.iter().any(|(_, other)| kind.conflicts(*other)) => false,
            Some(kind) => {
                state.flocks.push((owner, kind));
                true
            }
            None => true,
        };
        drop(state);
        if held.is_some() {
            self.released.wake(0);
        }
        taken
    }
}

fn inode_of(file: &FileDescription) -> SysResult<&Inode> {
    file.inode.as_deref().ok_or(Errno::EBADF.into())
}

/// `flock`. `EWOULDBLOCK` with LOCK_NB; else waits, until a signal comes.
pub fn flock(file: &FileDescription, op: FlockOp, caller: &dyn Caller) -> SysResult<()> {
    let kind = match op & !FlockOp::NB {
        FlockOp::SH => Some(LockKind::Shared),
        FlockOp::EX => Some(LockKind::Exclusive),
        FlockOp::UN => None,
        _ => return Err(Errno::EINVAL.into()),
    };
    let locks = inode_of(file)?.attached.locks();
    let owner = file.lock_owner();
    if locks.try_flock(owner, kind) {
        return Ok(());
    }
    if op.contains(FlockOp::NB) {
        return Err(Errno::EWOULDBLOCK.into());
    }
    let check = || locks.try_flock(owner, kind).then_some(());
    Ok(caller.waiter().wait(&[&locks.released], None, check)?)
}

/// Whether `F_SETLK` waits, and what it needs for that.
#[derive(Clone, Copy)]
pub enum LockWait<'a> {
    /// `EAGAIN` at once.
    No,
    /// Until a signal comes; `EDEADLK` where waiting would never end.
    Yes(&'a Deadlocks),
}

/// `F_SETLK`, `F_SETLKW`, `F_OFD_SETLK`, `F_OFD_SETLKW`: takes a record lock, or gives it back (`kind` is `None`).
/// `EBADF` for a file not open for reading (shared) or writing (exclusive).
pub fn set_record(
    file: &FileDescription,
    owner: LockOwner,
    kind: Option<LockKind>,
    range: LockRange,
    wait: LockWait<'_>,
    caller: &dyn Caller,
) -> SysResult<()> {
    let allowed = match kind {
        Some(LockKind::Shared) => file.is_readable(),
        Some(LockKind::Exclusive) => file.is_writable(),
        None => true,
    };
    if !allowed {
        return Err(Errno::EBADF.into());
    }
    let locks = inode_of(file)?.attached.locks();
    let want = record(file, owner, kind.unwrap_or(LockKind::Shared), range);
    let LockWait::Yes(deadlocks) = wait else {
        return locks.try_record(want, kind).unwrap_or(Err(Errno::EAGAIN.into()));
    };
    let mut blocked = deadlocks.waiting(want.owner);
    let check = || match locks.try_record(want, kind) {
        Ok(done) => Some(done),
        Err(holder) if blocked.waits_for(holder) => None,
        Err(_) => Some(Err(Errno::EDEADLK.into())),
    };
    caller.waiter().wait(&[&locks.released], None, check)?
}

fn record(file: &FileDescription, owner: LockOwner, kind: LockKind, range: LockRange) -> Record {
    let (owner, pid) = match owner {
        LockOwner::Process { id, pid } => (Owner::Process(id), pid),
        LockOwner::Description => (Owner::Description(file.lock_owner()), -1),
    };
    Record { owner, pid, kind, range }
}

/// `F_GETLK`, `F_OFD_GETLK`: a lock that stands in the way of this one, as `struct flock`; type `F_UNLCK` (and all
/// else as given) if there is none.
pub fn get_record(
    file: &FileDescription,
    owner: LockOwner,
    kind: LockKind,
    range: LockRange,
    given: Flock,
) -> SysResult<Flock> {
    let want = record(file, owner, kind, range);
    let locks = inode_of(file)?.attached.existing_locks();
    let other = locks.and_then(|locks| locks.state.lock().records.conflict(&want).copied());
    let Some(other) = other else { return Ok(Flock { lock_type: LockType::UNLCK, ..given }) };
    Ok(Flock {
        lock_type: other.kind.lock_type(),
        whence: 0,
        start: other.range.start(),
        len: other.range.len(),
        pid: other.pid,
        ..given
    })
}

/// The range that a `struct flock` means on this file. `EINVAL` for a bad `whence` or a start before the file,
/// `EOVERFLOW` beyond the largest offset.
pub fn range_of(file: &FileDescription, flock: &Flock) -> SysResult<LockRange> {
    let base = match u32::try_from(flock.whence).map(Whence) {
        Ok(Whence::SET) => 0,
        Ok(Whence::CUR) => i64::try_from(file.ops.seek(file, Seek::Current(0)).unwrap_or(0)).unwrap_or(0),
        Ok(Whence::END) => i64::try_from(file.attributes()?.size).unwrap_or(i64::MAX),
        _ => return Err(Errno::EINVAL.into()),
    };
    LockRange::new(base, flock.start, flock.len)
}

#[cfg(test)]
mod tests;
