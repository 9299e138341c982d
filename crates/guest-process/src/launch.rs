//! Executes the stub: the only fork and exec of the platform.
//!
//! # Safety
//! Between fork and exec the child, a copy of one thread of a threaded process, makes raw calls on values
//! prepared before, and neither allocates nor locks.
#![allow(unsafe_code, reason = "fork, and the raw calls of its child")]

use std::ffi::CStr;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use platform::PlatformError;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fs::{MemfdFlags, SealFlags};
use rustix::io::Errno;
use rustix::process::{Pid, Signal};

use crate::deadline::PATIENCE;

/// Descriptors that the child must not overwrite while it arranges its own lie from here on.
const HIGH: RawFd = 16;
/// The host puts the stack and the vdso above [`CEILING`](crate::CEILING) for this or less.
const STACK: u64 = 8 << 20;

/// Starts the stub with these descriptors, from 0 on: its control socket first; returns its pid. It waits at its entry, its
/// environment empty, in a session of its own.
///
/// # Errors
/// What the host forbids.
pub fn launch(image: &[u8], descriptors: &[BorrowedFd<'_>]) -> Result<i32, PlatformError> {
    let prepared = Prepared::new(image, descriptors)?;
    let kernel = std::process::id().cast_signed();
    let pid = fork(|| first(&prepared, kernel)).map_err(failed("making the first guest process"))?;
    match prepared.reports(pid) {
        (_, None) => Ok(pid),
        (_, Some(error)) => {
            // An error is ECHILD: nothing left to reap.
            let _ = host::wait::wait(pid, libc::WEXITED);
            Err(failed("executing the stub")(error))
        }
    }
}

/// Forks; the child's life keeps to what this module's head says.
pub(crate) fn fork(child: impl FnOnce()) -> io::Result<i32> {
    // SAFETY: see above.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => {
            child();
            exit(1)
        }
        pid => Ok(pid),
    }
}

fn failed(what: &'static str) -> impl Fn(io::Error) -> PlatformError {
    move |source| PlatformError { what, source }
}

/// What a child needs that is to execute the stub, made before the fork.
pub(crate) struct Prepared {
    image: OwnedFd,
    descriptors: Vec<OwnedFd>,
    report: File,
    child_report: OwnedFd,
}

impl Prepared {
    pub(crate) fn new(image: &[u8], descriptors: &[BorrowedFd<'_>]) -> Result<Prepared, PlatformError> {
        let image = executable_file(image)?;
        let image = high(image.as_fd()).map_err(failed("duplicating a descriptor"))?;
        let descriptors = descriptors.iter().map(|descriptor| high(*descriptor)).collect::<io::Result<_>>();
        let descriptors = descriptors.map_err(failed("duplicating a descriptor"))?;
        let (report, child_report) = pipe().map_err(failed("making a pipe"))?;
        Ok(Prepared { image, descriptors, report, child_report })
    }

    /// In the parent: what its children tell, and the error that one of them met, once all have executed the stub or
    /// ended. `child`, which is not reaped yet, is killed if that takes too long.
    pub(crate) fn reports(self, child: i32) -> (Vec<i32>, Option<io::Error>) {
        let Prepared { mut report, child_report, .. } = self;
        drop(child_report);
        let (mut told, mut error) = (Vec::new(), None);
        let mut word = [0u8; 4];
        while readable_soon(&report) {
            match report.read_exact(&mut word).map(|()| i32::from_ne_bytes(word)) {
                Ok(number @ 0..) => told.push(number),
                Ok(errno) => error = Some(io::Error::from_raw_os_error(errno.saturating_neg())),
                // Closed by the exec.
                Err(_) => return (told, error),
            }
        }
        if let Some(child) = Pid::from_raw(child) {
            // An error means that it is dead already.
            let _ = rustix::process::kill_process(child, Signal::KILL);
        }
        (told, Some(io::ErrorKind::TimedOut.into()))
    }

    /// In a child: tells the parent a number.
    pub(crate) fn tell(&self, number: i32) {
        // A pipe takes a word at once, or its reader is gone.
        let _ = rustix::io::write(&self.child_report, &number.to_ne_bytes());
    }

    /// In a child: tells the parent an error, and ends.
    pub(crate) fn fail(&self, errno: Errno) -> ! {
        self.tell(errno.raw_os_error().saturating_neg());
        exit(127)
    }
}

/// Ends a child.
pub(crate) fn exit(status: i32) -> ! {
    // SAFETY: nothing of the parent's runs here.
    unsafe { libc::_exit(status) }
}

/// The last error of a raw call.
pub(crate) fn last_errno() -> Errno {
    io::Error::last_os_error().raw_os_error().map_or(Errno::IO, Errno::from_raw_os_error)
}

/// Waits for a report or the end of the pipe; `false` if neither comes in time.
fn readable_soon(report: &File) -> bool {
    let limit = Timespec { tv_sec: PATIENCE.as_secs().cast_signed(), tv_nsec: 0 };
    let mut poll = [PollFd::new(report, PollFlags::IN)];
    loop {
        match rustix::event::poll(&mut poll, Some(&limit)) {
            Err(rustix::io::Errno::INTR) => {}
            Ok(0) => return false,
            _ => return true,
        }
    }
}

/// The life of a first guest process that is a child of the kernel's own making.
fn first(prepared: &Prepared, kernel: i32) -> ! {
    become_guest(prepared);
    child(prepared, kernel)
}

/// In a child: becomes the guests' user, where they have one.
pub(crate) fn become_guest(prepared: &Prepared) {
    if let Err(error) = host::user::become_guest() {
        prepared.fail(error.raw_os_error().map_or(Errno::PERM, Errno::from_raw_os_error));
    }
}

/// The life of the first guest process, once it is the guests' user. `parent`: what `getppid` gives while the kernel lives.
pub(crate) fn child(prepared: &Prepared, parent: i32) -> ! {
    if let Err(errno) = rustix::process::setsid()
        .and_then(|_| rustix::process::set_parent_process_death_signal(Some(Signal::KILL)))
    {
        prepared.fail(errno);
    }
    // Armed too late.
    if Pid::as_raw(rustix::process::getppid()) != parent {
        exit(1);
    }
    execute(prepared, c"umlaut-guest", &prepared.descriptors)
}

/// In a child: executes the stub under `name`, with these descriptors from 0 on.
pub(crate) fn execute(prepared: &Prepared, name: &CStr, descriptors: &[OwnedFd]) -> ! {
    // SAFETY: raw calls on integers, and on structures and strings that live in this frame or for ever.
    unsafe {
        // Ignored signals are still shown to a tracer, and cannot end what is parked without one.
        let ignore = [libc::SIG_IGN, 0, 0, 0];
        for signal in 1..=64 {
            libc::syscall(libc::SYS_rt_sigaction, signal, ignore.as_ptr(), 0, 8);
        }
        let none = 0u64;
        libc::syscall(libc::SYS_rt_sigprocmask, libc::SIG_SETMASK, &raw const none, 0, 8);
        libc::personality(libc::ADDR_NO_RANDOMIZE as libc::c_ulong);
        let mut stack = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        libc::getrlimit(libc::RLIMIT_STACK, &mut stack);
        stack.rlim_cur = stack.rlim_max.min(STACK);
        libc::setrlimit(libc::RLIMIT_STACK, &stack);
        libc::umask(0o077);
        if host::privileges::hold_only(host::privileges::Capabilities::empty()).is_err() {
            prepared.fail(Errno::PERM);
        }
        let ready = libc::chdir(c"/".as_ptr()) == 0
            && libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
            && (0..).zip(descriptors).all(|(number, it)| libc::dup2(it.as_raw_fd(), number) >= 0)
            && close_all_from(descriptors.len() as u32);
        if ready {
            let arguments = [name.as_ptr(), std::ptr::null()];
            let environment = [std::ptr::null::<libc::c_char>()];
            libc::syscall(
                libc::SYS_execveat,
                prepared.image.as_raw_fd(),
                c"".as_ptr(),
                arguments.as_ptr(),
                environment.as_ptr(),
                libc::AT_EMPTY_PATH,
            );
        }
    }
    prepared.fail(last_errno())
}

/// In a child: closes all descriptors from `first` on at exec.
fn close_all_from(first: u32) -> bool {
    const CLOSE_RANGE_CLOEXEC: libc::c_uint = 4;
    // SAFETY: descriptors of this process, which nothing uses any more.
    unsafe {
        if libc::syscall(libc::SYS_close_range, first, libc::c_uint::MAX, CLOSE_RANGE_CLOEXEC) == 0 {
            return true;
        }
        // Before Linux 5.11.
        let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        if libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) != 0 {
            return false;
        }
        for descriptor in first..u32::try_from(limit.rlim_max).unwrap_or(1 << 20).min(1 << 20) {
            libc::fcntl(descriptor.cast_signed(), libc::F_SETFD, libc::FD_CLOEXEC);
        }
    }
    true
}

/// A sealed executable file that holds `image`, by a descriptor that cannot write.
///
/// # Errors
/// The host allows none.
pub fn executable_file(image: &[u8]) -> Result<OwnedFd, PlatformError> {
    match in_memory(image) {
        Ok(file) => Ok(file),
        // vm.memfd_noexec=2 forbids executable ones (EACCES).
        Err(error) => on_disk(image).map_err(|source| {
            tracing::debug!(%error, "no executable memfd");
            PlatformError {
                what: "making the stub's executable (memfd: vm.memfd_noexec; files: no directory \
                       among TMPDIR, /tmp, /var/tmp, /dev/shm allows one)",
                source,
            }
        }),
    }
}

fn in_memory(image: &[u8]) -> io::Result<OwnedFd> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    // MFD_EXEC since Linux 6.3; before, all are executable.
    let memfd = match rustix::fs::memfd_create(c"umlaut-stub", flags | MemfdFlags::EXEC) {
        Err(rustix::io::Errno::INVAL) => rustix::fs::memfd_create(c"umlaut-stub", flags)?,
        other => other?,
    };
    let mut file = File::from(memfd);
    file.write_all(image)?;
    rustix::fs::fcntl_add_seals(
        &file,
        // FUTURE_WRITE, as nobody has it mapped: WRITE waits, often 10 ms, for pages that the host has on its own lists.
        SealFlags::FUTURE_WRITE | SealFlags::GROW | SealFlags::SHRINK | SealFlags::SEAL,
    )?;
    Ok(file.into())
}

/// A file without a name any more, in the first directory that allows one to be executed.
fn on_disk(image: &[u8]) -> io::Result<OwnedFd> {
    let mut last = io::Error::from(io::ErrorKind::NotFound);
    let directories = ["/tmp", "/var/tmp", "/dev/shm"].map(PathBuf::from);
    for directory in std::iter::once(std::env::temp_dir()).chain(directories) {
        match in_directory(&directory, image) {
            Ok(file) => return Ok(file),
            Err(error) => last = error,
        }
    }
    Err(last)
}

fn in_directory(directory: &Path, image: &[u8]) -> io::Result<OwnedFd> {
    let mut random = [0u8; 8];
    rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty())?;
    let path = directory.join(format!(".umlaut-stub-{:016x}", u64::from_ne_bytes(random)));
    let write = || -> io::Result<OwnedFd> {
        let mut writer = File::options().write(true).create_new(true).mode(0o500).open(&path)?;
        writer.write_all(image)?;
        // By guests' user too, if that is not ours; whoever cannot read what he executes is not dumpable.
        writer.set_permissions(std::fs::Permissions::from_mode(0o555))?;
        // What is open for writing is not executed (ETXTBSY).
        drop(writer);
        let reader = File::open(&path)?;
        if rustix::fs::fstatvfs(&reader)?.f_flag.contains(rustix::fs::StatVfsMountFlags::NOEXEC) {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        Ok(reader.into())
    };
    let result = write();
    // Never made, or no longer needed.
    let _ = std::fs::remove_file(&path);
    result
}

fn high(descriptor: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    Ok(rustix::io::fcntl_dupfd_cloexec(descriptor, HIGH)?)
}

/// `(read end, write end out of the child's way)`.
fn pipe() -> io::Result<(File, OwnedFd)> {
    let (read, write) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
    Ok((read.into(), high(write.as_fd())?))
}
