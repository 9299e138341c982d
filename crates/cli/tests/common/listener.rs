//! Sees the host calls that a program makes, and all that it starts, from chosen addresses: a seccomp filter of ours around
//! it asks us about each (seccomp_unotify(2)), and lets it go on. A filter inside that refuses a call comes first, so what is
//! seen is what came through.
//!
//! # Safety
//! System calls that are given their own memory only.
#![allow(
    unsafe_code,
    clippy::cast_possible_truncation,
    reason = "seccomp has no safe wrapper that tells of addresses"
)]

use std::collections::BTreeSet;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, SendAncillaryBuffer, SendAncillaryMessage};

/// `SECCOMP_IOCTL_NOTIF_RECV` and `SECCOMP_IOCTL_NOTIF_SEND`.
const RECEIVE: libc::Ioctl = 0xc050_2100;
const SEND: libc::Ioctl = 0xc018_2101;
/// `SECCOMP_IOCTL_NOTIF_SET_FLAGS`, `SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP`.
const SET_FLAGS: libc::Ioctl = 0x4008_2104;
const SYNC_WAKE_UP: libc::c_ulong = 1;
/// `SECCOMP_USER_NOTIF_FLAG_CONTINUE`.
const CONTINUE: u32 = 1;

/// `struct seccomp_notif`.
#[repr(C)]
#[derive(Default)]
struct Notification {
    id: u64,
    pid: u32,
    flags: u32,
    number: i32,
    arch: u32,
    instruction: u64,
    arguments: [u64; 6],
}

/// `struct seccomp_notif_resp`.
#[repr(C)]
struct Answer {
    id: u64,
    value: i64,
    error: i32,
    flags: u32,
}

/// Where calls came from, behind the instruction, and their numbers: those of processes that have a filter besides ours.
#[derive(Default)]
pub(crate) struct Seen {
    pub(crate) calls: Mutex<BTreeSet<(u64, i32)>>,
    /// Calls before are not kept.
    pub(crate) begun: AtomicBool,
}

/// What a program to be started will be seen by.
pub(crate) struct Listener {
    ours: OwnedFd,
    theirs: OwnedFd,
}

impl Listener {
    /// Asks for calls from the lowest 4 GiB (code of a program that is linked there) and from `high` on within its 4 GiB.
    pub(crate) fn around(command: &mut Command, high: u64) -> Listener {
        let (ours, theirs) = rustix::net::socketpair(
            rustix::net::AddressFamily::UNIX,
            rustix::net::SocketType::SEQPACKET,
            rustix::net::SocketFlags::CLOEXEC,
            None,
        )
        .unwrap();
        let socket = theirs.as_raw_fd();
        let hand_over = move || {
            let listener = filter(high)?;
            // SAFETY: the parent keeps it open over the start of the child.
            send(unsafe { BorrowedFd::borrow_raw(socket) }, &listener)
        };
        // SAFETY: system calls on memory of its own, nothing that another thread of the test may hold a lock for.
        unsafe { command.pre_exec(hand_over) };
        Listener { ours, theirs }
    }

    /// Once the program has been started: answers until nothing of it is left.
    pub(crate) fn listen(self, seen: &Seen) {
        drop(self.theirs);
        let Some(listener) = receive(&self.ours) else { return };
        // Since Linux 6.6: who asks and who answers share a CPU.
        // SAFETY: the request takes a number.
        unsafe { libc::ioctl(listener.as_raw_fd(), SET_FLAGS, SYNC_WAKE_UP) };
        loop {
            let mut notification = Notification::default();
            // SAFETY: the structure that the request fills.
            if unsafe { libc::ioctl(listener.as_raw_fd(), RECEIVE, &raw mut notification) } != 0 {
                match io::Error::last_os_error().raw_os_error() {
                    // The one that asked has died; or a signal.
                    Some(libc::ENOENT | libc::EINTR) if !is_over(&listener) => continue,
                    _ => return,
                }
            }
            let call = (notification.instruction, notification.number);
            if seen.begun.load(Ordering::SeqCst)
                && !seen.calls.lock().unwrap().contains(&call)
                && is_filtered(notification.pid)
            {
                seen.calls.lock().unwrap().insert(call);
            }
            let answer = Answer { id: notification.id, value: 0, error: 0, flags: CONTINUE };
            // SAFETY: the structure that the request reads. An error: the one that asked has died.
            unsafe { libc::ioctl(listener.as_raw_fd(), SEND, &raw const answer) };
        }
    }
}

/// Whether it has a filter besides ours: not umlaut itself, before it confines itself, nor the init of a pid namespace.
fn is_filtered(pid: u32) -> bool {
    let of = |pid: &str| -> Option<u32> {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        status.lines().find_map(|line| line.strip_prefix("Seccomp_filters:"))?.trim().parse().ok()
    };
    of(&pid.to_string()).is_none_or(|filters| filters > of("self").unwrap_or(0) + 1)
}

/// Whether no process has the filter any more.
fn is_over(listener: &OwnedFd) -> bool {
    let mut poll = libc::pollfd { fd: listener.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    // SAFETY: one entry.
    unsafe { libc::poll(&raw mut poll, 1, 0) };
    poll.revents & libc::POLLHUP != 0
}

/// Puts the filter around the calling process.
fn filter(high: u64) -> io::Result<OwnedFd> {
    let load = |offset: u32| (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, offset);
    let jump = |kind: u32, yes, no, value| (libc::BPF_JMP | kind | libc::BPF_K, yes, no, value);
    let end = |action| (libc::BPF_RET | libc::BPF_K, 0, 0, action);
    // Of `struct seccomp_data`: the instruction's address is at 8.
    let mut program = [
        load(12),
        jump(libc::BPF_JEQ, 3, 0, 0),
        jump(libc::BPF_JEQ, 0, 3, (high >> 32) as u32),
        load(8),
        jump(libc::BPF_JGE, 0, 1, high as u32),
        end(libc::SECCOMP_RET_USER_NOTIF),
        end(libc::SECCOMP_RET_ALLOW),
    ]
    .map(|(code, jt, jf, k)| libc::sock_filter { code: code as u16, jt, jf, k });
    let program = libc::sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
    // SAFETY: the program lives over the call, which copies it.
    let listener = unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            libc::SECCOMP_FILTER_FLAG_NEW_LISTENER,
            &raw const program,
        )
    };
    if listener < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: a new descriptor, nobody else's.
    Ok(unsafe { OwnedFd::from_raw_fd(listener as i32) })
}

fn send(socket: BorrowedFd<'_>, file: &OwnedFd) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    let files = [std::os::fd::AsFd::as_fd(file)];
    ancillary.push(SendAncillaryMessage::ScmRights(&files));
    let bytes = [io::IoSlice::new(&[0])];
    rustix::net::sendmsg(socket, &bytes, &mut ancillary, rustix::net::SendFlags::NOSIGNAL)?;
    Ok(())
}

fn receive(socket: &OwnedFd) -> Option<OwnedFd> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    let mut bytes = [io::IoSliceMut::new(&mut byte)];
    rustix::net::recvmsg(socket, &mut bytes, &mut ancillary, rustix::net::RecvFlags::CMSG_CLOEXEC).ok()?;
    ancillary.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut files) => files.next(),
        _ => None,
    })
}
