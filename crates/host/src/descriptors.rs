//! Descriptors as a budget: what guests have open leaves some to the kernel.
//!
//! The host gives the lowest free number, so a number tells how many are taken. A file that a guest opens is refused
//! from a bound on, below the limit; what a new process, an exec or a kill needs is not.

use std::cell::Cell;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::OnceLock;

use crate::ioctl::{Request, request};

/// The part of the limit that guests' files may not take: one in so many.
const RESERVE: u64 = 8;

/// Descriptors that [`make_room`] makes room for: a quarter as many guest processes, in 8 KiB.
const ROOM: RawFd = 1024;

thread_local! {
    static USES_RESERVE: Cell<bool> = const { Cell::new(false) };
}

/// The first number that is not for guests' files. The limit does not change once guests run.
fn bound() -> RawFd {
    static BOUND: OnceLock<RawFd> = OnceLock::new();
    *BOUND.get_or_init(|| {
        let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
        let limit = limit.unwrap_or(u64::MAX);
        RawFd::try_from(limit.saturating_sub(limit / RESERVE)).unwrap_or(RawFd::MAX)
    })
}

/// Has the host give this process a table of descriptors that is large enough for some time. The host doubles a table that is
/// full, from 64 on, and where threads share it waits there until no CPU can be using the old one (`expand_fdtable`,
/// `synchronize_rcu`): 5 to 30 ms. So this is for a process that has one thread still; `any` is a descriptor of its own.
pub fn make_room(any: impl AsFd) {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    let most = limit.and_then(|limit| RawFd::try_from(limit).ok()).unwrap_or(RawFd::MAX);
    // What is refused is only slower later. The table stays as large when the highest one is closed.
    drop(rustix::io::fcntl_dupfd_cloexec(any, ROOM.min(most) - 1));
}

/// Whether something that was sent on this Unix socket has not been received yet (`SIOCOUTQ`, unix(7)).
///
/// # Errors
/// What `ioctl` says.
pub fn is_unreceived(socket: BorrowedFd<'_>) -> io::Result<bool> {
    let mut charged: libc::c_int = 0;
    request(socket, Request::Unreceived(&mut charged)).map(|()| charged != 0)
}

/// Lets a guest keep this open file, unless that would take from the reserve.
///
/// # Errors
/// `EMFILE`; the file is closed.
pub fn for_guest(file: OwnedFd) -> io::Result<OwnedFd> {
    if file.as_raw_fd() < bound() || USES_RESERVE.get() {
        return Ok(file);
    }
    Err(io::Error::from_raw_os_error(libc::EMFILE))
}

/// Does what the kernel needs to go on, in this thread: files opened by it may take from the reserve.
pub fn with_reserve<R>(work: impl FnOnce() -> R) -> R {
    /// Sets it back even if the work panics.
    struct Back(bool);
    impl Drop for Back {
        fn drop(&mut self) {
            USES_RESERVE.set(self.0);
        }
    }
    let _back = Back(USES_RESERVE.replace(true));
    work()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guests_leave_the_reserve_alone() {
        let file = || OwnedFd::from(std::fs::File::open("/dev/null").expect("/dev/null"));
        let high = || rustix::io::fcntl_dupfd_cloexec(file(), bound()).expect("below the limit");
        assert!(for_guest(file()).is_ok());
        assert_eq!(for_guest(high()).map_err(|error| error.raw_os_error()).err(), Some(Some(libc::EMFILE)));
        assert!(with_reserve(|| for_guest(high())).is_ok());
        assert!(for_guest(high()).is_err());
    }
}
