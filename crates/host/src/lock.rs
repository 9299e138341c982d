//! Record locks of an open file description (`F_OFD_SETLK`), which rustix lacks.
//!
//! # Safety
//! The only call is `fcntl` with a pointer to a `flock` of this module's own, which outlives the call.
#![allow(unsafe_code, reason = "fcntl with record locks")]

use std::io;
use std::os::fd::{AsFd, AsRawFd};

/// A lock's kind, in the numbers of `struct flock`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordLock {
    Shared,
    Exclusive,
    /// No lock.
    None,
}

impl RecordLock {
    fn number(self) -> libc::c_short {
        let number = match self {
            RecordLock::Shared => libc::F_RDLCK,
            RecordLock::Exclusive => libc::F_WRLCK,
            RecordLock::None => libc::F_UNLCK,
        };
        libc::c_short::try_from(number).unwrap_or_default()
    }
}

/// Sets what the open file `file` holds on `len` bytes from `start` on (0: to the end); does not wait. `EAGAIN` when
/// another's lock stands in the way, `EBADF` when the file is not open for that kind.
pub fn set_record(file: impl AsFd, kind: RecordLock, start: i64, len: i64) -> io::Result<()> {
    fcntl(file, libc::F_OFD_SETLK, kind, start, len).map(drop)
}

/// A lock of another that stands in the way of this one: kind, start and length.
pub fn record_conflict(
    file: impl AsFd,
    kind: RecordLock,
    start: i64,
    len: i64,
) -> io::Result<Option<(RecordLock, i64, i64)>> {
    let found = fcntl(file, libc::F_OFD_GETLK, kind, start, len)?;
    let kinds = [RecordLock::Shared, RecordLock::Exclusive];
    let kind = kinds.into_iter().find(|kind| kind.number() == found.l_type);
    Ok(kind.map(|kind| (kind, found.l_start, found.l_len)))
}

fn fcntl(
    file: impl AsFd,
    command: libc::c_int,
    kind: RecordLock,
    start: i64,
    len: i64,
) -> io::Result<libc::flock> {
    let whence = libc::c_short::try_from(libc::SEEK_SET).unwrap_or_default();
    // The pid of a lock of an open file is 0.
    let mut lock =
        libc::flock { l_type: kind.number(), l_whence: whence, l_start: start, l_len: len, l_pid: 0 };
    let number = file.as_fd().as_raw_fd();
    // SAFETY: the descriptor is borrowed for the call, and the kernel writes within `lock` only.
    let result = unsafe { libc::fcntl(number, command, &raw mut lock) };
    if result == -1 { Err(io::Error::last_os_error()) } else { Ok(lock) }
}
