//! Waiting for descriptors: `poll`, `select`, `epoll`, `eventfd`, `signalfd`, `inotify`, `fanotify`
//! (`asm-generic/poll.h`, `linux/eventpoll.h` and others).

use crate::macros::{flags, layout, names};

flags! {
    /// Events of `poll`.
    PollFlags: u16, "POLL" {
        IN = 0x1;
        PRI = 0x2;
        OUT = 0x4;
        ERR = 0x8;
        HUP = 0x10;
        NVAL = 0x20;
        RDNORM = 0x40;
        RDBAND = 0x80;
        WRNORM = 0x100;
        WRBAND = 0x200;
        MSG = 0x400;
        REMOVE = 0x1000;
        RDHUP = 0x2000;
    }

    /// Events of `epoll`.
    EpollFlags: u32, "EPOLL" {
        IN = 0x1;
        PRI = 0x2;
        OUT = 0x4;
        ERR = 0x8;
        HUP = 0x10;
        NVAL = 0x20;
        RDNORM = 0x40;
        RDBAND = 0x80;
        WRNORM = 0x100;
        WRBAND = 0x200;
        MSG = 0x400;
        RDHUP = 0x2000;
        EXCLUSIVE = 0x1000_0000;
        WAKEUP = 0x2000_0000;
        ONESHOT = 0x4000_0000;
        ET = 0x8000_0000;
    }

    /// Flags of `epoll_create1`.
    EpollCreateFlags: u32, "EPOLL_" {
        CLOEXEC = 0o2000000;
    }

    /// Flags of `eventfd2`.
    EfdFlags: u32, "EFD_" {
        SEMAPHORE = 1;
        NONBLOCK = 0o4000;
        CLOEXEC = 0o2000000;
    }

    /// Flags of `signalfd4`.
    SfdFlags: u32, "SFD_" {
        NONBLOCK = 0o4000;
        CLOEXEC = 0o2000000;
    }

    /// Flags of `inotify_init1`.
    InotifyInitFlags: u32, "IN_" {
        NONBLOCK = 0o4000;
        CLOEXEC = 0o2000000;
    }

    /// What inotify watches for, and reports.
    InotifyMask: u32, "IN_" {
        ALL_EVENTS = 0xfff;
        ACCESS = 0x1;
        MODIFY = 0x2;
        ATTRIB = 0x4;
        CLOSE_WRITE = 0x8;
        CLOSE_NOWRITE = 0x10;
        OPEN = 0x20;
        MOVED_FROM = 0x40;
        MOVED_TO = 0x80;
        CREATE = 0x100;
        DELETE = 0x200;
        DELETE_SELF = 0x400;
        MOVE_SELF = 0x800;
        UNMOUNT = 0x2000;
        Q_OVERFLOW = 0x4000;
        IGNORED = 0x8000;
        ONLYDIR = 0x0100_0000;
        DONT_FOLLOW = 0x0200_0000;
        EXCL_UNLINK = 0x0400_0000;
        MASK_CREATE = 0x1000_0000;
        MASK_ADD = 0x2000_0000;
        ISDIR = 0x4000_0000;
        ONESHOT = 0x8000_0000;
    }
}

names! {
    /// What `epoll_ctl` does.
    EpollOp: i32, "EPOLL_CTL_" {
        ADD = 1;
        DEL = 2;
        MOD = 3;
    }
}

impl From<PollFlags> for EpollFlags {
    fn from(events: PollFlags) -> EpollFlags {
        EpollFlags::from_bits_retain(u32::from(events.bits()))
    }
}

/// `struct epoll_event`: packed on x86-64, 12 bytes.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    Default,
    zerocopy::FromBytes,
    zerocopy::IntoBytes,
    zerocopy::Immutable,
    zerocopy::KnownLayout,
)]
#[repr(C, packed)]
pub struct EpollEvent {
    /// Wanted or reported.
    pub events: EpollFlags,
    /// The program's own.
    pub data: u64,
}

const _: () = assert!(size_of::<EpollEvent>() == 12);

impl EpollEvent {
    /// Most of them in one call (`EP_MAX_EVENTS`).
    pub const MAX: usize = 0x7fff_ffff / 12;
}

layout! {
    /// `struct pollfd`.
    struct Pollfd: 8 {
        0 fd: i32,
        4 events: PollFlags,
        6 revents: PollFlags,
    }

    /// The last argument of `pselect6`: a signal set and its size.
    struct SigsetArg: 16 {
        0 sigset: u64,
        8 size: u64,
    }

    /// `struct signalfd_siginfo`.
    struct SignalfdSiginfo: 128 {
        0 signo: u32,
        4 errno: i32,
        8 code: i32,
        12 pid: u32,
        16 uid: u32,
        20 fd: i32,
        24 tid: u32,
        28 band: u32,
        32 overrun: u32,
        36 trapno: u32,
        40 status: i32,
        44 int: i32,
        48 ptr: u64,
        56 utime: u64,
        64 stime: u64,
        72 addr: u64,
        80 addr_lsb: u16,
        82 pad2: u16,
        84 syscall: i32,
        88 call_addr: u64,
        96 arch: u32,
        100 pad: [u32; 7],
    }

    /// The fixed part of `struct inotify_event`; `len` bytes of name follow.
    struct InotifyEvent: 16 {
        0 wd: i32,
        4 mask: InotifyMask,
        8 cookie: u32,
        12 len: u32,
    }

    /// `struct epoll_params`, of `EPIOCSPARAMS`.
    struct EpollParams: 8 {
        0 busy_poll_usecs: u32,
        4 busy_poll_budget: u16,
        6 prefer_busy_poll: u8,
        7 pad: u8,
    }
}

/// Bits of an `fd_set` of glibc; the kernel itself takes as many as `select`'s first argument says.
pub const FD_SETSIZE: usize = 1024;
