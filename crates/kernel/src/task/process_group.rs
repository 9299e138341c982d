//! Process groups and sessions.

use std::sync::atomic::Ordering;

use abi::Errno;
use sync::SysResult;

use crate::syscall::Pid;
use crate::task::{CurrentTask, GroupEntry, TasksInner};

impl TasksInner {
    /// The group of a process or thread id.
    pub fn entry_of(&self, id: i32) -> Option<&GroupEntry> {
        match self.groups.get(&id) {
            Some(entry) => Some(entry),
            None => self.tasks.get(&id).and_then(|task| self.groups.get(&task.group.pid)),
        }
    }
}

pub fn sys_getpgid(task: &mut CurrentTask, pid: Pid) -> SysResult<Pid> {
    let id = if pid.0 == 0 { task.pid() } else { pid.0 };
    let tasks = task.kernel().tasks.lock();
    Ok(Pid(tasks.entry_of(id).ok_or(Errno::ESRCH)?.pgid))
}

pub fn sys_getpgrp(task: &mut CurrentTask) -> SysResult<Pid> {
    sys_getpgid(task, Pid(0))
}

pub fn sys_getsid(task: &mut CurrentTask, pid: Pid) -> SysResult<Pid> {
    let id = if pid.0 == 0 { task.pid() } else { pid.0 };
    let tasks = task.kernel().tasks.lock();
    Ok(Pid(tasks.entry_of(id).ok_or(Errno::ESRCH)?.sid))
}

/// The checks in the order of Linux's `setpgid`.
pub fn sys_setpgid(task: &mut CurrentTask, pid: Pid, pgid: Pid) -> SysResult<()> {
    let own = task.pid();
    let pid = if pid.0 == 0 { own } else { pid.0 };
    let pgid = if pgid.0 == 0 { pid } else { pgid.0 };
    if pgid < 0 {
        return Err(Errno::EINVAL.into());
    }
    let mut tasks = task.kernel().tasks.lock();
    let sid = tasks.groups.get(&own).ok_or(Errno::ESRCH)?.sid;
    let Some(target) = tasks.groups.get(&pid) else {
        // A thread's id that is not its group's.
        let is_thread = tasks.tasks.contains_key(&pid);
        return Err(if is_thread { Errno::EINVAL } else { Errno::ESRCH }.into());
    };
    if target.parent == own {
        if target.sid != sid {
            return Err(Errno::EPERM.into());
        }
        if target.group.has_executed.load(Ordering::Relaxed) {
            return Err(Errno::EACCES.into());
        }
    } else if pid != own {
        return Err(Errno::ESRCH.into());
    }
    // A session's leader stays in its group.
    if target.sid == pid {
        return Err(Errno::EPERM.into());
    }
    if pgid != pid && !tasks.groups.values().any(|entry| entry.pgid == pgid && entry.sid == sid) {
        return Err(Errno::EPERM.into());
    }
    if let Some(target) = tasks.groups.get_mut(&pid) {
        target.pgid = pgid;
    }
    Ok(())
}

pub fn sys_setsid(task: &mut CurrentTask) -> SysResult<Pid> {
    let pid = task.pid();
    let mut tasks = task.kernel().tasks.lock();
    // Its number is in use as a group's, perhaps by others while it left that group itself.
    if tasks.groups.values().any(|entry| entry.pgid == pid || entry.sid == pid) {
        return Err(Errno::EPERM.into());
    }
    let own = tasks.groups.get_mut(&pid).ok_or(Errno::ESRCH)?;
    (own.sid, own.pgid) = (pid, pid);
    let terminal = own.group.terminal.lock().take();
    drop(tasks);
    // A new session has none.
    drop(terminal);
    Ok(Pid(pid))
}
