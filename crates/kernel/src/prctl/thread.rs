//! What a thread says of itself.

use std::sync::atomic::Ordering;

use abi::{Errno, PrctlTsc, Signal, TASK_COMM_LEN, UserAddr};
use sync::SysResult;
use vfs::Cred;

use super::put_int;
use crate::task::CurrentTask;

pub(super) fn set_parent_death_signal(task: &mut CurrentTask, [signal, ..]: [u64; 4]) -> SysResult<usize> {
    let signal = i32::try_from(signal).ok().filter(|signal| *signal <= Signal::MAX).ok_or(Errno::EINVAL)?;
    task.task.parent_death_signal.store(signal, Ordering::Relaxed);
    Ok(0)
}

pub(super) fn get_parent_death_signal(task: &mut CurrentTask, [at, ..]: [u64; 4]) -> SysResult<usize> {
    put_int(task, at, task.task.parent_death_signal.load(Ordering::Relaxed))
}

pub(super) fn set_name(task: &mut CurrentTask, [at, ..]: [u64; 4]) -> SysResult<usize> {
    let at = UserAddr(at);
    let name = match task.mm.read_string(at, TASK_COMM_LEN - 1, Errno::E2BIG) {
        Err(error) if error.errno() == Some(Errno::E2BIG) => {
            let mut start = vec![0; TASK_COMM_LEN - 1];
            task.mm.read_bytes(at, &mut start)?;
            start
        }
        other => other?,
    };
    task.task.shared.lock().name = name;
    task.profile_name();
    Ok(0)
}

pub(super) fn get_name(task: &mut CurrentTask, [at, ..]: [u64; 4]) -> SysResult<usize> {
    let mut name = [0u8; TASK_COMM_LEN];
    for (to, from) in name.iter_mut().zip(task.task.shared.lock().name.iter().take(TASK_COMM_LEN - 1)) {
        *to = *from;
    }
    task.mm.write(UserAddr(at), &name).map(|()| 0)
}

pub(super) fn get_tsc(task: &mut CurrentTask, [at, ..]: [u64; 4]) -> SysResult<usize> {
    put_int(task, at, PrctlTsc::ENABLE.0)
}

pub(super) fn set_tsc(task: &mut CurrentTask, [mode, ..]: [u64; 4]) -> SysResult<usize> {
    match i32::try_from(mode).map(PrctlTsc) {
        Ok(PrctlTsc::ENABLE) => Ok(0),
        Ok(PrctlTsc::SIGSEGV) => Err(task.not_built("prctl", "PR_SET_TSC: PR_TSC_SIGSEGV", Errno::EINVAL)),
        _ => Err(Errno::EINVAL.into()),
    }
}

/// Zero means what the thread began with.
pub(super) fn set_timer_slack(task: &mut CurrentTask, [slack_ns, ..]: [u64; 4]) -> SysResult<usize> {
    let own = &task.task;
    let slack = if slack_ns == 0 { own.default_timer_slack_ns.load(Ordering::Relaxed) } else { slack_ns };
    own.timer_slack_ns.store(slack, Ordering::Relaxed);
    Ok(0)
}

pub(super) fn get_timer_slack(task: &mut CurrentTask, _: [u64; 4]) -> SysResult<usize> {
    // What a long does not hold would look like an error.
    let slack = task.task.timer_slack_ns.load(Ordering::Relaxed);
    Ok(usize::try_from(slack.min(i64::MAX.cast_unsigned())).unwrap_or(0))
}

pub(super) fn set_no_new_privs(task: &mut CurrentTask, args: [u64; 4]) -> SysResult<usize> {
    if args != [1, 0, 0, 0] {
        return Err(Errno::EINVAL.into());
    }
    // It only takes away: no reason to distrust what runs already.
    task.set_cred(Cred { no_new_privs: true, ..(*task.cred).clone() });
    Ok(0)
}

pub(super) fn get_tid_address(task: &mut CurrentTask, [at, ..]: [u64; 4]) -> SysResult<usize> {
    task.mm.write(UserAddr(at), &task.clear_child_tid.0).map(|()| 0)
}
