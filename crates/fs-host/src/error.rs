//! Host errors become the guest's here.

use abi::Errno;
use rustix::io::Errno as HostErrno;
use sync::{SysError, SysResult};

/// The guest's errno for a failed host call. `EMFILE` and `ENFILE` are our own shortage, not the guest's: `ENFILE`.
pub(crate) fn errno(error: HostErrno) -> SysError {
    match error {
        HostErrno::MFILE => Errno::ENFILE.into(),
        other => Errno::from_raw(other.raw_os_error()).into(),
    }
}

/// A name was found to lead elsewhere than it did: the walk looks it up again.
pub(crate) fn stale() -> SysError {
    Errno::ESTALE.into()
}

/// The same for host calls on a place that we know: that nothing is there, or something else, means that it
/// moved.
pub(crate) fn moved(error: HostErrno) -> SysError {
    match error {
        HostErrno::NOENT | HostErrno::LOOP | HostErrno::NOTDIR | HostErrno::XDEV => stale(),
        other => errno(other),
    }
}

/// Repeats a host call that a signal of ours interrupted.
pub(crate) fn retry<T>(mut call: impl FnMut() -> rustix::io::Result<T>) -> rustix::io::Result<T> {
    loop {
        match call() {
            Err(HostErrno::INTR) => {}
            other => return other,
        }
    }
}

/// A component that may be given to the host: `EINVAL` for what would not be one.
pub(crate) fn component(name: &[u8]) -> SysResult<&[u8]> {
    let bad = name.is_empty() || name == b"." || name == b".." || name.iter().any(|b| matches!(b, 0 | b'/'));
    if bad {
        return Err(Errno::EINVAL.into());
    }
    if name.len() > abi::NAME_MAX { Err(Errno::ENAMETOOLONG.into()) } else { Ok(name) }
}
