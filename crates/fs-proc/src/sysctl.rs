//! `/proc/sys`: what programs read of it, and the few settings that make sense here.

use std::sync::atomic::Ordering;

use abi::Errno;
use sync::SysResult;
use vfs::Capability;

use crate::entry::{Cx, Entry, Kind};

const fn text(name: &'static str, render: crate::entry::Render) -> Entry {
    Entry { name, mode: 0o444, kind: Kind::File(render) }
}

const fn dir(name: &'static str, below: &'static [Entry]) -> Entry {
    Entry { name, mode: 0o555, kind: Kind::Directory(below) }
}

pub(crate) static ENTRIES: &[Entry] = &[dir("fs", FS), dir("kernel", KERNEL), dir("net", NET), dir("vm", VM)];

static FS: &[Entry] = &[
    text("aio-max-nr", |_| line(65536)),
    text("aio-nr", |_| line(0)),
    dir("epoll", &[text("max_user_watches", |_| line(1_048_576))]),
    text("file-max", |_| line(1_048_576)),
    text("file-nr", file_count),
    text("nr_open", |_| line(u64::from(vfs::NR_OPEN))),
    dir(
        "inotify",
        &[
            text("max_queued_events", |_| line(16384)),
            text("max_user_instances", |_| line(128)),
            text("max_user_watches", |_| line(1_048_576)),
        ],
    ),
    text("overflowgid", |_| line(65534)),
    text("overflowuid", |_| line(65534)),
    text("pipe-max-size", |_| line(1_048_576)),
    text("pipe-user-pages-hard", |_| line(0)),
    text("pipe-user-pages-soft", |_| line(16384)),
    text("protected_hardlinks", |_| line(0)),
    text("protected_symlinks", |_| line(0)),
    text("suid_dumpable", |_| line(0)),
];

static KERNEL: &[Entry] = &[
    text("cap_last_cap", |_| line(u64::from(Capability::LAST))),
    Entry { name: "core_pattern", mode: 0o644, kind: Kind::Setting(core_pattern, set_core_pattern) },
    Entry { name: "core_uses_pid", mode: 0o644, kind: Kind::Setting(core_uses_pid, set_core_uses_pid) },
    Entry { name: "domainname", mode: 0o644, kind: Kind::File(domainname) },
    Entry { name: "hostname", mode: 0o644, kind: Kind::Setting(hostname, set_hostname) },
    text("msgmax", |_| line(8192)),
    text("msgmnb", |_| line(16384)),
    text("msgmni", |_| line(32000)),
    text("ngroups_max", |_| line(65536)),
    text("osrelease", |_| Ok(format!("{}\n", kernel::kernel::RELEASE).into_bytes())),
    text("ostype", |_| Ok(b"Linux\n".to_vec())),
    text("overflowgid", |_| line(65534)),
    text("overflowuid", |_| line(65534)),
    text("perf_event_paranoid", |_| line(4)),
    text("pid_max", |_| line(u64::from(kernel::task::PID_MAX.unsigned_abs()))),
    dir(
        "random",
        &[
            text("boot_id", |cx| Ok(format!("{}\n", cx.kernel.boot_id()).into_bytes())),
            text("entropy_avail", |_| line(256)),
            text("poolsize", |_| line(256)),
            text("uuid", |_| Ok(format!("{}\n", kernel::kernel::random_uuid()).into_bytes())),
        ],
    ),
    text("randomize_va_space", |_| line(2)),
    text("sched_autogroup_enabled", |_| line(0)),
    text("sem", |_| Ok(b"32000\t1024000000\t500\t32000\n".to_vec())),
    text("shmall", |_| line(18_446_744_073_692_774_399)),
    text("shmmax", |_| line(18_446_744_073_692_774_399)),
    text("shmmni", |_| line(4096)),
    text("threads-max", |cx| line(cx.kernel.options.max_tasks as u64)),
    text("version", |_| Ok(format!("{}\n", kernel::kernel::VERSION).into_bytes())),
];

static NET: &[Entry] = &[
    dir(
        "core",
        &[
            text("rmem_default", |_| line(212_992)),
            text("rmem_max", |_| line(212_992)),
            text("somaxconn", |_| line(4096)),
            text("wmem_default", |_| line(212_992)),
            text("wmem_max", |_| line(212_992)),
        ],
    ),
    dir("unix", &[text("max_dgram_qlen", |_| line(512))]),
];

static VM: &[Entry] = &[
    text("max_map_count", |_| line(65530)),
    text("mmap_min_addr", |_| line(kernel::mm::MMAP_MIN_ADDR)),
    text("overcommit_memory", |_| line(0)),
    text("overcommit_ratio", |_| line(50)),
    text("swappiness", |_| line(60)),
];

fn line(value: u64) -> SysResult<Vec<u8>> {
    Ok(format!("{value}\n").into_bytes())
}

/// Open files that descriptors stand for, none unused, and the limit.
fn file_count(cx: &Cx<'_>) -> SysResult<Vec<u8>> {
    let all: Vec<_> = cx.kernel.tasks.lock().tasks.values().cloned().collect();
    let mut open = std::collections::HashSet::new();
    for task in all {
        let Some(files) = task.shared.lock().files.clone() else { continue };
        let mut from = 0;
        while let Some(entry) = files.table.next(from) {
            open.insert(std::sync::Arc::as_ptr(&entry.file) as usize);
            from = entry.fd.unsigned_abs() + 1;
        }
    }
    Ok(format!("{}\t0\t1048576\n", open.len()).into_bytes())
}

fn hostname(cx: &Cx<'_>) -> SysResult<Vec<u8>> {
    let mut name = cx.kernel.hostname.lock().clone();
    name.push(b'\n');
    Ok(name)
}

fn domainname(cx: &Cx<'_>) -> SysResult<Vec<u8>> {
    let mut name = cx.kernel.domainname.lock().clone();
    name.push(b'\n');
    Ok(name)
}

fn set_hostname(cx: &Cx<'_>, bytes: &[u8]) -> SysResult<()> {
    if !cx.reader.cred.capable(Capability::SYS_ADMIN) {
        return Err(Errno::EPERM.into());
    }
    let name = bytes.split(|byte| matches!(byte, b'\n' | 0)).next().unwrap_or(&[]);
    *cx.kernel.hostname.lock() = name.iter().copied().take(64).collect();
    Ok(())
}

fn core_pattern(cx: &Cx<'_>) -> SysResult<Vec<u8>> {
    let mut pattern = cx.kernel.core.pattern();
    pattern.push(b'\n');
    Ok(pattern)
}

fn set_core_pattern(cx: &Cx<'_>, bytes: &[u8]) -> SysResult<()> {
    cx.kernel.core.set_pattern(bytes.split(|byte| matches!(byte, b'\n' | 0)).next().unwrap_or(&[]))
}

fn core_uses_pid(cx: &Cx<'_>) -> SysResult<Vec<u8>> {
    line(cx.kernel.core.uses_pid.load(Ordering::Relaxed).into())
}

fn set_core_uses_pid(cx: &Cx<'_>, bytes: &[u8]) -> SysResult<()> {
    let text = std::str::from_utf8(bytes).map_err(|_| Errno::EINVAL)?;
    let value: i32 = text.trim_matches(['\n', ' ', '\0']).parse().map_err(|_| Errno::EINVAL)?;
    cx.kernel.core.uses_pid.store(value != 0, Ordering::Relaxed);
    Ok(())
}
