//! Who am I: pids and the like, and thread-local bases.

use std::sync::atomic::Ordering;

use abi::{ArchPrctlOp, Errno, GUEST_TOP, GrndFlags, Personality, UserAddr};
use sync::SysResult;

use crate::syscall::{ArchPrctlArg, OutRandom, Pid};
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

/// XSAVE features that a process must ask for (`XTILEDATA`).
const DYNAMIC_FEATURES: u64 = 1 << 18;

pub fn sys_arch_prctl(task: &mut CurrentTask, code: ArchPrctlOp, value: ArchPrctlArg) -> SysResult<usize> {
    match code {
        ArchPrctlOp::GET_CPUID => Ok(1),
        ArchPrctlOp::SET_CPUID if value.0 != 0 => Ok(0),
        _ => arch_prctl(task, code, value.0).map(|()| 0),
    }
}

fn arch_prctl(task: &mut CurrentTask, code: ArchPrctlOp, value: u64) -> SysResult<()> {
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
        // CPUID cannot be forbidden.
        ArchPrctlOp::SET_CPUID if value == 0 => Err(Errno::ENODEV.into()),
        ArchPrctlOp::GET_XCOMP_SUPP => {
            let features = task.kernel().platform.capabilities().xsave_features;
            task.mm.write(UserAddr(value), &features)
        }
        ArchPrctlOp::GET_XCOMP_PERM => {
            let features = task.kernel().platform.capabilities().xsave_features & !DYNAMIC_FEATURES;
            task.mm.write(UserAddr(value), &features)
        }
        ArchPrctlOp::REQ_XCOMP_PERM => {
            let features = task.kernel().platform.capabilities().xsave_features;
            match value {
                0..=63 if features & !DYNAMIC_FEATURES & (1 << value) != 0 => Ok(()),
                0..=63 => Err(task.not_built("arch_prctl", "ARCH_REQ_XCOMP_PERM", Errno::EOPNOTSUPP)),
                _ => Err(Errno::EINVAL.into()),
            }
        }
        // There is one already.
        ArchPrctlOp::MAP_VDSO_X32 | ArchPrctlOp::MAP_VDSO_32 | ArchPrctlOp::MAP_VDSO_64 => {
            Err(Errno::EEXIST.into())
        }
        _ => Err(Errno::EINVAL.into()),
    }
}

/// Returns what it was; `0xffffffff` only asks.
pub fn sys_personality(task: &mut CurrentTask, persona: Personality) -> SysResult<u32> {
    let own = &task.group().personality;
    Ok(match persona {
        Personality::QUERY => own.load(Ordering::Relaxed),
        persona => own.swap(persona.bits(), Ordering::Relaxed),
    })
}

pub fn sys_getrandom(task: &mut CurrentTask, buf: OutRandom, flags: GrndFlags) -> SysResult<usize> {
    if flags.has_unknown() || flags.contains(GrndFlags::RANDOM | GrndFlags::INSECURE) {
        return Err(Errno::EINVAL.into());
    }
    let mut sink = crate::mm::UserSink::one(&task.mm, buf.addr, buf.len);
    crate::random::fill_user(&mut sink, task)
}
