//! Niceness: `getpriority` and `setpriority`.

use std::sync::Arc;

use abi::{Errno, PriorityWhich};
use sync::SysResult;
use vfs::Capability;

use super::may_take_nice;
use crate::resource::NICE;
use crate::syscall::Pid;
use crate::task::{CurrentTask, Task};

/// The kinds of `getpriority` and `ioprio_get`.
#[derive(Clone, Copy)]
pub(super) enum Who {
    Process,
    Group,
    User,
}

/// All threads that are meant.
pub(super) fn targets(task: &CurrentTask, which: Who, who: i32) -> Vec<Arc<Task>> {
    let user = if who == 0 { task.cred.uid } else { who.cast_unsigned() };
    match which {
        Who::Process => task.task_by_id(Pid(who)).into_iter().collect(),
        Who::Group => {
            let tasks = task.kernel().tasks.lock();
            let own = tasks.groups.get(&task.pid()).map_or(0, |entry| entry.pgid);
            let pgid = if who == 0 { own } else { who };
            tasks.process_group(pgid).flat_map(|entry| entry.threads.iter().cloned()).collect()
        }
        Who::User => {
            let tasks = task.kernel().tasks.lock();
            tasks.tasks.values().filter(|other| other.cred().uid == user).cloned().collect()
        }
    }
}

fn kind(which: PriorityWhich) -> Result<Who, Errno> {
    match which {
        PriorityWhich::PROCESS => Ok(Who::Process),
        PriorityWhich::PGRP => Ok(Who::Group),
        PriorityWhich::USER => Ok(Who::User),
        _ => Err(Errno::EINVAL),
    }
}

/// The best among them as 20 less the niceness, so that it is never negative.
pub fn sys_getpriority(task: &mut CurrentTask, which: PriorityWhich, who: i32) -> SysResult<i32> {
    let targets = targets(task, kind(which)?, who);
    let values = targets.iter().map(|target| 20 - target.scheduling.lock().nice);
    Ok(values.max().ok_or(Errno::ESRCH)?)
}

pub fn sys_setpriority(task: &mut CurrentTask, which: PriorityWhich, who: i32, nice: i32) -> SysResult<()> {
    let nice = nice.clamp(-20, 19);
    let mut result = Err(Errno::ESRCH);
    for target in targets(task, kind(which)?, who) {
        match set_one(task, &target, nice) {
            Ok(()) if result == Err(Errno::ESRCH) => result = Ok(()),
            Ok(()) => {}
            Err(errno) => result = Err(errno),
        }
    }
    Ok(result?)
}

fn set_one(task: &mut CurrentTask, target: &Task, nice: i32) -> Result<(), Errno> {
    let cred = target.cred();
    let owner = cred.uid == task.cred.euid || cred.euid == task.cred.euid;
    if !owner && !task.cred.capable(Capability::SYS_NICE) {
        return Err(Errno::EPERM);
    }
    let limit = target.group.limits.lock().soft(NICE);
    let mut scheduling = target.scheduling.lock();
    if nice < scheduling.nice && !may_take_nice(&task.cred, limit, nice) {
        return Err(Errno::EACCES);
    }
    scheduling.nice = nice;
    drop(scheduling);
    task.apply_scheduling_of(target);
    Ok(())
}
