//! `unshare`: what tasks share becomes their own again. `kcmp`: whether two tasks share it.

use std::cmp::Ordering as Order;
use std::sync::Arc;

use abi::{CloneFlags, Errno, KcmpType};
use sync::SysResult;

use crate::syscall::Pid;
use crate::task::pidfd::may_look_into;
use crate::task::{CurrentTask, TaskShared};

/// Name spaces, of which there is one of each kind.
const NAME_SPACES: CloneFlags = CloneFlags::NEWNS
    .union(CloneFlags::NEWUTS)
    .union(CloneFlags::NEWIPC)
    .union(CloneFlags::NEWNET)
    .union(CloneFlags::NEWUSER)
    .union(CloneFlags::NEWPID)
    .union(CloneFlags::NEWCGROUP)
    .union(CloneFlags::NEWTIME);
const KNOWN: CloneFlags = NAME_SPACES
    .union(CloneFlags::THREAD)
    .union(CloneFlags::FS)
    .union(CloneFlags::SIGHAND)
    .union(CloneFlags::VM)
    .union(CloneFlags::FILES)
    .union(CloneFlags::SYSVSEM);

/// Linux: `ksys_unshare`.
pub fn sys_unshare(task: &mut CurrentTask, flags: CloneFlags) -> SysResult<()> {
    if !KNOWN.contains(flags) {
        return Err(Errno::EINVAL.into());
    }
    let implies_alone = CloneFlags::THREAD | CloneFlags::SIGHAND | CloneFlags::VM | CloneFlags::NEWUSER;
    let alone = task.kernel().tasks.threads(task.pid()).len() <= 1;
    if flags.intersects(implies_alone) && !alone {
        return Err(Errno::EINVAL.into());
    }
    let shares_handlers = Arc::strong_count(&task.handlers) > 2;
    if flags.intersects(CloneFlags::SIGHAND | CloneFlags::VM) && shares_handlers {
        return Err(Errno::EINVAL.into());
    }
    if flags.contains(CloneFlags::VM) && task.mm.users() > 1 {
        return Err(Errno::EINVAL.into());
    }
    if flags.intersects(NAME_SPACES) {
        return Err(task.not_built("unshare", "name spaces", Errno::EPERM));
    }
    if flags.contains(CloneFlags::FS) {
        let own = task.fs.copy();
        task.set_fs(own);
    }
    if flags.contains(CloneFlags::FILES) {
        task.unshare_files();
    }
    Ok(())
}

/// 0: the same; 1 and 2: not, in an order that is no more than an order; Linux: `kcmp`.
pub fn sys_kcmp(
    task: &mut CurrentTask,
    pid1: Pid,
    pid2: Pid,
    kind: KcmpType,
    first: u64,
    second: u64,
) -> SysResult<usize> {
    let find = |pid: Pid| -> SysResult<TaskShared> {
        let target = task.kernel().tasks.task_or_leader(pid.0).ok_or(Errno::ESRCH)?;
        let shared = target.shared.lock().clone();
        Ok(shared)
    };
    let (one, other) = (find(pid1)?, find(pid2)?);
    if !may_look_into(task, &one.cred) || !may_look_into(task, &other.cred) {
        return Err(Errno::EPERM.into());
    }
    let place = |of: Option<usize>| of.unwrap_or(0);
    let file = |of: &TaskShared, number: u64| -> SysResult<usize> {
        let number = i32::try_from(number).map_err(|_| Errno::EBADF)?;
        let table = of.files.as_ref().ok_or(Errno::EBADF)?;
        Ok(Arc::as_ptr(&table.table.get_any(number)?).addr())
    };
    let (one, other) = match kind {
        KcmpType::FILE => (file(&one, first)?, file(&other, second)?),
        KcmpType::VM => (place(one.mm.map(|mm| mm.identity())), place(other.mm.map(|mm| mm.identity()))),
        KcmpType::FILES => (
            place(one.files.map(|files| Arc::as_ptr(&files).addr())),
            place(other.files.map(|files| Arc::as_ptr(&files).addr())),
        ),
        KcmpType::FS => (
            place(one.fs.map(|fs| Arc::as_ptr(&fs).addr())),
            place(other.fs.map(|fs| Arc::as_ptr(&fs).addr())),
        ),
        KcmpType::SIGHAND => (Arc::as_ptr(&one.handlers).addr(), Arc::as_ptr(&other.handlers).addr()),
        // Nobody has one of these.
        KcmpType::IO | KcmpType::SYSVSEM => (0, 0),
        KcmpType::EPOLL_TFD => return Err(task.not_built("kcmp", "KCMP_EPOLL_TFD", Errno::EOPNOTSUPP)),
        _ => return Err(Errno::EINVAL.into()),
    };
    Ok(match one.cmp(&other) {
        Order::Equal => 0,
        Order::Less => 1,
        Order::Greater => 2,
    })
}
