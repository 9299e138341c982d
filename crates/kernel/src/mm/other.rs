//! Another process's memory: `process_vm_readv` and `process_vm_writev`.

use std::sync::Arc;

use abi::{Errno, UserAddr};
use platform::GuestRange;
use smallvec::SmallVec;
use sync::SysResult;

use crate::fs::rw::read_io_vec;
use crate::mm::{Access, Mm};
use crate::syscall::{IoVec, Pid, RemoteVec};
use crate::task::CurrentTask;

/// Bytes copied at a time.
const CHUNK: usize = 64 << 10;
/// Entries of a vector at most (`UIO_MAXIOV`).
const MAX_RANGES: usize = 1024;

/// Ranges of another process; nothing is checked but their number (Linux: `iovec_from_user`).
pub(super) fn read_vec(
    task: &CurrentTask,
    at: UserAddr,
    count: usize,
) -> SysResult<SmallVec<[(UserAddr, u64); 8]>> {
    if count > MAX_RANGES {
        return Err(Errno::EINVAL.into());
    }
    let mut raw = vec![0; count * 16];
    task.mm.read_bytes(at, &mut raw)?;
    let mut ranges = SmallVec::new();
    for pair in raw.chunks_exact(16) {
        let word =
            |at: usize| pair.get(at..at + 8).and_then(|b| b.try_into().ok()).map_or(0, u64::from_le_bytes);
        if word(8) > i64::MAX.cast_unsigned() {
            return Err(Errno::EINVAL.into());
        }
        ranges.push((UserAddr(word(0)), word(8)));
    }
    Ok(ranges)
}

/// The memory of a process (or thread) that the caller may look into. `ESRCH`, `EPERM`.
pub(super) fn target(task: &CurrentTask, pid: i32) -> SysResult<Arc<Mm>> {
    let tasks = &task.kernel().tasks;
    let found = tasks.task_or_leader(pid).ok_or(Errno::ESRCH)?;
    let shared = found.shared.lock().clone();
    // An ended process has no memory for anybody; the kernel's own init only has none to show.
    if shared.mm.is_none() && found.group.exit().is_some() {
        return Err(Errno::ESRCH.into());
    }
    if !Arc::ptr_eq(&found.group, task.group()) {
        use std::sync::atomic::Ordering;
        let dumpable = found.group.dumpable.load(Ordering::Relaxed) == 1;
        let may = crate::task::pidfd::may_look_into(task, &shared.cred)
            && (dumpable || task.cred.capable(vfs::Capability::SYS_PTRACE));
        if !may {
            return Err(Errno::EPERM.into());
        }
    }
    Ok(shared.mm.ok_or(Errno::ESRCH)?)
}

pub fn sys_process_vm_readv(
    task: &mut CurrentTask,
    pid: Pid,
    local: IoVec,
    remote: RemoteVec,
    flags: u64,
) -> SysResult<usize> {
    transfer(task, pid, local, remote, flags, false)
}

pub fn sys_process_vm_writev(
    task: &mut CurrentTask,
    pid: Pid,
    local: IoVec,
    remote: RemoteVec,
    flags: u64,
) -> SysResult<usize> {
    transfer(task, pid, local, remote, flags, true)
}

fn transfer(
    task: &CurrentTask,
    pid: Pid,
    local: IoVec,
    remote: RemoteVec,
    flags: u64,
    writes: bool,
) -> SysResult<usize> {
    if flags != 0 {
        return Err(Errno::EINVAL.into());
    }
    let local = read_io_vec(task, local)?;
    if local.iter().all(|range| range.len == 0) {
        return Ok(0);
    }
    let remote = read_vec(task, remote.addr, remote.count)?;
    if remote.iter().all(|(_, len)| *len == 0) {
        return Ok(0);
    }
    let other = target(task, pid.0)?;
    let wanted: usize = local.iter().map(|range| range.len).sum();
    let remote: SmallVec<[GuestRange; 8]> = remote
        .iter()
        .map(|(start, len)| GuestRange { start: *start, len: usize::try_from(*len).unwrap_or(usize::MAX) })
        .collect();
    let (from, from_ranges, to, to_ranges) = match writes {
        true => (&*task.mm, &local, &*other, &remote),
        false => (&*other, &remote, &*task.mm, &local),
    };
    let mut done = 0;
    let mut buffer = vec![0; wanted.min(CHUNK)];
    while done < wanted {
        let room = buffer.len().min(wanted - done);
        let source = piece(from_ranges, done, room);
        let len: usize = source.iter().map(|range| range.len).sum();
        let Some(bytes) = buffer.get_mut(..len).filter(|bytes| !bytes.is_empty()) else { break };
        let read = from.inspect(&source, bytes, Access::Protected);
        let sink = piece(to_ranges, done, read);
        let written = to.copy_out(bytes.get(..read).unwrap_or(&[]), &sink);
        done += written;
        if written < len {
            return if done > 0 { Ok(done) } else { Err(Errno::EFAULT.into()) };
        }
    }
    Ok(done)
}

/// The part of the ranges `skip` bytes from their beginning, at most `len` bytes of it.
fn piece(ranges: &[GuestRange], mut skip: usize, mut len: usize) -> SmallVec<[GuestRange; 8]> {
    let mut piece = SmallVec::new();
    for range in ranges {
        let skipped = skip.min(range.len);
        skip -= skipped;
        let taken = (range.len - skipped).min(len);
        if taken > 0 {
            // A range that wraps is refused by the copy.
            let start = UserAddr(range.start.0.saturating_add(skipped as u64));
            piece.push(GuestRange { start, len: taken });
            len -= taken;
        }
    }
    piece
}
