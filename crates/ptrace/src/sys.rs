//! The ptrace requests, each as one function on a stopped thread's tid.
//!
//! # Safety
//! Requests that fill or read a structure get a pointer to one of ours of the very size; all others take
//! integers. Nothing here touches this process's other memory.
#![allow(unsafe_code, reason = "ptrace takes its arguments as untyped words")]

use std::io;

use platform::Registers;

pub(crate) const SEIZE_OPTIONS: i32 = libc::PTRACE_O_EXITKILL
    | libc::PTRACE_O_TRACESYSGOOD
    | libc::PTRACE_O_TRACEFORK
    | libc::PTRACE_O_TRACEVFORK
    | libc::PTRACE_O_TRACECLONE
    | libc::PTRACE_O_TRACEEXEC;

/// How a stopped thread goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Resume {
    /// `PTRACE_CONT`: natively. Only ever in the stub's text.
    Native,
    /// `PTRACE_SYSEMU`: to the next system call, which the host does not execute.
    Sysemu,
    /// `PTRACE_SYSEMU_SINGLESTEP`: the same, but no further than behind one instruction.
    SysemuStep,
    /// `PTRACE_SYSCALL`: to the next entry to or exit from a system call.
    Syscall,
}

/// The host's `struct ptrace_syscall_info` of an entry stop.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(crate) struct SyscallInfo {
    pub(crate) op: u8,
    pad: [u8; 3],
    pub(crate) arch: u32,
    pub(crate) instruction_pointer: u64,
    pub(crate) stack_pointer: u64,
    pub(crate) number: u64,
    pub(crate) args: [u64; 6],
}

/// `PTRACE_SYSCALL_INFO_ENTRY`.
pub(crate) const INFO_ENTRY: u8 = 1;
const PTRACE_GET_SYSCALL_INFO: libc::c_uint = 0x420e;
const PTRACE_SYSEMU: libc::c_uint = 31;
const PTRACE_SYSEMU_SINGLESTEP: libc::c_uint = 32;
const NT_X86_XSTATE: usize = 0x202;

fn request(request: libc::c_uint, tid: i32, addr: usize, data: usize) -> io::Result<usize> {
    // SAFETY: see the callers: integers, or pointers to structures of ours.
    let result = unsafe { libc::syscall(libc::SYS_ptrace, request as libc::c_long, tid, addr, data) };
    usize::try_from(result).map_err(|_| io::Error::last_os_error())
}

pub(crate) fn seize(tid: i32) -> io::Result<()> {
    request(libc::PTRACE_SEIZE, tid, 0, SEIZE_OPTIONS.cast_unsigned() as usize).map(drop)
}

pub(crate) fn interrupt(tid: i32) -> io::Result<()> {
    request(libc::PTRACE_INTERRUPT, tid, 0, 0).map(drop)
}

pub(crate) fn detach(tid: i32) -> io::Result<()> {
    request(libc::PTRACE_DETACH, tid, 0, 0).map(drop)
}

/// Resumes without delivering any signal.
pub(crate) fn resume(tid: i32, how: Resume) -> io::Result<()> {
    let number = match how {
        Resume::Native => libc::PTRACE_CONT,
        Resume::Sysemu => PTRACE_SYSEMU,
        Resume::SysemuStep => PTRACE_SYSEMU_SINGLESTEP,
        Resume::Syscall => libc::PTRACE_SYSCALL,
    };
    request(number, tid, 0, 0).map(drop)
}

pub(crate) fn registers(tid: i32) -> io::Result<Registers> {
    let mut registers = Registers::default();
    request(libc::PTRACE_GETREGS, tid, 0, (&raw mut registers).expose_provenance())?;
    Ok(registers)
}

/// # Errors
/// `EIO` for values that user code cannot have (selectors, bases), `ESRCH`.
pub(crate) fn set_registers(tid: i32, registers: &Registers) -> io::Result<()> {
    request(libc::PTRACE_SETREGS, tid, 0, (&raw const *registers).expose_provenance()).map(drop)
}

/// Sets one register: `offset` in [`Registers`].
pub(crate) fn set_register(tid: i32, offset: usize, value: u64) -> io::Result<()> {
    request(libc::PTRACE_POKEUSER, tid, offset, value as usize).map(drop)
}

pub(crate) fn syscall_info(tid: i32) -> io::Result<SyscallInfo> {
    let mut info = SyscallInfo::default();
    request(PTRACE_GET_SYSCALL_INFO, tid, size_of::<SyscallInfo>(), (&raw mut info).expose_provenance())?;
    Ok(info)
}

/// `(si_signo, si_code, si_addr)` of a signal-delivery stop.
pub(crate) fn signal_info(tid: i32) -> io::Result<(i32, i32, u64)> {
    // SAFETY: all zeroes is a valid siginfo_t.
    let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
    request(libc::PTRACE_GETSIGINFO, tid, 0, (&raw mut info).expose_provenance())?;
    // SAFETY: the union is plain data; what it means for this signal is the caller's business.
    let address = unsafe { info.si_addr() };
    Ok((info.si_signo, info.si_code, address.addr() as u64))
}

/// Fills `area` with the extended state; returns its size.
pub(crate) fn xstate(tid: i32, area: &mut [u8]) -> io::Result<usize> {
    let mut vector = libc::iovec { iov_base: area.as_mut_ptr().cast(), iov_len: area.len() };
    request(libc::PTRACE_GETREGSET, tid, NT_X86_XSTATE, (&raw mut vector).expose_provenance())?;
    Ok(vector.iov_len)
}

/// # Errors
/// `EINVAL`, `EFAULT` for a state that the processor would refuse.
pub(crate) fn set_xstate(tid: i32, area: &[u8]) -> io::Result<()> {
    let vector = libc::iovec { iov_base: area.as_ptr().cast_mut().cast(), iov_len: area.len() };
    request(libc::PTRACE_SETREGSET, tid, NT_X86_XSTATE, (&raw const vector).expose_provenance()).map(drop)
}

/// Writes a word of the thread's memory, whatever its protection.
pub(crate) fn poke(tid: i32, address: u64, word: u64) -> io::Result<()> {
    request(libc::PTRACE_POKEDATA, tid, address as usize, word as usize).map(drop)
}
