//! A guest process's control socket: how descriptors reach it, and how its first word tells who it is.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, sockopt,
};

use crate::deadline::PATIENCE;

/// Descriptors in one message, at most.
pub const PASSED: usize = 32;

/// A new control socket: the kernel's end, which stamps credentials on what it receives and waits no longer
/// than a child may take to check in, and the guest's.
///
/// # Errors
/// What the host says.
pub fn control_socket() -> io::Result<(OwnedFd, OwnedFd)> {
    let (ours, theirs) =
        rustix::net::socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
    sockopt::set_socket_passcred(&ours, true)?;
    wait_no_longer(&ours, PATIENCE)?;
    Ok((ours, theirs))
}

/// How long the kernel's end of a control socket waits for a first word from now on.
///
/// # Errors
/// What the host says.
pub fn wait_no_longer(ours: &OwnedFd, than: Duration) -> io::Result<()> {
    Ok(sockopt::set_socket_timeout(ours, sockopt::Timeout::Recv, Some(than))?)
}

/// Waits for the first message on `control`; returns the pid that the host stamped on it. The end of file
/// comes if the child dies before.
///
/// # Errors
/// `ESRCH` if it died before or says something else.
pub fn check_in(control: &OwnedFd) -> io::Result<i32> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmCredentials(1))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0u8];
    loop {
        let flags = RecvFlags::CMSG_CLOEXEC;
        match rustix::net::recvmsg(control, &mut [IoSliceMut::new(&mut byte)], &mut ancillary, flags) {
            Ok(message) if message.bytes == 1 => break,
            Ok(_) => return Err(rustix::io::Errno::SRCH.into()),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    for message in ancillary.drain() {
        if let RecvAncillaryMessage::ScmCredentials(credentials) = message {
            return Ok(credentials.pid.as_raw_nonzero().get());
        }
    }
    Err(rustix::io::Errno::SRCH.into())
}

/// Waits for a descriptor: from a first guest process, in which there has been no guest.
///
/// # Errors
/// `ESRCH` if it says something else.
pub fn receive_descriptor(control: &OwnedFd) -> io::Result<OwnedFd> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmCredentials(1), ScmRights(1))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0u8];
    let flags = RecvFlags::CMSG_CLOEXEC;
    rustix::net::recvmsg(control, &mut [IoSliceMut::new(&mut byte)], &mut ancillary, flags)?;
    let received = ancillary.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut descriptors) => descriptors.next(),
        _ => None,
    });
    received.ok_or(rustix::io::Errno::SRCH.into())
}

/// Sends descriptors to the guest process, for its stub to receive. Never blocks: the queue is empty
/// between host calls.
///
/// # Errors
/// `EPIPE` or `ECONNRESET` if the process is dying, whose end of the socket is closed; `ETOOMANYREFS`: more
/// descriptors in flight than this user may have.
pub fn send(control: &OwnedFd, files: &[BorrowedFd<'_>]) -> Result<(), rustix::io::Errno> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(PASSED))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    ancillary.push(SendAncillaryMessage::ScmRights(files));
    let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
    rustix::net::sendmsg(control.as_fd(), &[IoSlice::new(&[0])], &mut ancillary, flags).map(drop)
}
