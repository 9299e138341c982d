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

/// One patched system call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PatchedSite {
    /// Where its trampoline begins, from the first one.
    pub trampoline: u32,
    /// Where the displaced instruction was, from the start of the text.
    pub site: u32,
    /// Bytes of the displaced instruction; the `syscall` follows it.
    pub displaced: u8,
}

impl PatchedProgram {
    /// The address in the original code that a thread is at which is found `offset` bytes into the trampolines, from the
    /// start of the text: the displaced instruction, or, once that is done, the `syscall` behind it.
    pub fn original(&self, offset: u64) -> Option<u64> {
        let index = self.sites.partition_point(|site| u64::from(site.trampoline) <= offset).checked_sub(1)?;
        let site = self.sites.get(index)?;
        let done = offset >= u64::from(site.trampoline) + u64::from(site.displaced);
        Some(u64::from(site.site) + if done { u64::from(site.displaced) } else { 0 })
    }
}
