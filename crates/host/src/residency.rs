//! What of this process's own programs is in memory.
//!
//! # Safety
//! Only pages of segments that nobody may write are given back. They hold what is in the file: the loader relocates
//! writable segments only (there are no relocations of text on x86-64), so a later access finds the same again.
#![allow(unsafe_code, reason = "the loader's list of programs, and advice on their pages")]

/// Gives back the pages of all read-only segments of this process's program and libraries. Those that are still needed come
/// back from the host's cache, one fault for some of them each.
pub fn release_programs() {
    // SAFETY: the callback keeps to what it is given.
    unsafe { libc::dl_iterate_phdr(Some(release), std::ptr::null_mut()) };
}

/// One program's segments: what `dl_iterate_phdr` gives.
extern "C" fn release(
    program: *mut libc::dl_phdr_info,
    _: libc::size_t,
    _: *mut libc::c_void,
) -> libc::c_int {
    const PAGE: u64 = 4096;
    // SAFETY: called by `dl_iterate_phdr` only: valid meanwhile, with so many headers.
    let (base, headers) = unsafe {
        let program = &*program;
        (program.dlpi_addr, std::slice::from_raw_parts(program.dlpi_phdr, usize::from(program.dlpi_phnum)))
    };
    for header in headers.iter().filter(|one| one.p_type == libc::PT_LOAD && one.p_flags & libc::PF_W == 0) {
        let start = base.wrapping_add(header.p_vaddr);
        let (first, end) = (start / PAGE * PAGE, start.saturating_add(header.p_memsz) / PAGE * PAGE);
        let (Ok(first), Ok(end)) = (usize::try_from(first), usize::try_from(end)) else { continue };
        let len = end.saturating_sub(first);
        // SAFETY: whole pages of a segment as this module's head says. What the host refuses stays.
        unsafe { libc::madvise(std::ptr::with_exposed_provenance_mut(first), len, libc::MADV_DONTNEED) };
    }
    0
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_program_goes_on_without_its_pages() {
        let file_pages = || {
            let status = std::fs::read_to_string("/proc/self/status").expect("a status");
            let line = status.lines().find_map(|line| line.strip_prefix("RssFile:")).expect("a line");
            line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number")
        };
        let before = file_pages();
        super::release_programs();
        let after = file_pages();
        assert!(after < before, "{before} KiB before, {after} KiB after");
    }
}
