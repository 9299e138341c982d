//! `status` and `limits`.

use std::fmt::Write;

use abi::PAGE_SIZE;
use kernel::resource;
use kernel::users::Counted;
use sync::SysResult;

use super::stat::{family, state};
use crate::entry::Cx;

pub(super) fn status(cx: &Cx<'_>) -> SysResult<Vec<u8>> {
    let of = cx.of()?;
    let (state, family) = (state(cx)?, family(cx)?);
    let pid = of.group.pid;
    let tid = if of.single { of.task.as_ref().map_or(pid, |task| task.tid()) } else { pid };
    let mut text = String::new();
    // Writing to a String cannot fail.
    let mut field = |name: &str, value: String| {
        let _ = writeln!(text, "{name}:\t{value}");
    };
    field("Name", escape(&super::name_of(cx)?));
    let shared = of.task.as_ref().map(|task| task.shared.lock().clone());
    if let Some(fs) = shared.as_ref().and_then(|shared| shared.fs.as_ref()) {
        field("Umask", format!("{:04o}", fs.get().umask));
    }
    field("State", format!("{state} ({})", state_name(state)));
    field("Tgid", pid.to_string());
    field("Ngid", "0".into());
    field("Pid", tid.to_string());
    field("PPid", family.parent.to_string());
    field("TracerPid", "0".into());
    let cred = shared.as_ref().map(|shared| shared.cred.clone());
    let ids = |ids: [u32; 4]| ids.map(|id| id.to_string()).join("\t");
    if let Some(cred) = &cred {
        field("Uid", ids([cred.uid, cred.euid, cred.suid, cred.fsuid]));
        field("Gid", ids([cred.gid, cred.egid, cred.sgid, cred.fsgid]));
    } else {
        field("Uid", ids([0; 4]));
        field("Gid", ids([0; 4]));
    }
    let files = shared.as_ref().and_then(|shared| shared.files.as_ref());
    field("FDSize", files.map_or(0, |files| files.table.size()).to_string());
    let groups = cred.as_ref().map(|cred| cred.groups.clone()).unwrap_or_default();
    field("Groups", groups.iter().map(|group| format!("{group} ")).collect());
    for (name, id) in [("NStgid", pid), ("NSpid", tid), ("NSpgid", family.pgid), ("NSsid", family.sid)] {
        field(name, id.to_string());
    }
    if let Some(mm) = shared.as_ref().and_then(|shared| shared.mm.as_ref()) {
        memory(mm, &mut field);
    }
    field("Threads", family.threads.to_string());
    let limit = of.group.limits.lock().pending_signals();
    let group_pending = of.group.signals.lock().pending.set();
    let queued = cred.as_ref().map_or(0, |cred| cx.kernel.users.total(cred.uid, Counted::Signals));
    field("SigQ", format!("{queued}/{limit}"));
    let own = of.task.as_ref().map(|task| (task.pending.lock().set(), task.blocked())).unwrap_or_default();
    let actions = shared.as_ref().map(|shared| shared.handlers.sets()).unwrap_or_default();
    for (name, set) in [
        ("SigPnd", own.0),
        ("ShdPnd", group_pending),
        ("SigBlk", own.1),
        ("SigIgn", actions.0),
        ("SigCgt", actions.1),
    ] {
        field(name, format!("{:016x}", set.0));
    }
    if let Some(cred) = &cred {
        for (name, set) in [
            ("CapInh", cred.inheritable),
            ("CapPrm", cred.permitted),
            ("CapEff", cred.effective),
            ("CapBnd", cred.bounding),
            ("CapAmb", cred.ambient),
        ] {
            field(name, format!("{:016x}", set.0));
        }
        field("NoNewPrivs", u32::from(cred.no_new_privs).to_string());
    }
    field("Seccomp", "0".into());
    field("Seccomp_filters", "0".into());
    field("Cpus_allowed", format!("{:x}", (1u64 << cpus().min(63)) - 1));
    field("Cpus_allowed_list", format!("0-{}", cpus() - 1));
    field("Mems_allowed", "1".into());
    field("Mems_allowed_list", "0".into());
    let usage = cx.kernel.group_usage(&of.group);
    field("voluntary_ctxt_switches", usage.voluntary_switches.to_string());
    field("nonvoluntary_ctxt_switches", usage.involuntary_switches.to_string());
    Ok(text.into_bytes())
}

fn cpus() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

fn memory(mm: &kernel::mm::Mm, field: &mut impl FnMut(&str, String)) {
    let (resident, shared) = mm.space.resident_pages();
    let kb = |pages: u64| format!("{:>8} kB", pages * PAGE_SIZE / 1024);
    let record = mm.record();
    let layout = record.layout;
    let size = record.vmas.pages();
    let data: u64 = record.vmas.iter().filter(|vma| vma.is_data()).map(|vma| vma.len() / PAGE_SIZE).sum();
    let stack: u64 = record
        .vmas
        .iter()
        .filter(|vma| vma.flags.contains(kernel::mm::VmaFlags::STACK))
        .map(|vma| vma.len() / PAGE_SIZE)
        .sum();
    let locked: u64 = record
        .vmas
        .iter()
        .filter(|vma| vma.flags.contains(kernel::mm::VmaFlags::LOCKED))
        .map(|vma| vma.len() / PAGE_SIZE)
        .sum();
    // Executable and not writable, as Linux counts `exec_vm`.
    let code: u64 = record
        .vmas
        .iter()
        .filter(|vma| vma.prot.contains(abi::Prot::EXEC) && !vma.prot.contains(abi::Prot::WRITE))
        .map(|vma| vma.len() / PAGE_SIZE)
        .sum();
    let text = layout.end_code.div_ceil(PAGE_SIZE).saturating_sub(layout.start_code / PAGE_SIZE).min(code);
    for (name, pages) in [
        ("VmPeak", record.vmas.peak()),
        ("VmSize", size),
        ("VmLck", locked),
        ("VmPin", 0),
        ("VmHWM", resident),
        ("VmRSS", resident),
        ("RssAnon", resident.saturating_sub(shared)),
        ("RssFile", shared),
        ("RssShmem", 0),
        ("VmData", data),
        ("VmStk", stack),
        ("VmExe", text),
        ("VmLib", code - text),
        ("VmPTE", size / 512 + 4),
        ("VmSwap", 0),
    ] {
        field(name, kb(pages));
    }
}

fn escape(name: &[u8]) -> String {
    String::from_utf8_lossy(name).replace('\\', "\\\\").replace('\n', "\\n")
}

fn state_name(state: char) -> &'static str {
    match state {
        'R' => "running",
        'T' => "stopped",
        'Z' => "zombie",
        _ => "sleeping",
    }
}

pub(super) fn limits(cx: &Cx<'_>) -> SysResult<Vec<u8>> {
    let limits = *cx.of()?.group.limits.lock();
    let rows = [
        ("Max cpu time", resource::CPU, "seconds"),
        ("Max file size", resource::FSIZE, "bytes"),
        ("Max data size", resource::DATA, "bytes"),
        ("Max stack size", resource::STACK, "bytes"),
        ("Max core file size", resource::CORE, "bytes"),
        ("Max resident set", resource::RSS, "bytes"),
        ("Max processes", resource::NPROC, "processes"),
        ("Max open files", resource::NOFILE, "files"),
        ("Max locked memory", resource::MEMLOCK, "bytes"),
        ("Max address space", resource::AS, "bytes"),
        ("Max file locks", resource::LOCKS, "locks"),
        ("Max pending signals", resource::SIGPENDING, "signals"),
        ("Max msgqueue size", resource::MSGQUEUE, "bytes"),
        ("Max nice priority", resource::NICE, ""),
        ("Max realtime priority", resource::RTPRIO, ""),
        ("Max realtime timeout", resource::RTTIME, "us"),
    ];
    let show = |value: u64| if value == resource::INFINITY { "unlimited".into() } else { value.to_string() };
    let mut text = format!("{:<26}{:<21}{:<21}{:<10}\n", "Limit", "Soft Limit", "Hard Limit", "Units");
    for (name, which, unit) in rows {
        let (soft, hard) = limits.get(which).unwrap_or((0, 0));
        text.push_str(&format!("{name:<26}{:<21}{:<21}{unit:<10}\n", show(soft), show(hard)));
    }
    Ok(text.into_bytes())
}
