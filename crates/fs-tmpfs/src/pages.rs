//! A small file's bytes: pages where something was written, holes elsewhere.

use std::collections::BTreeMap;

use abi::Errno;
use sync::SysResult;

use crate::usage::{Counter, PAGE};

const PAGE_BYTES: usize = 4096;
/// `None`: allocated but never written to, so it reads as zeros and is a hole to SEEK_DATA.
type Page = Option<Box<[u8; PAGE_BYTES]>>;

/// Sparse contents with a size.
#[derive(Default)]
pub(crate) struct Pages {
    map: BTreeMap<u64, Page>,
    size: u64,
}

/// The part of a page that a position begins in: its number, the offset there, the bytes to its end.
fn place(offset: u64) -> (u64, usize, usize) {
    let within = usize::try_from(offset % PAGE).unwrap_or(0);
    (offset / PAGE, within, PAGE_BYTES.saturating_sub(within))
}

fn fill(page: &mut Page) {
    page.get_or_insert_with(|| Box::new([0; PAGE_BYTES]));
}

impl Pages {
    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    /// Pages that are there.
    pub(crate) fn count(&self) -> u64 {
        self.map.len() as u64
    }

    /// Reads at `offset`; fewer bytes than asked for at the end.
    pub(crate) fn read(&self, offset: u64, into: &mut [u8]) -> usize {
        let left = usize::try_from(self.size.saturating_sub(offset)).unwrap_or(usize::MAX);
        let count = into.len().min(left);
        let mut done = 0;
        while done < count {
            let (page, within, room) = place(offset.saturating_add(done as u64));
            let len = room.min(count.saturating_sub(done));
            let Some(to) = into.get_mut(done..done.saturating_add(len)) else { break };
            match self.written(page).and_then(|page| page.get(within..within.saturating_add(len))) {
                Some(from) => to.copy_from_slice(from),
                None => to.fill(0),
            }
            done = done.saturating_add(len);
        }
        done
    }

    /// Writes at `offset`, page by page as far as there is space; an error only if nothing could be written.
    pub(crate) fn write(&mut self, offset: u64, bytes: &[u8], space: &Counter) -> SysResult<usize> {
        let mut done = 0;
        while done < bytes.len() {
            let at = offset.saturating_add(done as u64);
            let (page, within, room) = place(at);
            let len = room.min(bytes.len().saturating_sub(done));
            let page = match self.page(page, space) {
                Ok(page) => page,
                Err(error) if done == 0 => return Err(error),
                Err(_) => break,
            };
            if let (Some(to), Some(from)) =
                (page.get_mut(within..within.saturating_add(len)), bytes.get(done..done.saturating_add(len)))
            {
                to.copy_from_slice(from);
            }
            done = done.saturating_add(len);
            self.size = self.size.max(at.saturating_add(len as u64));
        }
        Ok(done)
    }

    /// A page to write to.
    fn page(&mut self, number: u64, space: &Counter) -> SysResult<&mut [u8; PAGE_BYTES]> {
        use std::collections::btree_map::Entry;
        let page = match self.map.entry(number) {
            Entry::Occupied(page) => page.into_mut(),
            Entry::Vacant(slot) => {
                space.charge(1)?;
                slot.insert(None)
            }
        };
        fill(page);
        page.as_deref_mut().ok_or(Errno::EIO.into())
    }

    fn written(&self, number: u64) -> Option<&[u8; PAGE_BYTES]> {
        self.map.get(&number)?.as_deref()
    }

    fn written_mut(&mut self, number: u64) -> Option<&mut [u8; PAGE_BYTES]> {
        self.map.get_mut(&number)?.as_deref_mut()
    }

    pub(crate) fn truncate(&mut self, size: u64, space: &Counter) {
        // To the same size too: what was allocated behind the end goes.
        if size <= self.size {
            let (page, within, _) = place(size);
            let first_gone = if within == 0 { page } else { page.saturating_add(1) };
            let gone = self.map.split_off(&first_gone).len() as u64;
            space.give_back(gone);
            if let Some(rest) = self.written_mut(page).and_then(|page| page.get_mut(within..)) {
                rest.fill(0);
            }
        }
        self.size = size;
    }

    /// Pages missing in `[offset, offset + len)`.
    pub(crate) fn missing(&self, offset: u64, len: u64) -> u64 {
        let (first, end) = (offset / PAGE, offset.saturating_add(len).div_ceil(PAGE));
        end.saturating_sub(first).saturating_sub(self.map.range(first..end.max(first)).count() as u64)
    }

    /// Makes all pages of the range be there: all or none. The caller has bounded how many that are.
    pub(crate) fn allocate(&mut self, offset: u64, len: u64, space: &Counter) -> SysResult<()> {
        space.charge(self.missing(offset, len))?;
        for number in offset / PAGE..offset.saturating_add(len).div_ceil(PAGE) {
            // Allocating what is allocated makes it data (`shmem_get_folio`).
            self.map.entry(number).and_modify(fill).or_default();
        }
        Ok(())
    }

    /// Makes the range read as zeros and gives whole pages back.
    pub(crate) fn punch(&mut self, offset: u64, len: u64, space: &Counter) {
        let end = offset.saturating_add(len);
        let (first_whole, end_whole) = (offset.div_ceil(PAGE), end / PAGE);
        if first_whole < end_whole {
            let whole: Vec<u64> = self.map.range(first_whole..end_whole).map(|(number, _)| *number).collect();
            whole.iter().for_each(|number| drop(self.map.remove(number)));
            space.give_back(whole.len() as u64);
        }
        for number in [offset / PAGE, end / PAGE] {
            let start = number.saturating_mul(PAGE);
            let bound = |at: u64| usize::try_from(at.saturating_sub(start).min(PAGE)).unwrap_or(PAGE_BYTES);
            let (from, to) = (bound(offset), bound(end));
            if let Some(part) = self.written_mut(number).and_then(|page| page.get_mut(from..to)) {
                part.fill(0);
            }
        }
    }

    /// The first position from `offset` on that is data, or (`hole`) a hole; the end of the file is a hole. `None`:
    /// there is none before the end.
    pub(crate) fn seek(&self, offset: u64, hole: bool) -> Option<u64> {
        if offset >= self.size {
            return None;
        }
        if !hole {
            let (number, _) = self.map.range(offset / PAGE..).find(|(_, page)| page.is_some())?;
            return Some(number.saturating_mul(PAGE).max(offset)).filter(|at| *at < self.size);
        }
        let mut number = offset / PAGE;
        while self.written(number).is_some() {
            number = number.saturating_add(1);
        }
        Some(number.saturating_mul(PAGE).max(offset).min(self.size))
    }

    /// The pages, for copying elsewhere; `None` for those only allocated.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, Option<&[u8]>)> {
        self.map
            .iter()
            .map(|(number, page)| (number.saturating_mul(PAGE), page.as_ref().map(|page| &page[..])))
    }

    /// Gives all pages back.
    pub(crate) fn release(&mut self, space: &Counter) {
        space.give_back(self.count());
        self.map.clear();
    }
}
