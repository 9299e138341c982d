//! Programs whose system-call sites a platform has patched.

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
    /// Bytes of what gives rcx its value behind the call.
    pub const RELOAD: u32 = 7;
    /// Where what is behind the call begins then.
    const RELOADED: u32 = Self::ENTERING + Self::RELOAD;

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

impl PatchedProgram {
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
        let site = |trampoline, site, displaced| PatchedSite { trampoline, site, displaced };
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
}
