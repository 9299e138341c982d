//! What holds for a whole process.

use std::sync::atomic::Ordering;

use abi::{Errno, ThpDisableFlags};
use sync::SysResult;

use super::{only_zeros, put_int};
use crate::task::CurrentTask;

pub(super) fn get_dumpable(task: &mut CurrentTask, _: [u64; 4]) -> SysResult<usize> {
    Ok(usize::try_from(task.group().dumpable.load(Ordering::Relaxed)).unwrap_or(0))
}

pub(super) fn set_dumpable(task: &mut CurrentTask, [value, ..]: [u64; 4]) -> SysResult<usize> {
    let value = i32::try_from(value).ok().filter(|value| matches!(value, 0 | 1)).ok_or(Errno::EINVAL)?;
    task.group().dumpable.store(value, Ordering::Relaxed);
    Ok(0)
}

pub(super) fn set_subreaper(task: &mut CurrentTask, [on, ..]: [u64; 4]) -> SysResult<usize> {
    task.group().subreaper.store(on != 0, Ordering::Relaxed);
    Ok(0)
}

pub(super) fn get_subreaper(task: &mut CurrentTask, [at, ..]: [u64; 4]) -> SysResult<usize> {
    put_int(task, at, i32::from(task.group().subreaper.load(Ordering::Relaxed)))
}

pub(super) fn set_thp_disable(
    task: &mut CurrentTask,
    [disable, flags, rest @ ..]: [u64; 4],
) -> SysResult<usize> {
    let known = ThpDisableFlags::EXCEPT_ADVISED.bits();
    if rest != [0; 2] || flags & !known != 0 || (disable == 0 && flags != 0) {
        return Err(Errno::EINVAL.into());
    }
    let value = if disable == 0 { 0 } else { 1 | flags };
    task.group().thp_disable.store(value, Ordering::Relaxed);
    Ok(0)
}

pub(super) fn get_thp_disable(task: &mut CurrentTask, args: [u64; 4]) -> SysResult<usize> {
    only_zeros(&args)?;
    Ok(usize::try_from(task.group().thp_disable.load(Ordering::Relaxed)).unwrap_or(0))
}
