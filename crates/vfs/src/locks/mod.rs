//! Locks on files: flock, POSIX record locks, record locks of an open file description (Linux: `fs/locks.c`).
//!
//! [`FileLocks`] hangs on the inode. [`flock`], [`set_record`] and [`get_record`] are what the kernel's handlers
//! call. Who owns a record lock is an opaque number of the kernel's (a process's table of descriptors, as on
//! Linux) or an open file. Waits for POSIX locks that would never end are found by [`Deadlocks`].
//!
//! Neighbours: `FileDescription` releases its own locks when it goes and those of a process when it closes.

mod deadlock;
mod outside;
mod range;
mod records;

use std::sync::Arc;
use std::time::{Duration, Instant};

use abi::{Errno, Flock, FlockOp, LockType, Whence};
use sync::order::FileLocks as FileLocksLevel;
use sync::{Mutex, SysError, SysResult, WaitEnd, WaitQueue};

use crate::{Caller, FileDescription, Seek};

pub use deadlock::Deadlocks;
pub use outside::OutsideLocks;
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
    /// The same locks as others than the guests see them, while there are any.
    outside: Option<Arc<dyn OutsideLocks>>,
}

impl State {
    /// Where to take a lock outside too.
    fn outside(&mut self, given: Option<&Outside>) -> Option<Outside> {
        self.outside.clone().or_else(|| given.cloned())
    }

    /// Makes what is held outside on `range` what the guests hold on it together, which can only be less than before.
    fn settle_records(&mut self, range: LockRange) {
        let Some(outside) = self.outside.clone() else { return };
        for (piece, kind) in self.records.together(range) {
            // A weaker lock cannot conflict; should the host fail, it goes when the file's last lock does.
            let _ = outside.set_record(piece, kind);
        }
        self.let_go();
    }

    fn settle_flocks(&mut self) {
        let Some(outside) = self.outside.clone() else { return };
        // As above.
        let _ = outside.set_flock(self.flock_of_all());
        self.let_go();
    }

    /// What the flocks are together.
    fn flock_of_all(&self) -> Option<LockKind> {
        let exclusive = self.flocks.iter().any(|(_, kind)| *kind == LockKind::Exclusive);
        let kind = if exclusive { LockKind::Exclusive } else { LockKind::Shared };
        (!self.flocks.is_empty()).then_some(kind)
    }

    fn let_go(&mut self) {
        if self.records.is_empty() && self.flocks.is_empty() {
            self.outside = None;
        }
    }
}

type Outside = Arc<dyn OutsideLocks>;

/// How long a wait for somebody outside lasts before it looks again: nobody tells when a lock goes there.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// The most record locks on one file, so that a guest cannot fill the kernel's memory with them.
const RECORDS_MAX: usize = 65536;

/// Why a lock was not taken.
enum Refused {
    /// A guest's lock stands in the way.
    By(Owner),
    /// The lock of somebody outside does.
    Outside,
    Failed(SysError),
}

impl FileLocks {
    /// The last reference to an open file went.
    pub(crate) fn description_closed(&self, owner: u64) {
        let mut state = self.state.lock();
        let before = state.flocks.len();
        state.flocks.retain(|(holder, _)| *holder != owner);
        let mut gone = state.flocks.len() < before;
        if gone {
            state.settle_flocks();
        }
        gone |= remove_records(&mut state, Owner::Description(owner));
        drop(state);
        if gone {
            self.released.wake(0);
        }
    }

    /// A descriptor of the file was closed by a process.
    pub(crate) fn owner_closed(&self, owner: u64) {
        let gone = remove_records(&mut self.state.lock(), Owner::Process(owner));
        if gone {
            self.released.wake(0);
        }
    }

    /// Takes (or with `None` gives back) what `want` says.
    fn try_record(
        &self,
        want: Record,
        kind: Option<LockKind>,
        outside: Option<&Outside>,
    ) -> Result<(), Refused> {
        let mut state = self.state.lock();
        if kind.is_some()
            && let Some(other) = state.records.conflict(&want)
        {
            return Err(Refused::By(other.owner));
        }
        if kind.is_some() && state.records.len() >= RECORDS_MAX {
            return Err(Refused::Failed(Errno::ENOLCK.into()));
        }
        if kind.is_some()
            && let Some(outside) = state.outside(outside)
        {
            if !outside.set_record(want.range, kind).map_err(Refused::Failed)? {
                return Err(Refused::Outside);
            }
            state.outside = Some(outside);
        }
        let weaker = state.records.set(want, kind.is_none());
        if kind.is_none() {
            state.settle_records(want.range);
        }
        drop(state);
        if weaker {
            self.released.wake(0);
        }
        Ok(())
    }

    /// Takes or gives back the flock of `owner`. A lock of another kind that `owner` holds is gone first, in any case:
    /// changing a flock is not atomic on Linux.
    fn try_flock(
        &self,
        owner: u64,
        kind: Option<LockKind>,
        outside: Option<&Outside>,
    ) -> Result<(), Refused> {
        let mut state = self.state.lock();
        let held = state.flocks.iter().find(|(holder, _)| *holder == owner).map(|(_, held)| *held);
        if held == kind {
            return Ok(());
        }
        state.flocks.retain(|(holder, _)| *holder != owner);
        let taken = match kind {
            None => Ok(()),
            Some(kind) => take_flock(&mut state, owner, kind, outside),
        };
        if kind.is_none() || taken.is_err() {
            state.settle_flocks();
        }
        drop(state);
        if held.is_some() {
            self.released.wake(0);
        }
        taken
    }
}

fn take_flock(
    state: &mut State,
    owner: u64,
    kind: LockKind,
    outside: Option<&Outside>,
) -> Result<(), Refused> {
    if let Some((other, _)) = state.flocks.iter().find(|(_, other)| kind.conflicts(*other)) {
        return Err(Refused::By(Owner::Description(*other)));
    }
    if let Some(outside) = state.outside(outside) {
        if !outside.set_flock(Some(kind)).map_err(Refused::Failed)? {
            return Err(Refused::Outside);
        }
        state.outside = Some(outside);
    }
    state.flocks.push((owner, kind));
    Ok(())
}

/// Takes all record locks of an owner away; whether there were any.
fn remove_records(state: &mut State, owner: Owner) -> bool {
    let extent = state.records.extent(owner).filter(|_| state.outside.is_some());
    let gone = state.records.remove_owner(owner);
    if let Some(extent) = extent {
        state.settle_records(extent);
    }
    gone
}

/// Where others than the guests may hold locks on the file.
fn outside_of(file: &FileDescription) -> Option<Outside> {
    file.inode.as_ref().and_then(|inode| inode.ops.outside_locks(inode))
}

/// Waits until `check` does not say `None`; with locks outside it looks now and then.
fn wait_for_lock<T>(
    locks: &FileLocks,
    outside: Option<&Outside>,
    caller: &dyn Caller,
    mut check: impl FnMut() -> Option<T>,
) -> SysResult<T> {
    loop {
        let look_again = outside.map(|_| Instant::now() + LOOK_AGAIN);
        match caller.waiter().wait(&[&locks.released], look_again, &mut check) {
            Err(WaitEnd::TimedOut) => {}
            other => return Ok(other?),
        }
    }
}

/// `flock`. `EWOULDBLOCK` with LOCK_NB; else waits, until a signal comes.
pub fn flock(file: &FileDescription, op: FlockOp, caller: &dyn Caller) -> SysResult<()> {
    let kind = match op & !FlockOp::NB {
        FlockOp::SH => Some(LockKind::Shared),
        FlockOp::EX => Some(LockKind::Exclusive),
        FlockOp::UN => None,
        _ => return Err(Errno::EINVAL.into()),
    };
    let locks = file.locks();
    let owner = file.lock_owner();
    let outside = outside_of(file);
    let outside = outside.as_ref();
    match locks.try_flock(owner, kind, outside) {
        Ok(()) => return Ok(()),
        Err(Refused::Failed(error)) => return Err(error),
        Err(_) if op.contains(FlockOp::NB) => return Err(Errno::EWOULDBLOCK.into()),
        Err(_) => {}
    }
    wait_for_lock(locks, outside, caller, || match locks.try_flock(owner, kind, outside) {
        Ok(()) => Some(Ok(())),
        Err(Refused::Failed(error)) => Some(Err(error)),
        Err(_) => None,
    })?
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
    let locks = file.locks();
    let outside = outside_of(file);
    let outside = outside.as_ref();
    let want = record(file, owner, kind.unwrap_or(LockKind::Shared), range);
    let LockWait::Yes(deadlocks) = wait else {
        return locks.try_record(want, kind, outside).map_err(|refused| match refused {
            Refused::Failed(error) => error,
            _ => Errno::EAGAIN.into(),
        });
    };
    let mut blocked = deadlocks.waiting(want.owner);
    wait_for_lock(locks, outside, caller, || match locks.try_record(want, kind, outside) {
        Ok(()) => Some(Ok(())),
        Err(Refused::Failed(error)) => Some(Err(error)),
        Err(Refused::By(holder)) if !blocked.waits_for(holder) => Some(Err(Errno::EDEADLK.into())),
        Err(_) => None,
    })?
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
    let locks = file.existing_locks();
    let other = locks.and_then(|locks| locks.state.lock().records.conflict(&want).copied());
    let other = other.or_else(|| {
        let (range, kind) = outside_of(file)?.record_conflict(range, kind)?;
        // Who it is on the host is not the guests' business: as for a lock of an open file.
        Some(Record { owner: Owner::Description(0), pid: -1, kind, range })
    });
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
