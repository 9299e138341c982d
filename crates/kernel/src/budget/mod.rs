//! `--memory`: what all guests together may use, watched from outside them.
//!
//! The host keeps no account for a group of ordinary processes (unless it lets us make a memory cgroup, which then is
//! a second fence), so a thread adds up what each guest process has of its own: anonymous memory, swap and page tables;
//! all memory files that guest processes may hold, mapped or not ([`host::lent`]); and what the kernel holds for them: its
//! own heap, where pipes, sockets and small files lie, and the memfds of larger files. Its period shrinks with the room
//! that is left. Beyond the limit the largest process is killed, as by Linux's OOM killer. Only memory that is touched
//! counts; of mappings, only those are refused that are larger than the machine ([`Kernel::may_commit`]), as by Linux's
//! overcommit heuristic.
//!
//! [`holders`] finds out which process holds which memory file.

mod holders;

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use abi::{FileType, PAGE_SIZE, Signal};

use crate::fs::Files;
use crate::kernel::Kernel;
use crate::mm::Mm;
use crate::task::{GroupExit, Task, ThreadGroup};

/// Bytes that a machine's guests are taken to be able to touch in a second, at most.
const FILL_RATE: u64 = 4 << 30;
const SHORTEST: Duration = Duration::from_millis(1);
const LONGEST: Duration = Duration::from_millis(200);
/// Measuring takes at most one part in so many of the time.
const SHARE: u32 = 10;
/// How long a victim may take to go before its host process is killed.
const GRACE: Duration = Duration::from_millis(100);

/// A process with memory of its own.
struct Process {
    group: Arc<ThreadGroup>,
    mm: Arc<Mm>,
    name: String,
    files: Option<Arc<Files>>,
    used: u64,
}

impl Process {
    /// What it has open: how many descriptors, and the bytes of files that have no name, which go with their last
    /// descriptor.
    fn open_files(&self) -> (u64, u64) {
        let Some(files) = &self.files else { return (0, 0) };
        let (mut count, mut bytes, mut from) = (0, 0u64, 0);
        while let Some(entry) = files.table.next(from) {
            from = entry.fd.unsigned_abs() + 1;
            count += 1;
            let attributes = entry.file.attributes().unwrap_or_default();
            if attributes.nlink == 0 && attributes.mode.file_type() == FileType::REG {
                bytes = bytes.saturating_add(attributes.blocks.saturating_mul(512));
            }
        }
        (count, bytes)
    }
}

impl Kernel {
    /// Starts to watch the limit, if there is one.
    pub(crate) fn watch_memory(self: &Arc<Self>) {
        let Some(limit) = self.options.memory else { return };
        let kernel = Arc::downgrade(self);
        let at_start = heap();
        let watch = move || watch(&kernel, limit, at_start);
        let thread = std::thread::Builder::new().name("memory".into()).stack_size(256 << 10);
        if let Err(error) = thread.spawn(watch) {
            tracing::error!(%error, "no thread watches the limit on memory");
        }
    }

    /// Memory that guests had in use when it was last looked at, in bytes.
    pub fn memory_used(&self) -> u64 {
        self.memory_used.load(Ordering::Relaxed)
    }

    /// Bytes that guests may still use, of `host_free` that the host has.
    pub fn memory_left(&self, host_free: u64) -> u64 {
        match self.options.memory {
            Some(limit) => limit.saturating_sub(self.memory_used()).min(host_free),
            None => host_free,
        }
    }

    /// Whether a process may map `bytes` of memory that it has not said it will not need (Linux:
    /// `__vm_enough_memory`, `OVERCOMMIT_GUESS`). The host answers for itself.
    pub(crate) fn may_commit(&self, bytes: u64) -> bool {
        self.options.memory.is_none_or(|limit| bytes <= limit)
    }

    /// Bytes that files in memory hold outside of any process.
    fn file_memory(&self) -> u64 {
        let own = self.options.file_memory.as_ref().map_or(0, |bytes| bytes());
        own.saturating_add(host::lent::bytes())
    }

    /// A thread of each process.
    fn leaders(&self) -> Vec<Arc<Task>> {
        let tasks = self.tasks.lock();
        tasks.groups.values().filter_map(|entry| entry.threads.first().cloned()).collect()
    }

    /// All processes; those that share memory once.
    fn processes(&self) -> Vec<Process> {
        let mut processes: Vec<Process> = Vec::new();
        for leader in self.leaders() {
            let (mm, name) = {
                let shared = leader.shared.lock();
                let Some(mm) = shared.mm.clone() else { continue };
                (mm, String::from_utf8_lossy(&shared.name).into_owned())
            };
            let files = leader.shared.lock().files.clone();
            if !processes.iter().any(|known| known.mm.shares_with(&mm)) {
                processes.push(Process { group: leader.group.clone(), mm, name, files, used: 0 });
            }
        }
        processes
    }
}

fn watch(kernel: &Weak<Kernel>, limit: u64, at_start: u64) {
    loop {
        let Some(kernel) = kernel.upgrade().filter(|kernel| !kernel.is_shutting_down()) else { return };
        let began = Instant::now();
        let mut processes = kernel.processes();
        let own = |heap: u64| heap.saturating_sub(at_start);
        let mut used = measure(&mut processes, rough_use) + own(heap()) + kernel.file_memory();
        if used > limit {
            // Forked processes share pages that count for each of them, and the heap holds what was freed: look more
            // closely.
            host::process::trim_heap();
            used = measure(&mut processes, exact_use) + own(heap()) + kernel.file_memory();
        }
        kernel.memory_used.store(used, Ordering::Relaxed);
        if used > limit {
            add_holdings(&mut processes, own(heap()));
            kill_largest(&kernel, &processes, limit);
            continue;
        }
        drop(processes);
        drop(kernel);
        let room = Duration::from_secs_f64((limit - used) as f64 / FILL_RATE as f64);
        let least = SHORTEST.max(began.elapsed() * SHARE);
        std::thread::sleep(room.clamp(least, LONGEST.max(least)));
    }
}

/// The kernel's own memory: what it keeps for guests, beside its files' memfds.
fn heap() -> u64 {
    add_fields("/proc/self/status", &["RssAnon", "VmSwap"]).unwrap_or(0)
}

fn measure(processes: &mut [Process], use_of: impl Fn(i32) -> u64) -> u64 {
    for process in processes.iter_mut() {
        process.used = use_of(process.mm.space.host_pid());
    }
    processes.iter().map(|process| process.used).sum()
}

/// Fields of a host file like `/proc/PID/status`, added up, in bytes.
fn add_fields(path: &str, fields: &[&str]) -> Option<u64> {
    let text = host::user::perhaps_as_guests(|| std::fs::read_to_string(path)).ok()?;
    let value = |line: &str| {
        let (name, rest) = line.split_once(':')?;
        fields.contains(&name).then(|| kib(rest)).flatten()
    };
    Some(text.lines().filter_map(value).sum())
}

/// A number of KiB, in bytes.
fn kib(text: &str) -> Option<u64> {
    Some(text.split_whitespace().next()?.parse::<u64>().ok()? * 1024)
}

fn rough_use(pid: i32) -> u64 {
    let fields = ["RssAnon", "VmSwap", "VmPTE"];
    add_fields(&format!("/proc/{pid}/status"), &fields).unwrap_or(0)
}

/// Whether a process still has memory or descriptors: a zombie has none.
fn is_there(pid: i32) -> bool {
    let read = || std::fs::read_to_string(format!("/proc/{pid}/status"));
    let text = host::user::perhaps_as_guests(read).unwrap_or_default();
    let state = text.lines().find_map(|line| line.strip_prefix("State:"));
    state.is_some_and(|state| !state.trim_start().starts_with(['Z', 'X']))
}

/// A process's own memory and page tables; pages that it shares with its forks count in parts.
fn exact_use(pid: i32) -> u64 {
    let pages = add_fields(&format!("/proc/{pid}/smaps_rollup"), &["Pss_Anon", "SwapPss"]);
    match pages {
        Some(pages) => pages + add_fields(&format!("/proc/{pid}/status"), &["VmPTE"]).unwrap_or(0),
        None => rough_use(pid),
    }
}

/// Adds to each process what it holds outside of its own memory. Of the kernel's heap, where pipes and sockets' buffers
/// lie, nobody knows whose which part is: it is held by descriptors, so it counts by their number.
fn add_holdings(processes: &mut [Process], heap: u64) {
    let open: Vec<(u64, u64)> = processes.iter().map(Process::open_files).collect();
    let all = open.iter().map(|(count, _)| count).sum::<u64>().max(1);
    let lent = holders::shares(processes);
    for ((process, (count, bytes)), lent) in processes.iter_mut().zip(open).zip(lent) {
        let of_heap = (u128::from(heap) * u128::from(count) / u128::from(all)).try_into().unwrap_or(heap);
        // A file without a name may be mapped, too.
        process.used = process.used.saturating_add(bytes.max(lent)).saturating_add(of_heap);
    }
}

/// Kills the process that Linux would (`oom_badness`), and sees it go.
fn kill_largest(kernel: &Kernel, processes: &[Process], limit: u64) {
    let badness = |process: &Process| {
        let adjustment = i64::from(process.group.oom_score_adj.load(Ordering::Relaxed));
        let exempt = adjustment <= -1000 || process.group.unkillable.load(Ordering::Relaxed);
        let share = i64::try_from(limit / PAGE_SIZE).unwrap_or(i64::MAX) / 1000;
        let pages = i64::try_from(process.used / PAGE_SIZE).unwrap_or(i64::MAX);
        (!exempt && process.used > 0).then(|| pages.saturating_add(adjustment.saturating_mul(share)))
    };
    let Some(victim) =
        processes.iter().filter(|process| badness(process).is_some()).max_by_key(|p| badness(p))
    else {
        // Nobody may be killed: look again later.
        std::thread::sleep(LONGEST);
        return;
    };
    let pid = victim.group.pid;
    let name = &victim.name;
    // One that is dying already takes a while to give back what it has.
    if victim.group.signals.lock().exit.is_none() {
        tracing::warn!("out of memory: killed process {pid} ({name}), which used {} KiB", victim.used / 1024);
    }
    kernel.tasks.begin_exit(&victim.group, GroupExit::Signal { signal: Signal::KILL, core: false });
    let deadline = Instant::now() + GRACE;
    while is_there(victim.mm.space.host_pid()) {
        std::thread::sleep(SHORTEST);
        if Instant::now() > deadline {
            victim.mm.space.kill();
            std::thread::sleep(GRACE);
            return;
        }
    }
}
