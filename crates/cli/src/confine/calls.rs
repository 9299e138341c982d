//! The host calls that the kernel's own process may make once it is set up, with what they are for. All others are
//! refused: `EPERM`, and a line on stderr.
#![allow(clippy::cast_possible_truncation, reason = "request numbers have 32 bits")]

/// How the arguments of a call are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Check {
    /// Not at all.
    Any,
    /// The argument is one of these.
    OneOf(u32, &'static [u32]),
    /// All of these bits are set in the argument; else quietly refused.
    All(u32, u32),
    /// None of these bits is set in it.
    None(u32, u32),
    /// The first argument is one of the users as whom it opens files, of which it has two if root has started it.
    FileUser,
    /// The same of groups.
    FileGroup,
    /// On the ptrace platforms only.
    Tracing,
    /// Answered as by a host that does not have it: the caller goes another way.
    Missing,
    /// Refused without a word: the C library makes it with all signals blocked.
    Quietly,
}

const PROT_EXEC: u32 = libc::PROT_EXEC.cast_unsigned();
const THREAD: u32 = (libc::CLONE_THREAD | libc::CLONE_SIGHAND | libc::CLONE_VM).cast_unsigned();

/// Requests to terminals and streams, and to the listener of guests' filter. Not TIOCSTI and TIOCLINUX, which type in the user's place.
const IOCTLS: &[u32] = &[
    libc::TCGETS as u32,
    libc::TCSETS as u32,
    libc::TCSETSW as u32,
    libc::TCSETSF as u32,
    libc::TCGETS2 as u32,
    libc::TCSETS2 as u32,
    libc::TCSETSW2 as u32,
    libc::TCSETSF2 as u32,
    libc::TCSBRK as u32,
    libc::TIOCGPGRP as u32,
    libc::TIOCGSID as u32,
    libc::TIOCGWINSZ as u32,
    libc::FIONREAD as u32,
    libc::TIOCOUTQ as u32, // what a guest has not received
    host::listener::RECEIVE,
    host::listener::SEND,
];

/// A purpose, and the calls that serve it.
type Group = (&'static str, &'static [(libc::c_long, Check)]);

/// All of them, by what they are for.
pub(super) const GROUPS: &[Group] = &[
    (
        "its own memory, never executable from now on",
        &[
            (libc::SYS_mmap, Check::None(2, PROT_EXEC)),
            (libc::SYS_mprotect, Check::None(2, PROT_EXEC)),
            (libc::SYS_munmap, Check::Any),
            (libc::SYS_mremap, Check::Any),
            (libc::SYS_madvise, Check::Any),
            (libc::SYS_mincore, Check::Any),
            (libc::SYS_brk, Check::Any),
            (libc::SYS_membarrier, Check::Any),
        ],
    ),
    (
        "threads, and no processes",
        &[
            (libc::SYS_clone, Check::All(0, THREAD)),
            // Its flags lie in memory; the C library then takes clone.
            (libc::SYS_clone3, Check::Missing),
            (libc::SYS_fork, Check::Quietly),
            (libc::SYS_vfork, Check::Quietly),
            (libc::SYS_execve, Check::Quietly),
            (libc::SYS_execveat, Check::Quietly),
            (libc::SYS_set_robust_list, Check::Any),
            (libc::SYS_rseq, Check::Any),
            (libc::SYS_sigaltstack, Check::Any),
            (libc::SYS_rt_sigprocmask, Check::Any),
            (libc::SYS_rt_sigreturn, Check::Any),
            // The second goes with setfsuid.
            (libc::SYS_prctl, Check::OneOf(0, &[libc::PR_SET_NAME as u32, libc::PR_SET_DUMPABLE as u32])),
            (libc::SYS_exit, Check::Any),
            (libc::SYS_exit_group, Check::Any),
            (libc::SYS_futex, Check::Any),
            (libc::SYS_futex_waitv, Check::Any),
            (libc::SYS_restart_syscall, Check::Any),
            (libc::SYS_gettid, Check::Any),
            (libc::SYS_getpid, Check::Any),
            (libc::SYS_getppid, Check::Any),
            (libc::SYS_getpgrp, Check::Any),
            (libc::SYS_getuid, Check::Any),
            (libc::SYS_geteuid, Check::Any),
            (libc::SYS_getgid, Check::Any),
            (libc::SYS_getegid, Check::Any),
            (libc::SYS_sched_yield, Check::Any),
            (libc::SYS_getcpu, Check::Any),
        ],
    ),
    (
        "time, chance, what the machine is",
        &[
            (libc::SYS_clock_gettime, Check::Any),
            (libc::SYS_clock_getres, Check::Any),
            (libc::SYS_clock_nanosleep, Check::Any),
            (libc::SYS_nanosleep, Check::Any),
            (libc::SYS_gettimeofday, Check::Any),
            (libc::SYS_time, Check::Any),
            // Without privileges it only reads.
            (libc::SYS_adjtimex, Check::Any),
            (libc::SYS_clock_adjtime, Check::Any),
            (libc::SYS_getrandom, Check::Any),
            (libc::SYS_sysinfo, Check::Any),
            (libc::SYS_uname, Check::Any),
            (libc::SYS_getrusage, Check::Any),
        ],
    ),
    (
        "waiting for events",
        &[
            (libc::SYS_poll, Check::Any),
            (libc::SYS_ppoll, Check::Any),
            (libc::SYS_epoll_create1, Check::Any),
            (libc::SYS_epoll_ctl, Check::Any),
            (libc::SYS_epoll_wait, Check::Any),
            (libc::SYS_epoll_pwait, Check::Any),
            (libc::SYS_epoll_pwait2, Check::Any),
            (libc::SYS_eventfd2, Check::Any),
            (libc::SYS_pipe2, Check::Any),
        ],
    ),
    (
        "files that it holds or may open (Landlock says which)",
        &[
            (libc::SYS_read, Check::Any),
            (libc::SYS_write, Check::Any),
            (libc::SYS_readv, Check::Any),
            (libc::SYS_writev, Check::Any),
            (libc::SYS_pread64, Check::Any),
            (libc::SYS_pwrite64, Check::Any),
            (libc::SYS_preadv, Check::Any),
            (libc::SYS_pwritev, Check::Any),
            (libc::SYS_preadv2, Check::Any),
            (libc::SYS_pwritev2, Check::Any),
            (libc::SYS_lseek, Check::Any),
            (libc::SYS_close, Check::Any),
            (libc::SYS_dup, Check::Any),
            (libc::SYS_fcntl, Check::Any),
            (libc::SYS_flock, Check::Any),
            (libc::SYS_ioctl, Check::OneOf(1, IOCTLS)),
            (libc::SYS_ftruncate, Check::Any),
            (libc::SYS_fallocate, Check::Any),
            (libc::SYS_fadvise64, Check::Any),
            (libc::SYS_fsync, Check::Any),
            (libc::SYS_fdatasync, Check::Any),
            (libc::SYS_sync_file_range, Check::Any),
            (libc::SYS_syncfs, Check::Any),
            (libc::SYS_copy_file_range, Check::Any),
            (libc::SYS_memfd_create, Check::Any),
            (libc::SYS_openat, Check::Any),
            (libc::SYS_openat2, Check::Any),
            (libc::SYS_open, Check::Any),
            (libc::SYS_getdents64, Check::Any),
            (libc::SYS_fstat, Check::Any),
            (libc::SYS_stat, Check::Any),
            (libc::SYS_lstat, Check::Any),
            (libc::SYS_newfstatat, Check::Any),
            (libc::SYS_statx, Check::Any),
            (libc::SYS_fstatfs, Check::Any),
            (libc::SYS_statfs, Check::Any),
            (libc::SYS_readlink, Check::Any),
            (libc::SYS_readlinkat, Check::Any),
            (libc::SYS_faccessat, Check::Any),
            (libc::SYS_faccessat2, Check::Any),
            (libc::SYS_access, Check::Any),
        ],
    ),
    (
        "changes to what --rw and --bind name",
        &[
            (libc::SYS_mkdirat, Check::Any),
            (libc::SYS_symlinkat, Check::Any),
            (libc::SYS_linkat, Check::Any),
            (libc::SYS_unlinkat, Check::Any),
            (libc::SYS_unlink, Check::Any),
            (libc::SYS_rmdir, Check::Any),
            (libc::SYS_renameat, Check::Any),
            (libc::SYS_renameat2, Check::Any),
            (libc::SYS_fchmod, Check::Any),
            (libc::SYS_fchmodat, Check::Any),
            (libc::SYS_chmod, Check::Any),
            (libc::SYS_utimensat, Check::Any),
            (libc::SYS_getxattr, Check::Any),
            (libc::SYS_lgetxattr, Check::Any),
            (libc::SYS_fgetxattr, Check::Any),
            (libc::SYS_setxattr, Check::Any),
            (libc::SYS_fsetxattr, Check::Any),
            (libc::SYS_listxattr, Check::Any),
            (libc::SYS_flistxattr, Check::Any),
            (libc::SYS_removexattr, Check::Any),
            (libc::SYS_fremovexattr, Check::Any),
        ],
    ),
    (
        "sockets that it holds: guests' control sockets, the terminal's and the user's streams, who looks from outside",
        &[
            (libc::SYS_socketpair, Check::OneOf(0, &[libc::AF_UNIX as u32])),
            (libc::SYS_sendmsg, Check::Any),
            (libc::SYS_recvmsg, Check::Any),
            (libc::SYS_sendto, Check::Any),
            (libc::SYS_recvfrom, Check::Any),
            (libc::SYS_accept4, Check::Any),
            (libc::SYS_setsockopt, Check::Any),
            (libc::SYS_getsockopt, Check::Any),
            (libc::SYS_shutdown, Check::Any),
        ],
    ),
    (
        "guest processes: their memory, their deaths, their place",
        &[
            (libc::SYS_process_vm_readv, Check::Any),
            (libc::SYS_process_vm_writev, Check::Any),
            (libc::SYS_tgkill, Check::Any),
            (libc::SYS_kill, Check::Any),
            (libc::SYS_pidfd_open, Check::Any),
            (libc::SYS_pidfd_send_signal, Check::Any),
            (libc::SYS_waitid, Check::Any),
            (libc::SYS_wait4, Check::Any),
            (libc::SYS_sched_getaffinity, Check::Any),
            (libc::SYS_sched_setaffinity, Check::Any),
            (libc::SYS_setpriority, Check::Any),
            (libc::SYS_prlimit64, Check::Any),
            // To look at them as they do, when they are not root's: `host::user`.
            (libc::SYS_setfsuid, Check::FileUser),
            (libc::SYS_setfsgid, Check::FileGroup),
            (libc::SYS_ptrace, Check::Tracing),
        ],
    ),
];
