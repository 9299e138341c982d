//! `futex_waitv`: waits on several words at once, on the host too.

use abi::{Clock, Errno, FutexWaitv, Timespec, UserAddr};
use platform::{FUTEX_WAITV_MAX, HostCall, HostCallError};
use sync::{SysError, SysResult, WaitEnd};
use zerocopy::{FromZeros, IntoBytes};

use crate::syscall::{In, InArray};
use crate::task::CurrentTask;

/// The index of a word that was woken.
pub fn sys_futex_waitv(
    task: &mut CurrentTask,
    waiters: InArray<FutexWaitv>,
    flags: u32,
    timeout: In<Timespec>,
    clock: Clock,
) -> SysResult<u64> {
    let count = waiters.count & 0xffff_ffff;
    if flags != 0 || count == 0 || count > FUTEX_WAITV_MAX || waiters.addr.is_null() {
        return Err(Errno::EINVAL.into());
    }
    let realtime = clock == Clock::REALTIME;
    let timeout = match timeout.is_null() {
        true => None,
        false if !realtime && clock != Clock::MONOTONIC => return Err(Errno::EINVAL.into()),
        false => {
            let span = crate::time::duration(task.mm.read::<Timespec>(timeout.0)?)?;
            let time = crate::time::timespec(span);
            Some((time.sec, time.nsec))
        }
    };
    // What the words are is judged by the host, but for where they lie.
    let mut words = vec![FutexWaitv::new_zeroed(); count];
    task.mm.read_bytes(waiters.addr, words.as_mut_bytes())?;
    for word in &words {
        if word.uaddr.is_multiple_of(4) && !UserAddr(word.uaddr).in_guest_range(8) {
            return Err(Errno::EFAULT.into());
        }
    }
    loop {
        match task.blocking_host_call(HostCall::FutexWaitv { waiters: &words, timeout, realtime }) {
            Ok(index) => return Ok(index),
            Err(HostCallError::Failed(errno)) => return Err(errno.into()),
            Err(HostCallError::Died) => return Err(Errno::EFAULT.into()),
            Err(HostCallError::Interrupted) => {}
        }
        // The kick may not have been for a signal of ours. The time-out is absolute: the call can be made again as it is.
        match task.wait(&[], Some(std::time::Instant::now()), |_| None::<()>) {
            Ok(()) | Err(WaitEnd::TimedOut) => {}
            Err(WaitEnd::Interrupted(restart)) => return Err(SysError::Restart(restart)),
        }
    }
}
