//! Programs whose system-call sites a platform has patched.

use std::ops::Range;
use std::os::fd::OwnedFd;

/// The executable part of an ELF file with its system-call sites leading to the platform, by trampolines that lie
/// behind the file's last segment. The same for all processes: sites and trampolines keep their distance.
#[derive(Debug)]
pub struct PatchedProgram {
    /// What is mapped instead of the file: the text, then the trampolines. Sealed, open for reading.
    pub file: OwnedFd,
    /// Where the text begins in the original file, in bytes.
    pub offset: u64,
    /// Bytes of text, a multiple of the page size.
    pub len: u64,
    /// From the text to the trampolines.
    pub distance: u64,
    /// Bytes of trampolines, a multiple of the page size.
    pub trampolines: u64,
    /// By the trampoline's place.
    pub sites: Vec<PatchedSite>,
}

/// One patched system call: the instruction that was displaced lies before the `syscall` or behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PatchedSite {
    /// Where its trampoline begins, from the first one.
    pub trampoline: u32,
    /// Where the jump to it is, from the start of the text: in place of the displaced instruction, or of the `syscall`.
    pub site: u32,
    pub displaced: Displaced,
    /// The displaced instruction, filled up with zeros.
    pub instruction: [u8; Self::MAX_INSTRUCTION],
}

/// Which instruction a trampoline does for its site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Displaced {
    /// The one before the `syscall`, so many bytes, first of all.
    Before(u8),
    /// The one behind it, so many bytes, when the call has been made.
    Behind(u8),
}

impl PatchedSite {
    /// Bytes of a trampoline before what is done behind the call: how it enters the platform, and a `syscall`.
    pub const ENTERING: u32 = 7 + 6 + 2;
    /// Bytes of the `syscall` instruction.
    pub const SYSCALL: u32 = 2;
    /// Bytes of the longest instruction.
    pub const MAX_INSTRUCTION: usize = 15;
    /// Bytes of what gives rcx its value behind the call.
    pub const RELOAD: u32 = 7;
    /// Where what is behind the call begins then.
    const RELOADED: u32 = Self::ENTERING + Self::RELOAD;

    /// What it changes, and its `syscall`, from the start of the text on.
    fn extent(&self) -> Range<u64> {
        let (Displaced::Before(len) | Displaced::Behind(len)) = self.displaced;
        let start = u64::from(self.site);
        start..start + u64::from(len) + u64::from(Self::SYSCALL)
    }

    /// The code as it was: the displaced instruction, and the `syscall`.
    fn linked(&self) -> Vec<u8> {
        const SYSCALL: [u8; PatchedSite::SYSCALL as usize] = [0x0f, 0x05];
        let (Displaced::Before(len) | Displaced::Behind(len)) = self.displaced;
        let instruction = self.instruction.get(..usize::from(len)).unwrap_or(&self.instruction);
        match self.displaced {
            Displaced::Before(_) => [instruction, &SYSCALL].concat(),
            Displaced::Behind(_) => [&SYSCALL, instruction].concat(),
        }
    }

    /// Where a thread is in the original code that is `offset` bytes into this trampoline.
    fn original(&self, offset: u32) -> u32 {
        match self.displaced {
            Displaced::Before(len) if offset >= u32::from(len) => self.site + u32::from(len),
            Displaced::Before(_) => self.site,
            Displaced::Behind(_) if offset < Self::ENTERING => self.site,
            Displaced::Behind(_) if offset <= Self::RELOADED => self.site + Self::SYSCALL,
            Displaced::Behind(len) => self.site + Self::SYSCALL + u32::from(len),
        }
    }
}

/// A site of a text that somebody looks at or changes; places are from the start of the text on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SiteCode {
    pub at: u64,
    /// What is there: the jump, `nop`s for what is left of the displaced instruction, the `syscall` if that is behind it.
    pub patched: Vec<u8>,
    /// What was there.
    pub linked: Vec<u8>,
    /// Where threads come back to the trampoline that are in such a call, from the first trampoline on, and the jump from
    /// there to what is behind the `syscall` in the text: written there, it has them do what is in the text by then. `None`:
    /// they come back to the text.
    pub way_back: Option<(u64, Vec<u8>)>,
}

/// `jmp` by so many bytes, from its end on.
fn jump(distance: i64) -> [u8; 5] {
    let mut code = [0xe9, 0, 0, 0, 0];
    if let (Some(place), Ok(distance)) = (code.get_mut(1..), i32::try_from(distance)) {
        place.copy_from_slice(&distance.to_le_bytes());
    }
    code
}

impl PatchedProgram {
    /// The sites of which something lies in `[start, end)` of the text.
    pub fn sites_in(&self, start: u64, end: u64) -> impl Iterator<Item = SiteCode> + '_ {
        // They lie in order, and no two overlap but by a `syscall`.
        let first = self.sites.partition_point(|site| site.extent().end <= start);
        let sites = self.sites.get(first..).unwrap_or(&[]);
        sites.iter().take_while(move |site| site.extent().start < end).map(|site| self.code_of(site))
    }

    fn code_of(&self, site: &PatchedSite) -> SiteCode {
        const NOP: u8 = 0x90;
        const JUMP: i64 = 5;
        let linked = site.linked();
        let trampoline = self.distance.wrapping_add(u64::from(site.trampoline)).cast_signed();
        let mut patched = jump(trampoline.wrapping_sub(i64::from(site.site) + JUMP)).to_vec();
        let (changed, way_back) = match site.displaced {
            Displaced::Before(len) => (usize::from(len), None),
            Displaced::Behind(_) => {
                let at = u64::from(site.trampoline + PatchedSite::RELOADED);
                let from = self.distance.wrapping_add(at).cast_signed().wrapping_add(JUMP);
                let to = i64::from(site.site + PatchedSite::SYSCALL);
                (linked.len(), Some((at, jump(to.wrapping_sub(from)).to_vec())))
            }
        };
        patched.resize(changed, NOP);
        patched.extend_from_slice(linked.get(changed..).unwrap_or(&[]));
        SiteCode { at: u64::from(site.site), patched, linked, way_back }
    }

    /// Where a thread that steps itself goes on that is found `offset` bytes into the trampolines, if it has done nothing
    /// but the jump there, or what gives rcx its value: the original code has nothing in their place. It is kept from
    /// entering the platform, which must not be stepped: it comes to a `syscall`, the site's own or the trampoline's.
    pub fn behind_jump(&self, offset: u64) -> Option<u64> {
        let offset = u32::try_from(offset).ok()?;
        let index = self.sites.partition_point(|site| site.trampoline <= offset).checked_sub(1)?;
        let site = self.sites.get(index)?;
        let next = match (site.displaced, offset - site.trampoline) {
            (Displaced::Before(_), 0) => 0,
            (Displaced::Behind(_), 0) => PatchedSite::ENTERING - PatchedSite::SYSCALL,
            (Displaced::Behind(_), PatchedSite::RELOADED) => PatchedSite::RELOADED,
            _ => return None,
        };
        Some(u64::from(site.trampoline + next))
    }

    /// The address in the original code, from the start of the text, of a thread that is found `offset` bytes into the
    /// trampolines.
    pub fn original(&self, offset: u64) -> Option<u64> {
        let offset = u32::try_from(offset).ok()?;
        let index = self.sites.partition_point(|site| site.trampoline <= offset).checked_sub(1)?;
        let site = self.sites.get(index)?;
        Some(u64::from(site.original(offset - site.trampoline)))
    }

    /// Where a thread goes on, from the first trampoline, that is to go on `offset` bytes into the original text, if that
    /// place is covered by a jump now.
    pub fn covered(&self, offset: u64) -> Option<u64> {
        let site = u32::try_from(offset).ok()?.checked_sub(PatchedSite::SYSCALL)?;
        // Sites lie in the order of their trampolines.
        let index = self.sites.binary_search_by_key(&site, |one| one.site).ok()?;
        let one = self.sites.get(index)?;
        let behind = matches!(one.displaced, Displaced::Behind(_));
        behind.then(|| u64::from(one.trampoline + PatchedSite::RELOADED))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_in_trampolines_and_in_the_original_correspond() {
        let site = |trampoline, site, displaced| {
            let mut instruction = [0; 15];
            instruction[..6].copy_from_slice(&[0x48, 0x3d, 0x01, 0xf0, 0xff, 0xff]);
            PatchedSite { trampoline, site, displaced, instruction }
        };
        let file = std::fs::File::open("/dev/null").unwrap().into();
        let sites = vec![site(0, 100, Displaced::Before(5)), site(18, 200, Displaced::Behind(6))];
        let program = PatchedProgram { file, offset: 0, len: 4096, distance: 8192, trampolines: 4096, sites };
        assert_eq!(program.original(0), Some(100), "the displaced instruction is still to do");
        assert_eq!(program.original(5), Some(105), "the call is");
        assert_eq!(program.original(12), Some(105));
        assert_eq!(program.original(18), Some(200));
        assert_eq!(program.original(18 + 15), Some(202), "the call has been made");
        assert_eq!(program.original(18 + 15 + 7), Some(202));
        assert_eq!(program.original(18 + 15 + 7 + 6), Some(208), "and what is behind it done");
        assert_eq!(program.covered(202), Some(18 + 15 + 7));
        assert_eq!(program.covered(107), None);
        assert_eq!(program.covered(200), None);
        assert_eq!(program.behind_jump(0), Some(0), "the displaced instruction is next");
        assert_eq!(program.behind_jump(5), None, "that is a step of the guest's");
        assert_eq!(
            program.behind_jump(18),
            Some(18 + 13),
            "the call is next, by the trampoline's own instruction"
        );
        assert_eq!(program.behind_jump(18 + 15), None);
        assert_eq!(program.behind_jump(18 + 15 + 7), Some(18 + 15 + 7), "rcx has its value, that is no step");
        assert_eq!(program.behind_jump(18 + 15 + 7 + 6), None);
    }
    /// The code of a site is told whatever part of it is asked for, its `syscall` included.
    #[test]
    fn sites_are_found_by_any_byte() {
        let file = std::fs::File::open("/dev/null").unwrap().into();
        let mut instruction = [0; 15];
        instruction[..6].copy_from_slice(&[0x48, 0x3d, 0x01, 0xf0, 0xff, 0xff]);
        let sites = vec![
            PatchedSite { trampoline: 0, site: 100, displaced: Displaced::Before(6), instruction },
            PatchedSite { trampoline: 20, site: 200, displaced: Displaced::Behind(6), instruction },
        ];
        let program = PatchedProgram { file, offset: 0, len: 4096, distance: 8192, trampolines: 4096, sites };
        let at = |start, end| program.sites_in(start, end).map(|site| site.at).collect::<Vec<_>>();
        assert_eq!(at(0, 100), []);
        assert_eq!(at(0, 101), [100]);
        assert_eq!(at(107, 108), [100], "its syscall");
        assert_eq!(at(108, 200), []);
        assert_eq!(at(107, 201), [100, 200]);
        assert_eq!(at(208, 4096), []);
        let codes: Vec<_> = program.sites_in(0, 4096).collect();
        assert_eq!(codes[0].linked, [0x48, 0x3d, 0x01, 0xf0, 0xff, 0xff, 0x0f, 0x05]);
        assert_eq!(codes[0].patched, [0xe9, 0x97, 0x1f, 0, 0, 0x90, 0x0f, 0x05], "to 8192");
        assert_eq!(codes[0].way_back, None);
        assert_eq!(codes[1].linked, [0x0f, 0x05, 0x48, 0x3d, 0x01, 0xf0, 0xff, 0xff]);
        assert_eq!(codes[1].patched, [0xe9, 0x47, 0x1f, 0, 0, 0x90, 0x90, 0x90]);
        let (at, back) = codes[1].way_back.clone().unwrap();
        assert_eq!(at, 20 + 15 + 7);
        let distance = i64::from(i32::from_le_bytes(back[1..].try_into().unwrap()));
        assert_eq!(8192 + at as i64 + 5 + distance, 202);
    }
}
