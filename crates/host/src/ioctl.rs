//! Requests of `ioctl` that have no safe wrapper elsewhere.
//!
//! # Safety
//! Each request goes with what it takes: a number, or a structure of the host's that lives over the call.
#![allow(unsafe_code, reason = "ioctl takes pointers to whatever a request wants")]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::from_mut;

use crate::check;
use crate::listener::{Notification, RECEIVE, Response, SEND, SET_FLAGS};

/// A request.
pub(crate) enum Request<'a> {
    /// `SIOCOUTQ` (unix(7)): bytes that are charged for what has not been received.
    Unreceived(&'a mut libc::c_int),
    /// The requests of a seccomp listener (seccomp_unotify(2)).
    Receive(&'a mut Notification),
    Send(&'a mut Response),
    SetFlags(usize),
}

/// Makes it.
///
/// # Errors
/// What the host says.
pub(crate) fn request(descriptor: BorrowedFd<'_>, request: Request<'_>) -> io::Result<()> {
    let (number, argument): (libc::Ioctl, *mut libc::c_void) = match request {
        Request::Unreceived(bytes) => (libc::TIOCOUTQ, from_mut(bytes).cast()),
        Request::Receive(notification) => (RECEIVE.into(), from_mut(notification).cast()),
        Request::Send(response) => (SEND.into(), from_mut(response).cast()),
        Request::SetFlags(flags) => (SET_FLAGS.into(), std::ptr::without_provenance_mut(flags)),
    };
    // SAFETY: the pair fits, as the module's head says.
    check(unsafe { libc::ioctl(descriptor.as_raw_fd(), number, argument) }.into()).map(drop)
}
