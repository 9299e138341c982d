//! Futexes are host futexes, executed in the guest's context: private, shared and process-shared ones are all
//! exact. Robust lists are the kernel's, at task exit.

pub mod waitv;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use abi::{Errno, FutexCmd, FutexFlags, Timespec, UserAddr};
use platform::{FutexCall, HostCall, HostCallError};
use sync::{SysError, SysResult, WaitEnd};

use crate::syscall::{FutexOperation, FutexSecond, FutexThird, FutexTimeout, Out, Outcome, Pid};
use crate::task::CurrentTask;
use crate::task::pidfd::may_look_into;
use crate::task::run::RestartBlock;

/// A wait with a relative time-out, made absolute, that `restart_syscall` goes on with.
#[derive(Clone, Copy, Debug)]
pub struct FutexRestart {
    call: FutexCall,
}

/// All bits: what FUTEX_WAIT and FUTEX_WAKE mean as the bitset kinds.
const MATCH_ANY: u32 = u32::MAX;

pub fn sys_futex(
    task: &mut CurrentTask,
    uaddr: UserAddr,
    op: FutexOperation,
    val: u32,
    timeout: FutexTimeout,
    uaddr2: FutexSecond,
    val3: FutexThird,
) -> SysResult<Outcome> {
    let (FutexOperation(op), FutexTimeout(timeout)) = (op, timeout);
    let (FutexSecond(uaddr2), FutexThird(val3)) = (uaddr2, val3);
    let cmd = op.cmd();
    let clock_allowed = matches!(cmd, FutexCmd::WAIT_BITSET | FutexCmd::WAIT_REQUEUE_PI | FutexCmd::LOCK_PI2);
    if op.flags().contains(FutexFlags::CLOCK_REALTIME) && !clock_allowed {
        return Err(Errno::ENOSYS.into());
    }
    let in_range = |addr: UserAddr| addr.in_guest_range(4);
    let waits_or_wakes = matches!(
        cmd,
        FutexCmd::WAIT
            | FutexCmd::WAIT_BITSET
            | FutexCmd::WAKE
            | FutexCmd::WAKE_BITSET
            | FutexCmd::REQUEUE
            | FutexCmd::CMP_REQUEUE
            | FutexCmd::WAKE_OP
    );
    if waits_or_wakes && !uaddr.0.is_multiple_of(4) {
        return Err(Errno::EINVAL.into());
    }
    match cmd {
        FutexCmd::WAIT | FutexCmd::WAIT_BITSET => {
            let deadline = read_timeout(task, cmd, timeout)?;
            if !in_range(uaddr) {
                return Err(Errno::EFAULT.into());
            }
            let bitset = if cmd == FutexCmd::WAIT { MATCH_ANY } else { val3 };
            let op = FutexCmd::WAIT_BITSET.0 | op.flags().bits();
            let call = FutexCall {
                uaddr,
                op,
                val,
                timeout: deadline,
                val2: 0,
                uaddr2: UserAddr::NULL,
                val3: bitset,
            };
            wait(task, call)
        }
        FutexCmd::WAKE
        | FutexCmd::WAKE_BITSET
        | FutexCmd::REQUEUE
        | FutexCmd::CMP_REQUEUE
        | FutexCmd::WAKE_OP => {
            let two = matches!(cmd, FutexCmd::REQUEUE | FutexCmd::CMP_REQUEUE | FutexCmd::WAKE_OP);
            if !in_range(uaddr) || (two && !in_range(uaddr2)) {
                return Err(Errno::EFAULT.into());
            }
            // The fourth argument is a count for these.
            #[allow(clippy::cast_possible_truncation, reason = "Linux takes the low 32 bits")]
            let val2 = timeout.0 as u32;
            let call = FutexCall { uaddr, op: op.0, val, timeout: None, val2, uaddr2, val3 };
            task.host_calls(&[HostCall::Futex(call)]).map(Outcome::Value)
        }
        // Priority inheritance would tell of host threads; programs fall back (glibc: ENOTSUP).
        _ => Err(Errno::ENOSYS.into()),
    }
}

/// The time-out of a wait as an absolute time on the clock that it is waited on.
fn read_timeout(task: &CurrentTask, cmd: FutexCmd, at: UserAddr) -> SysResult<Option<(i64, i64)>> {
    if at.is_null() {
        return Ok(None);
    }
    let time: Timespec = task.mm.read(at)?;
    let span = crate::time::duration(time)?;
    let absolute = match cmd {
        FutexCmd::WAIT => crate::time::now(abi::Clock::MONOTONIC)?.saturating_add(span),
        _ => span,
    };
    let time = crate::time::timespec(absolute);
    Ok(Some((time.sec, time.nsec)))
}

fn wait(task: &mut CurrentTask, call: FutexCall) -> SysResult<Outcome> {
    loop {
        match task.blocking_host_call(HostCall::Futex(call)) {
            Ok(value) => return Ok(Outcome::Value(value)),
            Err(HostCallError::Failed(errno)) => return Err(errno.into()),
            Err(HostCallError::Died) => return Err(Errno::EFAULT.into()),
            Err(HostCallError::Interrupted) => {}
        }
        // The kick may not have been for a signal of ours.
        match task.wait(&[], Some(std::time::Instant::now()), |_| None::<()>) {
            Ok(()) | Err(WaitEnd::TimedOut) => continue,
            // With a time-out, relative or absolute, it goes on by `restart_syscall` (Linux: `futex_wait`).
            Err(WaitEnd::Interrupted(restart)) if call.timeout.is_some() => {
                task.restart_block = RestartBlock::Futex(FutexRestart { call });
                return Err(SysError::Restart(restart.block()));
            }
            Err(WaitEnd::Interrupted(restart)) => return Err(SysError::Restart(restart)),
        }
    }
}

pub(crate) fn restart_wait(task: &mut CurrentTask, restart: FutexRestart) -> SysResult<Outcome> {
    wait(task, restart.call)
}

/// Size of `struct robust_list_head`.
const ROBUST_HEAD: usize = 24;
/// Locks looked at, at most (`ROBUST_LIST_LIMIT`).
const ROBUST_LIMIT: usize = 2048;
const TID_MASK: u32 = 0x3fff_ffff;
const OWNER_DIED: u32 = 0x4000_0000;
const WAITERS: u32 = 0x8000_0000;

pub fn sys_set_robust_list(task: &mut CurrentTask, head: UserAddr, len: usize) -> SysResult<()> {
    if len != ROBUST_HEAD {
        return Err(Errno::EINVAL.into());
    }
    task.task.robust_list.store(head.0, Ordering::Relaxed);
    Ok(())
}

pub fn sys_get_robust_list(task: &mut CurrentTask, pid: Pid, head: Out<u64>, len: Out<u64>) -> SysResult<()> {
    let target = match pid.0 {
        0 => task.task.clone(),
        tid => task.kernel().tasks.task_or_leader(tid).ok_or(Errno::ESRCH)?,
    };
    if !Arc::ptr_eq(&target.group, task.group()) && !may_look_into(task, &target.cred()) {
        return Err(Errno::EPERM.into());
    }
    task.mm.write(len.0, &(ROBUST_HEAD as u64))?;
    task.mm.write(head.0, &target.robust_list.load(Ordering::Relaxed))
}

/// Marks the locks that a task holds as it ends, and wakes who waits for them (Linux: `exit_robust_list`).
pub(crate) fn release_robust_list(task: &mut CurrentTask) {
    let head = UserAddr(task.task.robust_list.swap(0, Ordering::Relaxed));
    if !head.is_null() {
        // The list is the guest's: where it leads nowhere, so be it.
        let _ = walk_robust_list(task, head);
    }
}

fn walk_robust_list(task: &mut CurrentTask, head: UserAddr) -> SysResult<()> {
    let [first, offset, pending] = task.mm.read::<[u64; 3]>(head)?;
    let is_pi = |entry: u64| entry & 1 != 0;
    let word_of = |entry: u64| UserAddr((entry & !1).wrapping_add(offset));
    let mut entry = first;
    for _ in 0..ROBUST_LIMIT {
        if entry & !1 == head.0 {
            break;
        }
        let next = task.mm.read::<u64>(UserAddr(entry & !1));
        if entry & !1 != pending & !1 {
            release_robust_lock(task, word_of(entry), is_pi(entry), false)?;
        }
        entry = next?;
    }
    if pending & !1 != 0 {
        release_robust_lock(task, word_of(pending), is_pi(pending), true)?;
    }
    Ok(())
}

fn release_robust_lock(
    task: &mut CurrentTask,
    word: UserAddr,
    is_pi: bool,
    is_pending: bool,
) -> SysResult<()> {
    if !word.0.is_multiple_of(4) || !word.in_guest_range(4) {
        return Err(Errno::EFAULT.into());
    }
    let tid = u32::try_from(task.tid()).unwrap_or(0);
    loop {
        let value: u32 = task.mm.read(word)?;
        // Unlocked, and the unlocker died before it could wake.
        if is_pending && !is_pi && value == 0 {
            return wake_one(task, word);
        }
        if value & TID_MASK != tid {
            return Ok(());
        }
        let marked = (value & WAITERS) | OWNER_DIED;
        if task.context.compare_exchange(word, value, marked)? == value {
            return if !is_pi && value & WAITERS != 0 { wake_one(task, word) } else { Ok(()) };
        }
    }
}

fn wake_one(task: &mut CurrentTask, uaddr: UserAddr) -> SysResult<()> {
    let op = FutexCmd::WAKE.0;
    let call = FutexCall { uaddr, op, val: 1, timeout: None, val2: 0, uaddr2: UserAddr::NULL, val3: 0 };
    task.host_calls(&[HostCall::Futex(call)])?;
    Ok(())
}
