//! A pid namespace around guest processes, where the host lets us have one: when its first process ends, the host
//! ends all others, whatever they have done to outlive their parent.
//!
//! A helper makes the namespace and, with `CLONE_PARENT`, its two first processes, so both are children of the kernel:
//! the *init*, which executes the stub too and sleeps in it until it is killed, and the first guest process. (An init
//! cannot be the parent of what is to be the kernel's child: `CLONE_PARENT` is forbidden to it.) The kernel stays
//! outside: guests' own pids and tids are other numbers than the kernel's, and their parent's is 0.
//!
//! # Safety
//! As in `launch`: children make raw calls on values prepared before, and neither allocate nor lock.
#![allow(unsafe_code, reason = "clone, and the raw calls of its children")]

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use platform::PlatformError;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fs::{RawDir, SeekFrom};
use rustix::process::{Pid, PidfdFlags, Signal};

use crate::launch::{self, Prepared};

/// How long the end of a namespace is waited for; what takes longer ends with the kernel.
const END_MS: i64 = 200;
/// Links of a directory that are not subdirectories' (`.` and `..` and its own entry).
const OWN_LINKS: u64 = 2;
/// How far from the end of a process's threads a new one is looked for first.
const NEWEST: u64 = 4;

/// A pid namespace, held by the processes that live in it. It ends with the last of them.
#[derive(Debug)]
pub struct Namespace {
    init: i32,
}

impl Namespace {
    /// Its first process, as the kernel sees it.
    pub(crate) fn init(&self) -> i32 {
        self.init
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        end(self.init);
    }
}

/// Kills our child `pid` and reaps it, unless that takes long.
fn end(pid: i32) {
    let Some(pid) = Pid::from_raw(pid) else { return };
    let _ = rustix::process::kill_process(pid, Signal::KILL);
    if let Ok(pidfd) = rustix::process::pidfd_open(pid, PidfdFlags::empty()) {
        let limit = Timespec { tv_sec: 0, tv_nsec: END_MS * 1_000_000 };
        let _ = rustix::event::poll(&mut [PollFd::new(&pidfd, PollFlags::IN)], Some(&limit));
    }
    let _ = host::wait::wait(pid.as_raw_nonzero().get(), libc::WEXITED | libc::WNOHANG);
}

/// As [`launch`](launch::launch), inside a new pid namespace; gives the pid as the kernel sees it.
///
/// # Errors
/// Also where the host allows no namespace: try again without.
pub fn launch_in_namespace(
    image: &[u8],
    descriptors: &[BorrowedFd<'_>],
) -> Result<(i32, Namespace), PlatformError> {
    const WHAT: &str = "making a pid namespace";
    let failed = |source| PlatformError { what: WHAT, source };
    let prepared = Prepared::new(image, descriptors)?;
    let kernel = rustix::process::pidfd_open(rustix::process::getpid(), PidfdFlags::empty())
        .map_err(|errno| failed(errno.into()))?;
    let helper = launch::fork(|| make(&prepared, kernel.as_fd())).map_err(failed)?;
    let (pids, error) = prepared.reports(helper);
    // It has ended by itself, or is ended now.
    end(helper);
    match (error, pids.as_slice()) {
        (None, [init, first]) => Ok((*first, Namespace { init: *init })),
        (error, pids) => {
            pids.iter().rev().for_each(|pid| end(*pid));
            Err(failed(error.unwrap_or_else(|| io::Error::other("it did not come up in time"))))
        }
    }
}

/// What launches a first guest process: its pid, and the namespace that it lives in.
pub type Launch = fn(&[u8], &[BorrowedFd<'_>]) -> Result<(i32, Option<Arc<Namespace>>), PlatformError>;

/// Makes a first guest process by `make`: in a pid namespace of its own where that is `wanted` and to be had; else guests
/// are ended by PDEATHSIG and the supervisor alone.
///
/// # Errors
/// What `make` gives without a namespace.
pub fn make_in_namespace<Z>(
    wanted: bool,
    make: impl Fn(Launch) -> Result<Z, PlatformError>,
) -> Result<Z, PlatformError> {
    if wanted {
        let inside: Launch = |image, descriptors| {
            launch_in_namespace(image, descriptors).map(|(pid, namespace)| (pid, Some(Arc::new(namespace))))
        };
        match make(inside) {
            Ok(zygote) => return Ok(zygote),
            Err(error) => tracing::debug!(%error, "no pid namespace around guest processes"),
        }
    }
    make(|image, descriptors| launch::launch(image, descriptors).map(|pid| (pid, None)))
}

/// The helper's life.
fn make(prepared: &Prepared, kernel: BorrowedFd<'_>) -> ! {
    // Before: a user namespace belongs to who makes it, and in it there is no other user to become.
    launch::become_guest(prepared);
    // SAFETY: this process has one thread, and shares nothing.
    let made = unsafe {
        libc::unshare(libc::CLONE_NEWPID) == 0 || libc::unshare(libc::CLONE_NEWUSER | libc::CLONE_NEWPID) == 0
    };
    if !made {
        prepared.fail(launch::last_errno());
    }
    prepared.tell(clone_sibling(prepared, || be_init(prepared, kernel)));
    // Its parent is outside. If the kernel is gone, so is the init.
    prepared.tell(clone_sibling(prepared, || launch::child(prepared, 0)));
    launch::exit(0)
}

/// A fork whose parent is ours; gives its pid as we see it.
fn clone_sibling(prepared: &Prepared, life: impl FnOnce()) -> i32 {
    let flags = libc::c_long::from(libc::CLONE_PARENT | libc::SIGCHLD);
    // SAFETY: without a stack of its own the child has a copy of this one.
    match unsafe { libc::syscall(libc::SYS_clone, flags, 0, 0, 0, 0) as i32 } {
        ..0 => prepared.fail(launch::last_errno()),
        0 => {
            life();
            launch::exit(1)
        }
        pid => pid,
    }
}

fn be_init(prepared: &Prepared, kernel: BorrowedFd<'_>) -> ! {
    if let Err(errno) = rustix::process::setsid()
        .and_then(|_| rustix::process::set_parent_process_death_signal(Some(Signal::KILL)))
    {
        prepared.fail(errno);
    }
    // Armed too late if the kernel is gone: `getppid` is 0 in any case.
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    if rustix::event::poll(&mut [PollFd::from_borrowed_fd(kernel, PollFlags::IN)], Some(&now)) != Ok(0) {
        launch::exit(1);
    }
    launch::execute(prepared, c"umlaut-init", &[])
}

/// The kernel's name of the thread of `tgid` that calls itself `local` in its own pid namespace.
///
/// # Errors
/// `ESRCH` if there is none.
pub(crate) fn thread(tgid: i32, local: i32) -> io::Result<i32> {
    use rustix::fs::{Mode, OFlags};
    let path = format!("/proc/{tgid}/task");
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let open = || Ok(rustix::fs::open(&path, flags, Mode::empty())?);
    let tasks = host::user::perhaps_as_guests(open)?;
    let links = rustix::fs::fstat(&tasks)?.st_nlink;
    // The host lists threads in the order in which they were made; it counts `.` and `..` too.
    let newest = 2 + links.saturating_sub(OWN_LINKS + NEWEST);
    for start in [newest, 2] {
        rustix::fs::seek(&tasks, SeekFrom::Start(start))?;
        let mut buffer = Vec::with_capacity(8192);
        let mut entries = RawDir::new(&tasks, buffer.spare_capacity_mut());
        let mut tids = Vec::new();
        while let Some(entry) = entries.next() {
            tids.extend(entry?.file_name().to_str().ok().and_then(|name| name.parse::<i32>().ok()));
        }
        let is_it = |tid: &i32| innermost(&format!("/proc/{tgid}/task/{tid}/status")) == Some(local);
        if let Some(tid) = tids.into_iter().rev().find(is_it) {
            return Ok(tid);
        }
    }
    Err(rustix::io::Errno::SRCH.into())
}

/// The kernel's name of a child of its that calls itself `local` in its own pid namespace.
pub(crate) fn child(local: i32) -> Option<i32> {
    let threads = std::fs::read_dir("/proc/self/task").ok()?.flatten();
    let children = threads.filter_map(|thread| std::fs::read_to_string(thread.path().join("children")).ok());
    children
        .flat_map(|list| {
            list.split_ascii_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<i32>>()
        })
        .find(|pid| innermost(&format!("/proc/{pid}/status")) == Some(local))
}

/// The last number of `NSpid`, if the process is in a namespace below ours.
fn innermost(status: &str) -> Option<i32> {
    let text = host::user::perhaps_as_guests(|| std::fs::read_to_string(status)).ok()?;
    let numbers = text.lines().find_map(|line| line.strip_prefix("NSpid:"))?;
    let mut numbers = numbers.split_ascii_whitespace();
    numbers.next()?;
    numbers.next_back()?.parse().ok()
}
