//! The `mlock` family. The kernel keeps the record and its limits; the host is asked to bring the pages in, not to
//! pin them: what a guest may pin of the host's memory is not the guest's to say.

use abi::{Errno, GUEST_TOP, Madvise, MclFlags, MlockFlags, PAGE_SIZE, Prot, UserAddr};
use platform::HostCall;
use sync::SysResult;
use vfs::Capability;

use crate::mm::{MmRecord, Vma, VmaFlags};
use crate::resource;
use crate::task::CurrentTask;

impl CurrentTask {
    /// Whether the task may lock memory at all (Linux: `can_do_mlock`).
    pub(super) fn may_lock(&self) -> bool {
        self.limit(resource::MEMLOCK) != 0 || self.cred.capable(Capability::IPC_LOCK)
    }

    /// `EAGAIN` where `more` locked bytes are beyond `RLIMIT_MEMLOCK` (Linux: `mlock_future_ok`).
    pub(super) fn check_lock_limit(&self, record: &MmRecord, more: u64) -> SysResult<()> {
        if self.cred.capable(Capability::IPC_LOCK) {
            return Ok(());
        }
        let limit = self.limit(resource::MEMLOCK) / PAGE_SIZE * PAGE_SIZE;
        if record.vmas.locked().saturating_add(more) > limit {
            return Err(Errno::EAGAIN.into());
        }
        Ok(())
    }

    /// Sets or clears locks on `[start, end)`; `ENOMEM` at the first hole, what lies before it being changed.
    fn set_locks(&mut self, start: u64, end: u64, locks: VmaFlags) -> SysResult<()> {
        self.mm.refresh_holes(start, end);
        let mut record = self.mm.record();
        let mapped = record.vmas.mapped_until(start, end);
        record.vmas.update(start, mapped, |vma| set_lock(vma, locks));
        if mapped < end { Err(Errno::ENOMEM.into()) } else { Ok(()) }
    }

    /// Brings the pages of what is locked in `[start, end)` in (Linux: `__mm_populate`). `EFAULT` stands where a page
    /// cannot be had.
    fn populate_locked(&mut self, start: u64, end: u64) -> SysResult<()> {
        let vmas: Vec<Vma> = self.mm.record().vmas.overlapping(start, end).cloned().collect();
        for vma in vmas {
            if !vma.flags.contains(VmaFlags::LOCKED) || vma.flags.contains(VmaFlags::LOCK_ON_FAULT) {
                continue;
            }
            if vma.start >= GUEST_TOP {
                continue;
            }
            if !vma.prot.intersects(Prot::READ | Prot::WRITE | Prot::EXEC) {
                return Err(Errno::EFAULT.into());
            }
            let writes = vma.prot.contains(Prot::WRITE) && !vma.flags.contains(VmaFlags::SHARED);
            let advice = if writes { Madvise::POPULATE_WRITE } else { Madvise::POPULATE_READ };
            let (from, to) = (vma.start.max(start), vma.end.min(end));
            self.host_calls(&[HostCall::Advise { addr: UserAddr(from), len: to - from, advice: advice.0 }])?;
        }
        Ok(())
    }
}

/// Sets or clears the locks of a mapping. What may be dropped is not locked.
fn set_lock(vma: &mut Vma, locks: VmaFlags) {
    if !vma.flags.contains(VmaFlags::DROPPABLE) {
        vma.flags.remove(LOCKS);
        vma.flags |= locks;
    }
}

const LOCKS: VmaFlags = VmaFlags::LOCKED.union(VmaFlags::LOCK_ON_FAULT);

/// The pages that hold `[start, start + len)`; all arithmetic wraps, as Linux's.
fn pages(start: UserAddr, len: u64) -> (u64, u64) {
    let first = start.0 / PAGE_SIZE * PAGE_SIZE;
    let len = len.wrapping_add(start.0 - first).wrapping_add(PAGE_SIZE - 1) / PAGE_SIZE * PAGE_SIZE;
    (first, len)
}

pub fn sys_mlock(task: &mut CurrentTask, addr: UserAddr, len: u64) -> SysResult<()> {
    do_mlock(task, addr, len, VmaFlags::LOCKED)
}

pub fn sys_mlock2(task: &mut CurrentTask, addr: UserAddr, len: u64, flags: MlockFlags) -> SysResult<()> {
    if !MlockFlags::ONFAULT.contains(flags) {
        return Err(Errno::EINVAL.into());
    }
    let locks = if flags.contains(MlockFlags::ONFAULT) { LOCKS } else { VmaFlags::LOCKED };
    do_mlock(task, addr, len, locks)
}

fn do_mlock(task: &mut CurrentTask, addr: UserAddr, len: u64, locks: VmaFlags) -> SysResult<()> {
    if !task.may_lock() {
        return Err(Errno::EPERM.into());
    }
    let (start, len) = pages(addr, len);
    task.ask_for_advice();
    let mm = task.mm.clone();
    let _lock = mm.lock(&task.waiter)?;
    if !task.cred.capable(Capability::IPC_LOCK) {
        let limit = task.limit(resource::MEMLOCK) / PAGE_SIZE * PAGE_SIZE;
        let record = mm.record();
        let end = start.saturating_add(len);
        // What is locked already counts once.
        let counted: u64 = record
            .vmas
            .overlapping(start, end)
            .filter(|vma| vma.flags.contains(VmaFlags::LOCKED))
            .map(|vma| vma.end.min(end) - vma.start.max(start))
            .sum();
        if record.vmas.locked().saturating_add(len).saturating_sub(counted) > limit {
            return Err(Errno::ENOMEM.into());
        }
    }
    let end = start.checked_add(len).ok_or(Errno::EINVAL)?;
    task.set_locks(start, end, locks)?;
    // POSIX's errors (Linux: `__mlock_posix_error_return`).
    task.populate_locked(start, end).map_err(|error| match error.errno() {
        Some(Errno::EFAULT | Errno::EINVAL) => Errno::ENOMEM.into(),
        Some(Errno::ENOMEM) => Errno::EAGAIN.into(),
        _ => error,
    })
}

pub fn sys_munlock(task: &mut CurrentTask, addr: UserAddr, len: u64) -> SysResult<()> {
    let (start, len) = pages(addr, len);
    let mm = task.mm.clone();
    let _lock = mm.lock(&task.waiter)?;
    let end = start.checked_add(len).ok_or(Errno::EINVAL)?;
    task.set_locks(start, end, VmaFlags::empty())
}

pub fn sys_mlockall(task: &mut CurrentTask, flags: MclFlags) -> SysResult<()> {
    let known = MclFlags::CURRENT | MclFlags::FUTURE | MclFlags::ONFAULT;
    if flags.is_empty() || !known.contains(flags) || flags == MclFlags::ONFAULT {
        return Err(Errno::EINVAL.into());
    }
    if !task.may_lock() {
        return Err(Errno::EPERM.into());
    }
    task.ask_for_advice();
    let mm = task.mm.clone();
    let _lock = mm.lock(&task.waiter)?;
    let on_fault = flags.contains(MclFlags::ONFAULT);
    {
        let mut record = mm.record();
        let limit = task.limit(resource::MEMLOCK) / PAGE_SIZE;
        let current = flags.contains(MclFlags::CURRENT);
        if current && record.vmas.pages() > limit && !task.cred.capable(Capability::IPC_LOCK) {
            return Err(Errno::ENOMEM.into());
        }
        record.lock_future = flags.contains(MclFlags::FUTURE).then_some(on_fault);
        if !current {
            return Ok(());
        }
        let locks = if on_fault { LOCKS } else { VmaFlags::LOCKED };
        record.vmas.update(0, GUEST_TOP, |vma| set_lock(vma, locks));
    }
    // Linux ignores what cannot be brought in.
    let _ = task.populate_locked(0, GUEST_TOP);
    Ok(())
}

pub fn sys_munlockall(task: &mut CurrentTask) -> SysResult<()> {
    let mm = task.mm.clone();
    let _lock = mm.lock(&task.waiter)?;
    let mut record = mm.record();
    record.lock_future = None;
    record.vmas.update(0, GUEST_TOP, |vma| vma.flags.remove(LOCKS));
    Ok(())
}

/// `mseal`: what may not be unmapped, moved or protected otherwise any more.
pub fn sys_mseal(task: &mut CurrentTask, addr: UserAddr, len: u64, flags: u64) -> SysResult<()> {
    if flags != 0 || !addr.is_page_aligned() {
        return Err(Errno::EINVAL.into());
    }
    let Some(len) = super::syscalls::page_len(len) else {
        return if len == 0 { Ok(()) } else { Err(Errno::EINVAL.into()) };
    };
    let end = addr.0.checked_add(len).ok_or(Errno::EINVAL)?;
    task.ask_for_advice();
    let mm = task.mm.clone();
    let _lock = mm.lock(&task.waiter)?;
    let mut record = mm.record();
    if record.vmas.mapped_until(addr.0, end) < end {
        return Err(Errno::ENOMEM.into());
    }
    record.vmas.update(addr.0, end, |vma| vma.flags |= VmaFlags::SEALED);
    Ok(())
}
