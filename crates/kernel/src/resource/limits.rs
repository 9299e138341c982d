//! `getrlimit`, `setrlimit`, `prlimit64`.

use abi::{Errno, Resource, Rlimit};
use sync::SysResult;
use vfs::{Capability, Cred};

use super::{CPU, NOFILE};
use crate::syscall::{In, Out, Pid};
use crate::task::{CurrentTask, Task};

/// The most descriptors that a limit may allow (`/proc/sys/fs/nr_open`).
pub const NR_OPEN: u64 = 1 << 20;

pub fn sys_getrlimit(task: &mut CurrentTask, resource: Resource, limit: Out<Rlimit>) -> SysResult<()> {
    let old = change(task, &task.task, resource, None)?;
    task.mm.write(limit.0, &old)
}

pub fn sys_setrlimit(task: &mut CurrentTask, resource: Resource, limit: In<Rlimit>) -> SysResult<()> {
    let new = task.mm.read(limit.0)?;
    change(task, &task.task, resource, Some(new))?;
    Ok(())
}

pub fn sys_prlimit64(
    task: &mut CurrentTask,
    pid: Pid,
    resource: Resource,
    new: In<Rlimit>,
    old: Out<Rlimit>,
) -> SysResult<()> {
    let new = if new.is_null() { None } else { Some(task.mm.read(new.0)?) };
    let target = match pid.0 {
        0 => task.task.clone(),
        tid => task.kernel().tasks.task_or_leader(tid).ok_or(Errno::ESRCH)?,
    };
    let is_self = target.tid() == task.tid();
    if !is_self && !may_change(&task.cred, &target.cred()) {
        return Err(Errno::EPERM.into());
    }
    let before = change(task, &target, resource, new)?;
    if !old.is_null() {
        task.mm.write(old.0, &before)?;
    }
    Ok(())
}

/// Linux: `check_prlimit_permission`.
fn may_change(own: &Cred, target: &Cred) -> bool {
    let same = [target.uid, target.euid, target.suid].iter().all(|uid| *uid == own.uid)
        && [target.gid, target.egid, target.sgid].iter().all(|gid| *gid == own.gid);
    same || own.capable(Capability::SYS_RESOURCE)
}

/// Reads a limit of a group and, if asked, changes it (Linux: `do_prlimit`). Returns what it was.
fn change(task: &CurrentTask, target: &Task, resource: Resource, new: Option<Rlimit>) -> SysResult<Rlimit> {
    let which = usize::try_from(resource.0).map_err(|_| Errno::EINVAL)?;
    let mut limits = target.group.limits.lock();
    let (soft, hard) = limits.get(which).ok_or(Errno::EINVAL)?;
    if let Some(mut new) = new {
        if new.cur > new.max {
            return Err(Errno::EINVAL.into());
        }
        if which == NOFILE && new.max > NR_OPEN {
            return Err(Errno::EPERM.into());
        }
        if new.max > hard && !task.cred.capable(Capability::SYS_RESOURCE) {
            return Err(Errno::EPERM.into());
        }
        // Zero would mean "never set" there: the least is a second.
        if which == CPU && new.cur == 0 {
            new.cur = 1;
        }
        limits.set(which, (new.cur, new.max));
        let limits_now = *limits;
        drop(limits);
        if which == CPU {
            target.group.watch_cpu_limit(task.kernel());
        }
        if which == super::FSIZE && new.cur != super::INFINITY {
            task.kernel()
                .tasks
                .threads(target.group.pid)
                .iter()
                .for_each(|thread| thread.withdraw_delegations());
        }
        if matches!(which, super::STACK | super::AS)
            && let Some(mm) = target.shared.lock().mm.clone()
        {
            mm.apply_stack_limit(&limits_now);
        }
    }
    Ok(Rlimit { cur: soft, max: hard })
}
