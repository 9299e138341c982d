//! SIGIO: signals that tell the owner of an open file (`F_SETOWN`, `O_ASYNC`) that something came.

use std::sync::Arc;

use abi::{Errno, FOwnerEx, FOwnerType, OpenFlags, PollCode, SiCode, Siginfo, Signal};
use sync::SysResult;
use vfs::{AsyncFiles, Cred, FileDescription};

use crate::kernel::Kernel;
use crate::signal::send::{Target, send};
use crate::task::{CurrentTask, Task, TasksInner};

/// Asks for signals, or for none any more (Linux: `fasync`, as `F_SETFL` and `FIOASYNC` call it). `ENOTTY`: the file
/// sends none.
pub(crate) fn set_async(task: &CurrentTask, file: &Arc<FileDescription>, fd: i32, on: bool) -> SysResult<()> {
    if file.flags().contains(OpenFlags::ASYNC) == on {
        return Ok(());
    }
    file.ops.fasync(file, task, on)?;
    file.state.set_async_fd(fd);
    file.set_flags(OpenFlags::ASYNC, if on { OpenFlags::ASYNC } else { OpenFlags::empty() });
    Ok(())
}

/// Tells all owners of the files in the list (Linux: `kill_fasync`). No lock is held.
pub(crate) fn tell_all(kernel: &Kernel, files: &AsyncFiles, code: PollCode) {
    if files.is_empty() {
        return;
    }
    for file in files.all() {
        tell_owner(kernel, &file, code);
    }
}

/// Tells the owner of `file`, if it wants to know (Linux: `send_sigio`). No lock is held.
pub(crate) fn tell_owner(kernel: &Kernel, file: &FileDescription, code: PollCode) {
    let owner = file.state.owner();
    if owner.pid == 0 || !file.flags().contains(OpenFlags::ASYNC) {
        return;
    }
    let plain = Siginfo::kill(Signal::IO, SiCode::KERNEL, 0, 0);
    let chosen = match file.state.signal() {
        0 => None,
        chosen => Some(Siginfo::poll(
            Signal(chosen),
            code_for(Signal(chosen), code),
            band(code),
            file.state.async_fd(),
        )),
    };
    let tasks = kernel.tasks.lock();
    let tell = |task: &Arc<Task>, whole_group: bool| {
        let threads =
            tasks.groups.get(&task.group.pid).map(|entry| entry.threads.as_slice()).unwrap_or_default();
        let target = || if whole_group { Target::Group } else { Target::Thread(task) };
        if !may_tell(&task.cred(), file.state.chosen_by()) {
            return;
        }
        // A full queue loses the chosen signal: a plain SIGIO says so.
        if chosen.is_none_or(|info| send(&task.group, threads, target(), info).is_err()) {
            // A plain signal is pending at most once, whatever the queue.
            let _ = send(&task.group, threads, target(), plain);
        }
    };
    for (task, whole_group) in receivers(&tasks, owner) {
        tell(task, whole_group);
    }
}

/// Whom signals go to, and whether to the whole process.
fn receivers(tasks: &TasksInner, owner: FOwnerEx) -> Vec<(&Arc<Task>, bool)> {
    let first = |pid| tasks.groups.get(pid).and_then(|entry| entry.threads.first());
    match owner.owner_type {
        FOwnerType::TID => tasks.tasks.get(&owner.pid).map(|task| (task, false)).into_iter().collect(),
        FOwnerType::PID => tasks
            .tasks
            .get(&owner.pid)
            .or_else(|| first(&owner.pid))
            .map(|task| (task, true))
            .into_iter()
            .collect(),
        _ => tasks
            .process_group(owner.pid)
            .filter_map(|entry| entry.threads.first())
            .map(|task| (task, true))
            .collect(),
    }
}

/// The code that comes with the chosen signal: some signals have codes of their own, which it must not look like.
fn code_for(chosen: Signal, code: PollCode) -> PollCode {
    match chosen {
        Signal::ILL
        | Signal::FPE
        | Signal::SEGV
        | Signal::BUS
        | Signal::TRAP
        | Signal::CHLD
        | Signal::SYS => PollCode(SiCode::SIGIO.0),
        _ => code,
    }
}

/// The poll events that a code stands for.
fn band(code: PollCode) -> i64 {
    const READABLE: i64 = 0x41;
    const WRITABLE: i64 = 0x304;
    const HUNG_UP: i64 = 0x18;
    match code {
        PollCode::IN => READABLE,
        PollCode::OUT => WRITABLE,
        PollCode::HUP => HUNG_UP,
        _ => 0,
    }
}

/// Whether who chose the owner may signal it (Linux: `sigio_perm`).
fn may_tell(target: &Cred, (uid, euid): (u32, u32)) -> bool {
    euid == 0 || [uid, euid].iter().any(|own| *own == target.uid || *own == target.suid)
}

/// Sets the owner, for `F_SETOWN` and `F_SETOWN_EX`. `ESRCH`: the number is nobody's.
pub(crate) fn set_owner(task: &CurrentTask, file: &FileDescription, owner: FOwnerEx) -> SysResult<()> {
    let is_known = owner.pid == 0 || task.kernel().tasks.lock().is_in_use(owner.pid);
    if !is_known {
        return Err(Errno::ESRCH.into());
    }
    file.state.set_owner(owner, task.cred.uid, task.cred.euid);
    Ok(())
}

/// The owner now: one that has gone is nobody.
pub(crate) fn owner(task: &CurrentTask, file: &FileDescription) -> FOwnerEx {
    let owner = file.state.owner();
    let tasks = task.kernel().tasks.lock();
    let is_there = match owner.owner_type {
        FOwnerType::TID => tasks.tasks.contains_key(&owner.pid),
        FOwnerType::PID => tasks.groups.contains_key(&owner.pid) || tasks.tasks.contains_key(&owner.pid),
        _ => tasks.process_group(owner.pid).next().is_some(),
    };
    FOwnerEx { pid: if is_there { owner.pid } else { 0 }, ..owner }
}
