//! `poll` and `ppoll`, and waiting for several files at once.

use std::sync::Arc;
use std::time::{Duration, Instant};

use abi::{Errno, PollFlags, Pollfd, SigSet, Timespec, UserAddr};
use platform::GuestRange;
use smallvec::SmallVec;
use sync::{Deadline, SysError, SysResult, WaitEnd, WaitQueue};
use vfs::FileDescription;
use zerocopy::{FromBytes, IntoBytes};

use crate::resource::NOFILE;
use crate::syscall::{In, InOut, Outcome, PollFds, SyscallReturn};
use crate::task::CurrentTask;
use crate::task::run::RestartBlock;

/// Bytes of a `struct pollfd`.
const POLLFD: usize = size_of::<Pollfd>();
/// What is told whether it was asked for or not.
const ALWAYS: PollFlags = PollFlags::ERR.union(PollFlags::HUP);

/// A `poll` that `restart_syscall` goes on with.
#[derive(Clone, Copy, Debug)]
pub struct PollRestart {
    fds: PollFds,
    deadline: Deadline,
}

pub fn sys_poll(task: &mut CurrentTask, fds: PollFds, timeout: i32) -> SysResult<usize> {
    let deadline = match u64::try_from(timeout) {
        Ok(millis) => Instant::now().checked_add(Duration::from_millis(millis)),
        Err(_) => None,
    };
    poll_until(task, PollRestart { fds, deadline })
}

pub(crate) fn restart_poll(task: &mut CurrentTask, poll: PollRestart) -> SysResult<Outcome> {
    poll_until(task, poll).map(SyscallReturn::outcome)
}

fn poll_until(task: &mut CurrentTask, poll: PollRestart) -> SysResult<usize> {
    do_poll(task, poll.fds, poll.deadline).map_err(|error| {
        error.map_restart(|restart| {
            task.restart_block = RestartBlock::Poll(poll);
            restart.block()
        })
    })
}

pub fn sys_ppoll(
    task: &mut CurrentTask,
    fds: PollFds,
    timeout: InOut<Timespec>,
    mask: In<SigSet>,
    set_size: usize,
) -> SysResult<usize> {
    let limit = match timeout.is_null() {
        true => None,
        false => Some(TimeLimit::new(crate::time::duration(task.mm.read(timeout.0)?)?)),
    };
    task.wait_with_mask(mask, set_size)?;
    let deadline = limit.as_ref().and_then(|limit| limit.deadline);
    let result =
        do_poll(task, fds, deadline).map_err(|error| error.map_restart(|restart| restart.no_handler()));
    task.end_wait_with_mask(&result);
    let Some(limit) = limit else { return result };
    limit.write_back(result, |left| task.mm.write(timeout.0, &crate::time::timespec(left)))
}

/// A relative time-out of `select` and `ppoll`, which tell what is left of it.
pub(super) struct TimeLimit {
    pub deadline: Deadline,
    is_zero: bool,
}

impl TimeLimit {
    pub(super) fn new(span: Duration) -> TimeLimit {
        TimeLimit { deadline: Instant::now().checked_add(span), is_zero: span.is_zero() }
    }

    /// Stores what is left (Linux: `poll_select_finish`). Where it cannot be stored the call must not start again with
    /// the whole time: it is `EINTR`.
    pub(super) fn write_back<T>(
        &self,
        result: SysResult<T>,
        store: impl FnOnce(Duration) -> SysResult<()>,
    ) -> SysResult<T> {
        let Some(deadline) = self.deadline.filter(|_| !self.is_zero) else { return result };
        match (store(deadline.saturating_duration_since(Instant::now())), result) {
            (Err(_), Err(SysError::Restart(_))) => Err(Errno::EINTR.into()),
            (_, result) => result,
        }
    }
}

/// One entry of the guest's array.
struct Polled {
    asked: Pollfd,
    file: Option<Arc<FileDescription>>,
    found: PollFlags,
}

impl Polled {
    fn look(&mut self) -> bool {
        self.found = match (&self.file, self.asked.fd) {
            (Some(file), _) => {
                let ready = PollFlags::from_bits_retain(
                    u16::try_from(file.ops.poll(file).bits() & 0xffff).unwrap_or(0),
                );
                ready & (self.asked.events | ALWAYS)
            }
            (None, ..0) => PollFlags::empty(),
            (None, _) => PollFlags::NVAL,
        };
        !self.found.is_empty()
    }
}

fn do_poll(task: &CurrentTask, fds: PollFds, deadline: Deadline) -> SysResult<usize> {
    if u64::from(fds.count) > task.limit(NOFILE) {
        return Err(Errno::EINVAL.into());
    }
    let count = usize::try_from(fds.count).map_err(|_| Errno::EINVAL)?;
    let mut bytes = vec![0; count * POLLFD];
    task.mm.read_bytes(fds.addr, &mut bytes)?;
    let mut polled: Vec<Polled> = bytes
        .chunks_exact(POLLFD)
        .map(|bytes| {
            let asked = Pollfd::read_from_bytes(bytes).unwrap_or_default();
            Polled { asked, file: task.files.table.get(asked.fd).ok(), found: PollFlags::empty() }
        })
        .collect();
    let look = |polled: &mut [Polled]| {
        let ready = polled.iter_mut().map(Polled::look).filter(|ready| *ready).count();
        (ready > 0).then_some(ready)
    };
    let mut ready = look(&mut polled);
    if ready.is_none() {
        let files: Vec<_> = polled.iter().filter_map(|entry| entry.file.clone()).collect();
        ready = match wait_on_files(task, &files, deadline, || look(&mut polled)) {
            Ok(ready) => Some(ready),
            Err(WaitEnd::TimedOut) => None,
            Err(interrupted) => return Err(interrupted.into()),
        };
    }
    write_found(task, fds.addr, &polled)?;
    Ok(ready.unwrap_or(0))
}

/// Waits until `check` gives a value; it is called again whenever one of the files may have changed.
pub(super) fn wait_on_files<T>(
    task: &CurrentTask,
    files: &[Arc<FileDescription>],
    deadline: Deadline,
    mut check: impl FnMut() -> Option<T>,
) -> Result<T, WaitEnd> {
    let mut queues: SmallVec<[&WaitQueue; 8]> =
        files.iter().flat_map(|file| file.ops.wait_queues()).collect();
    // A file that is polled a thousand times wakes once.
    queues.sort_unstable_by_key(|queue| std::ptr::from_ref(*queue));
    queues.dedup_by_key(|queue| std::ptr::from_ref(*queue));
    task.wait(&queues, deadline, |_| check())
}

/// Stores the events found. Only those: other threads may change the rest of the array meanwhile. Words that hold their
/// value already are left alone, but for the first, which tells whether the array can be written to.
fn write_found(task: &CurrentTask, addr: UserAddr, polled: &[Polled]) -> SysResult<()> {
    let mut bytes = Vec::new();
    let mut ranges: SmallVec<[GuestRange; 8]> = SmallVec::new();
    for (index, entry) in polled.iter().enumerate() {
        if index > 0 && entry.asked.revents == entry.found {
            continue;
        }
        let at = (index * POLLFD + std::mem::offset_of!(Pollfd, revents)) as u64;
        let start = addr.checked_add(at).ok_or(Errno::EFAULT)?;
        ranges.push(GuestRange { start, len: size_of::<PollFlags>() });
        bytes.extend_from_slice(entry.found.as_bytes());
    }
    // As many ranges as the host takes at once.
    for (bytes, ranges) in bytes.chunks(2 * MAX_RANGES).zip(ranges.chunks(MAX_RANGES)) {
        if task.mm.copy_out(bytes, ranges) < bytes.len() {
            return Err(Errno::EFAULT.into());
        }
    }
    Ok(())
}

/// Ranges of one copy (IOV_MAX).
const MAX_RANGES: usize = 1024;
