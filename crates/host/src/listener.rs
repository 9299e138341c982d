//! The listener of a seccomp filter, by which calls are answered that it returns `SECCOMP_RET_USER_NOTIF` for
//! (seccomp_unotify(2)).

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use crate::ioctl::{Request, request};

/// `SECCOMP_IOCTL_NOTIF_RECV`, what a confined process is to be allowed.
pub const RECEIVE: u32 = 0xc050_2100;
/// `SECCOMP_IOCTL_NOTIF_SEND`, the same.
pub const SEND: u32 = 0xc018_2101;
/// `SECCOMP_IOCTL_NOTIF_SET_FLAGS`, `SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP`.
pub(crate) const SET_FLAGS: u32 = 0x4008_2104;
const SYNC_WAKE_UP: usize = 1;
/// `SECCOMP_USER_NOTIF_FLAG_CONTINUE`.
const CONTINUE: u32 = 1;

/// See the module's head.
#[derive(Debug)]
pub struct Listener(OwnedFd);

/// A thread that waits for the answer to a call (`struct seccomp_notif`).
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Notification {
    id: u64,
    /// The thread, as the host names it to whoever receives this; 0: it is in none of his pid namespaces.
    pub tid: i32,
    flags: u32,
    pub number: i32,
    pub arch: u32,
    /// Behind the instruction.
    pub instruction: u64,
    pub arguments: [u64; 6],
}

/// `struct seccomp_notif_resp`.
#[repr(C)]
pub(crate) struct Response {
    id: u64,
    value: i64,
    error: i32,
    flags: u32,
}

/// What becomes of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The host makes it, if nothing breaks it off.
    GoesOn,
    /// It fails with this error.
    Fails(i32),
}

impl From<OwnedFd> for Listener {
    fn from(descriptor: OwnedFd) -> Listener {
        Listener(descriptor)
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Listener {
    /// Has whoever asks and whoever answers take turns on one CPU.
    ///
    /// # Errors
    /// `EINVAL` before Linux 6.6.
    pub fn share_cpu(&self) -> io::Result<()> {
        request(self.0.as_fd(), Request::SetFlags(SYNC_WAKE_UP))
    }

    /// Waits for a call.
    ///
    /// # Errors
    /// `ENOENT`: the one that asked is gone; `EINTR`.
    pub fn receive(&self) -> io::Result<Notification> {
        // The host wants it empty.
        let mut notification = Notification::default();
        request(self.0.as_fd(), Request::Receive(&mut notification)).map(|()| notification)
    }

    /// Answers it.
    ///
    /// # Errors
    /// `ENOENT`: the one that asked is gone, or a signal has broken off its wait.
    pub fn answer(&self, notification: &Notification, answer: Answer) -> io::Result<()> {
        let (error, flags) = match answer {
            Answer::GoesOn => (0, CONTINUE),
            Answer::Fails(errno) => (errno.saturating_neg(), 0),
        };
        let mut response = Response { id: notification.id, value: 0, error, flags };
        request(self.0.as_fd(), Request::Send(&mut response))
    }
}
