//! The system calls about memory.

use abi::{Errno, GUEST_TOP, MapFlags, MapKind, PAGE_SIZE, PkeyAccess, Prot, UserAddr};
use sync::SysResult;
use vfs::MountFlags;

use crate::mm::{Backing, MapRequest};
use crate::syscall::Fd;
use crate::task::CurrentTask;

/// A length in bytes, rounded up to pages. `None`: zero or beyond 64 bits.
pub(super) fn page_len(len: u64) -> Option<u64> {
    let rounded = len.checked_add(PAGE_SIZE - 1)? / PAGE_SIZE * PAGE_SIZE;
    (rounded > 0).then_some(rounded)
}

pub fn sys_mmap(
    task: &mut CurrentTask,
    addr: UserAddr,
    len: u64,
    prot: Prot,
    flags: MapFlags,
    fd: Fd,
    offset: u64,
) -> SysResult<UserAddr> {
    if !offset.is_multiple_of(PAGE_SIZE) {
        return Err(Errno::EINVAL.into());
    }
    let anonymous = flags.contains(MapFlags::ANONYMOUS);
    let file = if anonymous { None } else { Some(task.files.get(fd)?) };
    if len == 0 {
        return Err(Errno::EINVAL.into());
    }
    if flags.contains(MapFlags::HUGETLB) {
        // Linux without reserved huge pages.
        return Err(Errno::ENOMEM.into());
    }
    let len = page_len(len).ok_or(Errno::ENOMEM)?;
    if (offset / PAGE_SIZE).checked_add(len / PAGE_SIZE).is_none() {
        return Err(Errno::EOVERFLOW.into());
    }
    if flags.intersects(MapFlags::FIXED | MapFlags::FIXED_NOREPLACE) {
        if len > GUEST_TOP || addr.0 > GUEST_TOP - len {
            return Err(Errno::ENOMEM.into());
        }
        if !addr.is_page_aligned() {
            return Err(Errno::EINVAL.into());
        }
    }
    check_end(&file, len, offset)?;
    let flags = check_kind(&file, prot, flags)?;
    let prot = prot & (Prot::READ | Prot::WRITE | Prot::EXEC);
    if flags.contains(MapFlags::LOCKED) && !task.may_lock() {
        return Err(Errno::EPERM.into());
    }
    if flags.contains(MapFlags::LOCKED) {
        task.ask_for_advice();
    }
    let backing = file.map_or(Backing::Anonymous, |file| Backing::File { file, offset });
    let request = MapRequest { addr: addr.0, len, prot, flags, backing };
    task.map(request).map(UserAddr)
}

/// `EOVERFLOW` beyond the largest offset of a file (Linux: `file_mmap_ok`).
fn check_end(file: &Option<std::sync::Arc<vfs::FileDescription>>, len: u64, offset: u64) -> SysResult<()> {
    let Some(file) = file else { return Ok(()) };
    let is_regular = file.inode.as_ref().is_some_and(|inode| inode.file_type == abi::FileType::REG);
    let largest = if is_regular { i64::MAX.cast_unsigned() } else { u64::MAX };
    match largest.checked_sub(len) {
        Some(last) if offset / PAGE_SIZE <= last / PAGE_SIZE => Ok(()),
        _ => Err(Errno::EOVERFLOW.into()),
    }
}

/// The checks on kind and file, in Linux's order; flags with the kind made plain.
fn check_kind(
    file: &Option<std::sync::Arc<vfs::FileDescription>>,
    prot: Prot,
    flags: MapFlags,
) -> SysResult<MapFlags> {
    let shared = match flags.kind() {
        MapKind::SHARED => true,
        MapKind::SHARED_VALIDATE if file.is_some() => {
            if flags.has_unknown() || flags.contains(MapFlags::SYNC) {
                return Err(Errno::EOPNOTSUPP.into());
            }
            true
        }
        MapKind::PRIVATE => false,
        // What may go at any time is neither locked nor reserved.
        MapKind::DROPPABLE if file.is_none() && !flags.intersects(MapFlags::LOCKED | MapFlags::GROWSDOWN) => {
            return Ok(flags | MapFlags::NORESERVE);
        }
        _ => return Err(Errno::EINVAL.into()),
    };
    match file {
        Some(file) => {
            if shared && prot.contains(Prot::WRITE) && !file.is_writable() {
                return Err(Errno::EACCES.into());
            }
            if !file.is_readable() {
                return Err(Errno::EACCES.into());
            }
            let no_exec =
                file.path.as_ref().is_some_and(|path| path.mount.flags().contains(MountFlags::NOEXEC));
            if no_exec && prot.contains(Prot::EXEC) {
                return Err(Errno::EPERM.into());
            }
            if flags.contains(MapFlags::GROWSDOWN) {
                return Err(Errno::EINVAL.into());
            }
        }
        None if shared && flags.contains(MapFlags::GROWSDOWN) => return Err(Errno::EINVAL.into()),
        None => {}
    }
    let kind = if shared { MapFlags::SHARED } else { MapFlags::PRIVATE };
    Ok(MapFlags::from_bits_retain(flags.bits() & !MapFlags::KIND_MASK) | kind)
}

pub fn sys_munmap(task: &mut CurrentTask, addr: UserAddr, len: u64) -> SysResult<()> {
    let end_of_range = |len: u64| len <= GUEST_TOP && addr.0 <= GUEST_TOP - len;
    if !addr.is_page_aligned() || !end_of_range(len) {
        return Err(Errno::EINVAL.into());
    }
    let len = page_len(len).filter(|len| end_of_range(*len)).ok_or(Errno::EINVAL)?;
    task.unmap(addr.0, len)
}

pub fn sys_mprotect(task: &mut CurrentTask, addr: UserAddr, len: u64, prot: Prot) -> SysResult<()> {
    let grows = prot & (Prot::GROWSDOWN | Prot::GROWSUP);
    if grows == Prot::GROWSDOWN | Prot::GROWSUP || !addr.is_page_aligned() {
        return Err(Errno::EINVAL.into());
    }
    if len == 0 {
        return Ok(());
    }
    let len = page_len(len).ok_or(Errno::ENOMEM)?;
    let end = addr.0.checked_add(len).ok_or(Errno::ENOMEM)?;
    let known = Prot::READ | Prot::WRITE | Prot::EXEC | Prot::SEM;
    if !known.contains(prot.difference(grows)) {
        return Err(Errno::EINVAL.into());
    }
    if end > GUEST_TOP {
        return Err(Errno::ENOMEM.into());
    }
    let prot = prot & (Prot::READ | Prot::WRITE | Prot::EXEC);
    let mut start = addr.0;
    if grows == Prot::GROWSDOWN {
        task.mm.refresh_growing(0, end);
        let vma = task.mm.record().vmas.first_above(start).cloned().ok_or(Errno::ENOMEM)?;
        if vma.start >= end {
            return Err(Errno::ENOMEM.into());
        }
        if !vma.flags.contains(super::VmaFlags::GROWSDOWN) {
            return Err(Errno::EINVAL.into());
        }
        start = vma.start;
    } else if grows == Prot::GROWSUP {
        return Err(Errno::EINVAL.into());
    }
    task.protect(start, end - start, prot)
}

pub fn sys_brk(task: &mut CurrentTask, new: UserAddr) -> SysResult<UserAddr> {
    let mm = task.mm.clone();
    let _lock = mm.lock(&task.waiter)?;
    let layout = mm.record().layout;
    let now = UserAddr(layout.brk);
    let data_limit = task.limit(crate::resource::DATA);
    let image = layout.end_data.saturating_sub(layout.start_data);
    let (Some(new_end), Some(old_end)) = (new.page_ceil(), now.page_ceil()) else { return Ok(now) };
    if new.0 < layout.start_brk
        || new_end.0 > GUEST_TOP
        || (new.0 - layout.start_brk).saturating_add(image) > data_limit
    {
        return Ok(now);
    }
    let changed = if new_end < old_end {
        task.unmap_locked(new_end.0, old_end.0 - new_end.0)
    } else if new_end > old_end {
        grow_brk(task, old_end.0, new_end.0 - old_end.0)
    } else {
        Ok(())
    };
    // `brk` never fails: it tells where the end is.
    if changed.is_err() {
        return Ok(now);
    }
    mm.record().layout.brk = new.0;
    task.follow_stack_limit();
    Ok(new)
}

fn grow_brk(task: &mut CurrentTask, start: u64, len: u64) -> SysResult<()> {
    let request = MapRequest {
        addr: start,
        len,
        prot: Prot::READ | Prot::WRITE,
        flags: MapFlags::PRIVATE | MapFlags::ANONYMOUS | MapFlags::FIXED_NOREPLACE,
        backing: Backing::Anonymous,
    };
    task.map_locked(request)?;
    Ok(())
}

/// Protection keys are refused: the host's signal handlers would run with the keys of a fresh process
/// (INVARIANTS 2.7).
pub fn sys_pkey_alloc(task: &mut CurrentTask, flags: u64, access: PkeyAccess) -> SysResult<usize> {
    if flags != 0 || access.has_unknown() {
        return Err(Errno::EINVAL.into());
    }
    Err(task.not_built("pkey_alloc", "protection keys", Errno::ENOSPC))
}

pub fn sys_pkey_free(_task: &mut CurrentTask, _key: i32) -> SysResult<()> {
    Err(Errno::EINVAL.into())
}

/// Without a key (-1), or with the one that all memory has, it is `mprotect`.
pub fn sys_pkey_mprotect(
    task: &mut CurrentTask,
    addr: UserAddr,
    len: u64,
    prot: Prot,
    key: i32,
) -> SysResult<()> {
    match key {
        -1 | 0 => sys_mprotect(task, addr, len, prot),
        _ => Err(Errno::EINVAL.into()),
    }
}
