//! `wait4` and `waitid`.

use std::sync::Arc;

use abi::{ChldCode, Errno, PidfdFlags, Rusage, Siginfo, Signal, WaitIdType, WaitOptions};
use sync::{SysError, SysResult, WaitEnd};

use crate::resource::Usage;
use crate::syscall::{Out, OutStatus, Pid};
use crate::task::{CurrentTask, GroupEntry, GroupExit, Task, TasksInner};

/// Which children are waited for.
#[derive(Clone, Copy, Debug)]
enum Which {
    Any,
    Pid(i32),
    Group(i32),
}

/// A state change of a child's.
#[derive(Clone, Copy, Debug)]
struct Event {
    pid: i32,
    uid: u32,
    change: Change,
    usage: Usage,
}

#[derive(Clone, Copy, Debug)]
enum Change {
    Ended(GroupExit),
    Stopped(Signal),
    Continued,
}

impl Event {
    /// As `wait4` gives it.
    fn status(&self) -> i32 {
        match self.change {
            Change::Ended(exit) => exit.wait_status(),
            Change::Stopped(signal) => (signal.0 << 8) | 0x7f,
            Change::Continued => 0xffff,
        }
    }

    /// As `waitid` gives it.
    fn info(&self) -> Siginfo {
        let (code, status) = match self.change {
            Change::Ended(GroupExit::Code(code)) => (ChldCode::EXITED, code),
            Change::Ended(GroupExit::Signal { signal, core: false }) => (ChldCode::KILLED, signal.0),
            Change::Ended(GroupExit::Signal { signal, core: true }) => (ChldCode::DUMPED, signal.0),
            Change::Stopped(signal) => (ChldCode::STOPPED, signal.0),
            Change::Continued => (ChldCode::CONTINUED, Signal::CONT.0),
        };
        Siginfo::child(code, self.pid, self.uid, status, 0, 0)
    }
}

pub fn sys_wait4(
    task: &mut CurrentTask,
    pid: Pid,
    status: OutStatus,
    options: WaitOptions,
    usage: Out<Rusage>,
) -> SysResult<Pid> {
    let known = WaitOptions::NOHANG
        | WaitOptions::UNTRACED
        | WaitOptions::CONTINUED
        | WaitOptions::NOTHREAD
        | WaitOptions::ALL
        | WaitOptions::CLONE;
    if !known.contains(options) {
        return Err(Errno::EINVAL.into());
    }
    let which = match pid.0 {
        i32::MIN => return Err(Errno::ESRCH.into()),
        -1 => Which::Any,
        0 => Which::Group(own_group(task)),
        pid @ 1.. => Which::Pid(pid),
        group => Which::Group(-group),
    };
    let Some(event) = wait(task, which, options | WaitOptions::EXITED)? else { return Ok(Pid(0)) };
    if !status.0.is_null() {
        task.mm.write(status.0, &event.status())?;
    }
    if !usage.is_null() {
        task.mm.write(usage.0, &event.usage.to_rusage())?;
    }
    Ok(Pid(event.pid))
}

pub fn sys_waitid(
    task: &mut CurrentTask,
    kind: WaitIdType,
    id: Pid,
    info: Out<Siginfo>,
    options: WaitOptions,
    usage: Out<Rusage>,
) -> SysResult<()> {
    let known = WaitOptions::NOHANG
        | WaitOptions::NOWAIT
        | WaitOptions::EXITED
        | WaitOptions::UNTRACED
        | WaitOptions::CONTINUED
        | WaitOptions::NOTHREAD
        | WaitOptions::ALL
        | WaitOptions::CLONE;
    let wanted = WaitOptions::EXITED | WaitOptions::UNTRACED | WaitOptions::CONTINUED;
    if !known.contains(options) || !options.intersects(wanted) {
        return Err(Errno::EINVAL.into());
    }
    let mut options = options;
    let mut nonblocking_pidfd = false;
    let which = match kind {
        WaitIdType::ALL => Which::Any,
        WaitIdType::PID if id.0 > 0 => Which::Pid(id.0),
        WaitIdType::PGID if id.0 > 0 => Which::Group(id.0),
        WaitIdType::PGID if id.0 == 0 => Which::Group(own_group(task)),
        WaitIdType::PIDFD if id.0 >= 0 => {
            let file = task.files.table.get(id.0)?;
            nonblocking_pidfd = file.is_nonblocking();
            Which::Pid(crate::task::pidfd::pid_of(&file)?)
        }
        _ => return Err(Errno::EINVAL.into()),
    };
    if nonblocking_pidfd && !options.contains(WaitOptions::NOHANG) {
        options |= WaitOptions::NOHANG;
    }
    let _ = PidfdFlags::NONBLOCK;
    let event = wait(task, which, options)?;
    if event.is_none() && nonblocking_pidfd {
        return Err(Errno::EAGAIN.into());
    }
    if let Some(event) = &event
        && !usage.is_null()
    {
        task.mm.write(usage.0, &event.usage.to_rusage())?;
    }
    if !info.is_null() {
        task.mm.write(info.0, &event.map_or_else(Siginfo::default, |event| event.info()))?;
    }
    Ok(())
}

fn own_group(task: &CurrentTask) -> i32 {
    task.kernel().tasks.lock().groups.get(&task.pid()).map_or(0, |entry| entry.pgid)
}

/// Waits for an event; `None` with `WNOHANG` if there is none yet. `ECHILD`: no child could ever fit.
fn wait(task: &mut CurrentTask, which: Which, options: WaitOptions) -> SysResult<Option<Event>> {
    let kernel = task.kernel().clone();
    let group = task.group().clone();
    let own = task.task.clone();
    let look = |_: &CurrentTask| match find(&mut kernel.tasks.lock(), &own, which, options) {
        Found::Event(event) => Some(Ok(Some(event))),
        Found::None => Some(Err(SysError::from(Errno::ECHILD))),
        Found::Later if options.contains(WaitOptions::NOHANG) => Some(Ok(None)),
        Found::Later => None,
    };
    match task.wait(&[&group.child_events], None, look) {
        Ok(result) => result,
        Err(WaitEnd::TimedOut) => Ok(None),
        Err(WaitEnd::Interrupted(restart)) => Err(SysError::Restart(restart)),
    }
}

enum Found {
    Event(Event),
    /// There are children that fit, but nothing to tell of them.
    Later,
    None,
}

fn find(tasks: &mut TasksInner, parent: &Arc<Task>, which: Which, options: WaitOptions) -> Found {
    let Some(own) = tasks.groups.get(&parent.group.pid) else { return Found::None };
    let mut result = Found::None;
    let mut reap = None;
    for child in &own.children {
        let Some(entry) = tasks.groups.get(child) else { continue };
        let another_threads =
            || !entry.parent_thread.upgrade().is_some_and(|made| Arc::ptr_eq(&made, parent));
        if !fits(entry, which, options) || (options.contains(WaitOptions::NOTHREAD) && another_threads()) {
            continue;
        }
        if let Some(event) = event_of(entry, options) {
            if matches!(event.change, Change::Ended(_)) && !options.contains(WaitOptions::NOWAIT) {
                reap = Some(event.pid);
            }
            result = Found::Event(event);
            break;
        }
        result = Found::Later;
    }
    if let Some(pid) = reap {
        tasks.reap(pid, true);
    }
    result
}

fn fits(entry: &GroupEntry, which: Which, options: WaitOptions) -> bool {
    let right_one = match which {
        Which::Any => true,
        Which::Pid(pid) => entry.group.pid == pid,
        Which::Group(pgid) => entry.pgid == pgid,
    };
    // "Clone children" are those that tell of their end by another signal than SIGCHLD.
    let is_clone = entry.exit_signal != Signal::CHLD.0;
    right_one && (options.contains(WaitOptions::ALL) || is_clone == options.contains(WaitOptions::CLONE))
}

fn event_of(entry: &GroupEntry, options: WaitOptions) -> Option<Event> {
    let pid = entry.group.pid;
    let keep = options.contains(WaitOptions::NOWAIT);
    if let Some(zombie) = entry.zombie {
        let event = Event {
            pid,
            uid: zombie.uid,
            change: Change::Ended(zombie.exit),
            usage: total(entry, &zombie.usage),
        };
        return options.contains(WaitOptions::EXITED).then_some(event);
    }
    let uid = entry.threads.first().map_or(0, |leader| leader.cred().uid);
    // Known by many files of the host's /proc: only asked for where there is something to tell.
    let usage = || entry.group.usage_of(&entry.threads);
    let mut state = entry.group.signals.lock();
    if options.contains(WaitOptions::UNTRACED)
        && let Some(signal) = state.stop_report
    {
        if !keep {
            state.stop_report = None;
        }
        drop(state);
        return Some(Event { pid, uid, change: Change::Stopped(signal), usage: usage() });
    }
    if options.contains(WaitOptions::CONTINUED) && state.continue_report {
        if !keep {
            state.continue_report = false;
        }
        drop(state);
        return Some(Event { pid, uid, change: Change::Continued, usage: usage() });
    }
    None
}

/// What a child and its own reaped children have used.
fn total(entry: &GroupEntry, own: &Usage) -> Usage {
    let mut usage = *own;
    usage.add(&entry.group.usage.lock().children);
    usage
}
