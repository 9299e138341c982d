//! The kernel: what all its tasks share. A value, passed down; there may be several in a process.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use abi::{Errno, PAGE_SIZE, RtSigframe, SiCode, SigSet, Siginfo, Signal};
use platform::{Platform, PlatformError};
use sync::{Mutex, SleepLock, SysError, SysResult, WaitQueue, Waiter, order};
use vfs::{Cred, FdTable, MountTable, SpecialFiles};

use crate::exec::ExecArguments;
use crate::fs::anon::AnonFiles;
use crate::fs::{Files, Fs};
use crate::host_events::HostEvents;
use crate::mm::{Mm, MmRecord};
use crate::profile::Profile;
use crate::resource::{Limits, Usage};
use crate::sched::CpuMask;
use crate::signal::Handlers;
use crate::socket::Sockets;
use crate::stats::{CountersMode, Stats};
use crate::syscall::trace::Trace;
use crate::task::threads::Threads;
use crate::task::{CurrentTask, GroupEntry, GroupExit, INIT_PID, Task, TaskShared, Tasks, ThreadGroup, fork};
use crate::time::queue::TimerQueue;
use crate::tty::Ptys;
use crate::users::UserCounts;

/// `uname -r`: the Linux that programs find themselves on.
pub const RELEASE: &str = "6.18.0-umlaut";
/// `uname -v`.
pub const VERSION: &str = concat!("#1 SMP umlaut ", env!("CARGO_PKG_VERSION"));

/// A random UUID in its usual form (version 4).
pub fn random_uuid() -> String {
    let mut bytes: [u8; 16] = crate::random::bytes();
    for (index, byte) in bytes.iter_mut().enumerate() {
        match index {
            6 => *byte = (*byte & 0x0f) | 0x40,
            8 => *byte = (*byte & 0x3f) | 0x80,
            _ => {}
        }
    }
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let part = |from: usize, to: usize| hex.get(from..to).unwrap_or("");
    [part(0, 8), part(8, 12), part(12, 16), part(16, 20), part(20, 32)].join("-")
}

/// What can be chosen when a kernel starts.
pub struct KernelOptions {
    pub hostname: String,
    /// Tasks at once, at most.
    pub max_tasks: usize,
    /// Bytes of memory that all guests may use; `None`: what the host has.
    pub memory: Option<u64>,
    /// Tells the bytes that files in memory hold outside of any process.
    pub file_memory: Option<Box<dyn Fn() -> u64 + Send + Sync>>,
    pub counters: CountersMode,
    /// Whether a task's kernel thread begins on its parent's CPU.
    pub placement: bool,
    /// Where a profile of all tasks is kept, if one is.
    pub profile: Option<Arc<Profile>>,
}

impl Default for KernelOptions {
    fn default() -> Self {
        KernelOptions {
            hostname: "umlaut".into(),
            max_tasks: 8192,
            memory: None,
            file_memory: None,
            counters: CountersMode::default(),
            placement: true,
            profile: None,
        }
    }
}

/// Now less the time that the host has been up, suspended or not (`CLOCK_BOOTTIME`).
fn host_boot() -> Instant {
    let up = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    let seconds = u64::try_from(up.tv_sec).unwrap_or(0);
    let up = std::time::Duration::new(seconds, u32::try_from(up.tv_nsec).unwrap_or(0));
    let now = Instant::now();
    now.checked_sub(up).unwrap_or(now)
}

/// A running kernel.
pub struct Kernel {
    pub platform: Box<dyn Platform>,
    pub options: KernelOptions,
    pub tasks: Tasks,
    /// Which drive them.
    pub(crate) threads: Arc<Threads>,
    pub mounts: Arc<MountTable>,
    pub special_files: Box<dyn SpecialFiles + Send + Sync>,
    pub stats: Stats,
    pub ptys: Ptys,
    /// Who waits for whose record lock.
    pub lock_waits: vfs::locks::Deadlocks,
    pub trace: Option<Trace>,
    /// Numbers and attributes of files without a path.
    pub anon: AnonFiles,
    /// What makes the files of `memfd_create`.
    pub(crate) memory_files: std::sync::OnceLock<Box<dyn crate::mm::memfd::MemoryFiles>>,
    /// Whether somebody outside continues umlaut when it stops.
    continued_outside: std::sync::OnceLock<fn() -> bool>,
    /// See [`Kernel::memory_used`].
    pub(crate) memory_used: std::sync::atomic::AtomicU64,
    /// How core files are named.
    pub core: crate::coredump::CoreSettings,
    /// What each user holds.
    pub users: Arc<UserCounts>,
    /// What sockets share: names, descriptors in flight.
    pub sockets: Arc<Sockets>,
    /// What host descriptors tell.
    pub host_events: Arc<HostEvents>,
    /// Everything that happens at a time.
    pub timers: Arc<TimerQueue>,
    /// Held while an epoll is put into another.
    pub(crate) epoll_nesting: SleepLock,
    /// When the host booted, so that times since then agree with its clocks.
    pub booted: Instant,
    /// The CPUs that umlaut may use.
    pub cpus: CpuMask,
    pub hostname: Mutex<order::Leaf, Vec<u8>>,
    boot_id: String,
    pub domainname: Mutex<order::Leaf, Vec<u8>>,
    /// The program that the user asked for, and how it ended.
    main_program: Mutex<order::Leaf, MainProgram>,
    main_events: WaitQueue,
    shutting_down: AtomicBool,
    told_of_failure: AtomicBool,
}

#[derive(Default)]
struct MainProgram {
    pid: i32,
    exit: Option<GroupExit>,
    stopped: Option<Signal>,
    started: bool,
    /// What came before it had started.
    early_signals: Vec<Signal>,
    early_end: bool,
}

/// What happened to the main program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MainEvent {
    Ended(GroupExit),
    /// It stopped, with nobody inside to continue it.
    Stopped(Signal),
}

/// The program to start with.
pub struct MainProgramSpec {
    pub exec: ExecArguments,
    pub cred: Cred,
    pub files: FdTable,
    pub fs: Arc<Fs>,
    /// Standard streams that are the console, pty 0.
    pub console: Vec<i32>,
    /// The directory to start in, seen from `fs`.
    pub workdir: Vec<u8>,
    pub limits: Limits,
    /// Signals that it starts with ignored, as exec keeps them.
    pub ignored: SigSet,
    /// Runs as pid 1 itself, instead of below the kernel's own init.
    pub as_init: bool,
}

impl Kernel {
    pub fn new(
        platform: Box<dyn Platform>,
        options: KernelOptions,
        mounts: Arc<MountTable>,
        special_files: Box<dyn SpecialFiles + Send + Sync>,
        trace: Option<Trace>,
    ) -> Arc<Kernel> {
        let hostname = options.hostname.clone().into_bytes();
        let stats = Stats::new(options.counters);
        Arc::new(Kernel {
            platform,
            options,
            tasks: Tasks::default(),
            threads: Arc::default(),
            mounts,
            special_files,
            stats,
            ptys: Ptys::default(),
            lock_waits: vfs::locks::Deadlocks::new(),
            trace,
            anon: AnonFiles::default(),
            memory_files: std::sync::OnceLock::new(),
            continued_outside: std::sync::OnceLock::new(),
            memory_used: std::sync::atomic::AtomicU64::new(0),
            core: crate::coredump::CoreSettings::default(),
            users: Arc::default(),
            sockets: Arc::default(),
            host_events: Arc::default(),
            timers: Arc::default(),
            epoll_nesting: SleepLock::new(),
            booted: host_boot(),
            cpus: CpuMask::of_host(),
            hostname: Mutex::new(hostname),
            boot_id: random_uuid(),
            domainname: Mutex::new(b"(none)".to_vec()),
            main_program: Mutex::default(),
            main_events: WaitQueue::new(),
            shutting_down: AtomicBool::new(false),
            told_of_failure: AtomicBool::new(false),
        })
    }

    /// Starts the main program. It has been executed (or could not be) when this returns.
    ///
    /// Errors are those of `execve`, or `EAGAIN` where the host gives no process.
    pub fn start(self: &Arc<Self>, spec: MainProgramSpec) -> SysResult<()> {
        self.watch_memory();
        let pid = self.enter_init(spec.as_init)?;
        self.main_program.lock().pid = pid;
        let process = self.platform.spawn().map_err(|error| self.platform_failed(&error))?;
        let group = ThreadGroup::new(pid, spec.limits);
        group.unkillable.store(spec.as_init, Ordering::Relaxed);
        group.live_in(self, &process.space);
        let shared = TaskShared {
            mm: Some(Mm::new(process.space, MmRecord::default())),
            files: Some(Files::new(spec.files)),
            fs: Some(spec.fs),
            handlers: Arc::new(Handlers::ignoring(spec.ignored)),
            cred: Arc::new(spec.cred),
            name: b"init".to_vec(),
        };
        let task = Task::new(self.clone(), pid, group.clone(), shared, SigSet::EMPTY);
        let parent = if spec.as_init { 0 } else { INIT_PID };
        let entry = GroupEntry { parent, exit_signal: Signal::CHLD.0, ..GroupEntry::new(group) };
        self.tasks.lock().add_group(entry, Some(task.clone()));
        let (tell, told) = std::sync::mpsc::sync_channel(1);
        let (exec, workdir, console) = (spec.exec, spec.workdir, spec.console);
        fork::spawn_kernel_thread(task, process.thread, move |current: &mut CurrentTask| {
            let result = crate::tty::use_as_console(current, &console)
                .and_then(|()| current.enter_directory(&workdir))
                .and_then(|()| current.exec_by_path(exec));
            if result.is_err() {
                current.exit_group(GroupExit::Code(127));
            }
            // The starter may have given up waiting only by ending.
            let _ = tell.send(result);
        });
        let result = told.recv().unwrap_or(Err(SysError::Errno(Errno::EAGAIN)));
        self.main_has_started();
        result
    }

    /// Gives it what came too early: signals reach the program, not what is about to become it.
    fn main_has_started(&self) {
        let (signals, end) = {
            let mut main = self.main_program.lock();
            main.started = true;
            (std::mem::take(&mut main.early_signals), main.early_end)
        };
        for signal in signals {
            self.signal_main(signal);
        }
        if end {
            self.end_main();
        }
    }

    /// Makes the kernel's own init, unless the main program is to be init itself; gives the main program's pid.
    fn enter_init(self: &Arc<Self>, as_init: bool) -> SysResult<i32> {
        let mut tasks = self.tasks.lock();
        let init = tasks.reserve_pid().ok_or(Errno::EAGAIN)?;
        if as_init {
            return Ok(init);
        }
        let group = ThreadGroup::new(init, Limits::default());
        group.unkillable.store(true, Ordering::Relaxed);
        let shared = TaskShared {
            mm: None,
            files: None,
            fs: None,
            handlers: Arc::new(Handlers::default()),
            cred: Arc::new(Cred::root()),
            name: b"init".to_vec(),
        };
        let stand_in = Some(Task::new(self.clone(), init, group.clone(), shared, SigSet::EMPTY));
        let entry = GroupEntry { parent: 0, name: b"init".to_vec(), stand_in, ..GroupEntry::new(group) };
        tasks.add_group(entry, None);
        tasks.reserve_pid().ok_or(Errno::EAGAIN.into())
    }

    /// Says where the files of `memfd_create` come from; the first word holds.
    pub fn set_memory_files(&self, files: Box<dyn crate::mm::memfd::MemoryFiles>) {
        let _ = self.memory_files.set(files);
    }

    pub fn main_pid(&self) -> i32 {
        self.main_program.lock().pid
    }

    /// Waits for the main program to end or stop. `None`: the waiter was interrupted.
    pub fn wait_for_main(&self, waiter: &Waiter) -> Option<MainEvent> {
        let event = waiter.wait(&[&self.main_events], None, || {
            let mut main = self.main_program.lock();
            let stopped = main.stopped.take().map(MainEvent::Stopped);
            main.exit.map(MainEvent::Ended).or(stopped)
        });
        event.ok()
    }

    /// Sends a signal to the main program, as from outside; before it runs, for when it does.
    pub fn signal_main(&self, signal: Signal) {
        {
            let mut main = self.main_program.lock();
            if !main.started {
                return main.early_signals.push(signal);
            }
        }
        let info = Siginfo::kill(signal, SiCode::USER, 0, 0);
        // It may have ended already.
        let _ = self.tasks.lock().send_to_group(self.main_pid(), info);
    }

    /// Sends a signal to the main program's process group, as a shell or a terminal outside does to a job.
    pub fn signal_job(&self, signal: Signal) {
        if !self.main_program.lock().started {
            return self.signal_main(signal);
        }
        let info = Siginfo::kill(signal, SiCode::KERNEL, 0, 0);
        // It may have ended already.
        let _ = self.tasks.lock().send_to_process_group(self.main_pid(), info);
    }

    /// Says how to find out whether somebody outside (a shell with job control) continues umlaut when it stops; the
    /// first word holds.
    pub fn set_continued_outside(&self, continued: fn() -> bool) {
        let _ = self.continued_outside.set(continued);
    }

    /// Whether this process group is the main program's, and a job of a shell's outside: it is not orphaned then, though
    /// nobody inside would continue it.
    pub(crate) fn is_job_outside(&self, pgid: i32) -> bool {
        pgid == self.main_pid() && self.continued_outside.get().is_some_and(|continued| continued())
    }

    /// Ends the main program at once, as by SIGTERM; one that does not run yet, when it does.
    pub fn end_main(&self) {
        {
            let mut main = self.main_program.lock();
            if !main.started {
                main.early_end = true;
                return;
            }
        }
        let tasks = self.tasks.lock();
        if let Some(entry) = tasks.groups.get(&self.main_pid()) {
            let how = GroupExit::Signal { signal: Signal::TERM, core: false };
            entry.group.begin_exit(how, &entry.threads);
        }
    }

    /// Ends all guests, as the end of init does, and waits until they have gone.
    pub fn shut_down(&self) {
        self.shutting_down.store(true, Ordering::SeqCst);
        let waiter = Waiter::new();
        let deadline = Instant::now() + std::time::Duration::from_secs(5);
        loop {
            let first = {
                let tasks = self.tasks.lock();
                let mut first = None;
                for entry in tasks.groups.values().filter(|entry| !entry.threads.is_empty()) {
                    let how = GroupExit::Signal { signal: Signal::KILL, core: false };
                    entry.group.begin_exit(how, &entry.threads);
                    first.get_or_insert_with(|| entry.group.clone());
                }
                first
            };
            let Some(group) = first.filter(|_| Instant::now() <= deadline) else {
                return self.forget_stand_ins();
            };
            let soon = Instant::now() + std::time::Duration::from_millis(50);
            let _ = waiter.wait(&[&group.events], Some(soon), || {
                self.tasks.threads(group.pid).is_empty().then_some(())
            });
        }
    }

    /// Tasks keep the kernel: those that stand in for ended groups and for init would keep it for ever.
    fn forget_stand_ins(&self) {
        let gone: Vec<_> =
            self.tasks.lock().groups.values_mut().filter_map(|entry| entry.stand_in.take()).collect();
        drop(gone);
    }

    pub fn is_shutting_down(&self) -> bool {
        self.shutting_down.load(Ordering::SeqCst)
    }

    /// A group has ended.
    pub(crate) fn group_ended(&self, pid: i32, exit: GroupExit) {
        let is_main = {
            let mut main = self.main_program.lock();
            let is_main = main.pid == pid && main.exit.is_none();
            if is_main {
                main.exit = Some(exit);
            }
            is_main
        };
        if is_main {
            self.main_events.wake(0);
        }
    }

    /// A group has stopped.
    pub(crate) fn group_stopped(&self, pid: i32, signal: Signal) {
        if self.main_pid() == pid {
            self.main_program.lock().stopped = Some(signal);
            self.main_events.wake(0);
        }
    }

    /// The host could not give what a guest needs: what the guest is told.
    pub(crate) fn platform_failed(&self, error: &PlatformError) -> SysError {
        // A fork bomb would fill the log.
        match self.told_of_failure.swap(true, Ordering::Relaxed) {
            false => tracing::warn!(%error, "the host gives no guest process or thread"),
            true => tracing::debug!(%error, "the host gives no guest process or thread"),
        }
        Errno::EAGAIN.into()
    }

    /// Bytes that the largest signal frame takes (`AT_MINSIGSTKSZ`).
    pub fn signal_frame_size(&self) -> u64 {
        let xsave = self.platform.capabilities().xsave_size as u64 + 4;
        let frame = size_of::<RtSigframe>() as u64;
        // Both are aligned downwards from wherever the stack happens to be.
        (xsave + RtSigframe::XSTATE_ALIGN - 1 + frame + 15 + 8).div_ceil(16) * 16
    }

    /// What exec does to timers: those of `timer_create` go.
    pub(crate) fn timers_after_exec(&self, task: &CurrentTask) {
        task.group().timers.delete_posix();
    }

    /// The kernel's own random identity.
    pub fn boot_id(&self) -> &str {
        &self.boot_id
    }

    /// What a group has used so far.
    pub fn group_usage(&self, group: &ThreadGroup) -> Usage {
        group.usage_of(&self.tasks.threads(group.pid))
    }

    /// A group's controlling terminal, as a device number, and the terminal's foreground group; `(0, -1)`: none.
    pub fn terminal_of(&self, pid: i32) -> (u64, i32) {
        let terminal = self.tasks.group(pid).and_then(|group| group.terminal.lock().clone());
        terminal.map_or((0, -1), |terminal| (terminal.dev(), terminal.session().1))
    }

    /// Memory that the machine has, in pages.
    pub fn total_pages(&self) -> u64 {
        let host = rustix::system::sysinfo();
        let bytes = host.totalram.saturating_mul(u64::from(host.mem_unit.max(1)));
        bytes.min(self.options.memory.unwrap_or(u64::MAX)) / PAGE_SIZE
    }
}

impl Drop for Kernel {
    fn drop(&mut self) {
        self.threads.close();
        self.timers.close();
        self.host_events.close();
    }
}
