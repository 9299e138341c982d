//! The mock's guest memory: areas, and the private pages that were touched.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use abi::{Errno, GUEST_TOP, PAGE_SIZE};
use parking_lot::Mutex;

use crate::{MapFile, Reach};

const PAGE: usize = PAGE_SIZE as usize;
type Page = [u8; PAGE];

/// How far below a stack an access grows it (`RLIMIT_STACK` of the real ones).
const STACK_LIMIT: u64 = 8 << 20;

/// Why an access failed: the `si_code`s of SIGSEGV.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Denied {
    NotMapped = 1,
    Protected = 2,
}

#[derive(Clone, Debug)]
struct Area {
    end: u64,
    prot: u32,
    grows_down: bool,
    source: Source,
}

#[derive(Clone, Debug)]
enum Source {
    Anonymous,
    Shared { pages: Arc<Mutex<BTreeMap<u64, Page>>>, offset: u64 },
    File { file: Arc<OwnedFd>, offset: u64, shared: bool },
}

impl Source {
    fn advanced(&self, by: u64) -> Source {
        let mut source = self.clone();
        match &mut source {
            Source::Anonymous => {}
            Source::Shared { offset, .. } | Source::File { offset, .. } => *offset += by,
        }
        source
    }
}

/// One address space. A clone is a fork's: private pages copied, shared ones shared.
#[derive(Clone, Debug, Default)]
pub(super) struct Memory {
    /// By start; disjoint.
    areas: BTreeMap<u64, Area>,
    /// Private pages that differ from their source, by address.
    private: BTreeMap<u64, Box<Page>>,
}

impl Memory {
    pub(super) fn touched(&self) -> u64 {
        self.private.len() as u64
    }

    pub(super) fn map(
        &mut self,
        start: u64,
        len: u64,
        prot: u32,
        flags: u32,
        file: Option<MapFile<'_>>,
    ) -> Result<u64, Errno> {
        let has = |flag: i32| flags & flag.cast_unsigned() != 0;
        let end = aligned_end(start, len)?;
        if has(libc::MAP_FIXED_NOREPLACE) && self.overlaps(start, end) {
            return Err(Errno::EEXIST);
        }
        let source = match file {
            Some(file) => Source::File {
                file: Arc::new(rustix::io::fcntl_dupfd_cloexec(file.fd, 0).map_err(|_| Errno::ENFILE)?),
                offset: file.offset,
                shared: has(libc::MAP_SHARED),
            },
            None if has(libc::MAP_SHARED) => Source::Shared { pages: Arc::default(), offset: 0 },
            None => Source::Anonymous,
        };
        self.remove(start, end);
        let grows_down = has(libc::MAP_GROWSDOWN);
        self.areas.insert(start, Area { end, prot, grows_down, source });
        Ok(start)
    }

    pub(super) fn unmap(&mut self, start: u64, len: u64) -> Result<u64, Errno> {
        let end = aligned_end(start, len)?;
        self.remove(start, end);
        Ok(0)
    }

    pub(super) fn unmap_all(&mut self) {
        *self = Memory::default();
    }

    pub(super) fn protect(&mut self, start: u64, len: u64, prot: u32) -> Result<u64, Errno> {
        if len == 0 {
            return Ok(0);
        }
        let end = aligned_end(start, len)?;
        self.split(start);
        self.split(end);
        let whole = self.covered(start, end);
        for (_, area) in self.areas.range_mut(start..end) {
            area.prot = prot;
        }
        if whole { Ok(0) } else { Err(Errno::ENOMEM) }
    }

    pub(super) fn remap(
        &mut self,
        start: u64,
        old_len: u64,
        new_len: u64,
        to: Option<u64>,
        keep_old: bool,
    ) -> Result<u64, Errno> {
        let old_end = aligned_end(start, old_len)?;
        let target = to.unwrap_or(start);
        let new_end = aligned_end(target, new_len)?;
        self.split(start);
        self.split(old_end);
        let Some(area) = self.areas.get(&start).filter(|area| area.end >= old_end).cloned() else {
            return Err(Errno::EFAULT);
        };
        if to.is_none() {
            if new_end <= old_end {
                self.remove(new_end, old_end);
            } else if self.overlaps(old_end, new_end) {
                return Err(Errno::ENOMEM);
            } else if let Some(area) = self.areas.get_mut(&start) {
                area.end = new_end;
            }
            return Ok(start);
        }
        if target < old_end && start < new_end {
            return Err(Errno::EINVAL);
        }
        let moved: Vec<(u64, Box<Page>)> =
            self.private.range(start..old_end).map(|(at, page)| (*at, page.clone())).collect();
        self.remove(target, new_end);
        self.remove(start, old_end);
        if keep_old {
            self.areas.insert(start, area.clone());
        }
        self.areas.insert(target, Area { end: new_end, ..area });
        for (at, page) in moved {
            let at = target + (at - start);
            if at < new_end {
                self.private.insert(at, page);
            }
        }
        Ok(target)
    }

    pub(super) fn advise(&mut self, start: u64, len: u64, advice: i32) -> Result<u64, Errno> {
        let end = aligned_end(start, len)?;
        if advice == libc::MADV_DONTNEED {
            self.private.retain(|at, _| !(start..end).contains(at));
        }
        if self.covered(start, end) { Ok(0) } else { Err(Errno::ENOMEM) }
    }

    /// What a futex on this word is known by, so that all who share the word agree; `None` for a private
    /// one, which is known by its address.
    pub(super) fn shared_key(&self, at: u64) -> Option<(usize, u64)> {
        let (start, area) = self.area(at)?;
        match &area.source {
            Source::Shared { pages, offset } => Some((Arc::as_ptr(pages).addr(), offset + (at - start))),
            Source::File { file, offset, shared: true } => {
                let inode = rustix::fs::fstat(file).ok()?.st_ino;
                Some((usize::try_from(inode).ok()?, offset + (at - start)))
            }
            _ => None,
        }
    }

    /// Reads up to the first byte that faults; returns the bytes read.
    pub(super) fn read(&mut self, start: u64, into: &mut [u8], reach: Reach) -> usize {
        let mut done = 0usize;
        while let Some(rest) = into.get_mut(done..).filter(|rest| !rest.is_empty()) {
            let at = start + done as u64;
            if reach == Reach::Growing {
                self.grow(at);
            }
            let prot = if reach == Reach::Growing { 0 } else { libc::PROT_READ };
            if self.check(at, prot).is_err() {
                break;
            }
            let page = self.page(at);
            let within = (at % PAGE_SIZE) as usize;
            let count = rest.len().min(PAGE - within);
            if let (Some(into), Some(from)) = (rest.get_mut(..count), page.get(within..within + count)) {
                into.copy_from_slice(from);
            }
            done += count;
        }
        done
    }

    pub(super) fn write(&mut self, start: u64, from: &[u8], reach: Reach) -> usize {
        let mut done = 0usize;
        while let Some(rest) = from.get(done..).filter(|rest| !rest.is_empty()) {
            let at = start + done as u64;
            if reach == Reach::Growing {
                self.grow(at);
            }
            let prot = if reach == Reach::Growing { 0 } else { libc::PROT_WRITE };
            if self.check(at, prot).is_err() {
                break;
            }
            let within = (at % PAGE_SIZE) as usize;
            let count = rest.len().min(PAGE - within);
            if let Some(from) = rest.get(..count)
                && !self.write_within(at, from)
            {
                break;
            }
            done += count;
        }
        done
    }

    /// Whether an access that needs `prot` would succeed.
    pub(super) fn check(&self, at: u64, prot: i32) -> Result<(), Denied> {
        let (_, area) = self.area(at).ok_or(Denied::NotMapped)?;
        let prot = prot.cast_unsigned();
        if area.prot & prot == prot { Ok(()) } else { Err(Denied::Protected) }
    }

    /// Maps what the host's fault handler would for an access at `at`: the ungrown part of a stack.
    pub(super) fn grow(&mut self, at: u64) {
        if self.area(at).is_some() {
            return;
        }
        let Some((&start, area)) = self.areas.range(at..).next() else { return };
        let page = at & !(PAGE_SIZE - 1);
        if area.grows_down && area.end - page <= STACK_LIMIT {
            let area = area.clone();
            self.areas.remove(&start);
            self.areas.insert(page, area);
        }
    }

    fn area(&self, at: u64) -> Option<(u64, &Area)> {
        let (start, area) = self.areas.range(..=at).next_back()?;
        (at < area.end).then_some((*start, area))
    }

    fn overlaps(&self, start: u64, end: u64) -> bool {
        self.areas.range(..end).next_back().is_some_and(|(_, area)| area.end > start)
    }

    fn covered(&self, start: u64, end: u64) -> bool {
        let mut at = start;
        while at < end {
            match self.area(at) {
                Some((_, area)) => at = area.end,
                None => return false,
            }
        }
        true
    }

    /// Makes `at` a border between areas.
    fn split(&mut self, at: u64) {
        let Some((start, area)) = self.area(at).map(|(start, area)| (start, area.clone())) else { return };
        if start == at {
            return;
        }
        let upper = Area { source: area.source.advanced(at - start), ..area.clone() };
        self.areas.insert(start, Area { end: at, ..area });
        self.areas.insert(at, upper);
    }

    fn remove(&mut self, start: u64, end: u64) {
        self.split(start);
        self.split(end);
        self.areas.retain(|at, _| !(start..end).contains(at));
        self.private.retain(|at, _| !(start..end).contains(at));
    }

    /// The page around `at`, which is mapped.
    fn page(&self, at: u64) -> Page {
        let address = at & !(PAGE_SIZE - 1);
        if let Some(page) = self.private.get(&address) {
            return **page;
        }
        let mut page = [0; PAGE];
        match self.area(at) {
            Some((start, Area { source: Source::Shared { pages, offset }, .. })) => {
                if let Some(found) = pages.lock().get(&(offset + (address - start))) {
                    page = *found;
                }
            }
            Some((start, Area { source: Source::File { file, offset, .. }, .. })) => {
                // A short read leaves zeroes, as behind the end of a file.
                let _ = rustix::io::pread(file, &mut page, offset + (address - start));
            }
            _ => {}
        }
        page
    }

    /// Writes within one page. False where a file refuses.
    fn write_within(&mut self, at: u64, from: &[u8]) -> bool {
        let address = at & !(PAGE_SIZE - 1);
        let mut page = self.page(at);
        let within = (at % PAGE_SIZE) as usize;
        if let Some(into) = page.get_mut(within..within + from.len()) {
            into.copy_from_slice(from);
        }
        match self.area(at) {
            Some((start, Area { source: Source::Shared { pages, offset }, .. })) => {
                pages.lock().insert(offset + (address - start), page);
            }
            Some((start, Area { source: Source::File { file, offset, shared: true }, .. })) => {
                return rustix::io::pwrite(file, from, offset + (at - start)) == Ok(from.len());
            }
            _ => {
                self.private.insert(address, Box::new(page));
            }
        }
        true
    }
}

/// The end of a range that the host would accept.
fn aligned_end(start: u64, len: u64) -> Result<u64, Errno> {
    let end = start.checked_add(len).and_then(|end| end.checked_next_multiple_of(PAGE_SIZE));
    match end {
        Some(end) if start.is_multiple_of(PAGE_SIZE) && len > 0 && end <= GUEST_TOP => Ok(end),
        _ => Err(Errno::EINVAL),
    }
}
