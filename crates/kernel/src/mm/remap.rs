//! `mremap` and `remap_file_pages`, in Linux 6.18's order of checks (`mm/mremap.c`).

use abi::{Errno, GUEST_TOP, MapFlags, MremapFlags, PAGE_SIZE, Prot, UserAddr};
use platform::HostCall;
use sync::SysResult;

use crate::mm::map::{MAX_MAP_COUNT, place};
use crate::mm::{Backing, MapRequest, Vma, VmaFlags};
use crate::task::CurrentTask;

/// What is asked for, lengths rounded up to pages.
#[derive(Clone, Copy)]
struct Remap {
    addr: u64,
    old_len: u64,
    new_len: u64,
    flags: MremapFlags,
    new_addr: u64,
}

impl Remap {
    fn has_new_addr(&self) -> bool {
        self.flags.intersects(MremapFlags::FIXED | MremapFlags::DONTUNMAP)
    }

    fn keeps_old(&self) -> bool {
        self.flags.contains(MremapFlags::DONTUNMAP)
    }
}

pub fn sys_mremap(
    task: &mut CurrentTask,
    addr: UserAddr,
    old_len: u64,
    new_len: u64,
    flags: MremapFlags,
    new_addr: UserAddr,
) -> SysResult<UserAddr> {
    let round = |len: u64| len.wrapping_add(PAGE_SIZE - 1) / PAGE_SIZE * PAGE_SIZE;
    let remap =
        Remap { addr: addr.0, old_len: round(old_len), new_len: round(new_len), flags, new_addr: new_addr.0 };
    check(&remap)?;
    let mm = task.mm.clone();
    let _lock = mm.lock(&task.waiter)?;
    if remap.has_new_addr() && mm.record().vmas.count() + 2 >= MAX_MAP_COUNT - 3 {
        return Err(Errno::ENOMEM.into());
    }
    if flags.contains(MremapFlags::FIXED) && remap.old_len == remap.new_len {
        return task.move_all(remap).map(UserAddr);
    }
    mm.refresh_holes(remap.addr, remap.addr.saturating_add(remap.old_len.max(1)));
    let vma = mm.record().vmas.find(remap.addr).cloned().ok_or(Errno::EFAULT)?;
    task.remap_one(remap, vma).map(UserAddr)
}

/// The checks that need no look at mappings (Linux: `check_mremap_params`).
fn check(remap: &Remap) -> SysResult<()> {
    let known = MremapFlags::MAYMOVE | MremapFlags::FIXED | MremapFlags::DONTUNMAP;
    let invalid = Err(Errno::EINVAL.into());
    if !known.contains(remap.flags)
        || !remap.addr.is_multiple_of(PAGE_SIZE)
        || remap.new_len == 0
        || remap.new_len > GUEST_TOP
    {
        return invalid;
    }
    if !remap.has_new_addr() {
        return Ok(());
    }
    let overlaps = remap.addr.saturating_add(remap.old_len) > remap.new_addr
        && remap.new_addr.saturating_add(remap.new_len) > remap.addr;
    if remap.new_addr > GUEST_TOP - remap.new_len
        || !remap.new_addr.is_multiple_of(PAGE_SIZE)
        || !remap.flags.contains(MremapFlags::MAYMOVE)
        || (remap.keeps_old() && remap.old_len != remap.new_len)
        || overlaps
    {
        return invalid;
    }
    Ok(())
}

impl CurrentTask {
    /// Moves all mappings of a range, keeping the gaps between them (Linux: `remap_move`).
    fn move_all(&mut self, remap: Remap) -> SysResult<u64> {
        let end = remap.addr.checked_add(remap.old_len).ok_or(Errno::EFAULT)?;
        let vmas: Vec<Vma> = self.mm.record().vmas.overlapping(remap.addr, end).cloned().collect();
        if vmas.first().is_none_or(|first| first.start > remap.addr) {
            return Err(Errno::EFAULT.into());
        }
        for vma in vmas {
            let start = vma.start.max(remap.addr);
            let len = vma.end.min(end) - start;
            let new_addr = remap.new_addr + (start - remap.addr);
            self.remap_one(Remap { addr: start, old_len: len, new_len: len, new_addr, ..remap }, vma)?;
        }
        Ok(remap.new_addr)
    }

    /// Remaps within one mapping, `vma`, which holds `remap.addr`.
    fn remap_one(&mut self, remap: Remap, vma: Vma) -> SysResult<u64> {
        if vma.start >= GUEST_TOP {
            return Err(Errno::EFAULT.into());
        }
        let Remap { addr, old_len, new_len, .. } = remap;
        if vma.flags.contains(VmaFlags::SEALED) {
            return Err(Errno::EPERM.into());
        }
        if !remap.has_new_addr() && new_len <= old_len {
            if new_len < old_len {
                self.unmap_locked(addr + new_len, old_len - new_len)?;
            }
            return Ok(addr);
        }
        self.check_growth(&remap, &vma)?;
        if remap.flags.contains(MremapFlags::FIXED) {
            return self.remap_to_fixed(remap);
        }
        if remap.keeps_old() {
            let to = self.free_place(remap.new_addr, new_len, &vma)?;
            return self.move_mapping(&remap, &vma, to);
        }
        if old_len > 0 && addr + old_len == vma.end && self.grow_in_place(&remap, &vma)? {
            return Ok(addr);
        }
        if !remap.flags.contains(MremapFlags::MAYMOVE) {
            return Err(Errno::ENOMEM.into());
        }
        let to = self.free_place(0, new_len, &vma)?;
        self.move_mapping(&remap, &vma, to)
    }

    /// Linux: the second half of `check_prep_vma`.
    fn check_growth(&self, remap: &Remap, vma: &Vma) -> SysResult<()> {
        let Remap { addr, old_len, new_len, .. } = *remap;
        if old_len == 0 && !vma.flags.contains(VmaFlags::SHARED) {
            return Err(Errno::EINVAL.into());
        }
        if old_len > vma.end - addr {
            return Err(Errno::EFAULT.into());
        }
        let grown = new_len.saturating_sub(old_len);
        let more = if remap.keeps_old() { new_len } else { grown };
        if more == 0 {
            return Ok(());
        }
        let record = self.mm.record();
        if grown > 0 && vma.flags.contains(VmaFlags::LOCKED) {
            self.check_lock_limit(&record, grown)?;
        }
        self.check_limits(&record, more, 0, vma.is_data())
    }

    fn free_place(&self, hint: u64, len: u64, vma: &Vma) -> SysResult<u64> {
        let kind = if vma.flags.contains(VmaFlags::SHARED) { MapFlags::SHARED } else { MapFlags::PRIVATE };
        place(&self.mm.record(), hint, len, kind)
    }

    /// What lies at the new place goes first, and a mapping that shrinks does so before it moves.
    fn remap_to_fixed(&mut self, mut remap: Remap) -> SysResult<u64> {
        if remap.new_addr < crate::mm::MMAP_MIN_ADDR {
            return Err(Errno::EPERM.into());
        }
        if self.mm.record().vmas.overlapping(remap.new_addr, remap.new_addr + remap.new_len).next().is_some()
        {
            self.unmap_locked(remap.new_addr, remap.new_len)?;
        }
        if remap.old_len > remap.new_len {
            self.unmap_locked(remap.addr + remap.new_len, remap.old_len - remap.new_len)?;
            remap.old_len = remap.new_len;
        }
        let vma = self.mm.record().vmas.find(remap.addr).cloned().ok_or(Errno::EFAULT)?;
        self.move_mapping(&remap, &vma, remap.new_addr)
    }

    /// `false`: there is no room behind it.
    fn grow_in_place(&mut self, remap: &Remap, vma: &Vma) -> SysResult<bool> {
        let end = remap.addr + remap.old_len;
        let Some(new_end) = remap.addr.checked_add(remap.new_len).filter(|end| *end <= GUEST_TOP) else {
            return Ok(false);
        };
        if !self.mm.record().vmas.is_free(end, new_end) {
            return Ok(false);
        }
        let call = HostCall::Remap {
            addr: UserAddr(remap.addr),
            old_len: remap.old_len,
            new_len: remap.new_len,
            to: None,
            keep_old: false,
        };
        match self.host_calls(&[call]) {
            Ok(_) => {}
            // Something that the host alone knows of lies there: a stack that has grown.
            Err(error) if error.errno() == Some(Errno::ENOMEM) => return Ok(false),
            Err(error) => return Err(error),
        }
        let mut grown = vma.clone();
        grown.end = new_end;
        self.mm.record().vmas.insert(grown);
        self.populate_grown(vma, end, new_end);
        Ok(true)
    }

    /// Moves (or, with an old length of 0, maps once more) `[addr, addr + old_len)` of `vma` to `to`, which is free.
    fn move_mapping(&mut self, remap: &Remap, vma: &Vma, to: u64) -> SysResult<u64> {
        let Remap { addr, old_len, new_len, .. } = *remap;
        if old_len == 0 {
            return self.map_again(vma, addr, new_len, to, MapFlags::FIXED_NOREPLACE);
        }
        self.unpatch(addr, addr + old_len)?;
        self.give_up_trampolines(to, to + new_len)?;
        let call = HostCall::Remap {
            addr: UserAddr(addr),
            old_len,
            new_len,
            to: Some(UserAddr(to)),
            keep_old: remap.keeps_old(),
        };
        self.host_calls(&[call])?;
        let left = {
            let mut record = self.mm.record();
            let left = record.vmas.remove(addr, addr + old_len);
            if let Some(moved) = left.first() {
                let moved = Vma { start: to, end: to + new_len, ..moved.clone() };
                if remap.keeps_old() {
                    // It stays, empty and unlocked.
                    let mut kept = Vma { start: addr, end: addr + old_len, ..moved.clone() };
                    kept.flags.remove(VmaFlags::LOCKED | VmaFlags::LOCK_ON_FAULT);
                    record.vmas.insert(kept);
                }
                record.vmas.insert(moved);
            }
            left
        };
        drop(left);
        self.populate_grown(vma, to + old_len, to + new_len);
        Ok(to)
    }

    /// Linux brings in what a locked mapping grew by, and ignores failure.
    fn populate_grown(&mut self, vma: &Vma, start: u64, end: u64) {
        if start < end && vma.flags.contains(VmaFlags::LOCKED) {
            let advice = abi::Madvise::POPULATE_WRITE.0;
            let _ = self.host_calls(&[HostCall::Advise { addr: UserAddr(start), len: end - start, advice }]);
        }
    }

    /// A second mapping of what `vma` shows from `addr` on.
    fn map_again(&mut self, vma: &Vma, addr: u64, len: u64, to: u64, fixed: MapFlags) -> SysResult<u64> {
        let into = addr - vma.start;
        let backing = match &vma.backing {
            Backing::File { file, offset } => Backing::File { file: file.clone(), offset: offset + into },
            Backing::Shared { memory, offset } => {
                Backing::Shared { memory: memory.clone(), offset: offset + into }
            }
            // The host has no second name for it.
            Backing::Anonymous | Backing::Special(_) => return Err(Errno::ENOMEM.into()),
        };
        let mut flags = MapFlags::SHARED | fixed;
        flags.set(MapFlags::LOCKED, vma.flags.contains(VmaFlags::LOCKED));
        self.map_locked(MapRequest { addr: to, len, prot: vma.prot, flags, backing })
    }
}

/// Linux only emulates it: a shared mapping is mapped anew from another page of its file on.
pub fn sys_remap_file_pages(
    task: &mut CurrentTask,
    addr: UserAddr,
    len: u64,
    prot: Prot,
    page: u64,
    _flags: MapFlags,
) -> SysResult<()> {
    let start = addr.0 / PAGE_SIZE * PAGE_SIZE;
    let len = len / PAGE_SIZE * PAGE_SIZE;
    let invalid = Errno::EINVAL;
    if prot != Prot::NONE || start.checked_add(len).is_none_or(|end| end <= start || end > GUEST_TOP) {
        return Err(invalid.into());
    }
    let offset =
        page.checked_mul(PAGE_SIZE).filter(|offset| offset.checked_add(len).is_some()).ok_or(invalid)?;
    let mm = task.mm.clone();
    let _lock = mm.lock(&task.waiter)?;
    let vma = mm.record().vmas.find(start).cloned().ok_or(invalid)?;
    if !vma.flags.contains(VmaFlags::SHARED) {
        return Err(invalid.into());
    }
    // It may reach over parts that were remapped before, of the same file and protection, without a hole.
    let same_file = |other: &Vma| match (&vma.backing, &other.backing) {
        (Backing::File { file, .. }, Backing::File { file: other, .. }) => {
            std::sync::Arc::ptr_eq(file, other)
        }
        (Backing::Shared { memory, .. }, Backing::Shared { memory: other, .. }) => {
            std::sync::Arc::ptr_eq(memory, other)
        }
        _ => false,
    };
    {
        let record = mm.record();
        let whole = record.vmas.mapped_until(start, start + len) == start + len;
        let alike = record
            .vmas
            .overlapping(start, start + len)
            .all(|other| same_file(other) && other.prot == vma.prot && other.flags == vma.flags);
        if !whole || !alike {
            return Err(invalid.into());
        }
    }
    let backing = match vma.backing {
        Backing::File { file, .. } => Backing::File { file, offset },
        Backing::Shared { memory, .. } => Backing::Shared { memory, offset },
        Backing::Anonymous | Backing::Special(_) => return Err(invalid.into()),
    };
    let mut flags = MapFlags::SHARED | MapFlags::FIXED;
    flags.set(MapFlags::LOCKED, vma.flags.contains(VmaFlags::LOCKED));
    task.map_locked(MapRequest { addr: start, len, prot: vma.prot, flags, backing })?;
    Ok(())
}
