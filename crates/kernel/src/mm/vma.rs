//! The map of mappings: ranges that do not overlap, split and merged as Linux does.

use std::collections::BTreeMap;
use std::sync::Arc;

use abi::{GUEST_TOP, PAGE_SIZE, Prot};
use host::lent::Lent;
use rustix::fs::MemfdFlags;
use vfs::FileDescription;

bitflags::bitflags! {
    /// Properties of a mapping beside its protection.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct VmaFlags: u32 {
        const SHARED = 1;
        const GROWSDOWN = 2;
        const NORESERVE = 4;
        const LOCKED = 8;
        /// Left out of children (`MADV_DONTFORK`).
        const DONTFORK = 16;
        /// Zero in children (`MADV_WIPEONFORK`).
        const WIPEONFORK = 32;
        const DONTDUMP = 64;
        /// The process's stack.
        const STACK = 128;
        /// Grown by `brk`.
        const HEAP = 256;
        /// With `LOCKED`: pages are locked when touched (`MLOCK_ONFAULT`).
        const LOCK_ON_FAULT = 512;
        /// `mseal`: its place and protection stay.
        const SEALED = 1024;
        /// Its pages may go when memory is short (`MAP_DROPPABLE`).
        const DROPPABLE = 2048;
    }
}

/// What a mapping shows.
#[derive(Clone)]
pub enum Backing {
    /// Zero pages.
    Anonymous,
    /// Anonymous memory shared with children, from this offset of it on.
    Shared { memory: Arc<SharedMemory>, offset: u64 },
    /// A file, from this offset (of the mapping's start) on.
    File { file: Arc<FileDescription>, offset: u64 },
    /// The host's: `[vdso]`, `[vvar]`.
    Special(&'static str),
}

/// Shared anonymous memory, as a host memfd: so it can be mapped once more (`mremap` with an old length of 0,
/// `remap_file_pages`), which no other means of the host offers an ordinary user.
pub struct SharedMemory {
    pub file: Lent,
    /// What /proc/PID/maps tells them apart by.
    pub ino: u64,
}

impl SharedMemory {
    /// `len` bytes of zeros. `None`: the host has no descriptor for it.
    pub(super) fn new(len: u64) -> Option<Arc<SharedMemory>> {
        let file = rustix::fs::memfd_create("umlaut-shared", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)
            .ok()?;
        let file = host::descriptors::for_guest(file).ok()?;
        rustix::fs::ftruncate(&file, len).ok()?;
        let ino = rustix::fs::fstat(&file).ok()?.st_ino;
        Some(Arc::new(SharedMemory { file: Lent::new(file), ino }))
    }
}

/// One mapping.
#[derive(Clone)]
pub struct Vma {
    pub start: u64,
    pub end: u64,
    pub prot: Prot,
    /// What `mprotect` may make it.
    pub may: Prot,
    pub flags: VmaFlags,
    pub backing: Backing,
    /// `PR_SET_VMA_ANON_NAME`.
    pub name: Option<Arc<str>>,
}

impl Vma {
    #[allow(clippy::len_without_is_empty, reason = "a mapping has a page at least")]
    pub fn len(&self) -> u64 {
        self.end - self.start
    }

    /// The part of it in `[start, end)`, which lies in it.
    fn part(&self, start: u64, end: u64) -> Vma {
        let mut part = self.clone();
        part.start = start;
        part.end = end;
        if let Backing::File { offset, .. } | Backing::Shared { offset, .. } = &mut part.backing {
            *offset += start - self.start;
        }
        part
    }

    /// Whether `next`, which begins where this ends, is one with it.
    fn joins(&self, next: &Vma) -> bool {
        self.end == next.start
            && self.prot == next.prot
            && self.may == next.may
            && self.flags == next.flags
            && self.name == next.name
            && match (&self.backing, &next.backing) {
                (Backing::Anonymous, Backing::Anonymous) => true,
                (Backing::File { file, offset }, Backing::File { file: other, offset: at }) => {
                    Arc::ptr_eq(file, other) && offset + self.len() == *at
                }
                (Backing::Shared { memory, offset }, Backing::Shared { memory: other, offset: at }) => {
                    Arc::ptr_eq(memory, other) && offset + self.len() == *at
                }
                _ => false,
            }
    }

    /// Whether it counts against `RLIMIT_DATA`: private, writable, and not the stack.
    pub fn is_data(&self) -> bool {
        self.prot.contains(Prot::WRITE) && !self.flags.intersects(VmaFlags::SHARED | VmaFlags::GROWSDOWN)
    }
}

/// All mappings of an address space.
#[derive(Clone, Default)]
pub struct VmaMap {
    by_start: BTreeMap<u64, Vma>,
    pages: u64,
    /// The most pages that were ever mapped (Linux: `hiwater_vm`).
    peak: u64,
}

impl VmaMap {
    pub fn count(&self) -> usize {
        self.by_start.len()
    }

    /// Pages mapped.
    pub fn pages(&self) -> u64 {
        self.pages
    }

    /// The most pages that were ever mapped.
    pub fn peak(&self) -> u64 {
        self.peak
    }

    /// Bytes locked in memory (Linux: `locked_vm`).
    pub fn locked(&self) -> u64 {
        self.iter().filter(|vma| vma.flags.contains(VmaFlags::LOCKED)).map(Vma::len).sum()
    }

    /// Whether `[start, end)` holds a part of a sealed mapping.
    pub fn has_sealed(&self, start: u64, end: u64) -> bool {
        self.overlapping(start, end).any(|vma| vma.flags.contains(VmaFlags::SEALED))
    }

    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Vma> {
        self.by_start.values()
    }

    pub fn for_each_mut(&mut self, change: impl FnMut(&mut Vma)) {
        self.by_start.values_mut().for_each(change);
    }

    /// The mapping that holds `addr`.
    pub fn find(&self, addr: u64) -> Option<&Vma> {
        self.by_start.range(..=addr).next_back().map(|(_, vma)| vma).filter(|vma| addr < vma.end)
    }

    /// The first mapping that ends above `addr`.
    pub fn first_above(&self, addr: u64) -> Option<&Vma> {
        self.find(addr).or_else(|| self.by_start.range(addr..).next().map(|(_, vma)| vma))
    }

    /// The mappings that overlap `[start, end)`, whole.
    pub fn overlapping(&self, start: u64, end: u64) -> impl DoubleEndedIterator<Item = &Vma> {
        let first = self.find(start).map_or(start, |vma| vma.start);
        self.by_start.range(first..end.max(first)).map(|(_, vma)| vma)
    }

    pub fn is_free(&self, start: u64, end: u64) -> bool {
        self.overlapping(start, end).next().is_none()
    }

    /// Takes everything out of `[start, end)`; returns the pieces.
    pub fn remove(&mut self, start: u64, end: u64) -> Vec<Vma> {
        let touched: Vec<u64> = self.overlapping(start, end).map(|vma| vma.start).collect();
        let mut removed = Vec::new();
        for at in touched {
            let Some(vma) = self.by_start.remove(&at) else { continue };
            let (from, to) = (start.max(vma.start), end.min(vma.end));
            if vma.start < from {
                self.by_start.insert(vma.start, vma.part(vma.start, from));
            }
            if to < vma.end {
                self.by_start.insert(to, vma.part(to, vma.end));
            }
            self.pages -= (to - from) / PAGE_SIZE;
            removed.push(vma.part(from, to));
        }
        removed
    }

    /// Puts a mapping in, in place of what is there, and joins it with its neighbours.
    pub fn insert(&mut self, mut vma: Vma) {
        self.remove(vma.start, vma.end);
        self.pages += vma.len() / PAGE_SIZE;
        self.peak = self.peak.max(self.pages);
        if let Some(before) = self.by_start.range(..vma.start).next_back().map(|(_, before)| before)
            && before.joins(&vma)
        {
            let start = before.start;
            if let Some(mut joined) = self.by_start.remove(&start) {
                joined.end = vma.end;
                vma = joined;
            }
        }
        if let Some(after) = self.by_start.get(&vma.end)
            && vma.joins(after)
        {
            let end = after.end;
            self.by_start.remove(&vma.end);
            vma.end = end;
        }
        self.by_start.insert(vma.start, vma);
    }

    /// Changes all mappings within `[start, end)`, splitting at the borders.
    pub fn update(&mut self, start: u64, end: u64, mut change: impl FnMut(&mut Vma)) {
        for mut piece in self.remove(start, end) {
            change(&mut piece);
            self.insert(piece);
        }
    }

    /// The end of what is mapped without a hole from `start` on, at most `end`; `start` itself if nothing is there.
    pub fn mapped_until(&self, start: u64, end: u64) -> u64 {
        let mut at = start;
        while let Some(vma) = self.find(at).filter(|_| at < end) {
            at = vma.end;
        }
        at.min(end)
    }

    /// The highest free range of `len` bytes that ends at or below `below`, and begins at or above `least`.
    pub fn free_below(&self, len: u64, below: u64, least: u64) -> Option<u64> {
        let mut top = below;
        for vma in self.by_start.range(..below).rev().map(|(_, vma)| vma) {
            if vma.end < top && top - vma.end >= len + guard_of(self.first_above(top)) {
                break;
            }
            top = top.min(vma.start);
        }
        let start = top.checked_sub(len + guard_of(self.first_above(top)))?;
        (start >= least && self.is_free(start, start + len)).then_some(start)
    }

    /// The lowest free range of `len` bytes at or above `from`.
    pub fn free_above(&self, len: u64, from: u64) -> Option<u64> {
        let mut at = from;
        while let Some(vma) = self.first_above(at) {
            if vma.start >= at && vma.start - at >= len + guard_of(Some(vma)) {
                return Some(at);
            }
            at = vma.end;
        }
        (at.checked_add(len)? <= GUEST_TOP).then_some(at)
    }
}

/// Bytes to keep free below a mapping that grows down (Linux: `stack_guard_gap`).
fn guard_of(above: Option<&Vma>) -> u64 {
    match above {
        Some(vma) if vma.flags.contains(VmaFlags::GROWSDOWN) => 256 * PAGE_SIZE,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vma(start: u64, end: u64, prot: Prot) -> Vma {
        Vma {
            start: start * PAGE_SIZE,
            end: end * PAGE_SIZE,
            prot,
            may: Prot::READ | Prot::WRITE | Prot::EXEC,
            flags: VmaFlags::empty(),
            backing: Backing::Anonymous,
            name: None,
        }
    }

    fn shape(map: &VmaMap) -> Vec<(u64, u64, u32)> {
        map.iter().map(|v| (v.start / PAGE_SIZE, v.end / PAGE_SIZE, v.prot.bits())).collect()
    }

    #[test]
    fn protecting_the_middle_splits_and_undoing_it_joins() {
        let mut map = VmaMap::default();
        map.insert(vma(10, 20, Prot::READ));
        map.update(12 * PAGE_SIZE, 14 * PAGE_SIZE, |v| v.prot = Prot::WRITE);
        assert_eq!(shape(&map), [(10, 12, 1), (12, 14, 2), (14, 20, 1)]);
        map.update(12 * PAGE_SIZE, 14 * PAGE_SIZE, |v| v.prot = Prot::READ);
        assert_eq!(shape(&map), [(10, 20, 1)]);
        assert_eq!(map.pages(), 10);
        map.remove(0, 11 * PAGE_SIZE);
        assert_eq!((shape(&map), map.pages()), (vec![(11, 20, 1)], 9));
    }

    #[test]
    fn free_ranges_are_found_from_the_top() {
        let mut map = VmaMap::default();
        map.insert(vma(90, 100, Prot::READ));
        map.insert(vma(70, 80, Prot::READ));
        let page = PAGE_SIZE;
        assert_eq!(map.free_below(10 * page, 100 * page, page), Some(80 * page));
        assert_eq!(map.free_below(11 * page, 100 * page, page), Some(59 * page));
        assert_eq!(map.free_below(5 * page, 95 * page, page), Some(85 * page));
        assert_eq!(map.free_below(70 * page, 100 * page, page), None);
        assert_eq!(map.free_above(11 * page, 70 * page), Some(100 * page));
        assert_eq!(map.free_above(10 * page, 70 * page), Some(80 * page));
    }

    #[test]
    fn it_agrees_with_a_page_by_page_model() {
        use proptest::prelude::*;
        let operations = prop::collection::vec((0u8..3, 0u64..60, 1u64..20, 1u32..8), 1..60);
        proptest!(ProptestConfig::with_cases(300), |(operations in operations)| {
            let mut map = VmaMap::default();
            let mut model = [0u32; 80];
            for (what, start, len, prot) in operations {
                let (from, to) = (start * PAGE_SIZE, (start + len) * PAGE_SIZE);
                let range = usize::try_from(start).unwrap()..usize::try_from(start + len).unwrap();
                match what {
                    0 => { map.insert(vma(start, start + len, Prot::from_bits_retain(prot))); model[range].fill(prot); }
                    1 => { map.remove(from, to); model[range].fill(0); }
                    _ => {
                        map.update(from, to, |v| v.prot = Prot::from_bits_retain(prot));
                        model[range].iter_mut().filter(|page| **page != 0).for_each(|page| *page = prot);
                    }
                }
                for (page, expected) in (0u64..).zip(model) {
                    let found = map.find(page * PAGE_SIZE).map_or(0, |v| v.prot.bits());
                    prop_assert_eq!(found, expected, "page {}", page);
                }
                let joined = model.iter().zip(model.iter().skip(1)).filter(|(a, b)| a != b && **b != 0).count()
                    + usize::from(model[0] != 0);
                prop_assert_eq!(map.count(), joined);
                prop_assert_eq!(map.pages(), model.iter().filter(|page| **page != 0).count() as u64);
            }
        });
    }
}
