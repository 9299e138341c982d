//! The root's own files: the system as a whole.

use abi::PAGE_SIZE;
use sync::SysResult;

use crate::entry::{Cx, Entry, Kind};
use crate::sysctl;

pub(crate) static ENTRIES: &[Entry] = &[
    Entry { name: "cmdline", mode: 0o444, kind: Kind::File(|_| Ok(b"umlaut\n".to_vec())) },
    Entry { name: "cpuinfo", mode: 0o444, kind: Kind::File(cpuinfo) },
    Entry { name: "devices", mode: 0o444, kind: Kind::File(devices) },
    Entry { name: "filesystems", mode: 0o444, kind: Kind::File(filesystems) },
    Entry { name: "loadavg", mode: 0o444, kind: Kind::File(loadavg) },
    Entry { name: "meminfo", mode: 0o444, kind: Kind::File(meminfo) },
    Entry { name: "mounts", mode: 0o777, kind: Kind::Link(|_| Ok(b"self/mounts".to_vec())) },
    Entry { name: "self", mode: 0o777, kind: Kind::Link(|cx| Ok(cx.reader.pid().to_string().into_bytes())) },
    Entry { name: "stat", mode: 0o444, kind: Kind::File(stat) },
    Entry { name: "swaps", mode: 0o444, kind: Kind::File(swaps) },
    Entry { name: "sys", mode: 0o555, kind: Kind::Directory(sysctl::ENTRIES) },
    Entry { name: "thread-self", mode: 0o777, kind: Kind::Link(thread_self) },
    Entry { name: "umlaut", mode: 0o555, kind: Kind::Directory(UMLAUT) },
    Entry { name: "uptime", mode: 0o444, kind: Kind::File(uptime) },
    Entry { name: "version", mode: 0o444, kind: Kind::File(version) },
    Entry { name: "vmstat", mode: 0o444, kind: Kind::File(vmstat) },
];

/// What Linux lacks.
static UMLAUT: &[Entry] = &[
    Entry { name: "calls", mode: 0o444, kind: Kind::File(|cx| Ok(cx.kernel.calls_text().into_bytes())) },
    Entry {
        name: "platform",
        mode: 0o444,
        kind: Kind::File(|cx| Ok(cx.kernel.platform_text().into_bytes())),
    },
    Entry { name: "stat", mode: 0o444, kind: Kind::File(|cx| Ok(cx.kernel.stat_text().into_bytes())) },
];

fn thread_self(cx: &Cx<'_>) -> SysResult<Vec<u8>> {
    Ok(format!("{}/task/{}", cx.reader.pid(), cx.reader.tid()).into_bytes())
}

/// A text of the host's own, for what is the machine's and not the guests'.
fn host_text(path: &str) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

/// The processors that guests run on are the host's.
fn cpuinfo(_: &Cx<'_>) -> SysResult<Vec<u8>> {
    Ok(host_text("/proc/cpuinfo").into_bytes())
}

fn devices(_: &Cx<'_>) -> SysResult<Vec<u8>> {
    let text = "Character devices:\n  1 mem\n  5 /dev/tty\n  5 /dev/console\n  5 /dev/ptmx\n136 pts\n\nBlock devices:\n";
    Ok(text.into())
}

fn filesystems(_: &Cx<'_>) -> SysResult<Vec<u8>> {
    let kinds = ["sysfs", "tmpfs", "proc", "devtmpfs", "devpts", "overlay", "hostfs", "pipefs", "sockfs"];
    Ok(kinds.iter().map(|kind| format!("nodev\t{kind}\n")).collect::<String>().into_bytes())
}

fn loadavg(cx: &Cx<'_>) -> SysResult<Vec<u8>> {
    let host = host_text("/proc/loadavg");
    let averages: Vec<&str> = host.split_whitespace().take(3).collect();
    let tasks = cx.kernel.tasks.lock();
    let all = tasks.tasks.len();
    let running = tasks.tasks.values().filter(|task| !task.is_asleep()).count();
    let last = tasks.tasks.keys().next_back().copied().unwrap_or(1);
    Ok(format!("{} {running}/{all} {last}\n", averages.join(" ")).into_bytes())
}

/// The host's memory, bounded by what guests may use of it. All fields that programs look for are there.
fn meminfo(cx: &Cx<'_>) -> SysResult<Vec<u8>> {
    let host = host_text("/proc/meminfo");
    let field = |name: &str| {
        let line =
            host.lines().find(|line| line.strip_prefix(name).is_some_and(|rest| rest.starts_with(':')));
        line.and_then(|line| line.split_whitespace().nth(1))
            .and_then(|kb| kb.parse::<u64>().ok())
            .unwrap_or(0)
    };
    let total = (cx.kernel.total_pages() * PAGE_SIZE / 1024).min(field("MemTotal"));
    let available = (cx.kernel.memory_left(field("MemAvailable") * 1024) / 1024).min(total);
    let free = field("MemFree").min(available);
    let fields = [
        ("MemTotal", total),
        ("MemFree", free),
        ("MemAvailable", available),
        ("Buffers", field("Buffers").min(total - free)),
        ("Cached", field("Cached").min(total - free)),
        ("SwapCached", 0),
        ("Active", field("Active").min(total - free)),
        ("Inactive", field("Inactive").min(total - free)),
        ("SwapTotal", 0),
        ("SwapFree", 0),
        ("Dirty", field("Dirty")),
        ("Writeback", 0),
        ("AnonPages", field("AnonPages").min(total - free)),
        ("Mapped", field("Mapped").min(total - free)),
        ("Shmem", field("Shmem").min(total - free)),
        ("KReclaimable", field("KReclaimable").min(total - free)),
        ("Slab", field("Slab").min(total - free)),
        ("SReclaimable", field("SReclaimable").min(total - free)),
        ("SUnreclaim", field("SUnreclaim").min(total - free)),
        ("KernelStack", field("KernelStack")),
        ("PageTables", field("PageTables")),
        ("CommitLimit", total),
        ("Committed_AS", total - available),
        ("VmallocTotal", 34_359_738_367),
        ("VmallocUsed", 0),
        ("HugePages_Total", 0),
    ];
    let line = |(name, value): &(&str, u64)| match name.starts_with("HugePages") {
        true => format!("{:<16}{value:>8}\n", format!("{name}:")),
        false => format!("{:<16}{value:>8} kB\n", format!("{name}:")),
    };
    let mut text: String = fields.iter().map(line).collect();
    text.push_str("HugePages_Free:        0\nHugePages_Rsvd:        0\nHugePages_Surp:        0\n");
    text.push_str("Hugepagesize:       2048 kB\nHugetlb:               0 kB\n");
    Ok(text.into_bytes())
}

/// Processor times are the host's; processes are the guests'.
fn stat(cx: &Cx<'_>) -> SysResult<Vec<u8>> {
    let host = host_text("/proc/stat");
    let mut text = String::new();
    for line in host.lines().filter(|line| line.starts_with("cpu")) {
        text.push_str(line);
        text.push('\n');
    }
    let (running, ever) = {
        let tasks = cx.kernel.tasks.lock();
        let sleeping = |task: &&std::sync::Arc<kernel::task::Task>| task.is_asleep();
        (tasks.tasks.values().filter(|task| !sleeping(task)).count(), cx.kernel.stats.tasks_made())
    };
    let booted = std::time::SystemTime::now()
        .checked_sub(uptime_now())
        .and_then(|at| at.duration_since(std::time::SystemTime::UNIX_EPOCH).ok())
        .map_or(0, |since| since.as_secs());
    text.push_str(&format!(
        "intr 0\nctxt 0\nbtime {booted}\nprocesses {ever}\nprocs_running {}\nprocs_blocked 0\nsoftirq 0 0 0 0 0 0 0 0 0 0 0\n",
        running.max(1)
    ));
    Ok(text.into_bytes())
}

fn swaps(_: &Cx<'_>) -> SysResult<Vec<u8>> {
    Ok(b"Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n".to_vec())
}

/// Time since the machine was booted: the host's, as all clocks of guests are.
pub(crate) fn uptime_now() -> std::time::Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
    std::time::Duration::new(seconds, u32::try_from(now.tv_nsec).unwrap_or(0))
}

fn uptime(_: &Cx<'_>) -> SysResult<Vec<u8>> {
    let up = uptime_now().as_secs_f64();
    // The processors are the host's, so is the time that they idled.
    let host = host_text("/proc/uptime");
    let idle: f64 = host.split_whitespace().nth(1).and_then(|text| text.parse().ok()).unwrap_or(0.0);
    Ok(format!("{up:.2} {idle:.2}\n").into_bytes())
}

fn version(_: &Cx<'_>) -> SysResult<Vec<u8>> {
    let release = kernel::kernel::RELEASE;
    let version = kernel::kernel::VERSION;
    Ok(format!("Linux version {release} (umlaut) (rustc) {version}\n").into_bytes())
}

fn vmstat(_: &Cx<'_>) -> SysResult<Vec<u8>> {
    Ok(host_text("/proc/vmstat").into_bytes())
}
