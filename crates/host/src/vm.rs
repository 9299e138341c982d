//! Another process's memory: `process_vm_readv` and `process_vm_writev`, always vectored.
//!
//! Addresses in the other process are numbers, never pointers. Its mappings' protections hold, and both
//! calls copy up to the first page that faults (`mm/process_vm_access.c`).
//!
//! # Safety
//! The only memory of ours that the host touches is the slice given, at its own length.
#![allow(unsafe_code, reason = "process_vm_readv and writev take raw vectors")]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// `(start, bytes)` in the other process.
pub type Range = (u64, usize);

/// Ranges given to the host in one call; more take more calls. Linux allows 1024 (`UIO_MAXIOV`).
const CHUNK: usize = 64;

/// Copies from process `pid`, range after range, into `into`, whose length the ranges add up to (a longer
/// or shorter one limits the copy). Returns the bytes copied; fewer than asked if the next byte faults.
///
/// # Errors
/// Only if nothing was copied: `EFAULT`, `ESRCH` (no such process), `EPERM`.
pub fn read_process(pid: i32, from: &[Range], into: &mut [u8]) -> io::Result<usize> {
    let base = into.as_mut_ptr();
    transfer(from, into.len(), |done, len, remote| {
        // SAFETY: `done + len` is at most the length of `into`.
        let local = libc::iovec { iov_base: unsafe { base.add(done) }.cast(), iov_len: len };
        // SAFETY: `local` is a part of `into`, which is borrowed for writing; `remote` is read only.
        unsafe { libc::process_vm_readv(pid, &local, 1, remote.as_ptr(), remote.len() as libc::c_ulong, 0) }
    })
}

/// Copies `from` to process `pid`, range after range; otherwise like [`read_process`].
///
/// # Errors
/// Only if nothing was copied: `EFAULT`, `ESRCH`, `EPERM`.
pub fn write_process(pid: i32, from: &[u8], to: &[Range]) -> io::Result<usize> {
    let base = from.as_ptr();
    transfer(to, from.len(), |done, len, remote| {
        // SAFETY: `done + len` is at most the length of `from`.
        let local = libc::iovec { iov_base: unsafe { base.add(done) }.cast_mut().cast(), iov_len: len };
        // SAFETY: the host only reads `local`, a part of `from`; `remote` is read only.
        unsafe { libc::process_vm_writev(pid, &local, 1, remote.as_ptr(), remote.len() as libc::c_ulong, 0) }
    })
}

/// Pages of `[offset, offset + len)` that are in the page cache (`cachestat`).
///
/// # Errors
/// `EPERM` for files that are not the caller's to write, `ENOSYS` on hosts before Linux 6.5.
pub fn cached_pages(file: BorrowedFd<'_>, offset: u64, len: u64) -> io::Result<u64> {
    const CACHESTAT: libc::c_long = 451;
    let range = [offset, len];
    // Cached, dirty, writeback, evicted, recently evicted.
    let mut counts = [0u64; 5];
    let (range, into) = (range.as_ptr(), counts.as_mut_ptr());
    // SAFETY: `cachestat` reads two words from `range` and writes five to `into`.
    crate::check(unsafe { libc::syscall(CACHESTAT, file.as_raw_fd(), range, into, 0) })?;
    let [cached, ..] = counts;
    Ok(cached)
}

/// Splits `ranges` into chunks and adds up what `call(bytes done, bytes wanted, remote vector)` copies.
fn transfer(
    ranges: &[Range],
    room: usize,
    mut call: impl FnMut(usize, usize, &[libc::iovec]) -> isize,
) -> io::Result<usize> {
    let mut done = 0usize;
    for chunk in ranges.chunks(CHUNK) {
        let mut remote = [libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 }; CHUNK];
        let mut wanted = 0usize;
        for (slot, (start, len)) in remote.iter_mut().zip(chunk) {
            let len = (*len).min(room - done - wanted);
            *slot = libc::iovec { iov_base: *start as *mut libc::c_void, iov_len: len };
            wanted += len;
        }
        if wanted == 0 {
            continue;
        }
        match usize::try_from(call(done, wanted, remote.get(..chunk.len()).unwrap_or(&[]))) {
            Ok(copied) => {
                done += copied;
                if copied < wanted {
                    break;
                }
            }
            Err(_) if done > 0 => break,
            Err(_) => return Err(io::Error::last_os_error()),
        }
    }
    Ok(done)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_ranges_in_order_and_stops_at_the_first_fault() {
        let pid = std::process::id().cast_signed();
        let source = *b"0123456789";
        let start = source.as_ptr() as u64;
        let mut into = [0u8; 6];
        let ranges = [(start + 8, 2), (start, 3), (start + 5, 1)];
        assert_eq!(read_process(pid, &ranges, &mut into).unwrap(), 6);
        assert_eq!(&into, b"890125");
        let ranges = [(start, 2), (16, 2), (start, 2)];
        assert_eq!(read_process(pid, &ranges, &mut into).unwrap(), 2);
        let error = read_process(pid, &[(16, 1)], &mut into).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::EFAULT));
    }

    #[test]
    fn more_ranges_than_a_chunk() {
        let pid = std::process::id().cast_signed();
        let source: Vec<u8> = (0..200).collect();
        let ranges: Vec<Range> = (0..200).map(|i| (source.as_ptr() as u64 + i, 1)).collect();
        let mut into = [0u8; 200];
        assert_eq!(read_process(pid, &ranges, &mut into).unwrap(), 200);
        assert_eq!(into.as_slice(), source.as_slice());
    }

    #[test]
    fn writes() {
        let pid = std::process::id().cast_signed();
        let target = [std::sync::atomic::AtomicU8::new(0), std::sync::atomic::AtomicU8::new(0)];
        let start = target.as_ptr() as u64;
        assert_eq!(write_process(pid, b"ab", &[(start + 1, 1), (start, 1)]).unwrap(), 2);
        assert_eq!(target.map(|byte| byte.into_inner()), [b'b', b'a']);
    }
}
