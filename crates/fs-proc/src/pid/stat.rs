//! `stat`: 52 fields.

use abi::PAGE_SIZE;
use kernel::resource::{self, Usage};
use kernel::signal::StopState;
use sync::SysResult;

use crate::entry::Cx;

/// The letter of a task's state.
pub(super) fn state(cx: &Cx<'_>) -> SysResult<char> {
    let of = cx.of()?;
    // A leader that ended before its threads shows as a zombie.
    if !of.single && of.task.as_ref().is_some_and(|task| task.tid() != of.group.pid) {
        return Ok('Z');
    }
    let Some(task) = &of.task else {
        let tasks = cx.kernel.tasks.lock();
        let zombie = tasks.groups.get(&of.group.pid).is_some_and(|entry| entry.zombie.is_some());
        return Ok(if zombie { 'Z' } else { 'S' });
    };
    if matches!(of.group.signals.lock().stop, StopState::Stopped { .. }) {
        return Ok('T');
    }
    Ok(if task.is_asleep() { 'S' } else { 'R' })
}

/// Family: parent, process group, session, threads.
pub(super) struct Family {
    pub parent: i32,
    pub pgid: i32,
    pub sid: i32,
    pub threads: usize,
    pub exit_signal: i32,
}

pub(super) fn family(cx: &Cx<'_>) -> SysResult<Family> {
    let pid = cx.of()?.group.pid;
    let tasks = cx.kernel.tasks.lock();
    let entry = tasks.groups.get(&pid).ok_or(abi::Errno::ESRCH)?;
    Ok(Family {
        parent: entry.parent,
        pgid: entry.pgid,
        sid: entry.sid,
        threads: threads(&entry.threads, pid),
        exit_signal: entry.exit_signal,
    })
}

/// How many threads there are; a leader that ended counts as long as the process is there.
fn threads(living: &[std::sync::Arc<kernel::task::Task>], pid: i32) -> usize {
    let has_leader = living.iter().any(|thread| thread.tid() == pid);
    living.len() + usize::from(!has_leader)
}

/// What the process has used, its children apart.
fn usage(cx: &Cx<'_>) -> SysResult<(Usage, Usage)> {
    let group = &cx.of()?.group;
    let children = group.usage.lock().children;
    Ok((cx.kernel.group_usage(group), children))
}

pub(super) fn stat(cx: &Cx<'_>) -> SysResult<Vec<u8>> {
    let of = cx.of()?;
    let (state, family, (own, children)) = (state(cx)?, family(cx)?, usage(cx)?);
    let id = if of.single { of.task.as_ref().map_or(0, |task| task.tid()) } else { of.group.pid };
    let mm = of.task.as_ref().and_then(|task| task.shared.lock().mm.clone());
    let may_look = cx.check_access().is_ok();
    let (size, resident, layout) = match &mm {
        Some(mm) => {
            let resident = mm.space.resident_pages().0;
            let record = mm.record();
            let shown = if may_look { record.layout } else { kernel::mm::Layout::default() };
            (record.vmas.pages() * PAGE_SIZE, resident, shown)
        }
        None => (0, 0, kernel::mm::Layout::default()),
    };
    let (tty, foreground) = cx.kernel.terminal_of(of.group.pid);
    let (pending, blocked) = match &of.task {
        Some(task) => (task.pending.lock().set().0, task.blocked().0),
        None => (0, 0),
    };
    let (ignored, caught) = match &of.task {
        Some(task) => {
            let handlers = task.shared.lock().handlers.clone();
            handlers.sets()
        }
        None => Default::default(),
    };
    let scheduling = of.task.as_ref().map(|task| *task.scheduling.lock()).unwrap_or_default();
    let started = crate::system::uptime_now().saturating_sub(of.group.started.elapsed());
    let low = |set: u64| set & 0x7fff_ffff;
    let fields: Vec<String> = [
        i128::from(family.parent),
        family.pgid.into(),
        family.sid.into(),
        tty.into(),
        foreground.into(),
        0x40_0000,
        own.minor_faults.into(),
        children.minor_faults.into(),
        own.major_faults.into(),
        children.major_faults.into(),
        own.user_ticks().into(),
        own.system_ticks().into(),
        children.user_ticks().into(),
        children.system_ticks().into(),
        scheduling.proc_priority().into(),
        scheduling.nice.into(),
        family.threads as i128,
        0,
        resource::ticks(started).into(),
        size.into(),
        resident.into(),
        of.group.limits.lock().soft(resource::RSS).into(),
        layout.start_code.into(),
        layout.end_code.into(),
        layout.start_stack.into(),
        0,
        0,
        low(pending).into(),
        low(blocked).into(),
        low(ignored.0).into(),
        low(caught.0).into(),
        0,
        0,
        0,
        family.exit_signal.into(),
        0,
        scheduling.rt_priority.into(),
        scheduling.policy.0.into(),
        0,
        0,
        0,
        layout.start_data.into(),
        layout.end_data.into(),
        layout.start_brk.into(),
        layout.arg_start.into(),
        layout.arg_end.into(),
        layout.env_start.into(),
        layout.env_end.into(),
        0,
    ]
    .iter()
    .map(i128::to_string)
    .collect();
    let mut text = format!("{id} (").into_bytes();
    text.extend(super::name_of(cx)?);
    text.extend(format!(") {state} {}\n", fields.join(" ")).bytes());
    Ok(text)
}
