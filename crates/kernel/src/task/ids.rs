//! Who am I: pids and the like, and thread-local bases.

use abi::{ArchPrctlOp, Errno, GUEST_TOP, GrndFlags, UserAddr};
use sync::SysResult;

use crate::syscall::{ArchPrctlArg, OutBuf, Pid};
use crate::task::CurrentTask;

pub fn sys_getpid(task: &mut CurrentTask) -> SysResult<Pid> {
    Ok(Pid(task.pid()))
}

pub fn sys_gettid(task: &mut CurrentTask) -> SysResult<Pid> {
    Ok(Pid(task.tid()))
}

pub fn sys_getppid(task: &mut CurrentTask) -> SysResult<Pid> {
    let tasks = task.kernel().tasks.lock();
    Ok(Pid(tasks.groups.get(&task.pid()).map_or(0, |entry| entry.parent)))
}

pub fn sys_set_tid_address(task: &mut CurrentTask, at: UserAddr) -> SysResult<Pid> {
    task.clear_child_tid = at;
    Ok(Pid(task.tid()))
}

pub fn sys_arch_prctl(task: &mut CurrentTask, code: ArchPrctlOp, value: ArchPrctlArg) -> SysResult<()> {
    let ArchPrctlArg(value) = value;
    match code {
        ArchPrctlOp::SET_FS | ArchPrctlOp::SET_GS if value >= GUEST_TOP => Err(Errno::EPERM.into()),
        ArchPrctlOp::SET_FS => {
            task.context.registers_mut().fs_base = value;
            Ok(())
        }
        ArchPrctlOp::SET_GS => {
            task.context.registers_mut().gs_base = value;
            Ok(())
        }
        ArchPrctlOp::GET_FS => {
            let base = task.context.registers().fs_base;
            task.mm.write(UserAddr(value), &base)
        }
        ArchPrctlOp::GET_GS => {
            let base = task.context.registers().gs_base;
            task.mm.write(UserAddr(value), &base)
        }
        _ => Err(Errno::EINVAL.into()),
    }
}

pub fn sys_getrandom(task: &mut CurrentTask, buf: OutBuf, flags: GrndFlags) -> SysResult<usize> {
    if flags.has_unknown() || flags.contains(GrndFlags::RANDOM | GrndFlags::INSECURE) {
        return Err(Errno::EINVAL.into());
    }
    let mut sink = crate::mm::UserSink::one(&task.mm, buf.addr, buf.len);
    crate::random::fill_user(&mut sink, task)
}
