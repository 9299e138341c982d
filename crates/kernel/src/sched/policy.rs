//! Policies and their parameters. The checks are those of Linux's `kernel/sched/syscalls.c`.

use abi::{Errno, SchedAttr, SchedFlags, SchedParam, SchedPolicy, Timespec, UserAddr};
use sync::SysResult;
use vfs::Capability;
use zerocopy::IntoBytes;

use super::{Scheduling, is_same_owner, may_take_nice};
use crate::resource::{NICE, RTPRIO};
use crate::syscall::{In, InOut, Out, Pid};
use crate::task::{CurrentTask, Task};

/// Bytes of the first version of `struct sched_attr`.
const ATTR_V0: usize = 48;
const PAGE: usize = 4096;
/// Length of a turn under `SCHED_RR`, in nanoseconds.
const TURN_NS: i64 = 100_000_000;

/// What is asked for.
struct Wanted {
    /// `None`: as it is.
    policy: Option<SchedPolicy>,
    reset_on_fork: bool,
    priority: u32,
    nice: i32,
}

pub fn sys_sched_setscheduler(
    task: &mut CurrentTask,
    pid: Pid,
    policy: SchedPolicy,
    param: In<SchedParam>,
) -> SysResult<()> {
    if policy.0.cast_signed() < 0 {
        return Err(Errno::EINVAL.into());
    }
    set_with_param(task, pid, Some(policy), param)
}

pub fn sys_sched_setparam(task: &mut CurrentTask, pid: Pid, param: In<SchedParam>) -> SysResult<()> {
    set_with_param(task, pid, None, param)
}

fn set_with_param(
    task: &mut CurrentTask,
    pid: Pid,
    policy: Option<SchedPolicy>,
    param: In<SchedParam>,
) -> SysResult<()> {
    if param.is_null() || pid.0 < 0 {
        return Err(Errno::EINVAL.into());
    }
    let param: SchedParam = task.mm.read(param.0)?;
    let target = task.task_by_id(pid).ok_or(Errno::ESRCH)?;
    let old = *target.scheduling.lock();
    let wanted = Wanted {
        policy: policy.map(SchedPolicy::without_flag),
        reset_on_fork: policy.map_or(old.reset_on_fork, |policy| policy != policy.without_flag()),
        priority: param.priority.cast_unsigned(),
        nice: old.nice,
    };
    set(task, &target, &wanted)
}

fn is_fair(policy: SchedPolicy) -> bool {
    matches!(policy, SchedPolicy::NORMAL | SchedPolicy::BATCH | SchedPolicy::IDLE)
}

/// Linux: `__sched_setscheduler`.
fn set(task: &mut CurrentTask, target: &Task, wanted: &Wanted) -> SysResult<()> {
    let old = *target.scheduling.lock();
    let policy = wanted.policy.unwrap_or(old.policy);
    let is_realtime = matches!(policy, SchedPolicy::FIFO | SchedPolicy::RR);
    if !is_fair(policy) && !is_realtime && policy != SchedPolicy::DEADLINE {
        return Err(Errno::EINVAL.into());
    }
    if wanted.priority > 99 || is_realtime != (wanted.priority != 0) {
        return Err(Errno::EINVAL.into());
    }
    if needs_privilege(task, target, &old, policy, wanted) && !task.cred.capable(Capability::SYS_NICE) {
        return Err(Errno::EPERM.into());
    }
    if policy == SchedPolicy::DEADLINE {
        return Err(task.not_built("sched_setattr", "SCHED_DEADLINE", Errno::EPERM));
    }
    let mut scheduling = target.scheduling.lock();
    scheduling.policy = policy;
    scheduling.reset_on_fork = wanted.reset_on_fork;
    scheduling.rt_priority = i32::try_from(wanted.priority).unwrap_or(0);
    if is_fair(policy) {
        scheduling.nice = wanted.nice;
    }
    drop(scheduling);
    task.apply_scheduling_of(target);
    Ok(())
}

/// Linux: `user_check_sched_setscheduler`.
fn needs_privilege(
    task: &CurrentTask,
    target: &Task,
    old: &Scheduling,
    policy: SchedPolicy,
    wanted: &Wanted,
) -> bool {
    let (nice_limit, rt_limit) = {
        let limits = target.group.limits.lock();
        (limits.soft(NICE), limits.soft(RTPRIO))
    };
    let may_be_nice = |nice| may_take_nice(&task.cred, nice_limit, nice);
    let raises_nice = is_fair(policy) && wanted.nice < old.nice && !may_be_nice(wanted.nice);
    let raises_realtime = !is_fair(policy)
        && ((policy != old.policy && rt_limit == 0)
            || (i64::from(wanted.priority) > i64::from(old.rt_priority)
                && u64::from(wanted.priority) > rt_limit));
    let leaves_idle =
        old.policy == SchedPolicy::IDLE && policy != SchedPolicy::IDLE && !may_be_nice(old.nice);
    raises_nice
        || raises_realtime
        || policy == SchedPolicy::DEADLINE
        || leaves_idle
        || !is_same_owner(&task.cred, &target.cred())
        || (old.reset_on_fork && !wanted.reset_on_fork)
}

pub fn sys_sched_getscheduler(task: &mut CurrentTask, pid: Pid) -> SysResult<u32> {
    let scheduling = of(task, pid)?;
    let flag = if scheduling.reset_on_fork { SchedPolicy::RESET_ON_FORK } else { 0 };
    Ok(scheduling.policy.0 | flag)
}

/// How a task is scheduled. `EINVAL`: negative; `ESRCH`: there is none.
fn of(task: &CurrentTask, pid: Pid) -> SysResult<Scheduling> {
    if pid.0 < 0 {
        return Err(Errno::EINVAL.into());
    }
    let target = task.task_by_id(pid).ok_or(Errno::ESRCH)?;
    let scheduling = *target.scheduling.lock();
    Ok(scheduling)
}

pub fn sys_sched_getparam(task: &mut CurrentTask, pid: Pid, param: Out<SchedParam>) -> SysResult<()> {
    if param.is_null() {
        return Err(Errno::EINVAL.into());
    }
    let priority = of(task, pid)?.rt_priority;
    task.mm.write(param.0, &SchedParam { priority })
}

pub fn sys_sched_get_priority_max(task: &mut CurrentTask, policy: SchedPolicy) -> SysResult<usize> {
    let _ = task;
    match policy {
        SchedPolicy::FIFO | SchedPolicy::RR => Ok(99),
        _ if is_known(policy) => Ok(0),
        _ => Err(Errno::EINVAL.into()),
    }
}

pub fn sys_sched_get_priority_min(task: &mut CurrentTask, policy: SchedPolicy) -> SysResult<usize> {
    let _ = task;
    match policy {
        SchedPolicy::FIFO | SchedPolicy::RR => Ok(1),
        _ if is_known(policy) => Ok(0),
        _ => Err(Errno::EINVAL.into()),
    }
}

fn is_known(policy: SchedPolicy) -> bool {
    is_fair(policy) || matches!(policy, SchedPolicy::DEADLINE | SchedPolicy::EXT)
}

pub fn sys_sched_rr_get_interval(task: &mut CurrentTask, pid: Pid, interval: Out<Timespec>) -> SysResult<()> {
    let nsec = if of(task, pid)?.policy == SchedPolicy::RR { TURN_NS } else { 0 };
    task.mm.write(interval.0, &Timespec { sec: 0, nsec })
}

pub fn sys_sched_setattr(
    task: &mut CurrentTask,
    pid: Pid,
    attr: InOut<SchedAttr>,
    flags: u32,
) -> SysResult<()> {
    if attr.is_null() || pid.0 < 0 || flags != 0 {
        return Err(Errno::EINVAL.into());
    }
    let given = read_attr(task, attr.0)?;
    if given.policy.0.cast_signed() < 0 {
        return Err(Errno::EINVAL.into());
    }
    let target = task.task_by_id(pid).ok_or(Errno::ESRCH)?;
    if given.flags.has_unknown() {
        return Err(Errno::EINVAL.into());
    }
    let old = *target.scheduling.lock();
    let keeps_params = given.flags.contains(SchedFlags::KEEP_PARAMS);
    let keeps_policy = given.flags.contains(SchedFlags::KEEP_POLICY);
    let wanted = Wanted {
        policy: (!keeps_policy).then_some(given.policy),
        reset_on_fork: if keeps_policy {
            old.reset_on_fork
        } else {
            given.flags.contains(SchedFlags::RESET_ON_FORK)
        },
        priority: if keeps_params { old.rt_priority.cast_unsigned() } else { given.priority },
        nice: if keeps_params { old.nice } else { given.nice.clamp(-20, 19) },
    };
    set(task, &target, &wanted)
}

/// Linux: `sched_copy_attr`. A size that does not fit is answered by the right one.
fn read_attr(task: &CurrentTask, at: UserAddr) -> SysResult<SchedAttr> {
    let known = size_of::<SchedAttr>();
    let too_big = |task: &CurrentTask| {
        task.mm.write(at, &u32::try_from(known).unwrap_or(0))?;
        Err(Errno::E2BIG.into())
    };
    let size = match task.mm.read::<u32>(at)? {
        0 => ATTR_V0,
        size => usize::try_from(size).unwrap_or(usize::MAX),
    };
    if !(ATTR_V0..=PAGE).contains(&size) {
        return too_big(task);
    }
    let mut bytes = vec![0; size];
    task.mm.read_bytes(at, &mut bytes)?;
    if bytes.iter().skip(known).any(|byte| *byte != 0) {
        return too_big(task);
    }
    let mut attr = SchedAttr::default();
    for (to, from) in attr.as_mut_bytes().iter_mut().zip(&bytes) {
        *to = *from;
    }
    let clamps = SchedFlags::UTIL_CLAMP_MIN | SchedFlags::UTIL_CLAMP_MAX;
    if attr.flags.intersects(clamps) && size < known {
        return Err(Errno::EINVAL.into());
    }
    Ok(attr)
}

pub fn sys_sched_getattr(
    task: &mut CurrentTask,
    pid: Pid,
    attr: Out<SchedAttr>,
    size: u32,
    flags: u32,
) -> SysResult<()> {
    let size = usize::try_from(size).unwrap_or(usize::MAX);
    if attr.is_null() || pid.0 < 0 || !(ATTR_V0..=PAGE).contains(&size) || flags != 0 {
        return Err(Errno::EINVAL.into());
    }
    let scheduling = of(task, pid)?;
    let known = size_of::<SchedAttr>();
    let flag = if scheduling.reset_on_fork { SchedFlags::RESET_ON_FORK } else { SchedFlags::empty() };
    let told = SchedAttr {
        size: u32::try_from(size.min(known)).unwrap_or(0),
        policy: scheduling.policy,
        flags: flag,
        nice: if is_fair(scheduling.policy) { scheduling.nice } else { 0 },
        priority: scheduling.rt_priority.cast_unsigned(),
        util_max: 1024,
        ..SchedAttr::default()
    };
    let mut bytes = told.as_bytes().to_vec();
    bytes.resize(size, 0);
    task.mm.write_bytes(attr.0, &bytes)
}
