//! A kernel on the mock platform, with a file system of each kind that needs no host files.

use std::io::Write;
use std::sync::Arc;
use std::time::{Duration, Instant};

use abi::OpenFlags;
use fs_devpts::DevPts;
use fs_overlay::Overlay;
use fs_proc::ProcFs;
use fs_tmpfs::{MemfdOptions, SelfFds, TmpFs, TmpFsOptions};
use kernel::exec::ExecArguments;
use kernel::fs::Fs;
use kernel::fs::devices::Devices;
use kernel::fs::special::KernelFiles;
use kernel::kernel::{Kernel, KernelOptions, MainProgramSpec};
use kernel::mm::memfd::MemoryFiles;
use kernel::resource::Limits;
use kernel::syscall::trace::Trace;
use kernel::tty::{PTS_MAJOR, TerminalDevices};
use platform::Event;
use platform::mock::Mock;
use sync::SysResult;
use vfs::ops::{self, OpenRequest};
use vfs::{
    Caller, Cred, FdTable, FileDescription, FileSystem, FsContext, FsPlace, KernelCaller, Mount, MountFlags,
    MountTable, NoSpecialFiles, Path, SliceSource,
};

/// How long a program may run before it is ended: one that waits does so for ever.
const RUN: Duration = Duration::from_millis(40);
/// How long its end may take.
const END: Duration = Duration::from_secs(30);

/// Limits of programs: RLIMIT_AS and RLIMIT_NPROC.
const LIMITS: [(usize, u64); 2] = [(9, 64 << 20), (6, 64)];

/// A kernel that waits for its program.
pub struct Machine {
    kernel: Arc<Kernel>,
    root: Path,
    /// Descriptors and threads of ours before it was made.
    before: (usize, usize),
}

impl Machine {
    /// With `UMLAUT_FUZZ_TRACE` in the environment the trace is shown.
    ///
    /// # Panics
    /// If the host gives no descriptors.
    pub fn new(traced: bool) -> Machine {
        if std::env::var_os("UMLAUT_FUZZ_TRACE").is_some() {
            return Machine::with_trace(Some(Box::new(std::io::stderr())));
        }
        Machine::with_trace(traced.then(|| Box::new(std::io::sink()) as Box<dyn Write + Send>))
    }

    /// One whose system calls are traced to there.
    ///
    /// # Panics
    /// As [`Machine::new`].
    pub fn with_trace(trace: Option<Box<dyn Write + Send>>) -> Machine {
        let before = (entries("/proc/self/fd"), kernel_threads());
        let names = Names::new();
        let (proc, sysfs, devpts) = names.fill().expect("file systems can be mounted");
        let trace = trace.map(|out| Trace::new(out, &[]).expect("all calls are known"));
        let kernel = Kernel::new(
            Box::new(Mock::new()),
            KernelOptions { max_tasks: 64, memory: None, ..KernelOptions::default() },
            names.mounts.clone(),
            special_files(),
            trace,
        );
        proc.attach(&kernel);
        sysfs.attach(&kernel);
        devpts.attach(&kernel);
        kernel.set_memory_files(Box::new(Memfds::new(names.self_fds.clone())));
        Machine { kernel, root: names.root.clone(), before }
    }

    /// Runs a program to its end, which is brought about soon.
    ///
    /// # Panics
    /// If the kernel failed on its behalf, its end does not come, or something of it is left.
    pub fn run(self, program: &[u8]) {
        self.run_for(RUN, program);
    }

    /// The same, ended after `limit`.
    ///
    /// # Panics
    /// As [`Machine::run`].
    pub fn run_for(self, limit: Duration, program: &[u8]) {
        self.store(program);
        // A program that cannot be started has ended.
        let _ = self.kernel.start(self.spec());
        let deadline = Instant::now() + limit;
        while Instant::now() < deadline && self.is_running() {
            std::thread::sleep(Duration::from_micros(100));
        }
        let deadline = Instant::now() + END;
        self.kernel.shut_down();
        while Instant::now() < deadline && self.has_tasks() {
            self.kernel.shut_down();
        }
        assert!(!self.has_tasks(), "tasks do not end");
        assert_eq!(self.kernel.stats.totals().event(Event::Oops), 0, "the kernel failed");
        let Machine { kernel, root, before } = self;
        let kept = Arc::downgrade(&kernel);
        drop((kernel, root));
        let all_gone = || {
            let now = (entries("/proc/self/fd"), kernel_threads());
            kept.strong_count() == 0 && now.0 <= before.0 && now.1 <= before.1
        };
        // Once is enough: a thread that was begun late gets its name only now, and ends at once.
        let mut gone = all_gone();
        while Instant::now() < deadline && !gone {
            std::thread::sleep(Duration::from_micros(100));
            gone = all_gone();
        }
        let descriptors = std::fs::read_dir("/proc/self/fd").map(|all| {
            all.flatten().filter_map(|entry| std::fs::read_link(entry.path()).ok()).collect::<Vec<_>>()
        });
        let tasks = kept.upgrade().map(|kernel| {
            kernel
                .tasks
                .lock()
                .tasks
                .iter()
                .map(|(tid, task)| (*tid, Arc::strong_count(task)))
                .collect::<Vec<_>>()
        });
        assert!(
            gone,
            "left behind: tasks {tasks:?}, {} uses of the kernel; descriptors and threads were {before:?}, now {descriptors:?} and {}",
            kept.strong_count(),
            kernel_threads()
        );
    }

    fn is_running(&self) -> bool {
        !self.kernel.tasks.threads(self.kernel.main_pid()).is_empty()
    }

    fn has_tasks(&self) -> bool {
        self.kernel.tasks.lock().groups.values().any(|entry| !entry.threads.is_empty())
    }

    fn store(&self, program: &[u8]) {
        let caller = KernelCaller::new();
        let files = FdTable::new();
        let ctx = context(&self.kernel.mounts, &self.root, &files, &caller);
        let request =
            OpenRequest::open(OpenFlags::CREAT | OpenFlags::WRONLY, 0o755).expect("flags are right");
        let file = ops::open(&ctx, abi::AT_FDCWD, b"/tmp/program", &request).expect("tmpfs takes files");
        let mut source = SliceSource { bytes: program, taken: 0 };
        vfs::rw::write(&file, &caller, &mut source).expect("tmpfs takes bytes");
        ops::fchmod(&file, 0o755, &caller).expect("tmpfs takes modes");
    }

    fn spec(&self) -> MainProgramSpec {
        let mut limits = Limits::default();
        for (which, limit) in LIMITS {
            limits.set(which, (limit, limit));
        }
        let caller = KernelCaller::new();
        let files = FdTable::new();
        let ctx = context(&self.kernel.mounts, &self.root, &files, &caller);
        let request = OpenRequest::open(OpenFlags::CREAT | OpenFlags::RDWR, 0o644).expect("flags are right");
        let standard = FdTable::new();
        for name in ["input", "output", "errors"] {
            let file = ops::open(&ctx, abi::AT_FDCWD, format!("/tmp/{name}").as_bytes(), &request);
            standard.install(file.expect("tmpfs takes files"), 16, false).expect("there is room");
        }
        MainProgramSpec {
            exec: ExecArguments {
                dirfd: abi::AT_FDCWD,
                path: b"/tmp/program".to_vec(),
                empty_path: false,
                no_follow: false,
                arguments: vec![b"program".to_vec()],
                environment: vec![b"A=b".to_vec()],
            },
            cred: Cred::user(0, 0, &[]),
            files: standard,
            fs: Fs::new(self.root.clone(), self.root.clone(), 0o22),
            workdir: b"/tmp".to_vec(),
            console: Vec::new(),
            limits,
            ignored: abi::SigSet::EMPTY,
            as_init: false,
        }
    }
}

/// How many entries a directory has, itself opened for it included.
pub(crate) fn entries(dir: &str) -> usize {
    std::fs::read_dir(dir).map_or(0, Iterator::count)
}

/// Threads of kernels, by their names: other tests have threads too.
fn kernel_threads() -> usize {
    let Ok(tasks) = std::fs::read_dir("/proc/self/task") else { return 0 };
    let names = tasks.flatten().filter_map(|task| std::fs::read_to_string(task.path().join("comm")).ok());
    names.filter(|name| ["task ", "timers", "host events"].iter().any(|ours| name.starts_with(ours))).count()
}

fn context<'a>(
    mounts: &'a MountTable,
    root: &Path,
    files: &'a FdTable,
    caller: &'a KernelCaller,
) -> FsContext<'a> {
    FsContext::new(mounts, FsPlace::at_root(root.clone(), 0), files, caller, &NoSpecialFiles)
}

fn special_files() -> Box<KernelFiles> {
    let mut devices = Devices::with_memory_devices();
    let terminals = Arc::new(TerminalDevices);
    devices.register(abi::FileType::CHR, 5, 0..=2, terminals.clone());
    devices.register(abi::FileType::CHR, PTS_MAJOR, 0..=(1 << 20) - 1, terminals);
    Box::new(KernelFiles::new(devices))
}

struct Memfds {
    fs: Arc<TmpFs>,
    root: Path,
}

impl Memfds {
    fn new(self_fds: SelfFds) -> Memfds {
        let fs = small_tmpfs(self_fds);
        let mounted: Arc<dyn FileSystem> = fs.clone();
        let root = Mount::internal(&mounted, "tmpfs");
        Memfds { fs, root }
    }
}

impl MemoryFiles for Memfds {
    fn create(&self, name: &[u8], flags: u32, caller: &dyn Caller) -> SysResult<Arc<FileDescription>> {
        fs_tmpfs::memfd(&self.fs, &self.root, MemfdOptions { name, flags }, caller)
    }
}

/// One that a program cannot fill our memory with.
pub(crate) fn small_tmpfs(self_fds: SelfFds) -> Arc<TmpFs> {
    let options = TmpFsOptions { size: 8 << 20, inodes: 512, mode: 0o755, ..TmpFsOptions::default() };
    TmpFs::new(vfs::anonymous_dev(), options, self_fds)
}

/// The name space: tmpfs as the root, an overlay, and the kernel's own.
pub(crate) struct Names {
    pub(crate) mounts: Arc<MountTable>,
    pub(crate) root: Path,
    self_fds: SelfFds,
}

impl Names {
    pub(crate) fn new() -> Names {
        let self_fds = SelfFds::open().expect("/proc/self/fd can be opened");
        let fs: Arc<dyn FileSystem> = small_tmpfs(self_fds.clone());
        let mounts = MountTable::new(&fs, "root", MountFlags::empty());
        let root = mounts.root().expect("the table has a root");
        Names { mounts, root, self_fds }
    }

    /// What directories, links and files there are, by calls of `make`.
    pub(crate) fn with<T>(&self, make: impl FnOnce(&FsContext<'_>) -> SysResult<T>) -> SysResult<T> {
        let (caller, files) = (KernelCaller::new(), FdTable::new());
        make(&context(&self.mounts, &self.root, &files, &caller))
    }

    pub(crate) fn mount(&self, fs: &Arc<dyn FileSystem>, path: &str) -> SysResult<()> {
        self.with(|ctx| match ops::mkdir(ctx, abi::AT_FDCWD, path.as_bytes(), 0o755) {
            Err(error) if error.errno() != Some(abi::Errno::EEXIST) => Err(error),
            _ => Ok(()),
        })?;
        let at = self.with(|ctx| ctx.lookup_path(abi::AT_FDCWD, path.as_bytes(), vfs::Lookup::FOLLOW))?;
        self.mounts.mount(fs, path, MountFlags::empty(), &at)?;
        Ok(())
    }

    /// An overlay with something in its lower layer.
    pub(crate) fn overlay(&self) -> SysResult<Arc<dyn FileSystem>> {
        let lower = Names::new();
        lower.with(|ctx| {
            ops::mkdir(ctx, abi::AT_FDCWD, b"/dir", 0o755)?;
            let regular = abi::FileMode::new(abi::FileType::REG, 0o644);
            ops::mknod(ctx, abi::AT_FDCWD, b"/lower", regular, 0)?;
            ops::mknod(ctx, abi::AT_FDCWD, b"/dir/below", regular, 0)?;
            ops::symlink(ctx, b"../lower", abi::AT_FDCWD, b"/dir/link")
        })?;
        let upper = small_tmpfs(self.self_fds.clone());
        Ok(Overlay::new(&[lower.root.inode().clone()], Some(upper), String::new())?)
    }

    fn fill(&self) -> SysResult<(Arc<ProcFs>, Arc<ProcFs>, Arc<DevPts>)> {
        let (proc, sysfs, devpts) = (ProcFs::new(), ProcFs::sysfs(), DevPts::new());
        self.mount(&(small_tmpfs(self.self_fds.clone()) as Arc<dyn FileSystem>), "/tmp")?;
        self.mount(&self.overlay()?, "/overlay")?;
        self.mount(&(proc.clone() as Arc<dyn FileSystem>), "/proc")?;
        self.mount(&(sysfs.clone() as Arc<dyn FileSystem>), "/sys")?;
        self.mount(&(small_tmpfs(self.self_fds.clone()) as Arc<dyn FileSystem>), "/dev")?;
        self.mount(&(devpts.clone() as Arc<dyn FileSystem>), "/dev/pts")?;
        self.with(|ctx| {
            for (name, major, minor) in [("null", 1, 3), ("zero", 1, 5), ("full", 1, 7), ("tty", 5, 0)] {
                let mode = abi::FileMode::new(abi::FileType::CHR, 0o666);
                let path = format!("/dev/{name}");
                ops::mknod(ctx, abi::AT_FDCWD, path.as_bytes(), mode, abi::makedev(major, minor))?;
            }
            ops::symlink(ctx, b"pts/ptmx", abi::AT_FDCWD, b"/dev/ptmx")
        })?;
        Ok((proc, sysfs, devpts))
    }
}
