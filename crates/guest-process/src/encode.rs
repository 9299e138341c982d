//! Host calls as numbers and arguments: the closed list of `platform` as the host wants it, for every
//! platform whose guests are host processes.

use std::os::fd::{AsRawFd, BorrowedFd};

use abi::{Errno, FutexWaitv, GUEST_TOP, UserAddr};
use platform::{FUTEX_WAITV_MAX, FutexCall, HostCall, HostCallFailure};
use zerocopy::IntoBytes;

use crate::control::PASSED;
use crate::process::guest_range;

/// A host call in registers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RawCall {
    pub number: u64,
    pub args: [u64; 6],
}

impl RawCall {
    pub fn new(number: libc::c_long, args: [u64; 6]) -> RawCall {
        RawCall { number: number.cast_unsigned(), args }
    }
}

/// A call as the host wants it, and what of it must lie in memory.
#[derive(Clone, Copy, Debug)]
pub struct Encoded<'a> {
    pub call: RawCall,
    /// The descriptor (fifth argument) is an index into the files that go with the batch, where one may be several calls'.
    pub takes_file: bool,
    /// A `struct timespec`, whose place is the call's fourth argument.
    pub timeout: Option<[u8; 16]>,
    /// An array whose place is the call's first argument, at most [`LONGEST_ARRAY`] bytes; such a call goes alone. Empty:
    /// there is none.
    pub array: &'a [u8],
}

/// Bytes of [`Encoded::array`] at most.
pub const LONGEST_ARRAY: usize = FUTEX_WAITV_MAX * size_of::<FutexWaitv>();

impl From<RawCall> for Encoded<'_> {
    fn from(call: RawCall) -> Self {
        Encoded { call, takes_file: false, timeout: None, array: &[] }
    }
}

/// A call of the closed list as the host wants it; what the list does not allow is `EINVAL`.
///
/// # Errors
/// `EINVAL`; for futexes `ENOSYS` and `EFAULT`; `EBADF` for a mapping that needs a file and has none.
pub fn encode<'a>(call: &HostCall<'a>, files: &mut Vec<BorrowedFd<'a>>) -> Result<Encoded<'a>, Errno> {
    let range = |addr: UserAddr, len: u64| {
        if guest_range(addr, len) { Ok(addr.0) } else { Err(Errno::EINVAL) }
    };
    let call = match *call {
        HostCall::Map { addr, len, prot, flags, file } => {
            range(addr, len)?;
            check_map_flags(flags)?;
            let (fd, offset) = match file {
                Some(file) => (position(files, file.fd), file.offset),
                None if flags & libc::MAP_ANONYMOUS.cast_unsigned() != 0 => (u64::MAX, 0),
                None => return Err(Errno::EBADF),
            };
            let args = [addr.0, len, u64::from(prot), u64::from(flags), fd, offset];
            let call = RawCall::new(libc::SYS_mmap, args);
            return Ok(Encoded { takes_file: file.is_some(), ..Encoded::from(call) });
        }
        HostCall::Unmap { addr, len } => RawCall::new(libc::SYS_munmap, [range(addr, len)?, len, 0, 0, 0, 0]),
        HostCall::Protect { addr, len, prot } => {
            RawCall::new(libc::SYS_mprotect, [range(addr, len)?, len, u64::from(prot), 0, 0, 0])
        }
        HostCall::Remap { addr, old_len, new_len, to, keep_old } => {
            range(addr, old_len)?;
            range(to.unwrap_or(addr), new_len)?;
            if old_len == 0 {
                return Err(Errno::EINVAL);
            }
            let mut flags = 0;
            if to.is_some() {
                flags |= libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
            }
            if keep_old {
                flags |= libc::MREMAP_DONTUNMAP;
            }
            let to = to.unwrap_or(UserAddr::NULL).0;
            let args = [addr.0, old_len, new_len, u64::from(flags.cast_unsigned()), to, 0];
            RawCall::new(libc::SYS_mremap, args)
        }
        HostCall::Advise { addr, len, advice } => {
            range(addr, len)?;
            check_advice(advice)?;
            let advice = u64::from(advice.cast_unsigned());
            RawCall::new(libc::SYS_madvise, [addr.0, len, advice, 0, 0, 0])
        }
        HostCall::Futex(futex) => return encode_futex(&futex),
        HostCall::FutexWaitv { waiters, timeout, realtime } => {
            return encode_waitv(waiters, timeout, realtime);
        }
        HostCall::Membarrier(command) => {
            if !HostCall::MEMBARRIERS.contains(command) || command.bits().count_ones() != 1 {
                return Err(Errno::EINVAL);
            }
            RawCall::new(libc::SYS_membarrier, [u64::from(command.bits()), 0, 0, 0, 0, 0])
        }
        HostCall::UnmapAll => RawCall::new(libc::SYS_munmap, [0, GUEST_TOP, 0, 0, 0, 0]),
    };
    Ok(call.into())
}

/// Which of the files that go with the batch it is: each goes once, however many mappings it is for.
fn position<'a>(files: &mut Vec<BorrowedFd<'a>>, fd: BorrowedFd<'a>) -> u64 {
    let known = files.iter().position(|file| file.as_raw_fd() == fd.as_raw_fd());
    known.unwrap_or_else(|| {
        files.push(fd);
        files.len() - 1
    }) as u64
}

/// A `struct timespec`.
fn timespec((seconds, nanoseconds): (i64, i64)) -> [u8; 16] {
    let mut bytes = [0u8; 16];
    let (first, second) = bytes.split_at_mut(8);
    first.copy_from_slice(&seconds.to_ne_bytes());
    second.copy_from_slice(&nanoseconds.to_ne_bytes());
    bytes
}

fn encode_waitv(
    waiters: &[FutexWaitv],
    timeout: Option<(i64, i64)>,
    realtime: bool,
) -> Result<Encoded<'_>, Errno> {
    if waiters.is_empty() || waiters.len() > FUTEX_WAITV_MAX {
        return Err(Errno::EINVAL);
    }
    // A word with a node number (FUTEX2_NUMA) is as long as two.
    if !waiters.iter().all(|waiter| guest_range(UserAddr(waiter.uaddr), 8)) {
        return Err(Errno::EFAULT);
    }
    let clock = if realtime { libc::CLOCK_REALTIME } else { libc::CLOCK_MONOTONIC };
    let args = [0, waiters.len() as u64, 0, 0, u64::from(clock.cast_unsigned()), 0];
    let call = RawCall::new(libc::SYS_futex_waitv, args);
    Ok(Encoded { timeout: timeout.map(timespec), array: waiters.as_bytes(), ..Encoded::from(call) })
}

fn encode_futex(call: &FutexCall) -> Result<Encoded<'static>, Errno> {
    let uses_second =
        matches!(command(call.op), libc::FUTEX_REQUEUE | libc::FUTEX_CMP_REQUEUE | libc::FUTEX_WAKE_OP);
    if !known_futex(call.op) {
        return Err(Errno::ENOSYS);
    }
    if !guest_range(call.uaddr, 4) || uses_second && !guest_range(call.uaddr2, 4) {
        return Err(Errno::EFAULT);
    }
    let timeout = call.timeout.filter(|_| !uses_second).map(timespec);
    let fourth = if uses_second { u64::from(call.val2) } else { 0 };
    let second = if uses_second { call.uaddr2.0 } else { 0 };
    let (mut op, mut val3) = (call.op, call.val3);
    if command(op) == libc::FUTEX_WAIT && call.timeout.is_some() {
        // FUTEX_WAIT would take the time as relative.
        op = op & !FUTEX_COMMANDS | libc::FUTEX_WAIT_BITSET.cast_unsigned();
        val3 = u32::MAX;
    }
    let args = [call.uaddr.0, u64::from(op), u64::from(call.val), fourth, second, u64::from(val3)];
    Ok(Encoded { timeout, ..Encoded::from(RawCall::new(libc::SYS_futex, args)) })
}

/// Makes calls batch after batch, each in one hand-over by `make`: `most` calls, [`PASSED`] descriptors; a call that may
/// block goes alone. Returns the result of the last one.
///
/// # Errors
/// The first failure, its index counted from the first call of all.
pub fn in_batches<'a>(
    calls: &[HostCall<'a>],
    most: usize,
    mut make: impl FnMut(&[HostCall<'a>]) -> Result<u64, HostCallFailure>,
) -> Result<u64, HostCallFailure> {
    let mut result = 0;
    let mut done = 0usize;
    while let Some(rest) = calls.get(done..).filter(|rest| !rest.is_empty()) {
        let count = batch_len(rest, most);
        let batch = rest.get(..count).unwrap_or(rest);
        result = make(batch).map_err(|failure| HostCallFailure { index: failure.index + done, ..failure })?;
        done += count;
    }
    Ok(result)
}

/// How many of these go in one hand-over.
fn batch_len(calls: &[HostCall<'_>], most: usize) -> usize {
    let mut files = 0;
    for (index, call) in calls.iter().enumerate() {
        files += usize::from(matches!(call, HostCall::Map { file: Some(_), .. }));
        if blocks(call) {
            return index.max(1);
        }
        if index == most || files > PASSED {
            return index;
        }
    }
    calls.len()
}

/// A host call's result register.
///
/// # Errors
/// The errno that it holds.
pub fn answer(result: u64) -> Result<u64, Errno> {
    match i32::try_from(result.cast_signed()) {
        Ok(number @ -4095..=-1) => Err(Errno::from_raw(-number)),
        _ => Ok(result),
    }
}

/// The bits of a futex operation that are not flags (`FUTEX_CMD_MASK`).
const FUTEX_COMMANDS: u32 = !(libc::FUTEX_PRIVATE_FLAG | libc::FUTEX_CLOCK_REALTIME).cast_unsigned();

fn command(op: u32) -> i32 {
    (op & FUTEX_COMMANDS).cast_signed()
}

fn known_futex(op: u32) -> bool {
    matches!(
        command(op),
        libc::FUTEX_WAIT
            | libc::FUTEX_WAKE
            | libc::FUTEX_REQUEUE
            | libc::FUTEX_CMP_REQUEUE
            | libc::FUTEX_WAKE_OP
            | libc::FUTEX_WAIT_BITSET
            | libc::FUTEX_WAKE_BITSET
    )
}

/// Whether it may sleep until somebody else acts.
pub fn blocks(call: &HostCall<'_>) -> bool {
    match call {
        HostCall::Futex(futex) => {
            matches!(command(futex.op), libc::FUTEX_WAIT | libc::FUTEX_WAIT_BITSET)
        }
        call => matches!(call, HostCall::FutexWaitv { .. }),
    }
}

/// Mappings have a fixed place and take neither huge nor locked pages.
fn check_map_flags(flags: u32) -> Result<(), Errno> {
    /// Since Linux 6.11.
    const MAP_DROPPABLE: i32 = 0x8;
    let fixed = (libc::MAP_FIXED | libc::MAP_FIXED_NOREPLACE).cast_unsigned();
    let known = (libc::MAP_SHARED
        | libc::MAP_PRIVATE
        | MAP_DROPPABLE
        | libc::MAP_FIXED
        | libc::MAP_FIXED_NOREPLACE
        | libc::MAP_ANONYMOUS
        | libc::MAP_NORESERVE
        | libc::MAP_POPULATE
        | libc::MAP_NONBLOCK
        | libc::MAP_GROWSDOWN
        | libc::MAP_STACK)
        .cast_unsigned();
    if flags & fixed == 0 || flags & !known != 0 { Err(Errno::EINVAL) } else { Ok(()) }
}

/// Advice without effect outside the process: not REMOVE (punches holes into files), HWPOISON, SOFT_OFFLINE, MERGEABLE; nor
/// what the kernel keeps a record of instead. `FREE_ADVICE` are the first of them.
pub const ADVICE: &[u32] = &[
    libc::MADV_NORMAL as u32,
    libc::MADV_RANDOM as u32,
    libc::MADV_SEQUENTIAL as u32,
    libc::MADV_WILLNEED as u32,
    libc::MADV_DONTNEED as u32,
    libc::MADV_FREE as u32,
    libc::MADV_COLD as u32,
    libc::MADV_HUGEPAGE as u32,
    libc::MADV_NOHUGEPAGE as u32,
    libc::MADV_POPULATE_READ as u32,
    libc::MADV_POPULATE_WRITE as u32,
];
/// Advice that the kernel has nothing to do with, on memory that is neither locked nor sealed.
pub const FREE_ADVICE: &[u32] = ADVICE.split_at(7).0;

fn check_advice(advice: i32) -> Result<(), Errno> {
    if ADVICE.contains(&advice.cast_unsigned()) { Ok(()) } else { Err(Errno::EINVAL) }
}
