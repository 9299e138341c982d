//! `membarrier`: all threads of the process, or of those that registered, pass a memory barrier.
//!
//! The private forms are the host's, made in the guest's own context: its host process is the one meant. What a process
//! has registered for is recorded too, since an image that was replaced in place leaves the host's registration behind.

use abi::{Errno, MembarrierCmd, MembarrierFlags};
use platform::HostCall;
use sync::SysResult;

use crate::task::CurrentTask;

/// What there is, if the host has it. The barriers for rseq come with rseq.
const COMMANDS: MembarrierCmd = MembarrierCmd::GLOBAL
    .union(MembarrierCmd::GLOBAL_EXPEDITED)
    .union(HostCall::MEMBARRIERS)
    .union(MembarrierCmd::GET_REGISTRATIONS);

pub fn sys_membarrier(
    task: &mut CurrentTask,
    cmd: MembarrierCmd,
    flags: MembarrierFlags,
    _cpu: i32,
) -> SysResult<u32> {
    let host = MembarrierCmd::from_bits_retain(host::membarrier::commands());
    if host.is_empty() {
        return Err(Errno::ENOSYS.into());
    }
    // That one is answered here, whatever the host's age.
    let known = (host | MembarrierCmd::GET_REGISTRATIONS) & COMMANDS;
    if !flags.is_empty() || !known.contains(cmd) || cmd.bits().count_ones() > 1 {
        return Err(Errno::EINVAL.into());
    }
    let registered = task.mm.record().membarriers;
    match cmd {
        _ if cmd.is_empty() => return Ok(known.bits()),
        MembarrierCmd::GET_REGISTRATIONS => return Ok(registered.bits()),
        MembarrierCmd::GLOBAL => by_kernel(host::membarrier::global)?,
        MembarrierCmd::GLOBAL_EXPEDITED => {
            // It reaches those that are registered on the host: who makes it becomes so too, if any can.
            match task.host_calls(&[HostCall::Membarrier(MembarrierCmd::REGISTER_GLOBAL_EXPEDITED)]) {
                Err(error) if error.errno() == Some(Errno::ENOSYS) => by_kernel(host::membarrier::global)?,
                _ => by_kernel(host::membarrier::global_expedited)?,
            }
        }
        MembarrierCmd::PRIVATE_EXPEDITED => {
            private(task, cmd, registered.contains(MembarrierCmd::REGISTER_PRIVATE_EXPEDITED))?;
        }
        MembarrierCmd::PRIVATE_EXPEDITED_SYNC_CORE => {
            private(task, cmd, registered.contains(MembarrierCmd::REGISTER_PRIVATE_EXPEDITED_SYNC_CORE))?;
        }
        _ => {
            match task.host_calls(&[HostCall::Membarrier(cmd)]) {
                // Nothing is made faster then.
                Err(error) if error.errno() == Some(Errno::ENOSYS) => {}
                done => drop(done?),
            }
            task.mm.record().membarriers |= cmd;
        }
    }
    Ok(0)
}

/// `EPERM` for who has not registered.
fn private(task: &mut CurrentTask, cmd: MembarrierCmd, is_registered: bool) -> SysResult<()> {
    if !is_registered {
        return Err(Errno::EPERM.into());
    }
    match task.host_calls(&[HostCall::Membarrier(cmd)]) {
        // A platform that has none in the guest's context: that of the whole host does too, but takes milliseconds.
        Err(error) if error.errno() == Some(Errno::ENOSYS) && cmd == MembarrierCmd::PRIVATE_EXPEDITED => {
            by_kernel(host::membarrier::global)
        }
        done => done.map(drop),
    }
}

fn by_kernel(barrier: fn() -> std::io::Result<()>) -> SysResult<()> {
    sync::assert_no_lock_held();
    barrier().map_err(|_| Errno::EINVAL.into())
}
