//! Which standard streams the caller had open.
//!
//! Rust's runtime opens /dev/null in place of those that are closed before `main` runs, so that no other file gets
//! their numbers. That is right for us, but the guest is to see what the caller had: whoever runs before the runtime
//! looks; at ignored signals (`signal`) as well.
#![allow(
    unsafe_code,
    reason = "a constructor is named by its section; fcntl is a raw call before std is set up"
)]

use std::sync::atomic::{AtomicU8, Ordering};

/// Bit n: stream n was closed.
static CLOSED: AtomicU8 = AtomicU8::new(0);

extern "C" fn look() {
    for fd in 0..3 {
        // SAFETY: F_GETFD takes no pointer and changes nothing.
        if unsafe { libc::fcntl(fd, libc::F_GETFD) } < 0 {
            CLOSED.fetch_or(1 << fd, Ordering::Relaxed);
        }
    }
    crate::signal::look();
}

// SAFETY: entries of .init_array are pointers to functions without needed arguments, called once before `main`.
#[used]
#[unsafe(link_section = ".init_array")]
static LOOK: extern "C" fn() = look;

/// Whether standard stream `fd` (0 to 2) was open when this process began.
pub fn was_open(fd: i32) -> bool {
    CLOSED.load(Ordering::Relaxed) & 1u8.checked_shl(fd.unsigned_abs()).unwrap_or(0) == 0
}
