//! Probes of everything else.
//!
//! # Safety
//! As in `child`: raw calls only, on integers and on what lies in the frame.
#![allow(unsafe_code, reason = "raw calls in forked children")]

use super::child::{WRONG, check, child_result, errno, fork, require};

const CREATE_RULESET: libc::c_long = 444;
const RESTRICT_SELF: libc::c_long = 446;

/// A memfd with `content`, or the errno.
fn memfd(flags: libc::c_uint, content: &[u8]) -> Result<libc::c_int, i32> {
    // SAFETY: a static name, and a buffer for its own length.
    unsafe {
        let fd = libc::memfd_create(c"probe".as_ptr(), flags);
        check(fd.into())?;
        require(libc::write(fd, content.as_ptr().cast(), content.len()) == content.len().cast_signed())?;
        Ok(fd)
    }
}

/// Sealed memory refuses to be written.
pub(super) fn memfd_seals() -> Result<(), i32> {
    let fd = memfd(libc::MFD_ALLOW_SEALING, b"x")?;
    // SAFETY: integers, and a static buffer.
    unsafe {
        check(libc::fcntl(fd, libc::F_ADD_SEALS, libc::F_SEAL_WRITE | libc::F_SEAL_SEAL).into())?;
        require(libc::write(fd, c"y".as_ptr().cast(), 1) == -1 && errno() == libc::EPERM)
    }
}

/// A program in a memfd can be executed.
pub(super) fn memfd_exec() -> Result<(), i32> {
    const MFD_EXEC: libc::c_uint = 0x10;
    const ALREADY: i32 = 0;
    fn execute() -> Result<(), i32> {
        // An image without allocating: fork's child may not.
        let image = guest_process::exiting_image();
        let fd = match memfd(MFD_EXEC, &image) {
            Err(libc::EINVAL) => memfd(0, &image)?,
            other => other?,
        };
        let none = [std::ptr::null::<libc::c_char>()];
        // SAFETY: empty vectors and a static string.
        unsafe {
            let (flags, path) = (libc::AT_EMPTY_PATH, c"".as_ptr());
            check(libc::syscall(libc::SYS_execveat, fd, path, none.as_ptr(), none.as_ptr(), flags))?;
        }
        Err(ALREADY)
    }
    child_result(fork(execute)?)
}

/// `rdfsbase` works in user code.
pub(super) fn fsgsbase() -> Result<(), i32> {
    const HWCAP2_FSGSBASE: libc::c_ulong = 2;
    // SAFETY: integers.
    if unsafe { libc::getauxval(libc::AT_HWCAP2) } & HWCAP2_FSGSBASE == 0 {
        return Err(libc::EOPNOTSUPP);
    }
    let base: u64;
    // SAFETY: reads a register; the host says that user code may.
    unsafe { std::arch::asm!("rdfsbase {}", out(reg) base, options(nomem, nostack, preserves_flags)) };
    // Thread-local storage is in use in this process.
    require(base != 0)
}

/// A child is signalled and waited for by pidfd.
pub(super) fn pidfd() -> Result<(), i32> {
    fn sleep() -> Result<(), i32> {
        loop {
            // SAFETY: waits for a signal.
            unsafe { libc::pause() };
        }
    }
    let pid = fork(sleep)?;
    // SAFETY: integers, and a structure of this frame.
    unsafe {
        let fd = check(libc::syscall(libc::SYS_pidfd_open, pid, 0))?;
        check(libc::syscall(libc::SYS_pidfd_send_signal, fd, libc::SIGKILL, 0, 0))?;
        let mut info: libc::siginfo_t = std::mem::zeroed();
        let id = libc::id_t::try_from(fd).map_err(|_| WRONG)?;
        check(libc::waitid(libc::P_PIDFD, id, &mut info, libc::WEXITED).into())?;
        require(info.si_pid() == pid && info.si_status() == libc::SIGKILL)
    }
}

/// `close_range`, which the stub closes descriptors by.
pub(super) fn close_range() -> Result<(), i32> {
    // SAFETY: descriptors of this child, which is about to end.
    unsafe {
        let fd = libc::dup(0).max(libc::memfd_create(c"probe".as_ptr(), 0));
        check(fd.into())?;
        check(libc::syscall(libc::SYS_close_range, fd, libc::c_uint::MAX, 0))?;
        require(libc::fcntl(fd, libc::F_GETFD) == -1)
    }
}

/// A user namespace can be made.
pub(super) fn user_namespaces() -> Result<(), i32> {
    // SAFETY: integers.
    check(unsafe { libc::unshare(libc::CLONE_NEWUSER) }.into()).map(drop)
}

/// A pid namespace can be made, in a user namespace if need be.
pub(super) fn pid_namespaces() -> Result<(), i32> {
    fn first() -> Result<(), i32> {
        // SAFETY: no arguments.
        require(unsafe { libc::getpid() } == 1)
    }
    // SAFETY: integers.
    unsafe {
        if libc::unshare(libc::CLONE_NEWPID) != 0 {
            check(libc::unshare(libc::CLONE_NEWUSER | libc::CLONE_NEWPID).into())?;
        }
    }
    child_result(fork(first)?)
}

/// A ruleset without rules forbids opening.
pub(super) fn landlock() -> Result<(), i32> {
    /// Reading directories.
    const READ_DIR: u64 = 1 << 3;
    let handled = READ_DIR;
    // SAFETY: one word of this frame is read; the rest are integers and a static string.
    unsafe {
        let ruleset = check(libc::syscall(CREATE_RULESET, &raw const handled, size_of::<u64>(), 0))?;
        check(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0).into())?;
        check(libc::syscall(RESTRICT_SELF, ruleset, 0))?;
        let fd = libc::open(c"/".as_ptr(), libc::O_RDONLY | libc::O_DIRECTORY);
        require(fd == -1 && errno() == libc::EACCES)
    }
}

/// Sealed mappings stay (Linux 6.10).
pub(super) fn mseal() -> Result<(), i32> {
    const MSEAL: libc::c_long = 462;
    const PAGE: usize = 4096;
    // SAFETY: a page of this child's own, which nobody refers to.
    unsafe {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        let page = libc::mmap(std::ptr::null_mut(), PAGE, libc::PROT_READ, flags, -1, 0);
        require(page != libc::MAP_FAILED)?;
        check(libc::syscall(MSEAL, page, PAGE, 0))?;
        require(libc::munmap(page, PAGE) == -1 && errno() == libc::EPERM)
    }
}

/// A virtual machine can be made.
pub(super) fn kvm() -> Result<(), i32> {
    const KVM_GET_API_VERSION: libc::c_ulong = 0xae00;
    const KVM_CREATE_VM: libc::c_ulong = 0xae01;
    // SAFETY: a static string and integers.
    unsafe {
        let fd = libc::open(c"/dev/kvm".as_ptr(), libc::O_RDWR | libc::O_CLOEXEC);
        check(fd.into())?;
        match libc::ioctl(fd, KVM_GET_API_VERSION as _, 0) {
            12 => {}
            -1 => return Err(errno()),
            _ => return Err(WRONG),
        }
        check(libc::ioctl(fd, KVM_CREATE_VM as _, 0).into()).map(drop)
    }
}
