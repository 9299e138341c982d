//! `madvise` and `process_madvise`.

use std::sync::atomic::Ordering;

use abi::{Errno, GUEST_TOP, Madvise, PAGE_SIZE, Prot, UserAddr};
use platform::HostCall;
use rustix::fs::FallocateFlags;
use sync::SysResult;
use vfs::Capability;

use crate::mm::syscalls::page_len;
use crate::mm::{Backing, Vma, VmaFlags};
use crate::syscall::{Fd, RemoteVec};
use crate::task::CurrentTask;

pub fn sys_madvise(task: &mut CurrentTask, addr: UserAddr, len: u64, advice: Madvise) -> SysResult<()> {
    if matches!(advice, Madvise::HWPOISON | Madvise::SOFT_OFFLINE) {
        // Linux built without memory failure handling, and with it for the unprivileged.
        let privileged = task.cred.capable(Capability::SYS_ADMIN);
        return Err(if privileged { Errno::EINVAL } else { Errno::EPERM }.into());
    }
    if what_to_do(advice).is_none() || !addr.is_page_aligned() {
        return Err(Errno::EINVAL.into());
    }
    let Some(len) = page_len(len) else {
        return if len == 0 { Ok(()) } else { Err(Errno::EINVAL.into()) };
    };
    let end = addr.0.checked_add(len).ok_or(Errno::EINVAL)?;
    advise(task, addr.0, end, advice)
}

impl CurrentTask {
    /// From now on advice about this memory comes to the kernel, which has locks and seals of it in its record only: no host
    /// process knows of them. Before the first of these is recorded; no lock on memory's record is held.
    pub(super) fn ask_for_advice(&self) {
        if self.mm.shared.asks_advice.swap(true, Ordering::SeqCst) {
            return;
        }
        // A task that begins meanwhile sees the mark.
        self.users_of_memory().iter().for_each(|task| task.words().set_advice_is_free(false));
    }
}

/// What becomes of an advice.
#[derive(Clone, Copy)]
enum Action {
    /// The host does it, on the guest's own memory and nobody else's (INVARIANTS 9).
    PassOn,
    /// Only the record knows.
    Record(VmaFlags, bool),
    /// A hint without a visible effect that the host shall not act on.
    Ignore,
    /// Punches a hole into the file below.
    Remove,
}

fn what_to_do(advice: Madvise) -> Option<Action> {
    Some(match advice {
        Madvise::NORMAL
        | Madvise::RANDOM
        | Madvise::SEQUENTIAL
        | Madvise::WILLNEED
        | Madvise::DONTNEED
        | Madvise::DONTNEED_LOCKED
        | Madvise::FREE
        | Madvise::COLD
        | Madvise::HUGEPAGE
        | Madvise::NOHUGEPAGE
        | Madvise::POPULATE_READ
        | Madvise::POPULATE_WRITE => Action::PassOn,
        Madvise::DONTFORK => Action::Record(VmaFlags::DONTFORK, true),
        Madvise::DOFORK => Action::Record(VmaFlags::DONTFORK, false),
        Madvise::WIPEONFORK => Action::Record(VmaFlags::WIPEONFORK, true),
        Madvise::KEEPONFORK => Action::Record(VmaFlags::WIPEONFORK, false),
        Madvise::DONTDUMP => Action::Record(VmaFlags::DONTDUMP, true),
        Madvise::DODUMP => Action::Record(VmaFlags::DONTDUMP, false),
        Madvise::PAGEOUT | Madvise::MERGEABLE | Madvise::UNMERGEABLE => Action::Ignore,
        Madvise::REMOVE => Action::Remove,
        _ => return None,
    })
}

/// Carries an advice out on each mapping in `[start, end)`, and tells of holes afterwards (Linux: `madvise_walk_vmas`).
fn advise(task: &mut CurrentTask, start: u64, end: u64, advice: Madvise) -> SysResult<()> {
    let Some(action) = what_to_do(advice) else { return Err(Errno::EINVAL.into()) };
    let mm = task.mm.clone();
    let _lock = mm.lock(&task.waiter)?;
    let top = end.min(GUEST_TOP);
    mm.refresh_holes(start, top);
    let vmas: Vec<Vma> = mm.record().vmas.overlapping(start, top).cloned().collect();
    let has_hole = end > GUEST_TOP || mm.record().vmas.mapped_until(start, end) < end;
    if let Action::PassOn = action {
        let populates = matches!(advice, Madvise::POPULATE_READ | Madvise::POPULATE_WRITE);
        // These stop at the first hole, so they are the host's as a whole.
        if populates {
            return pass_on(task, start, top, advice).and_then(|()| hole(has_hole));
        }
    }
    for vma in &vmas {
        let (from, to) = (vma.start.max(start), vma.end.min(top));
        check(vma, advice)?;
        match action {
            Action::PassOn => pass_on(task, from, to, advice)?,
            Action::Record(flag, on) => mm.record().vmas.update(from, to, |vma| vma.flags.set(flag, on)),
            Action::Remove => punch(task, vma, from, to)?,
            Action::Ignore => {}
        }
    }
    hole(has_hole)
}

fn hole(has_hole: bool) -> SysResult<()> {
    if has_hole { Err(Errno::ENOMEM.into()) } else { Ok(()) }
}

/// What the record knows better than the host.
fn check(vma: &Vma, advice: Madvise) -> SysResult<()> {
    let locked = vma.flags.contains(VmaFlags::LOCKED);
    let discards = matches!(advice, Madvise::DONTNEED | Madvise::DONTNEED_LOCKED | Madvise::FREE);
    let refused = match advice {
        Madvise::DONTNEED | Madvise::FREE | Madvise::COLD | Madvise::PAGEOUT | Madvise::REMOVE => locked,
        Madvise::WIPEONFORK => {
            vma.flags.contains(VmaFlags::SHARED) || matches!(vma.backing, Backing::File { .. })
        }
        Madvise::KEEPONFORK | Madvise::DODUMP => vma.flags.contains(VmaFlags::DROPPABLE),
        _ => false,
    };
    if refused {
        return Err(Errno::EINVAL.into());
    }
    // Linux: sealed memory that may not be written to keeps its contents.
    let read_only = !vma.prot.contains(Prot::WRITE) && !vma.flags.contains(VmaFlags::SHARED);
    if discards && vma.flags.contains(VmaFlags::SEALED) && read_only {
        return Err(Errno::EPERM.into());
    }
    Ok(())
}

fn pass_on(task: &mut CurrentTask, start: u64, end: u64, advice: Madvise) -> SysResult<()> {
    // The host's pages are not locked.
    let advice = if advice == Madvise::DONTNEED_LOCKED { Madvise::DONTNEED } else { advice };
    task.host_calls(&[HostCall::Advise { addr: UserAddr(start), len: end - start, advice: advice.0 }])?;
    Ok(())
}

/// `MADV_REMOVE`.
fn punch(task: &CurrentTask, vma: &Vma, start: u64, end: u64) -> SysResult<()> {
    /// `FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE`.
    const PUNCH: u32 = 3;
    let writable = vma.flags.contains(VmaFlags::SHARED) && vma.may.contains(Prot::WRITE);
    match &vma.backing {
        Backing::Anonymous | Backing::Special(_) => Err(Errno::EINVAL.into()),
        _ if !writable => Err(Errno::EACCES.into()),
        Backing::Shared { memory, offset } => {
            let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
            rustix::fs::fallocate(&memory.file, flags, offset + (start - vma.start), end - start)
                .map_err(|error| Errno::from_raw(error.raw_os_error()).into())
        }
        Backing::File { file, offset } => {
            file.ops.allocate(file, task, PUNCH, offset + (start - vma.start), end - start)
        }
    }
}

/// Advice for another process is a hint that costs nothing to ignore; for the caller itself it is `madvise`.
pub fn sys_process_madvise(
    task: &mut CurrentTask,
    pidfd: Fd,
    vec: RemoteVec,
    advice: Madvise,
    flags: u32,
) -> SysResult<u64> {
    if flags != 0 {
        return Err(Errno::EINVAL.into());
    }
    let ranges = crate::mm::other::read_vec(task, vec.addr, vec.count)?;
    let pid = crate::task::pidfd::pid_of(&*task.files.get(pidfd)?)?;
    let other = pid != task.pid();
    if other {
        let hint = matches!(advice, Madvise::COLD | Madvise::PAGEOUT | Madvise::WILLNEED | Madvise::COLLAPSE);
        if !hint {
            return Err(Errno::EINVAL.into());
        }
        crate::mm::other::target(task, pid)?;
        if !task.cred.capable(Capability::SYS_NICE) {
            return Err(Errno::EPERM.into());
        }
    }
    let mut done = 0;
    for (start, len) in ranges {
        if !other {
            if let Err(error) = sys_madvise(task, start, len, advice) {
                return if done > 0 { Ok(done) } else { Err(error) };
            }
        } else if !start.0.is_multiple_of(PAGE_SIZE) {
            return if done > 0 { Ok(done) } else { Err(Errno::EINVAL.into()) };
        }
        done += len;
    }
    Ok(done)
}
