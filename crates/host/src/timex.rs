//! The state of the host's clock discipline (`adjtimex`), read only.
//!
//! # Safety
//! The host writes one `timex` that is ours, and with no mode bits set changes nothing.
#![allow(unsafe_code, reason = "adjtimex is a raw call")]

use std::io;

/// Bytes of the kernel's `struct timex`, which is libc's.
pub const SIZE: usize = size_of::<libc::timex>();

/// Reads it: the clock's state (`TIME_OK`, …) and the structure's bytes.
///
/// # Errors
/// `EPERM` where a sandbox forbids it.
pub fn read() -> io::Result<(i32, [u8; SIZE])> {
    // SAFETY: all zeroes is a valid timex; `modes` is zero, so the call only reads.
    let mut timex: libc::timex = unsafe { std::mem::zeroed() };
    // SAFETY: `timex` is ours to be written.
    let state = unsafe { libc::adjtimex(&raw mut timex) };
    if state < 0 {
        return Err(io::Error::last_os_error());
    }
    let mut bytes = [0; SIZE];
    // SAFETY: both are `SIZE` bytes, and a timex that was zeroed first has no uninitialised padding.
    unsafe { std::ptr::copy_nonoverlapping((&raw const timex).cast::<u8>(), bytes.as_mut_ptr(), SIZE) };
    Ok((state, bytes))
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_clock_has_a_tick() {
        let (state, bytes) = super::read().expect("anybody may read it");
        let tick = i64::from_ne_bytes(bytes[88..96].try_into().expect("eight bytes"));
        assert!(state >= 0 && (8000..=12000).contains(&tick), "tick {tick}");
    }
}
