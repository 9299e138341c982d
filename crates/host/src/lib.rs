//! Safe wrappers for the host calls that rustix lacks. The only crate that makes raw host calls, besides
//! `ptrace` (whose requests nobody else needs).
//!
//! Main parts: [`vm`] (another process's memory), [`wait`] (stops and deaths of children), [`signal`]
//! (kicks and dispositions), [`user`] (who one is when root runs umlaut), [`clock`] (CPU time of others), [`descriptors`] (how many guests may have), [`residency`] (what of its own is in
//! memory), [`lent`] (memory files that guests hold). Neighbours: above it `ptrace`, `kernel`, the file
//! systems and `cli`; below it `libc` only.

pub mod clock;
pub mod descriptors;
mod ioctl;
pub mod landlock;
pub mod lent;
pub mod listener;
pub mod lock;
pub mod membarrier;
pub mod perf;
pub mod privileges;
pub mod process;
pub mod residency;
pub mod seccomp;
pub mod signal;
pub mod streams;
pub mod timex;
pub mod user;
pub mod vm;
pub mod wait;

use std::io;

/// A raw host call's answer as a `Result`.
pub(crate) fn check(result: libc::c_long) -> io::Result<usize> {
    usize::try_from(result).map_err(|_| io::Error::last_os_error())
}
