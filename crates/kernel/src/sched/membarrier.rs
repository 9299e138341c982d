//! `membarrier`: all threads of the process pass a memory barrier.
//!
//! Ours: by the host's `MEMBARRIER_CMD_GLOBAL`, which reaches every thread on the host. Slower than Linux's private
//! form, but right for each of these.

use std::sync::atomic::Ordering;

use abi::{Errno, MembarrierCmd, MembarrierFlags};
use sync::SysResult;

use crate::task::CurrentTask;

/// What there is.
const COMMANDS: MembarrierCmd = MembarrierCmd::GLOBAL
    .union(MembarrierCmd::GLOBAL_EXPEDITED)
    .union(MembarrierCmd::REGISTER_GLOBAL_EXPEDITED)
    .union(MembarrierCmd::PRIVATE_EXPEDITED)
    .union(MembarrierCmd::REGISTER_PRIVATE_EXPEDITED);

pub fn sys_membarrier(
    task: &mut CurrentTask,
    cmd: MembarrierCmd,
    flags: MembarrierFlags,
    _cpu: i32,
) -> SysResult<u32> {
    if !host::membarrier::has_global() {
        return Err(Errno::ENOSYS.into());
    }
    if !flags.is_empty() {
        return Err(Errno::EINVAL.into());
    }
    match cmd {
        _ if cmd.is_empty() => return Ok(COMMANDS.bits()),
        MembarrierCmd::GLOBAL | MembarrierCmd::GLOBAL_EXPEDITED => barrier()?,
        MembarrierCmd::REGISTER_GLOBAL_EXPEDITED => {}
        MembarrierCmd::REGISTER_PRIVATE_EXPEDITED => {
            task.group().membarrier_registered.store(true, Ordering::Relaxed);
        }
        MembarrierCmd::PRIVATE_EXPEDITED => {
            if !task.group().membarrier_registered.load(Ordering::Relaxed) {
                return Err(Errno::EPERM.into());
            }
            // For a single thread its own call is barrier enough.
            if task.mm.users() > 1 {
                barrier()?;
            }
        }
        _ => return Err(Errno::EINVAL.into()),
    }
    Ok(0)
}

fn barrier() -> SysResult<()> {
    sync::assert_no_lock_held();
    host::membarrier::global().map_err(|_| Errno::ENOSYS.into())
}
