//! `msync` and `mincore`: mappings and what is in memory of them.

use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::FileExt;

use abi::{Errno, GUEST_TOP, MINCORE_RESIDENT, MsFlags, PAGE_SIZE, UserAddr};
use sync::SysResult;
use vfs::Mapping;

use crate::mm::{Backing, Vma, VmaFlags};
use crate::task::CurrentTask;

pub fn sys_msync(task: &mut CurrentTask, addr: UserAddr, len: u64, flags: MsFlags) -> SysResult<()> {
    let known = MsFlags::ASYNC | MsFlags::INVALIDATE | MsFlags::SYNC;
    if !known.contains(flags) || !addr.is_page_aligned() || flags.contains(MsFlags::ASYNC | MsFlags::SYNC) {
        return Err(Errno::EINVAL.into());
    }
    let len = len.wrapping_add(PAGE_SIZE - 1) / PAGE_SIZE * PAGE_SIZE;
    let end = addr.0.checked_add(len).ok_or(Errno::ENOMEM)?;
    task.mm.refresh_holes(addr.0, end);
    let (vmas, has_hole) = {
        let record = task.mm.record();
        let vmas: Vec<Vma> = record.vmas.overlapping(addr.0, end).cloned().collect();
        (vmas, record.vmas.mapped_until(addr.0, end) < end)
    };
    for vma in vmas {
        if flags.contains(MsFlags::INVALIDATE) && vma.flags.contains(VmaFlags::LOCKED) {
            return Err(Errno::EBUSY.into());
        }
        if flags.contains(MsFlags::SYNC)
            && vma.flags.contains(VmaFlags::SHARED)
            && let Backing::File { file, .. } = &vma.backing
        {
            match file.ops.sync(true) {
                // What has nothing to sync: /dev/zero.
                Err(error) if error.errno() == Some(Errno::EINVAL) => {}
                done => done?,
            }
        }
    }
    if has_hole { Err(Errno::ENOMEM.into()) } else { Ok(()) }
}

/// Pages answered at a time.
const PAGES_AT_ONCE: u64 = PAGE_SIZE;

pub fn sys_mincore(task: &mut CurrentTask, addr: UserAddr, len: u64, vec: UserAddr) -> SysResult<()> {
    if !addr.is_page_aligned() {
        return Err(Errno::EINVAL.into());
    }
    if !addr.in_guest_range(len) {
        return Err(Errno::ENOMEM.into());
    }
    let pages = len.div_ceil(PAGE_SIZE);
    if !vec.in_guest_range(pages) {
        return Err(Errno::EFAULT.into());
    }
    task.mm.refresh_holes(addr.0, addr.0 + len);
    let path = format!("/proc/{}/pagemap", task.mm.space.host_pid());
    let pagemap = host::user::as_guests(|| File::open(path)).ok();
    let mut done = 0;
    while done < pages {
        let start = addr.0 + done * PAGE_SIZE;
        let vma = task.mm.record().vmas.find(start).cloned().ok_or(Errno::ENOMEM)?;
        let in_vma = (vma.end.min(GUEST_TOP) - start) / PAGE_SIZE;
        let count = in_vma.min(pages - done).min(PAGES_AT_ONCE);
        let resident = residency(task, &vma, start, count, pagemap.as_ref());
        let to = vec.checked_add(done).ok_or(Errno::EFAULT)?;
        task.mm.write_bytes(to, &resident)?;
        done += count;
    }
    Ok(())
}

/// One byte for each page of `count` from `start` on, all of `vma`.
fn residency(task: &CurrentTask, vma: &Vma, start: u64, count: u64, pagemap: Option<&File>) -> Vec<u8> {
    const PRESENT: u64 = 1 << 63;
    let count = usize::try_from(count).unwrap_or(0);
    let mut bytes = vec![0u8; count];
    let mut entries = vec![0u8; count * 8];
    if let Some(pagemap) = pagemap
        && pagemap.read_exact_at(&mut entries, start / PAGE_SIZE * 8).is_ok()
    {
        for (byte, entry) in bytes.iter_mut().zip(entries.chunks_exact(8)) {
            let entry = entry.try_into().map_or(0, u64::from_le_bytes);
            *byte = if entry & PRESENT != 0 { MINCORE_RESIDENT } else { 0 };
        }
    }
    let into = start - vma.start;
    match &vma.backing {
        Backing::Anonymous | Backing::Special(_) => {}
        Backing::Shared { memory, offset } => add_cached(memory.file.as_fd(), offset + into, &mut bytes),
        Backing::File { file, offset } => {
            let may_know = file.inode.as_ref().is_some_and(|inode| {
                vfs::inode_permission(inode, task, vfs::MAY_WRITE).is_ok()
                    || inode.ops.attributes(inode).is_ok_and(|attr| vfs::is_owner(&attr, &task.cred))
            });
            // Linux tells nobody else what is in the page cache (`can_do_mincore`).
            if !may_know {
                bytes.fill(MINCORE_RESIDENT);
            } else if let Ok(Mapping::Host(fd)) = file.ops.mapping(file, false) {
                add_cached(fd.as_fd(), offset + into, &mut bytes);
            }
        }
    }
    bytes
}

/// Marks the pages that are in the host's page cache, by halving the range where some are and some not.
fn add_cached(file: BorrowedFd<'_>, offset: u64, bytes: &mut [u8]) {
    if bytes.iter().all(|byte| *byte == MINCORE_RESIDENT) {
        return;
    }
    let pages = bytes.len() as u64;
    let Ok(cached) = host::vm::cached_pages(file, offset, pages * PAGE_SIZE) else { return };
    if cached == 0 {
        return;
    }
    if cached >= pages {
        bytes.fill(MINCORE_RESIDENT);
        return;
    }
    let (first, second) = bytes.split_at_mut(bytes.len() / 2);
    let middle = offset + first.len() as u64 * PAGE_SIZE;
    add_cached(file, offset, first);
    add_cached(file, middle, second);
}
