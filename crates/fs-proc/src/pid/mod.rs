//! `/proc/PID` and `/proc/PID/task/TID`.

mod mem;
mod memory;
mod stat;
mod status;

use std::sync::atomic::Ordering;

use abi::{Errno, UserAddr};
use kernel::resource::IoUsage;
use sync::SysResult;
use vfs::MagicTarget;

use crate::entry::{Cx, Entry, Kind};
use crate::fd::path_of;

macro_rules! common {
    ($($more:expr,)*) => {
        &[
            $($more,)*
            Entry { name: "attr", mode: 0o555, kind: Kind::Directory(ATTRIBUTES) },
            Entry { name: "auxv", mode: 0o400, kind: Kind::Checked(auxv, may_read_memory) },
            Entry { name: "cgroup", mode: 0o444, kind: Kind::File(|_| Ok(b"0::/\n".to_vec())) },
            Entry { name: "cmdline", mode: 0o444, kind: Kind::File(cmdline) },
            Entry { name: "comm", mode: 0o644, kind: Kind::Setting(comm, set_comm) },
            Entry { name: "coredump_filter", mode: 0o644, kind: Kind::Setting(core_filter, set_core_filter) },
            Entry { name: "cwd", mode: 0o777, kind: Kind::Object(cwd) },
            Entry { name: "environ", mode: 0o400, kind: Kind::Checked(environ, may_read_memory) },
            Entry { name: "exe", mode: 0o777, kind: Kind::Object(exe) },
            Entry { name: "fd", mode: 0o500, kind: Kind::Descriptors { info: false } },
            Entry { name: "fdinfo", mode: 0o555, kind: Kind::Descriptors { info: true } },
            Entry { name: "gid_map", mode: 0o644, kind: Kind::File(id_map) },
            Entry { name: "io", mode: 0o400, kind: Kind::Checked(io, may_look) },
            Entry { name: "limits", mode: 0o444, kind: Kind::File(status::limits) },
            Entry { name: "loginuid", mode: 0o644, kind: Kind::File(|_| Ok(b"4294967295".to_vec())) },
            Entry { name: "maps", mode: 0o444, kind: Kind::Checked(memory::maps, may_look) },
            Entry { name: "mem", mode: 0o600, kind: Kind::Opened(open_memory) },
            Entry { name: "mountinfo", mode: 0o444, kind: Kind::Checked(mountinfo, has_mounts) },
            Entry { name: "mounts", mode: 0o444, kind: Kind::Checked(mounts, has_mounts) },
            Entry { name: "oom_score", mode: 0o444, kind: Kind::File(|_| Ok(b"0\n".to_vec())) },
            Entry { name: "oom_score_adj", mode: 0o644, kind: Kind::Setting(oom_score_adj, set_oom_score_adj) },
            Entry { name: "personality", mode: 0o400, kind: Kind::File(personality) },
            Entry { name: "root", mode: 0o777, kind: Kind::Object(root) },
            Entry { name: "sessionid", mode: 0o444, kind: Kind::File(|_| Ok(b"4294967295".to_vec())) },
            Entry { name: "setgroups", mode: 0o644, kind: Kind::File(|_| Ok(b"allow\n".to_vec())) },
            Entry { name: "smaps", mode: 0o444, kind: Kind::Checked(memory::smaps, may_look) },
            Entry { name: "smaps_rollup", mode: 0o444, kind: Kind::Checked(memory::smaps_rollup, may_look) },
            Entry { name: "stat", mode: 0o444, kind: Kind::File(stat::stat) },
            Entry { name: "statm", mode: 0o444, kind: Kind::File(memory::statm) },
            Entry { name: "status", mode: 0o444, kind: Kind::File(status::status) },
            Entry { name: "uid_map", mode: 0o644, kind: Kind::File(id_map) },
            Entry { name: "wchan", mode: 0o444, kind: Kind::File(|_| Ok(b"0".to_vec())) },
        ]
    };
}

/// What security modules say: there is none, and Linux without one refuses to tell.
static ATTRIBUTES: &[Entry] = &[
    Entry { name: "current", mode: 0o666, kind: Kind::File(|_| Err(Errno::EINVAL.into())) },
    Entry { name: "exec", mode: 0o666, kind: Kind::File(|_| Err(Errno::EINVAL.into())) },
    Entry { name: "prev", mode: 0o444, kind: Kind::File(|_| Err(Errno::EINVAL.into())) },
];

pub(crate) static PROCESS: &[Entry] = common! {
    Entry { name: "task", mode: 0o555, kind: Kind::Threads },
};

pub(crate) static THREAD: &[Entry] = common! {
    Entry { name: "children", mode: 0o444, kind: Kind::File(children) },
};

/// The children of a process, all with its leader: who of its threads forked them is not kept.
fn children(cx: &Cx<'_>) -> SysResult<Vec<u8>> {
    let task = cx.task()?;
    if task.tid() != task.group.pid {
        return Ok(Vec::new());
    }
    let tasks = cx.kernel.tasks.lock();
    let own = tasks.groups.values().filter(|entry| entry.parent == task.group.pid);
    Ok(own.map(|entry| format!("{} ", entry.group.pid)).collect::<String>().into_bytes())
}

/// `EACCES` to strangers.
fn may_look(cx: &Cx<'_>) -> SysResult<()> {
    cx.check_access()
}

/// `EACCES` to strangers; `ESRCH`: there is no memory any more.
fn may_read_memory(cx: &Cx<'_>) -> SysResult<()> {
    cx.check_access()?;
    let has_memory = cx.task()?.shared.lock().mm.is_some();
    if has_memory { Ok(()) } else { Err(Errno::ESRCH.into()) }
}

fn open_memory(cx: &Cx<'_>) -> SysResult<Box<dyn vfs::FileOps>> {
    may_read_memory(cx)?;
    let mm = cx.task()?.shared.lock().mm.clone().ok_or(Errno::ESRCH)?;
    Ok(Box::new(mem::MemoryFile::new(mm)))
}

/// `EINVAL`: the process has left its name space.
fn has_mounts(cx: &Cx<'_>) -> SysResult<()> {
    let has_place = cx.of()?.task.as_ref().is_some_and(|task| task.shared.lock().fs.is_some());
    if has_place { Ok(()) } else { Err(Errno::EINVAL.into()) }
}

fn comm(cx: &Cx<'_>) -> SysResult<Vec<u8>> {
    let mut name = name_of(cx)?;
    name.push(b'\n');
    Ok(name)
}

/// The name of a thread, of a leader, or of what has none left.
fn name_of(cx: &Cx<'_>) -> SysResult<Vec<u8>> {
    let of = cx.of()?;
    if let Some(task) = &of.task {
        return Ok(task.shared.lock().name.clone());
    }
    let tasks = cx.kernel.tasks.lock();
    tasks.groups.get(&of.group.pid).map(|entry| entry.name.clone()).ok_or(Errno::ESRCH.into())
}

fn set_comm(cx: &Cx<'_>, bytes: &[u8]) -> SysResult<()> {
    let task = cx.task()?;
    if !std::sync::Arc::ptr_eq(&task.group, cx.reader.group()) {
        return Err(Errno::EINVAL.into());
    }
    let text = bytes.split(|byte| *byte == 0).next().unwrap_or(&[]);
    let text = text.strip_suffix(b"\n").unwrap_or(text);
    task.shared.lock().name = text.iter().copied().take(15).collect();
    Ok(())
}

/// Bytes of a process's memory, as far as they can be read.
fn memory_between(cx: &Cx<'_>, start: u64, end: u64) -> Vec<u8> {
    let mm = cx.task().ok().and_then(|task| task.shared.lock().mm.clone());
    let Some(mm) = mm else { return Vec::new() };
    let len = usize::try_from(end.saturating_sub(start)).unwrap_or(0).min(8 << 20);
    let mut bytes = vec![0; len];
    let range = kernel::mm::GuestRange { start: UserAddr(start), len };
    let count = mm.copy_in(&[range], &mut bytes);
    bytes.truncate(count);
    bytes
}

fn layout(cx: &Cx<'_>) -> Option<kernel::mm::Layout> {
    let mm = cx.task().ok()?.shared.lock().mm.clone()?;
    let layout = mm.record().layout;
    Some(layout)
}

fn cmdline(cx: &Cx<'_>) -> SysResult<Vec<u8>> {
    let Some(layout) = layout(cx) else { return Ok(Vec::new()) };
    // A program that overwrote its arguments up to their end goes on in the environment (setproctitle).
    let text = memory_between(cx, layout.arg_start, layout.arg_end);
    if text.last().is_none_or(|byte| *byte == 0) {
        return Ok(text);
    }
    let whole = memory_between(cx, layout.arg_start, layout.env_end);
    let end = whole.iter().position(|byte| *byte == 0).unwrap_or(whole.len());
    Ok(whole.get(..end).unwrap_or(&whole).to_vec())
}

fn environ(cx: &Cx<'_>) -> SysResult<Vec<u8>> {
    cx.check_access()?;
    Ok(layout(cx).map_or_else(Vec::new, |layout| memory_between(cx, layout.env_start, layout.env_end)))
}

fn auxv(cx: &Cx<'_>) -> SysResult<Vec<u8>> {
    cx.check_access()?;
    let mm = cx.task()?.shared.lock().mm.clone();
    Ok(mm.map(|mm| mm.record().auxv.clone()).unwrap_or_default())
}

fn exe(cx: &Cx<'_>) -> SysResult<MagicTarget> {
    cx.check_access()?;
    let task = cx.of()?.task.clone().ok_or(Errno::ENOENT)?;
    let mm = task.shared.lock().mm.clone();
    path_of(mm.and_then(|mm| mm.record().exe.clone()))
}

fn cwd(cx: &Cx<'_>) -> SysResult<MagicTarget> {
    place(cx, |at| &at.cwd)
}

fn root(cx: &Cx<'_>) -> SysResult<MagicTarget> {
    place(cx, |at| &at.root)
}

fn place(cx: &Cx<'_>, which: fn(&vfs::FsPlace) -> &vfs::Path) -> SysResult<MagicTarget> {
    cx.check_access()?;
    let task = cx.of()?.task.clone().ok_or(Errno::ENOENT)?;
    let fs = task.shared.lock().fs.clone();
    path_of(fs.map(|fs| which(&fs.get()).clone()))
}

fn mounts(cx: &Cx<'_>) -> SysResult<Vec<u8>> {
    let fs = cx.task()?.shared.lock().fs.clone().ok_or(Errno::EINVAL)?;
    Ok(cx.kernel.mounts.mounts(&fs.get().root))
}

fn mountinfo(cx: &Cx<'_>) -> SysResult<Vec<u8>> {
    let fs = cx.task()?.shared.lock().fs.clone().ok_or(Errno::EINVAL)?;
    Ok(cx.kernel.mounts.mountinfo(&fs.get().root))
}

fn personality(cx: &Cx<'_>) -> SysResult<Vec<u8>> {
    let bits = cx.of()?.group.personality.load(Ordering::Relaxed);
    Ok(format!("{bits:08x}\n").into_bytes())
}

fn id_map(_: &Cx<'_>) -> SysResult<Vec<u8>> {
    Ok(format!("{:>10} {:>10} {:>10}\n", 0, 0, u32::MAX).into_bytes())
}

/// What a process, with the children that it has waited for, or a thread has read and written.
fn io(cx: &Cx<'_>) -> SysResult<Vec<u8>> {
    cx.check_access()?;
    // Of storage each thread tells when it looks.
    cx.reader.task.io.look_at_storage();
    let of = cx.of()?;
    let mut sum = IoUsage::default();
    match &of.task {
        Some(task) if of.single => sum.add(&task.io.get()),
        _ => {
            sum.add(&cx.kernel.group_usage(&of.group).io);
            sum.add(&of.group.usage.lock().children.io);
        }
    }
    let lines = [
        ("rchar", sum.read_chars),
        ("wchar", sum.written_chars),
        ("syscr", sum.read_calls),
        ("syscw", sum.write_calls),
        ("read_bytes", sum.read_bytes),
        ("write_bytes", sum.write_bytes),
        ("cancelled_write_bytes", 0),
    ];
    Ok(lines.iter().map(|(name, value)| format!("{name}: {value}\n")).collect::<String>().into_bytes())
}

fn oom_score_adj(cx: &Cx<'_>) -> SysResult<Vec<u8>> {
    Ok(format!("{}\n", cx.of()?.group.oom_score_adj.load(Ordering::Relaxed)).into_bytes())
}

fn set_oom_score_adj(cx: &Cx<'_>, bytes: &[u8]) -> SysResult<()> {
    let text = std::str::from_utf8(bytes).ok().map(str::trim);
    let value = text.and_then(|text| text.parse::<i32>().ok()).filter(|value| (-1000..=1000).contains(value));
    let value = value.ok_or(Errno::EINVAL)?;
    let group = &cx.of()?.group;
    let lowers = value < group.oom_score_adj.load(Ordering::Relaxed);
    if lowers && !cx.reader.cred.capable(vfs::Capability::SYS_RESOURCE) {
        return Err(Errno::EACCES.into());
    }
    group.oom_score_adj.store(value, Ordering::Relaxed);
    Ok(())
}

fn core_filter(cx: &Cx<'_>) -> SysResult<Vec<u8>> {
    let of = cx.of()?;
    if of.task.as_ref().is_none_or(|task| task.shared.lock().mm.is_none()) {
        return Ok(Vec::new());
    }
    Ok(format!("{:08x}\n", of.group.coredump_filter.load(Ordering::Relaxed)).into_bytes())
}

/// A number as C writes it; bits that mean nothing are dropped.
fn set_core_filter(cx: &Cx<'_>, bytes: &[u8]) -> SysResult<()> {
    const KNOWN: u32 = 0x1ff;
    let text = std::str::from_utf8(bytes).map_err(|_| Errno::EINVAL)?;
    let text = text.trim_end_matches(['\n', '\0']);
    let (digits, base) = match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(digits) => (digits, 16),
        None if text.len() > 1 && text.starts_with('0') => (text, 8),
        None => (text, 10),
    };
    let value = u32::from_str_radix(digits, base).map_err(|_| Errno::EINVAL)?;
    cx.of()?.group.coredump_filter.store(value & KNOWN, Ordering::Relaxed);
    Ok(())
}
