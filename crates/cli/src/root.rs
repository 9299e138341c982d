//! The name space that guests see (INVARIANTS 11).
//!
//! Without --root: the system part of the host's `/` below a throwaway layer, the current directory likewise, and
//! nothing that is secret or somebody's own. With --root: that directory, read-only, writable, or below a
//! throwaway layer. proc, dev and their like are the kernel's own.

use std::io::IsTerminal;
use std::path::Path as HostPath;
use std::sync::Arc;

use abi::{Errno, OpenFlags};
use anyhow::{Context, anyhow, bail};
use fs_devpts::DevPts;
use fs_host::default_root::{Environment, Layer, Reach, RootPlan};
use fs_host::{HostFs, HostFsOptions, OwnerMap};
use fs_overlay::Overlay;
use fs_proc::ProcFs;
use fs_tmpfs::{HostPages, SelfFds, TmpFs, TmpFsOptions};
use sync::SysError;
use vfs::ops::{self, OpenRequest};
use vfs::{
    FdTable, FileSystem, FsContext, FsPlace, KernelCaller, MountFlags, MountTable, NoSpecialFiles, Path,
    SliceSink,
};

use crate::confine::Shown;
use crate::memory_files::Memfds;
use crate::options::RunOptions;
use crate::user::User;

/// What is mounted, and where a program begins.
pub(crate) struct NameSpace {
    pub mounts: Arc<MountTable>,
    pub root: Path,
    /// Who the main program runs as.
    pub user: User,
    /// The directory to start in, unless --workdir says otherwise.
    pub workdir: Vec<u8>,
    /// Shows a kernel once it is attached.
    pub proc: Arc<ProcFs>,
    pub sysfs: Arc<ProcFs>,
    /// Shows a kernel's ptys once it is attached.
    pub devpts: Arc<DevPts>,
    /// What makes the files of `memfd_create`.
    pub memfds: Memfds,
    /// The parts of the host's tree that are shown: nothing else of it need ever be opened.
    pub shown: Vec<Shown>,
    /// Files of any owner and mode may be among them; else there are only those that everybody may read.
    pub shows_private: bool,
    memory: MemoryFsKind,
}

impl NameSpace {
    /// Tells the bytes that files in memory hold outside of any process.
    pub(crate) fn file_memory(&self) -> impl Fn() -> u64 + Send + Sync + 'static {
        let pages = self.memory.host_pages.clone();
        move || pages.bytes()
    }
}

/// How file systems in memory are made.
#[derive(Clone)]
struct MemoryFsKind {
    self_fds: SelfFds,
    host_pages: HostPages,
    /// Bytes of memory that there are.
    total: u64,
}

impl MemoryFsKind {
    /// Half of the memory that there is, and an inode for each two pages: what Linux gives a tmpfs.
    fn options(&self, mode: u32) -> TmpFsOptions {
        TmpFsOptions {
            mode,
            size: self.total / 2,
            inodes: self.total / abi::PAGE_SIZE / 2,
            default_limits: true,
            host_pages: self.host_pages.clone(),
            ..TmpFsOptions::default()
        }
    }

    fn make(&self, options: TmpFsOptions) -> Arc<TmpFs> {
        TmpFs::new(vfs::anonymous_dev(), options, self.self_fds.clone())
    }
}

/// Devices that are there: name, major and minor number, mode.
const DEVICES: [(&str, u32, u32, u32); 7] = [
    ("null", 1, 3, 0o666),
    ("zero", 1, 5, 0o666),
    ("full", 1, 7, 0o666),
    ("random", 1, 8, 0o666),
    ("urandom", 1, 9, 0o666),
    ("tty", 5, 0, 0o666),
    ("console", 5, 1, 0o600),
];

/// Sets up the name space, before any task is there.
struct Setup {
    mounts: Arc<MountTable>,
    root: Path,
    caller: KernelCaller,
    files: FdTable,
    memory: MemoryFsKind,
}

/// Opens what the options name on the host and mounts it.
pub(crate) fn compose(options: &RunOptions) -> anyhow::Result<NameSpace> {
    let self_fds = SelfFds::open().context("opening /proc/self/fd")?;
    let total = host_memory().min(options.memory.unwrap_or(u64::MAX));
    let memory = MemoryFsKind { self_fds, host_pages: HostPages::default(), total };
    // Without --root, its /etc is the host's.
    let on_host = match &options.root {
        Some(_) => None,
        None => Some(User::read(&options.user, |path| std::fs::read(path).unwrap_or_default())?),
    };
    let plan =
        on_host.as_ref().map(|user| RootPlan::new(&Environment::of_process(user.ids()), reach(options)));
    let (fs, source) = match (&options.root, &plan) {
        (Some(dir), _) => named_root(options, dir, &memory)?,
        (None, Some(plan)) => (default_root(plan, &memory)?, "umlaut".into()),
        (None, None) => bail!("there is no root"),
    };
    let flags = if options.ro { MountFlags::RDONLY } else { MountFlags::empty() };
    let mounts = MountTable::new(&fs, &source, flags);
    let root = mounts.root().ok_or_else(|| anyhow!("the name space has no root"))?;
    let setup = Setup {
        mounts: mounts.clone(),
        root: root.clone(),
        caller: KernelCaller::new(),
        files: FdTable::new(),
        memory,
    };
    let user = match on_host {
        Some(user) => user,
        None => User::read(&options.user, |path| setup.read_file(path))?,
    };
    let (proc, sysfs, devpts) = setup.mount_own_file_systems()?;
    let mut workdir = b"/".to_vec();
    if let Some(plan) = &plan {
        for layer in plan.layers.iter().skip(1) {
            if let Err(error) = setup.mount_layer(layer, flags) {
                // The program may not need it.
                let text = crate::explain::shortened(&format!("{error:#}"));
                complain!("umlaut: {text}; it shows empty");
            }
        }
        workdir = setup.workdir(plan);
        report(plan);
    }
    for bind in &options.bind {
        setup.bind(bind, user.ids())?;
    }
    for place in &options.tmpfs {
        setup.tmpfs(place, "tmpfs", 0o1777)?;
    }
    if let Some(given) = &options.workdir {
        setup.check_workdir(given)?;
    } else if !setup.is_directory(&workdir) {
        let hidden = String::from_utf8_lossy(&workdir);
        complain!("umlaut: --tmpfs or --bind hides {}: starting in /", crate::explain::shortened(&hidden));
        workdir = b"/".to_vec();
    }
    // Without limits, as Linux's own.
    let memfds = Memfds::new(
        TmpFsOptions { host_pages: setup.memory.host_pages.clone(), ..TmpFsOptions::default() },
        setup.memory.self_fds.clone(),
    );
    let shown = shown(options, plan.as_ref());
    // The first layer is the system's.
    let shows_private = options.host_all
        || !options.bind.is_empty()
        || plan.as_ref().is_none_or(|plan| plan.layers.len() > 1);
    let memory = setup.memory;
    Ok(NameSpace { mounts, root, user, workdir, proc, sysfs, devpts, memfds, shown, shows_private, memory })
}

/// The host's paths that have been opened.
fn shown(options: &RunOptions, plan: Option<&RootPlan>) -> Vec<Shown> {
    let reads =
        plan.iter().flat_map(|plan| &plan.reads).map(|path| Shown { path: path.clone(), writable: false });
    let root = options.root.iter().map(|path| Shown { path: path.clone(), writable: options.rw });
    let binds = options.bind.iter().filter_map(|text| {
        let (source, _, read_only) = parts_of_bind(text)?;
        Some(Shown { path: source.into(), writable: !read_only })
    });
    reads.chain(root).chain(binds).collect()
}

/// Source and target of `SRC:DST[:ro]`, and whether it is read-only.
fn parts_of_bind(text: &str) -> Option<(&str, &str, bool)> {
    let (rest, read_only) = text.strip_suffix(":ro").map_or((text, false), |rest| (rest, true));
    let (source, target) = rest.split_once(':')?;
    (!source.is_empty() && target.starts_with('/')).then_some((source, target, read_only))
}

fn reach(options: &RunOptions) -> Reach {
    match (options.host_all, &options.home) {
        (true, _) => Reach::All,
        (false, Some(_)) => Reach::Home,
        (false, None) => Reach::System,
    }
}

fn report(plan: &RootPlan) {
    for warning in &plan.warnings {
        complain!("umlaut: {warning}");
    }
    if let Some(hint) = plan.hint.as_ref().filter(|_| std::io::stderr().is_terminal()) {
        complain!("umlaut: {hint}");
    }
}

/// `--root DIR`, as it is or below a throwaway layer.
fn named_root(
    options: &RunOptions,
    dir: &HostPath,
    memory: &MemoryFsKind,
) -> anyhow::Result<(Arc<dyn FileSystem>, String)> {
    let shown = dir.display();
    std::fs::read_dir(dir).with_context(|| format!("cannot use {shown} as the root (reading it)"))?;
    let host: Arc<dyn FileSystem> =
        HostFs::open(dir, HostFsOptions::named(options.rw, OwnerMap::own_as_root()))
            .map_err(|error| anyhow!("cannot use {} as the root: {error}", dir.display()))?;
    if options.rw || options.ro {
        return Ok((host, dir.display().to_string()));
    }
    Ok((throwaway(&host, memory)?, "umlaut".into()))
}

/// The system part of `/`, with what the plan adds.
fn default_root(plan: &RootPlan, memory: &MemoryFsKind) -> anyhow::Result<Arc<dyn FileSystem>> {
    let layer = plan.layers.first().ok_or_else(|| anyhow!("the plan has no root"))?;
    let fs = throwaway(&open_layer(layer)?, memory)?;
    plan.furnish(&fs.root()).map_err(|error| anyhow!("furnishing the root: {error}"))?;
    Ok(fs)
}

fn open_layer(layer: &Layer) -> anyhow::Result<Arc<dyn FileSystem>> {
    let host = HostFs::open(&layer.host, layer.options.clone());
    Ok(host.map_err(|error| anyhow!("cannot show {}: {error}", layer.host.display()))?)
}

/// A layer in memory over a file system: changes go there.
fn throwaway(lower: &Arc<dyn FileSystem>, memory: &MemoryFsKind) -> anyhow::Result<Arc<dyn FileSystem>> {
    let upper = memory.make(memory.options(0o755));
    let overlay = Overlay::new(&[lower.root()], Some(upper), String::new());
    Ok(overlay.map_err(|error| anyhow!("laying a throwaway layer over the root: {error}"))?)
}

/// In bytes.
fn host_memory() -> u64 {
    let info = rustix::system::sysinfo();
    let unit = u64::from(info.mem_unit.max(1));
    info.totalram.saturating_mul(unit)
}

impl Setup {
    fn context(&self) -> FsContext<'_> {
        FsContext::new(
            &self.mounts,
            FsPlace::at_root(self.root.clone(), 0),
            &self.files,
            &self.caller,
            &NoSpecialFiles,
        )
    }

    /// Makes a directory unless it is there. A root that cannot be written to has to bring it along.
    fn make_directory(&self, path: &str, mode: u32) -> anyhow::Result<()> {
        match ops::mkdir(&self.context(), abi::AT_FDCWD, path.as_bytes(), mode).map_err(SysError::errno) {
            Ok(()) => {
                ops::chmod(&self.context(), abi::AT_FDCWD, path.as_bytes(), mode, abi::AtFlags::empty())
                    .map_err(|error| anyhow!("{path}: {error}"))?;
                Ok(())
            }
            Err(Some(Errno::EEXIST | Errno::EROFS)) => Ok(()),
            Err(error) => bail!("cannot make {path} in the root: {error:?}"),
        }
    }

    /// A directory and all above it.
    fn make_directories(&self, path: &str) -> anyhow::Result<()> {
        for (index, _) in path.match_indices('/').filter(|(index, _)| *index > 0) {
            self.make_directory(&path[..index], 0o755)?;
        }
        self.make_directory(path, 0o755)
    }

    /// An empty file to mount one on, unless there is something.
    fn make_file(&self, path: &str) -> anyhow::Result<()> {
        if let Some((dir, _)) = path.rsplit_once('/').filter(|(dir, _)| !dir.is_empty()) {
            self.make_directories(dir)?;
        }
        let mode = abi::FileMode::new(abi::FileType::REG, 0o644);
        match ops::mknod(&self.context(), abi::AT_FDCWD, path.as_bytes(), mode, 0).map_err(SysError::errno) {
            Ok(()) | Err(Some(Errno::EEXIST | Errno::EROFS)) => Ok(()),
            Err(error) => bail!("cannot make {path} in the root: {error:?}"),
        }
    }

    /// A file of the root, as far as it can be read, and no more than names of users take.
    fn read_file(&self, path: &str) -> Vec<u8> {
        const MOST: usize = 16 << 20;
        let mut bytes = Vec::new();
        let request = OpenRequest::open(OpenFlags::RDONLY | OpenFlags::NONBLOCK, 0);
        let Ok(file) =
            request.and_then(|request| ops::open(&self.context(), abi::AT_FDCWD, path.as_bytes(), &request))
        else {
            return bytes;
        };
        let mut chunk = vec![0; 64 << 10];
        while bytes.len() < MOST {
            let mut sink = SliceSink { bytes: &mut chunk, filled: 0 };
            match vfs::rw::read(&file, &self.caller, &mut sink) {
                Ok(count) if count > 0 => bytes.extend_from_slice(chunk.get(..count).unwrap_or_default()),
                _ => break,
            }
        }
        bytes
    }

    fn mount(
        &self,
        fs: &Arc<dyn FileSystem>,
        source: &str,
        flags: MountFlags,
        path: &[u8],
    ) -> anyhow::Result<()> {
        let place = self
            .context()
            .lookup_path(abi::AT_FDCWD, path, vfs::Lookup::FOLLOW)
            .and_then(|at| self.mounts.mount(fs, source, flags, &at));
        let path = String::from_utf8_lossy(path);
        place.map_err(|error| anyhow!("cannot mount {source} on {path}: {error}"))?;
        Ok(())
    }

    fn tmpfs(&self, path: &str, source: &str, mode: u32) -> anyhow::Result<()> {
        self.make_directories(path)?;
        let fs: Arc<dyn FileSystem> = self.memory.make(self.memory.options(mode));
        self.mount(&fs, source, MountFlags::NOSUID | MountFlags::NODEV, path.as_bytes())
    }

    /// proc, dev and their like.
    fn mount_own_file_systems(&self) -> anyhow::Result<(Arc<ProcFs>, Arc<ProcFs>, Arc<DevPts>)> {
        for dir in ["/proc", "/sys", "/dev"] {
            self.make_directory(dir, 0o755)?;
        }
        let restricted = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
        let proc = ProcFs::new();
        let proc_fs: Arc<dyn FileSystem> = proc.clone();
        self.mount(&proc_fs, "proc", restricted, b"/proc")?;
        let sysfs = ProcFs::sysfs();
        let sys_fs: Arc<dyn FileSystem> = sysfs.clone();
        self.mount(&sys_fs, "sysfs", restricted | MountFlags::RDONLY, b"/sys")?;
        let dev_options = TmpFsOptions { kind: "devtmpfs", ..self.memory.options(0o755) };
        let dev: Arc<dyn FileSystem> = self.memory.make(dev_options);
        self.mount(&dev, "udev", MountFlags::NOSUID, b"/dev")?;
        for (name, major, minor, mode) in DEVICES {
            let mode = abi::FileMode::new(abi::FileType::CHR, mode);
            let path = format!("/dev/{name}");
            ops::mknod(&self.context(), abi::AT_FDCWD, path.as_bytes(), mode, abi::makedev(major, minor))
                .map_err(|error| anyhow!("cannot make {path}: {error}"))?;
        }
        for (target, name) in [
            ("/proc/self/fd", "/dev/fd"),
            ("/proc/self/fd/0", "/dev/stdin"),
            ("/proc/self/fd/1", "/dev/stdout"),
            ("/proc/self/fd/2", "/dev/stderr"),
            ("pts/ptmx", "/dev/ptmx"),
        ] {
            ops::symlink(&self.context(), target.as_bytes(), abi::AT_FDCWD, name.as_bytes())
                .map_err(|error| anyhow!("cannot make {name}: {error}"))?;
        }
        self.tmpfs("/dev/shm", "tmpfs", 0o1777)?;
        self.make_directory("/dev/pts", 0o755)?;
        let devpts = DevPts::new();
        let devpts_fs: Arc<dyn FileSystem> = devpts.clone();
        self.mount(&devpts_fs, "devpts", MountFlags::NOSUID | MountFlags::NOEXEC, b"/dev/pts")?;
        Ok((proc, sysfs, devpts))
    }

    /// Shows a layer of the plan, whose directory the plan made.
    fn mount_layer(&self, layer: &Layer, flags: MountFlags) -> anyhow::Result<()> {
        let fs = throwaway(&open_layer(layer)?, &self.memory)?;
        self.mount(&fs, "umlaut", flags | MountFlags::NODEV, layer.at.as_os_str().as_encoded_bytes())
    }

    fn check_workdir(&self, path: &str) -> anyhow::Result<()> {
        match self.context().lookup_path(abi::AT_FDCWD, path.as_bytes(), vfs::Lookup::FOLLOW) {
            Ok(at) if at.inode().is_dir() => Ok(()),
            Ok(_) => bail!("--workdir {path}: not a directory inside the guest"),
            Err(error) => {
                bail!("--workdir {path}: {error} (inside the guest: --bind shows a directory of the host)")
            }
        }
    }

    /// The plan's directory to start in, if guests can get there.
    fn workdir(&self, plan: &RootPlan) -> Vec<u8> {
        let path = plan.workdir.as_os_str().as_encoded_bytes();
        if self.is_directory(path) { path.to_vec() } else { b"/".to_vec() }
    }

    fn is_directory(&self, path: &[u8]) -> bool {
        let at = self.context().lookup_path(abi::AT_FDCWD, path, vfs::Lookup::FOLLOW);
        at.is_ok_and(|at| at.inode().is_dir())
    }

    /// `SRC:DST[:ro]`. The caller's own files show as the main program's.
    fn bind(&self, text: &str, owner: (u32, u32)) -> anyhow::Result<()> {
        let (source, target, read_only) = parts_of_bind(text)
            .ok_or_else(|| anyhow!("--bind {text}: SRC:DST[:ro] is wanted, DST an absolute path"))?;
        let options = HostFsOptions::named(!read_only, OwnerMap::own_as(owner));
        let host: Arc<dyn FileSystem> = HostFs::open(HostPath::new(source), options)
            .map_err(|error| anyhow!("--bind {source}: {error}"))?;
        if host.root().is_dir() {
            self.make_directories(target)?;
        } else {
            self.make_file(target)?;
        }
        let flags = if read_only { MountFlags::RDONLY } else { MountFlags::empty() };
        self.mount(&host, source, flags | MountFlags::NODEV, target.as_bytes())
    }
}
