//! Job control: who may read and write, controlling terminals, foreground groups.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use abi::{Errno, SiCode, Sigaction, Siginfo, Signal};
use sync::{SysError, SysResult};

use crate::kernel::Kernel;
use crate::task::{CurrentTask, ThreadGroup};
use crate::tty::Terminal;

/// What a background process gets that does this to its terminal (Linux: `__tty_check_change`): its group is
/// stopped by `signal`, unless it cannot be.
pub(super) fn check_change(terminal: &Arc<Terminal>, task: &CurrentTask, signal: Signal) -> SysResult<()> {
    let controlling = task.group().terminal.lock().clone();
    if controlling.is_none_or(|controlling| !Arc::ptr_eq(&controlling, terminal)) {
        return Ok(());
    }
    let (_, foreground) = terminal.session();
    let own = own_group(task);
    if foreground == 0 || foreground == own {
        return super::host::check(terminal, task, own, signal);
    }
    let ignored = task.task.blocked().contains(signal) || task.handlers.get(signal).handler == Sigaction::IGN;
    if ignored {
        return if signal == Signal::TTIN { Err(Errno::EIO.into()) } else { Ok(()) };
    }
    let orphaned = task.kernel().tasks.lock().is_orphaned(own, None);
    if orphaned {
        return Err(Errno::EIO.into());
    }
    let info = Siginfo::kill(signal, SiCode::KERNEL, 0, 0);
    // It reaches the caller's process at least, if not this thread of it.
    let _ = task.kernel().tasks.lock().send_to_process_group(own, info);
    Err(SysError::Restart(task.leave_for_signals()?))
}

fn own_group(task: &CurrentTask) -> i32 {
    task.kernel().tasks.lock().groups.get(&task.pid()).map_or(0, |entry| entry.pgid)
}

fn session_of(task: &CurrentTask) -> i32 {
    task.kernel().tasks.lock().groups.get(&task.pid()).map_or(0, |entry| entry.sid)
}

/// Makes it the controlling terminal of the caller's session, if the caller leads one without a terminal and
/// the terminal has no session: what opening without O_NOCTTY does.
pub(super) fn take_by_open(terminal: &Arc<Terminal>, task: &CurrentTask) {
    let leads = session_of(task) == task.pid();
    let has_one = task.group().terminal.lock().is_some();
    if leads && !has_one && terminal.session().0 == 0 {
        set_controlling(terminal, task);
    }
}

/// `TIOCSCTTY`.
pub(super) fn take(
    terminal: &Arc<Terminal>,
    task: &CurrentTask,
    force: bool,
    readable: bool,
) -> SysResult<()> {
    let (session, own_group) = (session_of(task), task.pid());
    let current = task.group().terminal.lock().clone();
    let is_ours = current.as_ref().is_some_and(|current| Arc::ptr_eq(current, terminal));
    if session == own_group && is_ours && terminal.session().0 == session {
        return Ok(());
    }
    if session != own_group || current.is_some() {
        return Err(Errno::EPERM.into());
    }
    let taken = terminal.session().0;
    if taken != 0 {
        if !force || !task.cred.capable(vfs::Capability::SYS_ADMIN) {
            return Err(Errno::EPERM.into());
        }
        forget(task.kernel(), terminal, taken);
    }
    if !readable && !task.cred.capable(vfs::Capability::SYS_ADMIN) {
        return Err(Errno::EPERM.into());
    }
    set_controlling(terminal, task);
    Ok(())
}

/// Makes it the controlling terminal of the caller's session, with the caller's group in the foreground.
pub(super) fn set_controlling(terminal: &Arc<Terminal>, task: &CurrentTask) {
    let (session, group) = (session_of(task), own_group(task));
    {
        let mut state = terminal.state.lock();
        state.session = session;
        state.foreground = group;
    }
    task.group().hung_up_foreground.store(0, Ordering::Relaxed);
    *task.group().terminal.lock() = Some(terminal.clone());
}

/// The groups of a session whose controlling terminal it is have none any more.
fn forget(kernel: &Arc<Kernel>, terminal: &Terminal, session: i32) {
    let tasks = kernel.tasks.lock();
    for entry in tasks.groups.values().filter(|entry| entry.sid == session) {
        let mut own = entry.group.terminal.lock();
        if own.as_ref().is_some_and(|own| std::ptr::eq(&**own, terminal)) {
            *own = None;
        }
    }
}

/// The terminal is nobody's any more, if it is this session's.
fn set_free(kernel: &Arc<Kernel>, terminal: &Terminal, session: i32) {
    {
        let mut state = terminal.state.lock();
        if state.session == session {
            state.session = 0;
            state.foreground = 0;
        }
    }
    forget(kernel, terminal, session);
}

fn signal_foreground(kernel: &Arc<Kernel>, pgid: i32, signals: &[Signal]) {
    if pgid == 0 {
        return;
    }
    for signal in signals {
        let info = Siginfo::kill(*signal, SiCode::KERNEL, 0, 0);
        // The group may be empty by now.
        let _ = kernel.tasks.lock().send_to_process_group(pgid, info);
    }
}

/// The terminal is hung up: its session's leader gets SIGHUP and SIGCONT, the foreground group nothing before the
/// leader ends (Linux: `tty_signal_session_leader`).
pub(super) fn hung_up(kernel: &Arc<Kernel>, terminal: &Terminal, session: i32, foreground: i32) {
    set_free(kernel, terminal, session);
    let tasks = kernel.tasks.lock();
    if let Some(leader) = tasks.groups.get(&session).filter(|leader| leader.sid == session) {
        leader.group.hung_up_foreground.store(foreground, Ordering::Relaxed);
    }
    for signal in [Signal::HUP, Signal::CONT] {
        // The leader may have gone.
        let _ = tasks.send_to_group(session, Siginfo::kill(signal, SiCode::KERNEL, 0, 0));
    }
}

/// `TIOCNOTTY`: a group gives its controlling terminal up; a session's leader gives it up for all.
pub(super) fn give_up(terminal: &Arc<Terminal>, task: &CurrentTask) -> SysResult<()> {
    let own = task.group().terminal.lock().clone();
    if own.is_none_or(|own| !Arc::ptr_eq(&own, terminal)) {
        return Err(Errno::ENOTTY.into());
    }
    let (session, foreground) = terminal.session();
    if session == task.pid() {
        set_free(task.kernel(), terminal, session);
        signal_foreground(task.kernel(), foreground, &[Signal::HUP, Signal::CONT]);
    }
    *task.group().terminal.lock() = None;
    Ok(())
}

/// A session's leader ends: its terminal is free, and the foreground group hears of it, be it that of a terminal
/// that was hung up before (Linux: `disassociate_ctty`; a pty itself is not hung up).
pub(crate) fn leader_exits(kernel: &Arc<Kernel>, leader: &ThreadGroup) {
    let terminal = leader.terminal.lock().take();
    let Some(terminal) = terminal else {
        let foreground = leader.hung_up_foreground.swap(0, Ordering::Relaxed);
        return signal_foreground(kernel, foreground, &[Signal::HUP, Signal::CONT]);
    };
    let (own, foreground) = terminal.session();
    if own == leader.pid {
        set_free(kernel, &terminal, own);
        signal_foreground(kernel, foreground, &[Signal::HUP]);
    }
}

/// `TIOCSPGRP`.
pub(super) fn set_foreground(terminal: &Arc<Terminal>, task: &CurrentTask, pgid: i32) -> SysResult<()> {
    match check_change(terminal, task, Signal::TTOU) {
        Err(SysError::Errno(Errno::EIO)) => return Err(Errno::ENOTTY.into()),
        other => other?,
    }
    let controlling = task.group().terminal.lock().clone();
    let session = session_of(task);
    if controlling.is_none_or(|own| !Arc::ptr_eq(&own, terminal)) || terminal.session().0 != session {
        return Err(Errno::ENOTTY.into());
    }
    if pgid < 0 {
        return Err(Errno::EINVAL.into());
    }
    {
        let tasks = task.kernel().tasks.lock();
        let member = tasks.process_group(pgid).next().ok_or(Errno::ESRCH)?;
        if member.sid != session {
            return Err(Errno::EPERM.into());
        }
    }
    terminal.state.lock().foreground = pgid;
    Ok(())
}
