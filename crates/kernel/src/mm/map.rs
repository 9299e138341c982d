//! Changing mappings: carried out in the guest's context, recorded from the host's answer.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use abi::{Errno, GUEST_TOP, MapFlags, PAGE_SIZE, Prot, UserAddr};
use platform::{HostCall, MapFile};
use sync::SysResult;
use vfs::{Mapping, MountFlags};

use crate::mm::{Backing, MmRecord, SharedMemory, Trampolines, Vma, VmaFlags};
use crate::resource;
use crate::task::CurrentTask;

/// The lowest address that may be mapped (`vm.mmap_min_addr`).
pub const MMAP_MIN_ADDR: u64 = 65536;
/// Mappings that a process may have (`vm.max_map_count`).
pub(super) const MAX_MAP_COUNT: usize = 65530;

/// A mapping to make, checked.
pub struct MapRequest {
    /// Where; a hint unless `flags` has `FIXED` or `FIXED_NOREPLACE`.
    pub addr: u64,
    /// In bytes, a multiple of the page size.
    pub len: u64,
    pub prot: Prot,
    pub flags: MapFlags,
    /// What is mapped, from which offset on. `Anonymous` with `SHARED` gets memory of its own.
    pub backing: Backing,
}

/// The descriptor that a mapping is made from, kept for the length of the host call.
enum HostSource {
    /// Fresh zero pages.
    Zero,
    File(Arc<OwnedFd>),
    Shared(Arc<SharedMemory>),
}

impl HostSource {
    fn map_file(&self, offset: u64) -> Option<MapFile<'_>> {
        match self {
            HostSource::Zero => None,
            HostSource::File(fd) => Some(MapFile { fd: fd.as_fd(), offset }),
            HostSource::Shared(memory) => Some(MapFile { fd: memory.file.as_fd(), offset }),
        }
    }
}

/// Shared anonymous mappings of one process that have a host descriptor each; more have none, and cannot be mapped
/// twice.
const MAX_SHARED_MEMORY: usize = 256;

impl CurrentTask {
    /// Maps; returns where.
    pub fn map(&mut self, request: MapRequest) -> SysResult<u64> {
        let mm = self.mm.clone();
        let _lock = mm.lock(&self.waiter)?;
        self.map_locked(request)
    }

    pub(super) fn map_locked(&mut self, request: MapRequest) -> SysResult<u64> {
        let at = self.map_at(request, false)?;
        self.follow_stack_limit();
        Ok(at)
    }

    /// Where `RLIMIT_AS` holds, a stack may grow less the more is mapped.
    pub(super) fn follow_stack_limit(&self) {
        let limits = *self.group().limits.lock();
        if limits.soft(resource::AS) != resource::INFINITY {
            self.mm.apply_stack_limit(&limits);
        }
    }

    fn map_at(&mut self, request: MapRequest, retried: bool) -> SysResult<u64> {
        let MapRequest { addr, len, prot, mut flags, mut backing } = request;
        let fixed = flags.intersects(MapFlags::FIXED | MapFlags::FIXED_NOREPLACE);
        if flags.contains(MapFlags::SHARED) && matches!(backing, Backing::Anonymous) {
            backing = self.shared_memory(len)?;
        }
        let room = if fixed { 0 } else { self.room_for_trampolines(&backing, flags) };
        let (start, vma) = {
            let mm = self.mm.clone();
            let record = mm.record();
            if record.vmas.count() > MAX_MAP_COUNT {
                return Err(Errno::ENOMEM.into());
            }
            if let Some(on_fault) = record.lock_future {
                flags |= MapFlags::LOCKED;
                flags.set(MapFlags::POPULATE, flags.contains(MapFlags::POPULATE) || !on_fault);
            }
            let start = if fixed {
                self.check_fixed(&record, addr, len, flags)?
            } else {
                place(&record, addr, len + room, flags)?
            };
            let mut vma = new_vma(start, len, prot, flags, backing)?;
            vma.flags.set(VmaFlags::LOCK_ON_FAULT, record.lock_future == Some(true));
            if flags.contains(MapFlags::LOCKED) {
                self.check_lock_limit(&record, len)?;
            }
            let freed: u64 =
                record.vmas.overlapping(start, start + len).map(|old| overlap(old, start, len)).sum();
            self.check_limits(&record, len, freed, vma.is_data())?;
            let fresh = vma.is_data() || matches!(vma.backing, Backing::Shared { .. });
            if fresh && !flags.contains(MapFlags::NORESERVE) && !self.kernel().may_commit(len) {
                return Err(Errno::ENOMEM.into());
            }
            (start, vma)
        };
        let source = host_source(&vma.backing, flags, prot)?;
        let offset = match &vma.backing {
            Backing::File { offset, .. } | Backing::Shared { offset, .. } => *offset,
            Backing::Anonymous | Backing::Special(_) => 0,
        };
        // A locked page is one that is there.
        let locks = vma.flags.contains(VmaFlags::LOCKED) && !vma.flags.contains(VmaFlags::LOCK_ON_FAULT);
        let host = host_flags(flags, fixed, matches!(source, HostSource::Zero), locks);
        let call = HostCall::Map {
            addr: UserAddr(start),
            len,
            prot: prot.bits(),
            flags: host,
            file: source.map_file(offset),
        };
        if fixed {
            self.give_up_trampolines(start, start + len)?;
        }
        let trampolines = self.trampolines_for(&vma);
        let mut calls = vec![call];
        calls.extend(trampolines.iter().flat_map(Trampolines::map_calls));
        match self.host_calls(&calls) {
            // A stack has grown there without telling.
            Err(error) if error.errno() == Some(Errno::EEXIST) && !fixed && !retried => {
                self.mm.refresh_stack();
                let backing = vma.backing;
                return self.map_at(MapRequest { addr, len, prot, flags, backing }, true);
            }
            done => done?,
        };
        let mut replaced = Vec::new();
        {
            let mut record = self.mm.record();
            if fixed {
                replaced = record.vmas.remove(start, start + len);
            }
            record.vmas.insert(vma);
            record.trampolines.extend(trampolines);
        }
        // Files whose last mapping this was are closed outside the record's lock.
        drop(replaced);
        Ok(start)
    }

    /// `ENOMEM`: the host has no descriptor for it, and memory is limited, so it must have one to be looked at by.
    fn shared_memory(&self, len: u64) -> SysResult<Backing> {
        let known = {
            let record = self.mm.record();
            record.vmas.iter().filter(|vma| matches!(vma.backing, Backing::Shared { .. })).count()
        };
        let memory = if known < MAX_SHARED_MEMORY { SharedMemory::new(len) } else { None };
        match memory {
            Some(memory) => Ok(Backing::Shared { memory, offset: 0 }),
            None if self.kernel().options.memory.is_some() => Err(Errno::ENOMEM.into()),
            None => Ok(Backing::Anonymous),
        }
    }

    fn check_fixed(&self, record: &MmRecord, addr: u64, len: u64, flags: MapFlags) -> SysResult<u64> {
        if len > GUEST_TOP || addr > GUEST_TOP - len {
            return Err(Errno::ENOMEM.into());
        }
        if !addr.is_multiple_of(PAGE_SIZE) {
            return Err(Errno::EINVAL.into());
        }
        if addr < MMAP_MIN_ADDR {
            return Err(Errno::EPERM.into());
        }
        if flags.contains(MapFlags::FIXED_NOREPLACE) && !record.vmas.is_free(addr, addr + len) {
            return Err(Errno::EEXIST.into());
        }
        if record.vmas.has_sealed(addr, addr + len) {
            return Err(Errno::EPERM.into());
        }
        Ok(addr)
    }

    /// `RLIMIT_AS` and `RLIMIT_DATA` for `len` more bytes where `freed` go.
    pub(super) fn check_limits(
        &self,
        record: &MmRecord,
        len: u64,
        freed: u64,
        is_data: bool,
    ) -> SysResult<()> {
        let limits = *self.group().limits.lock();
        let total = (record.vmas.pages() * PAGE_SIZE).saturating_sub(freed);
        if total.saturating_add(len) > limits.soft(resource::AS) {
            return Err(Errno::ENOMEM.into());
        }
        if is_data { self.check_data_limit(record, len) } else { Ok(()) }
    }

    fn check_data_limit(&self, record: &MmRecord, len: u64) -> SysResult<()> {
        let data_limit = self.limit(resource::DATA);
        if data_limit != resource::INFINITY {
            let data: u64 = record.vmas.iter().filter(|vma| vma.is_data()).map(Vma::len).sum();
            if data.saturating_add(len) > data_limit {
                return Err(Errno::ENOMEM.into());
            }
        }
        Ok(())
    }

    /// Unmaps `[start, start + len)`, which is page-aligned and in the guest's range.
    pub fn unmap(&mut self, start: u64, len: u64) -> SysResult<()> {
        let mm = self.mm.clone();
        let _lock = mm.lock(&self.waiter)?;
        self.unmap_locked(start, len)
    }

    pub(super) fn unmap_locked(&mut self, start: u64, len: u64) -> SysResult<()> {
        let splits = {
            let record = self.mm.record();
            if record.vmas.has_sealed(start, start + len) {
                return Err(Errno::EPERM.into());
            }
            let inside = |at: u64| record.vmas.find(at).is_some_and(|vma| vma.start < at);
            inside(start) && inside(start + len) && record.vmas.count() >= MAX_MAP_COUNT
        };
        if splits {
            return Err(Errno::ENOMEM.into());
        }
        self.give_up_trampolines(start, start + len)?;
        self.host_calls(&[HostCall::Unmap { addr: UserAddr(start), len }])?;
        // Files whose last mapping this was are closed outside the record's lock.
        let removed = self.mm.record().vmas.remove(start, start + len);
        drop(removed);
        Ok(())
    }

    /// Changes protections. `ENOMEM` at the first hole, what lies before it being changed; `EACCES` where a file's
    /// access does not allow it.
    pub fn protect(&mut self, start: u64, len: u64, prot: Prot) -> SysResult<()> {
        let mm = self.mm.clone();
        let _lock = mm.lock(&self.waiter)?;
        let end = start + len;
        mm.refresh_holes(start, end);
        let (until, error) = {
            let record = mm.record();
            if record.vmas.has_sealed(start, end) {
                return Err(Errno::EPERM.into());
            }
            let mapped = record.vmas.mapped_until(start, end);
            let refused = record.vmas.overlapping(start, mapped).find(|vma| !vma.may.contains(prot));
            let becomes_data: u64 = record
                .vmas
                .overlapping(start, mapped)
                .filter(|vma| !vma.is_data() && Vma { prot, ..(*vma).clone() }.is_data())
                .map(|vma| overlap(vma, start, mapped - start))
                .sum();
            if becomes_data > 0 {
                self.check_data_limit(&record, becomes_data)?;
            }
            match refused {
                Some(vma) => (vma.start.max(start), Some(Errno::EACCES)),
                None if mapped < end => (mapped, Some(Errno::ENOMEM)),
                None => (end, None),
            }
        };
        if until > start {
            if prot.contains(Prot::WRITE) {
                self.stop_using_trampolines(start, until)?;
            }
            self.host_calls(&[HostCall::Protect {
                addr: UserAddr(start),
                len: until - start,
                prot: prot.bits(),
            }])?;
            mm.record().vmas.update(start, until, |vma| vma.prot = prot);
        }
        error.map_or(Ok(()), |error| Err(error.into()))
    }
}

impl CurrentTask {
    /// In a forked child: leaves out what the parent asked to be left out or wiped (`MADV_DONTFORK`,
    /// `MADV_WIPEONFORK`).
    pub(crate) fn after_fork_memory(&mut self) {
        let marked = VmaFlags::DONTFORK | VmaFlags::WIPEONFORK;
        let vmas: Vec<Vma> = {
            let record = self.mm.record();
            record.vmas.iter().filter(|vma| vma.flags.intersects(marked)).cloned().collect()
        };
        if vmas.is_empty() || self.mm.users() > 1 {
            return;
        }
        for vma in vmas {
            let (addr, len) = (UserAddr(vma.start), vma.len());
            let leaves = vma.flags.contains(VmaFlags::DONTFORK);
            let call = match leaves {
                true => HostCall::Unmap { addr, len },
                false => {
                    let droppable = vma.flags.contains(VmaFlags::DROPPABLE);
                    let kind = if droppable { MapFlags::DROPPABLE } else { MapFlags::PRIVATE };
                    let flags = kind | MapFlags::ANONYMOUS | MapFlags::FIXED;
                    HostCall::Map { addr, len, prot: vma.prot.bits(), flags: flags.bits(), file: None }
                }
            };
            // A child that keeps what it should not have seen must not run.
            if self.host_calls(&[call]).is_err() {
                self.exit_group(crate::task::GroupExit::Signal { signal: abi::Signal::KILL, core: false });
                return;
            }
            if leaves {
                let removed = self.mm.record().vmas.remove(vma.start, vma.end);
                drop(removed);
            }
        }
    }
}

/// How much of `vma` lies in `[start, start + len)`.
fn overlap(vma: &Vma, start: u64, len: u64) -> u64 {
    vma.end.min(start + len).saturating_sub(vma.start.max(start))
}

/// Chooses a place for a mapping that is not fixed.
pub(super) fn place(record: &MmRecord, hint: u64, len: u64, flags: MapFlags) -> SysResult<u64> {
    if len > GUEST_TOP - MMAP_MIN_ADDR {
        return Err(Errno::ENOMEM.into());
    }
    let hint = hint / PAGE_SIZE * PAGE_SIZE;
    if hint != 0 {
        let hint = hint.max(MMAP_MIN_ADDR);
        if hint <= GUEST_TOP - len && record.has_room(hint, hint + len) {
            return Ok(hint);
        }
    }
    if flags.contains(MapFlags::BIT32) {
        let found = free_above(record, len, 0x4000_0000).filter(|at| at + len <= 0x8000_0000);
        return found.ok_or(Errno::ENOMEM.into());
    }
    let found = free_below(record, len, record.layout.mmap_base);
    // Linux falls back to the other direction when the top is full.
    found.or_else(|| free_above(record, len, MMAP_MIN_ADDR)).ok_or(Errno::ENOMEM.into())
}

/// The highest free range below `top`, trampolines being in the way too.
fn free_below(record: &MmRecord, len: u64, mut top: u64) -> Option<u64> {
    loop {
        let at = record.vmas.free_below(len, top, MMAP_MIN_ADDR)?;
        let in_the_way = record.trampolines.iter().filter(|one| one.overlaps(at, at + len));
        match in_the_way.map(|one| one.start).min() {
            Some(start) => top = start,
            None => return Some(at),
        }
    }
}

/// The lowest free range at or above `from`, likewise.
fn free_above(record: &MmRecord, len: u64, mut from: u64) -> Option<u64> {
    loop {
        let at = record.vmas.free_above(len, from)?;
        let in_the_way = record.trampolines.iter().filter(|one| one.overlaps(at, at + len));
        match in_the_way.map(Trampolines::end).max() {
            Some(end) => from = end,
            None => return Some(at),
        }
    }
}

fn new_vma(start: u64, len: u64, prot: Prot, flags: MapFlags, backing: Backing) -> SysResult<Vma> {
    let mut vma_flags = VmaFlags::empty();
    let shared = flags.contains(MapFlags::SHARED);
    let droppable = VmaFlags::DROPPABLE | VmaFlags::WIPEONFORK | VmaFlags::DONTDUMP;
    for (wanted, flag) in [
        (shared, VmaFlags::SHARED),
        (flags.contains(MapFlags::DROPPABLE), droppable),
        (flags.contains(MapFlags::GROWSDOWN), VmaFlags::GROWSDOWN),
        (flags.contains(MapFlags::NORESERVE), VmaFlags::NORESERVE),
        (flags.contains(MapFlags::LOCKED), VmaFlags::LOCKED),
    ] {
        vma_flags.set(flag, wanted);
    }
    let mut may = Prot::READ | Prot::WRITE | Prot::EXEC;
    if let Backing::File { file, .. } = &backing {
        if shared && !file.is_writable() {
            may.remove(Prot::WRITE);
        }
        if let Some(path) = &file.path
            && path.mount.flags().contains(MountFlags::NOEXEC)
        {
            may.remove(Prot::EXEC);
        }
    }
    Ok(Vma { start, end: start + len, prot, may, flags: vma_flags, backing, name: None })
}

/// What the host maps for it.
fn host_source(backing: &Backing, flags: MapFlags, prot: Prot) -> SysResult<HostSource> {
    match backing {
        Backing::Anonymous | Backing::Special(_) => Ok(HostSource::Zero),
        Backing::Shared { memory, .. } => Ok(HostSource::Shared(memory.clone())),
        Backing::File { file, .. } => {
            let writable =
                flags.contains(MapFlags::SHARED) && (file.is_writable() || prot.contains(Prot::WRITE));
            Ok(match file.ops.mapping(file, writable)? {
                Mapping::Host(fd) => HostSource::File(fd),
                Mapping::Zero => HostSource::Zero,
            })
        }
    }
}

/// What of the guest's flags the host is asked for. The place has been chosen.
fn host_flags(flags: MapFlags, fixed: bool, anonymous: bool, populates: bool) -> u32 {
    let kept = MapFlags::NORESERVE | MapFlags::POPULATE | MapFlags::GROWSDOWN | MapFlags::STACK;
    let mut host = flags & kept;
    host.set(MapFlags::POPULATE, populates || flags.contains(MapFlags::POPULATE));
    let kind = flags & (MapFlags::SHARED | MapFlags::DROPPABLE);
    host |= if kind.is_empty() { MapFlags::PRIVATE } else { kind };
    if anonymous {
        host |= MapFlags::ANONYMOUS;
    }
    let replaces = fixed && !flags.contains(MapFlags::FIXED_NOREPLACE);
    host |= if replaces { MapFlags::FIXED } else { MapFlags::FIXED_NOREPLACE };
    host.bits()
}
