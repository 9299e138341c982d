//! Priorities of I/O: kept and told back; the host decides.

use abi::{Errno, IoprioClass, IoprioWho};
use sync::SysResult;
use vfs::Capability;

use super::Scheduling;
use super::priority::{Who, targets};
use crate::syscall::Ioprio;
use crate::task::CurrentTask;

/// The class lies above this bit.
const CLASS_SHIFT: i32 = 13;

fn class(priority: i32) -> IoprioClass {
    IoprioClass((priority >> CLASS_SHIFT) & 7)
}

fn kind(which: IoprioWho) -> Result<Who, Errno> {
    match which {
        IoprioWho::PROCESS => Ok(Who::Process),
        IoprioWho::PGRP => Ok(Who::Group),
        IoprioWho::USER => Ok(Who::User),
        _ => Err(Errno::EINVAL),
    }
}

pub fn sys_ioprio_set(task: &mut CurrentTask, which: IoprioWho, who: i32, priority: Ioprio) -> SysResult<()> {
    let privileged = task.cred.capable(Capability::SYS_ADMIN) || task.cred.capable(Capability::SYS_NICE);
    match class(priority.0) {
        IoprioClass::RT if !privileged => return Err(Errno::EPERM.into()),
        IoprioClass::RT | IoprioClass::BE | IoprioClass::IDLE => {}
        IoprioClass::NONE if priority.0 & 7 == 0 => {}
        _ => return Err(Errno::EINVAL.into()),
    }
    let targets = targets(task, kind(which)?, who);
    if targets.is_empty() {
        return Err(Errno::ESRCH.into());
    }
    for target in targets {
        let uid = target.cred().uid;
        let owner = uid == task.cred.euid || uid == task.cred.uid;
        if !owner && !task.cred.capable(Capability::SYS_NICE) {
            return Err(Errno::EPERM.into());
        }
        target.scheduling.lock().io_priority = priority.0 & 0xffff;
    }
    Ok(())
}

/// What counts for a task: its own, or one that follows its niceness.
fn effective(scheduling: &Scheduling) -> i32 {
    match class(scheduling.io_priority) {
        IoprioClass::NONE => (IoprioClass::BE.0 << CLASS_SHIFT) | ((scheduling.nice + 20) / 5),
        _ => scheduling.io_priority,
    }
}

pub fn sys_ioprio_get(task: &mut CurrentTask, which: IoprioWho, who: i32) -> SysResult<i32> {
    let kind = kind(which)?;
    let targets = targets(task, kind, who);
    let each = targets.iter().map(|target| {
        let scheduling = *target.scheduling.lock();
        match kind {
            Who::Process => scheduling.io_priority,
            Who::Group | Who::User => effective(&scheduling),
        }
    });
    // A lower number is a better one.
    Ok(each.min().ok_or(Errno::ESRCH)?)
}
