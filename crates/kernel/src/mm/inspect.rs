//! A process's memory as others look at it and change it: `/proc/PID/mem`, `process_vm_readv`, core files.
//!
//! Where the platform has patched system-call sites into the text, they see what was linked, and what they write replaces
//! that: the site's own code is put back first, so that a breakpoint in it is met, and stays. The trampolines are not there
//! for them. The process's own loads see the jumps (`--no-patch` is for programs that mind).

use abi::{PAGE_SIZE, UserAddr};
use platform::{GuestRange, Reach, SiteCode};
use smallvec::SmallVec;

use super::copy::skip;
use crate::mm::{Mm, Trampolines};

/// Whether protections count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// As for the process itself.
    Protected,
    /// They do not, as for debuggers (Linux: `FOLL_FORCE`); the host decides which mappings it lets be written so.
    Forced,
}

/// A patched site, wherever the memory itself still has the jump.
struct Patched {
    start: u64,
    code: SiteCode,
    trampolines: u64,
}

impl Patched {
    fn range(&self) -> GuestRange {
        GuestRange { start: UserAddr(self.start), len: self.code.patched.len() }
    }
}

impl Mm {
    /// Copies from the process; returns the bytes before the first fault.
    pub fn inspect(&self, from: &[GuestRange], into: &mut [u8], access: Access) -> usize {
        let from = self.visible(from);
        let mut done = self.copy_in(&from, into);
        while let Some(piece) = next_piece(&from, done, access) {
            let Some(part) = into.get_mut(done..done + piece.len) else { break };
            let copied = self.space.read(&[piece], part, Reach::Growing);
            done += copied;
            if copied < piece.len {
                break;
            }
            done += self.copy_in(&skip(&from, done), into.get_mut(done..).unwrap_or(&mut []));
        }
        self.show_linked(&from, into.get_mut(..done).unwrap_or(&mut []));
        done
    }

    /// Copies to the process, likewise.
    pub fn alter(&self, bytes: &[u8], to: &[GuestRange], access: Access) -> usize {
        let to = self.visible(to);
        if access == Access::Forced {
            for site in to.iter().flat_map(|range| self.patched_in(range)) {
                self.put_back(&site);
            }
        }
        let mut done = self.copy_out(bytes, &to);
        while let Some(piece) = next_piece(&to, done, access) {
            let Some(part) = bytes.get(done..done + piece.len) else { break };
            let copied = self.space.write(part, &[piece], Reach::Growing);
            done += copied;
            if copied < piece.len {
                break;
            }
            done += self.copy_out(bytes.get(done..).unwrap_or(&[]), &skip(&to, done));
        }
        done
    }

    /// What was read from these ranges becomes what was linked there, where a site is patched.
    pub(crate) fn show_linked(&self, ranges: &[GuestRange], bytes: &mut [u8]) {
        let mut rest = bytes;
        for range in ranges {
            let len = range.len.min(rest.len());
            let (part, behind) = std::mem::take(&mut rest).split_at_mut(len);
            rest = behind;
            let read = GuestRange { start: range.start, len };
            for site in self.patched_in(&read) {
                for (at, linked) in (site.start..).zip(&site.code.linked) {
                    let place = at.checked_sub(read.start.0).and_then(|at| usize::try_from(at).ok());
                    if let Some(byte) = place.and_then(|place| part.get_mut(place)) {
                        *byte = *linked;
                    }
                }
            }
        }
    }

    /// The sites of which something lies in this range and that are patched, by the memory's own word: others may have put
    /// them back, page by page, or given that up again.
    fn patched_in(&self, range: &GuestRange) -> Vec<Patched> {
        let end = range.start.0.saturating_add(range.len as u64);
        let texts: SmallVec<[Trampolines; 1]> = {
            let record = self.record();
            record.trampolines.iter().filter(|one| one.has_text_in(range.start.0, end)).cloned().collect()
        };
        let mut found = Vec::new();
        for text in &texts {
            let offset = |at: u64| at.saturating_sub(text.text);
            for code in text.program.sites_in(offset(range.start.0), offset(end)) {
                let site = Patched { start: text.text + code.at, code, trampolines: text.start };
                let mut now = vec![0; site.code.patched.len()];
                let mut is_read =
                    |reach| self.space.read(&[site.range()], &mut now, reach) == site.code.patched.len();
                let is_read = is_read(Reach::Mapped) || is_read(Reach::Growing);
                if is_read && now == site.code.patched {
                    found.push(site);
                }
            }
        }
        found
    }

    /// Whether a patched site has this byte.
    pub(super) fn is_patched_at(&self, at: UserAddr) -> bool {
        !self.patched_in(&GuestRange { start: at, len: 1 }).is_empty()
    }

    /// Puts a site's own code back. Threads that are in a call by it come back to the text. Whoever runs there meanwhile may
    /// meet one or the other, or a mixture, as with all code that is changed under running threads.
    fn put_back(&self, site: &Patched) {
        if let Some((at, jump)) = &site.code.way_back {
            let there = GuestRange { start: UserAddr(site.trampolines + at), len: jump.len() };
            self.space.write(jump, &[there], Reach::Growing);
        }
        self.space.write(&site.code.linked, &[site.range()], Reach::Growing);
    }

    /// The ranges up to the first trampoline.
    fn visible(&self, ranges: &[GuestRange]) -> SmallVec<[GuestRange; 8]> {
        let record = self.record();
        let mut visible = SmallVec::new();
        for range in ranges {
            let end = range.start.0.saturating_add(range.len as u64);
            let hidden = record.trampolines.iter().filter(|one| one.overlaps(range.start.0, end));
            let Some(first) = hidden.map(|one| one.start).min() else {
                visible.push(*range);
                continue;
            };
            let len = usize::try_from(first.saturating_sub(range.start.0)).unwrap_or(0);
            visible.push(GuestRange { start: range.start, len });
            break;
        }
        visible
    }
}

/// What of the page at which a copy stopped is asked for, if it goes on by force.
fn next_piece(ranges: &[GuestRange], done: usize, access: Access) -> Option<GuestRange> {
    let rest = *skip(ranges, done).first().filter(|_| access == Access::Forced)?;
    let page_end = (rest.start.0 / PAGE_SIZE * PAGE_SIZE).checked_add(PAGE_SIZE)?;
    let len = rest.len.min(usize::try_from(page_end - rest.start.0).ok()?);
    rest.start.in_guest_range(len as u64).then_some(GuestRange { start: rest.start, len })
}
