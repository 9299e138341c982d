//! The system calls about signals.

use std::sync::Arc;
use std::time::Instant;

use abi::{
    Errno, SaFlags, SiCode, SigSet, Sigaction, Sigaltstack, Siginfo, SigmaskHow, Signal, SsFlags, Timespec,
};
use sync::{SysError, SysResult, WaitEnd};
use vfs::Cred;

use super::frame::{is_on_stack, stack_flags};
use super::send::{Target, check_kill, send};
use crate::syscall::{In, Out, Pid};
use crate::task::{CurrentTask, Task};

pub use super::frame::sys_rt_sigreturn;

fn check_set_size(size: usize) -> SysResult<()> {
    if size == SigSet::SIZE { Ok(()) } else { Err(Errno::EINVAL.into()) }
}

pub fn sys_rt_sigaction(
    task: &mut CurrentTask,
    signal: Signal,
    new: In<Sigaction>,
    old: Out<Sigaction>,
    set_size: usize,
) -> SysResult<()> {
    check_set_size(set_size)?;
    let action = if new.is_null() { None } else { Some(task.mm.read::<Sigaction>(new.0)?) };
    if !signal.is_valid() || (action.is_some() && SigSet::UNBLOCKABLE.contains(signal)) {
        return Err(Errno::EINVAL.into());
    }
    let before = task.handlers.get(signal);
    if let Some(mut action) = action {
        action.flags &= SaFlags::UAPI;
        action.mask = action.mask.difference(SigSet::UNBLOCKABLE);
        task.handlers.set(signal, action);
        if task.handlers.ignores(signal) {
            discard(task, signal);
        }
    }
    if !old.is_null() {
        task.mm.write(old.0, &before)?;
    }
    Ok(())
}

/// Pending signals are dropped when they become ignored (POSIX).
fn discard(task: &CurrentTask, signal: Signal) {
    let threads = task.kernel().tasks.threads(task.group().pid);
    let mut state = task.group().signals.lock();
    state.pending.remove(signal.mask());
    for thread in threads {
        thread.pending.lock().remove(signal.mask());
    }
}

pub fn sys_rt_sigprocmask(
    task: &mut CurrentTask,
    how: SigmaskHow,
    new: In<SigSet>,
    old: Out<SigSet>,
    set_size: usize,
) -> SysResult<()> {
    check_set_size(set_size)?;
    let before = task.task.blocked();
    if !new.is_null() {
        let set: SigSet = task.mm.read(new.0)?;
        let set = match how {
            SigmaskHow::BLOCK => before.union(set),
            SigmaskHow::UNBLOCK => before.difference(set),
            SigmaskHow::SETMASK => set,
            _ => return Err(Errno::EINVAL.into()),
        };
        task.set_blocked(set.difference(SigSet::UNBLOCKABLE));
    }
    if !old.is_null() {
        task.mm.write(old.0, &before)?;
    }
    Ok(())
}

pub fn sys_rt_sigpending(task: &mut CurrentTask, set: Out<SigSet>, set_size: usize) -> SysResult<()> {
    if set_size > SigSet::SIZE {
        return Err(Errno::EINVAL.into());
    }
    let pending = {
        let state = task.group().signals.lock();
        state.pending.set().union(task.task.pending.lock().set())
    };
    let bytes = pending.intersection(task.task.blocked()).0.to_le_bytes();
    task.mm.write_bytes(set.0, bytes.get(..set_size).unwrap_or(&bytes))
}

pub fn sys_rt_sigsuspend(task: &mut CurrentTask, set: In<SigSet>, set_size: usize) -> SysResult<()> {
    check_set_size(set_size)?;
    let set: SigSet = task.mm.read(set.0)?;
    let before = task.task.blocked();
    task.set_blocked(set.difference(SigSet::UNBLOCKABLE));
    task.saved_mask = Some(before);
    wait_for_signal(task)
}

pub fn sys_pause(task: &mut CurrentTask) -> SysResult<()> {
    wait_for_signal(task)
}

/// Sleeps until a signal is to be taken; goes on sleeping when that ran no handler.
fn wait_for_signal(task: &mut CurrentTask) -> SysResult<()> {
    let group = task.group().clone();
    match task.wait(&[&group.events], None, |_| None::<()>) {
        Ok(()) | Err(WaitEnd::TimedOut) => Ok(()),
        Err(WaitEnd::Interrupted(restart)) => Err(SysError::Restart(restart.no_handler())),
    }
}

pub fn sys_rt_sigtimedwait(
    task: &mut CurrentTask,
    set: In<SigSet>,
    info: Out<Siginfo>,
    timeout: In<Timespec>,
    set_size: usize,
) -> SysResult<usize> {
    check_set_size(set_size)?;
    let wanted = task.mm.read::<SigSet>(set.0)?.difference(SigSet::UNBLOCKABLE);
    let deadline = match timeout.is_null() {
        true => None,
        false => {
            let span = crate::time::duration(task.mm.read::<Timespec>(timeout.0)?)?;
            Instant::now().checked_add(span)
        }
    };
    // While it waits the wanted signals count as unblocked, so that they are sent to this thread.
    let before = task.task.blocked();
    let mut taken = task.next_signal(wanted);
    if taken.is_none() && deadline.is_none_or(|at| at > Instant::now()) {
        task.task.set_waited_for(before.intersection(wanted));
        task.task.set_blocked(before.difference(wanted));
        let group = task.group().clone();
        let end = task.wait(&[&group.events], deadline, |task| task.next_signal(wanted));
        task.task.set_blocked(before);
        task.task.set_waited_for(SigSet::EMPTY);
        match end {
            Ok(info) => taken = Some(info),
            Err(WaitEnd::TimedOut) => {}
            // Linux returns EINTR here, never a restart.
            Err(WaitEnd::Interrupted(_)) => match task.next_signal(wanted) {
                Some(info) => taken = Some(info),
                None => return Err(Errno::EINTR.into()),
            },
        }
    }
    let taken = taken.ok_or(Errno::EAGAIN)?;
    if !info.is_null() {
        task.mm.write(info.0, &taken)?;
    }
    Ok(usize::try_from(taken.signo.0).unwrap_or(0))
}

pub fn sys_kill(task: &mut CurrentTask, pid: Pid, signal: Signal) -> SysResult<()> {
    let info = Siginfo::kill(signal, SiCode::USER, task.group().pid, task.cred.uid);
    match pid.0 {
        target @ 1.. => kill_group(task, target, info),
        0 => {
            let own = task.kernel().tasks.lock().groups.get(&task.group().pid).map_or(0, |entry| entry.pgid);
            kill_many(task, info, |entry_pgid, _| entry_pgid == own)
        }
        -1 => {
            let own = task.group().pid;
            match kill_many(task, info, |_, pid| pid > 1 && pid != own) {
                // Being refused by all is no error there (Linux: `kill_something_info`).
                Err(SysError::Errno(Errno::EPERM)) => Ok(()),
                result => result,
            }
        }
        i32::MIN => Err(Errno::ESRCH.into()),
        group => kill_many(task, info, |entry_pgid, _| entry_pgid == -group),
    }
}

/// `kill` of one process.
pub(crate) fn kill_group(task: &CurrentTask, pid: i32, info: Siginfo) -> SysResult<()> {
    let tasks = task.kernel().tasks.lock();
    // A thread's id names its process too.
    let pid = match tasks.groups.contains_key(&pid) {
        true => pid,
        false => tasks.tasks.get(&pid).map(|thread| thread.group.pid).ok_or(Errno::ESRCH)?,
    };
    let entry = tasks.groups.get(&pid).ok_or(Errno::ESRCH)?;
    if info.signo.0 != 0 && !info.signo.is_valid() {
        return Err(Errno::EINVAL.into());
    }
    let own_sid = tasks.groups.get(&task.group().pid).map(|own| own.sid);
    let target = match (entry.threads.first(), entry.zombie) {
        (Some(leader), _) => leader.cred(),
        (None, Some(zombie)) => Arc::new(Cred::user(zombie.uid, 0, &[])),
        // The kernel's own init.
        (None, None) => entry.stand_in.as_ref().map_or_else(|| Arc::new(Cred::root()), |init| init.cred()),
    };
    if pid != task.group().pid {
        check_kill(&task.cred, &target, info.signo, own_sid == Some(entry.sid))?;
    }
    if info.signo.0 != 0 && !entry.threads.is_empty() {
        send(&entry.group, &entry.threads, Target::Group, info)?;
    }
    Ok(())
}

/// `kill` of all that `matches(pgid, pid)`: succeeds if any could be signalled.
fn kill_many(task: &CurrentTask, info: Siginfo, matches: impl Fn(i32, i32) -> bool) -> SysResult<()> {
    let pids: Vec<i32> = {
        let tasks = task.kernel().tasks.lock();
        let live =
            tasks.groups.iter().filter(|(_, entry)| !entry.threads.is_empty() || entry.zombie.is_some());
        live.filter(|(pid, entry)| matches(entry.pgid, **pid)).map(|(pid, _)| *pid).collect()
    };
    let mut result = Err(Errno::ESRCH.into());
    for pid in pids {
        match kill_group(task, pid, info) {
            Ok(()) => result = Ok(()),
            Err(error) if result.is_err() => result = Err(error),
            Err(_) => {}
        }
    }
    result
}

pub fn sys_tgkill(task: &mut CurrentTask, pid: Pid, tid: Pid, signal: Signal) -> SysResult<()> {
    if pid.0 <= 0 || tid.0 <= 0 {
        return Err(Errno::EINVAL.into());
    }
    let info = Siginfo::kill(signal, SiCode::TKILL, task.group().pid, task.cred.uid);
    signal_thread(task, Some(pid.0), tid.0, info)
}

pub fn sys_tkill(task: &mut CurrentTask, tid: Pid, signal: Signal) -> SysResult<()> {
    if tid.0 <= 0 {
        return Err(Errno::EINVAL.into());
    }
    let info = Siginfo::kill(signal, SiCode::TKILL, task.group().pid, task.cred.uid);
    signal_thread(task, None, tid.0, info)
}

fn signal_thread(task: &CurrentTask, pid: Option<i32>, tid: i32, info: Siginfo) -> SysResult<()> {
    let (target, threads) = {
        let tasks = task.kernel().tasks.lock();
        let target = tasks.tasks.get(&tid).cloned().ok_or(Errno::ESRCH)?;
        let entry = tasks.groups.get(&target.group.pid).ok_or(Errno::ESRCH)?;
        (target, entry.threads.clone())
    };
    if pid.is_some_and(|pid| pid != target.group.pid) {
        return Err(Errno::ESRCH.into());
    }
    if info.signo.0 != 0 && !info.signo.is_valid() {
        return Err(Errno::EINVAL.into());
    }
    if !Arc::ptr_eq(&target.group, task.group()) {
        check_kill(&task.cred, &target.cred(), info.signo, false)?;
    }
    if info.signo.0 != 0 {
        send(&target.group, &threads, Target::Thread(&target), info)?;
    }
    Ok(())
}

/// What a process may say of itself in `rt_sigqueueinfo`: not that the kernel or `kill` sent it, but to itself.
fn check_forged(info: &Siginfo, to_self: bool) -> SysResult<()> {
    if (info.code >= 0 || info.code == SiCode::TKILL.0) && !to_self {
        return Err(Errno::EPERM.into());
    }
    Ok(())
}

/// What the caller made for a signal to carry.
pub(crate) fn read_info(task: &CurrentTask, info: In<Siginfo>, signal: Option<Signal>) -> SysResult<Siginfo> {
    let mut given: Siginfo = task.mm.read(info.0)?;
    given.signo = signal.unwrap_or(given.signo);
    // Where the kernel notes which timer's setting a signal is of.
    given.pad = 0;
    Ok(given.given().ok_or(Errno::E2BIG)?)
}

pub fn sys_rt_sigqueueinfo(
    task: &mut CurrentTask,
    pid: Pid,
    signal: Signal,
    info: In<Siginfo>,
) -> SysResult<()> {
    let info = read_info(task, info, Some(signal))?;
    check_forged(&info, pid.0 == task.group().pid)?;
    if signal.0 != 0 && !signal.is_valid() {
        return Err(Errno::EINVAL.into());
    }
    kill_group(task, pid.0, info)
}

pub fn sys_rt_tgsigqueueinfo(
    task: &mut CurrentTask,
    pid: Pid,
    tid: Pid,
    signal: Signal,
    info: In<Siginfo>,
) -> SysResult<()> {
    let info = read_info(task, info, Some(signal))?;
    if pid.0 <= 0 || tid.0 <= 0 {
        return Err(Errno::EINVAL.into());
    }
    check_forged(&info, pid.0 == task.group().pid)?;
    signal_thread(task, Some(pid.0), tid.0, info)
}

pub fn sys_sigaltstack(task: &mut CurrentTask, new: In<Sigaltstack>, old: Out<Sigaltstack>) -> SysResult<()> {
    let sp = task.context.registers().rsp;
    let before = task.alternate_stack();
    let new = if new.is_null() { None } else { Some(task.mm.read::<Sigaltstack>(new.0)?) };
    if let Some(new) = new {
        task.change_alternate_stack(&before, &new, sp)?;
    }
    if !old.is_null() {
        let shown = Sigaltstack { flags: stack_flags(&before, sp), pad: 0, ..before };
        task.mm.write(old.0, &shown)?;
    }
    Ok(())
}

impl CurrentTask {
    /// The guest's alternate stack, as the guest says: any three numbers. To be read once for each use.
    pub(crate) fn alternate_stack(&self) -> Sigaltstack {
        self.task.words().alternate_stack()
    }

    /// Says which it is.
    pub(crate) fn put_alternate_stack(&self, stack: &Sigaltstack) {
        self.task.words().set_alternate_stack(stack);
    }

    /// Sets the alternate stack, as the guest may. `EPERM`: it is in use; `EINVAL`: unknown flags; `ENOMEM`: too small.
    pub(super) fn change_alternate_stack(
        &self,
        before: &Sigaltstack,
        new: &Sigaltstack,
        sp: u64,
    ) -> SysResult<()> {
        if is_on_stack(before, sp) {
            return Err(Errno::EPERM.into());
        }
        let mode = new.flags.difference(SsFlags::AUTODISARM);
        if !(mode == SsFlags::DISABLE || mode == SsFlags::ONSTACK || mode.is_empty()) {
            return Err(Errno::EINVAL.into());
        }
        // What it is already may be too small: behind an exec it is of size 0, with any flags.
        let same = (new.sp, new.size, new.flags) == (before.sp, before.size, before.flags);
        if mode != SsFlags::DISABLE && new.size < Sigaltstack::MIN_SIZE && !same {
            return Err(Errno::ENOMEM.into());
        }
        let (sp, size) = if mode == SsFlags::DISABLE { (0, 0) } else { (new.sp, new.size) };
        self.put_alternate_stack(&Sigaltstack { sp, flags: new.flags, pad: 0, size });
        Ok(())
    }
}

/// Whether one of `mask` is pending for this task, for a signalfd's readiness.
pub(super) fn is_pending(task: &Task, mask: SigSet) -> bool {
    let state = task.group.signals.lock();
    state.pending.set().union(task.pending.lock().set()).intersects(mask)
}

/// Called by a guest itself: there is nothing to go on with. Interrupted calls go on without it.
pub fn sys_restart_syscall(_: &mut CurrentTask) -> SysResult<usize> {
    Err(Errno::EINTR.into())
}
