//! The name space that guests see (INVARIANTS 11).
//!
//! Without --root: the system part of the host's `/` below a throwaway layer, the current directory likewise, and
//! nothing that is secret or somebody's own. With --root: that directory, read-only, writable, or below a
//! throwaway layer. proc, dev and their like are the kernel's own.

use std::path::{Path as HostPath, PathBuf};
use std::sync::Arc;

use abi::Errno;
use anyhow::{Context, anyhow, bail};
use fs_host::{HostFs, HostFsOptions, OwnerMap, Records, Submounts, View};
use fs_overlay::Overlay;
use fs_proc::ProcFs;
use fs_tmpfs::{SelfFds, TmpFs, TmpFsOptions};
use sync::{SysError, SysResult, Waiter};
use vfs::ops;
use vfs::{Caller, Cred, FdTable, FileSystem, FsContext, MountFlags, MountTable, NoSpecialFiles, Path};

use crate::options::RunOptions;

/// What is mounted, and where a program begins.
pub(crate) struct NameSpace {
    pub mounts: Arc<MountTable>,
    pub root: Path,
    /// The directory to start in, unless --workdir says otherwise.
    pub workdir: Vec<u8>,
    /// Shows a kernel once it is attached.
    pub proc: Arc<ProcFs>,
}

/// Directories of the host's that show in the default root.
const SYSTEM: [&str; 10] =
    ["usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32", "opt", "var/lib/dpkg", "var/lib/rpm"];
/// What of /etc is secret.
const SECRETS: [&str; 17] = [
    "shadow*",
    "gshadow*",
    "sudoers*",
    "ssh/*_key",
    "ssl/private",
    "NetworkManager",
    "wireguard",
    "krb5.keytab",
    "machine-id",
    "security/opasswd",
    "pki/private",
    "ppp",
    "ipsec.*",
    "openvpn",
    "docker",
    "polkit-1",
    "audit",
];
/// Directories that are there, empty.
const EMPTY: [(&str, u32); 13] = [
    ("/tmp", 0o1777),
    ("/var", 0o755),
    ("/var/tmp", 0o1777),
    ("/var/lib", 0o755),
    ("/var/cache", 0o755),
    ("/var/log", 0o755),
    ("/run", 0o755),
    ("/home", 0o755),
    ("/root", 0o700),
    ("/srv", 0o755),
    ("/mnt", 0o755),
    ("/media", 0o755),
    ("/boot", 0o755),
];

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
    caller: SetupCaller,
    files: FdTable,
    self_fds: SelfFds,
}

/// Opens what the options name on the host and mounts it.
pub(crate) fn compose(options: &RunOptions) -> anyhow::Result<NameSpace> {
    let self_fds = SelfFds::open().context("opening /proc/self/fd")?;
    let (fs, source) = root_fs(options, &self_fds)?;
    let flags = if options.ro { MountFlags::RDONLY } else { MountFlags::empty() };
    let mounts = MountTable::new(&fs, &source, flags);
    let root = mounts.root().ok_or_else(|| anyhow!("the name space has no root"))?;
    let caller = SetupCaller { waiter: Waiter::new(), cred: Cred::root() };
    let setup = Setup { mounts: mounts.clone(), root: root.clone(), caller, files: FdTable::new(), self_fds };
    let proc = setup.mount_own_file_systems()?;
    let mut workdir = b"/".to_vec();
    if options.root.is_none() {
        setup.fill_default_root()?;
        if let Some(dir) = setup.show_current_directory(options)? {
            workdir = dir;
        }
        if options.home.is_some() {
            setup.show_home()?;
        }
    }
    for bind in &options.bind {
        setup.bind(bind)?;
    }
    for place in &options.tmpfs {
        setup.tmpfs(place, "tmpfs", 0o1777)?;
    }
    Ok(NameSpace { mounts, root, workdir, proc })
}

fn root_fs(options: &RunOptions, self_fds: &SelfFds) -> anyhow::Result<(Arc<dyn FileSystem>, String)> {
    let (dir, host_options) = match &options.root {
        Some(dir) => (dir.clone(), HostFsOptions::named(options.rw, OwnerMap::own_as_root())),
        None => (PathBuf::from("/"), default_root_options(options)),
    };
    let host: Arc<dyn FileSystem> = HostFs::open(&dir, host_options)
        .map_err(|error| anyhow!("cannot use {} as the root: {error}", dir.display()))?;
    if options.root.is_some() && (options.rw || options.ro) {
        return Ok((host, dir.display().to_string()));
    }
    Ok((throwaway(&host, self_fds)?, "umlaut".into()))
}

/// The system part of `/`, for everybody to see (also when umlaut is root).
fn default_root_options(options: &RunOptions) -> HostFsOptions {
    let mut shown = HostFsOptions::named(false, OwnerMap::Same);
    shown.named = false;
    shown.records = Records::None;
    if options.host_all {
        eprintln!("umlaut: --host-all shows guests all that you can read, secrets included");
        shown.submounts = Submounts::Shown;
        return shown;
    }
    let mut view = View::only();
    for dir in SYSTEM {
        view = view.show(dir);
    }
    let etc = SECRETS.iter().fold(View::all(), |etc, secret| etc.hide(secret));
    view = view.show_as("etc", etc).show("var/lib/alternatives");
    shown.world_readable_only = true;
    shown.view = Some(Arc::new(view));
    shown
}

/// A layer in memory over a file system: changes go there.
fn throwaway(lower: &Arc<dyn FileSystem>, self_fds: &SelfFds) -> anyhow::Result<Arc<dyn FileSystem>> {
    let upper = TmpFs::new(
        vfs::anonymous_dev(),
        TmpFsOptions { mode: 0o755, ..TmpFsOptions::default() },
        self_fds.clone(),
    );
    let overlay = Overlay::new(&[lower.root()], Some(upper), String::new());
    Ok(overlay.map_err(|error| anyhow!("laying a throwaway layer over the root: {error}"))?)
}

impl Setup {
    fn context(&self) -> FsContext<'_> {
        FsContext::new(
            &self.mounts,
            self.root.clone(),
            self.root.clone(),
            0,
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

    fn mount(
        &self,
        fs: &Arc<dyn FileSystem>,
        source: &str,
        flags: MountFlags,
        path: &str,
    ) -> anyhow::Result<()> {
        let place = self
            .context()
            .lookup_path(abi::AT_FDCWD, path.as_bytes(), vfs::Lookup::FOLLOW)
            .and_then(|at| self.mounts.mount(fs, source, flags, &at));
        place.map_err(|error| anyhow!("cannot mount {source} on {path}: {error}"))?;
        Ok(())
    }

    fn tmpfs(&self, path: &str, source: &str, mode: u32) -> anyhow::Result<()> {
        self.make_directories(path)?;
        let options = TmpFsOptions { mode, ..TmpFsOptions::default() };
        let fs: Arc<dyn FileSystem> = TmpFs::new(vfs::anonymous_dev(), options, self.self_fds.clone());
        self.mount(&fs, source, MountFlags::NOSUID | MountFlags::NODEV, path)
    }

    /// proc, dev and their like.
    fn mount_own_file_systems(&self) -> anyhow::Result<Arc<ProcFs>> {
        for dir in ["/proc", "/sys", "/dev"] {
            self.make_directory(dir, 0o755)?;
        }
        let restricted = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
        let proc = ProcFs::new();
        let proc_fs: Arc<dyn FileSystem> = proc.clone();
        self.mount(&proc_fs, "proc", restricted, "/proc")?;
        let dev_options = TmpFsOptions { mode: 0o755, kind: "devtmpfs", ..TmpFsOptions::default() };
        let dev: Arc<dyn FileSystem> = TmpFs::new(vfs::anonymous_dev(), dev_options, self.self_fds.clone());
        self.mount(&dev, "udev", MountFlags::NOSUID, "/dev")?;
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
        Ok(proc)
    }

    fn fill_default_root(&self) -> anyhow::Result<()> {
        for (path, mode) in EMPTY {
            self.make_directory(path, mode)?;
        }
        Ok(())
    }

    /// Shows the current directory where it is, below a throwaway layer, unless it is `/`, the home directory, or
    /// holds that. Gives it as the directory to start in.
    fn show_current_directory(&self, options: &RunOptions) -> anyhow::Result<Option<Vec<u8>>> {
        if options.host_all {
            return Ok(std::env::current_dir().ok().map(|dir| dir.into_os_string().into_encoded_bytes()));
        }
        let Ok(dir) = std::env::current_dir() else { return Ok(None) };
        let home = std::env::var_os("HOME").map(PathBuf::from);
        let holds_home = home.as_ref().is_some_and(|home| home.starts_with(&dir));
        let Some(text) = dir.to_str().filter(|_| dir != HostPath::new("/") && !holds_home) else {
            return Ok(None);
        };
        let shown_already = SYSTEM.iter().any(|system| dir.starts_with(HostPath::new("/").join(system)))
            || dir.starts_with("/etc");
        if !shown_already {
            self.show_throwaway(&dir, text)?;
        }
        Ok(Some(text.as_bytes().to_vec()))
    }

    fn show_throwaway(&self, dir: &HostPath, at: &str) -> anyhow::Result<()> {
        let options = HostFsOptions::named(false, OwnerMap::own_as_root());
        let host: Arc<dyn FileSystem> =
            HostFs::open(dir, options).map_err(|error| anyhow!("cannot show {}: {error}", dir.display()))?;
        self.make_directories(at)?;
        self.mount(&throwaway(&host, &self.self_fds)?, "umlaut", MountFlags::NODEV, at)
    }

    fn show_home(&self) -> anyhow::Result<()> {
        let home = std::env::var("HOME").context("--home: HOME is not set")?;
        eprintln!("umlaut: --home shows guests all of {home}, secrets included");
        self.show_throwaway(HostPath::new(&home), &home)
    }

    /// `SRC:DST[:ro]`.
    fn bind(&self, text: &str) -> anyhow::Result<()> {
        let (rest, read_only) = text.strip_suffix(":ro").map_or((text, false), |rest| (rest, true));
        let (source, target) = rest
            .split_once(':')
            .filter(|(source, target)| !source.is_empty() && target.starts_with('/'))
            .ok_or_else(|| anyhow!("--bind {text}: SRC:DST[:ro] is wanted, DST an absolute path"))?;
        let options = HostFsOptions::named(!read_only, OwnerMap::own_as_root());
        let metadata = std::fs::metadata(source).with_context(|| format!("--bind {source}"))?;
        if !metadata.is_dir() {
            bail!("--bind {source}: only directories can be bound");
        }
        let host: Arc<dyn FileSystem> = HostFs::open(HostPath::new(source), options)
            .map_err(|error| anyhow!("--bind {source}: {error}"))?;
        self.make_directories(target)?;
        let flags = if read_only { MountFlags::RDONLY } else { MountFlags::empty() };
        self.mount(&host, source, flags | MountFlags::NODEV, target)
    }
}

/// Who sets up: root, without memory or signals.
struct SetupCaller {
    waiter: Waiter,
    cred: Cred,
}

impl Caller for SetupCaller {
    fn waiter(&self) -> &Waiter {
        &self.waiter
    }
    fn cred(&self) -> &Cred {
        &self.cred
    }
    fn file_size_limit(&self) -> u64 {
        u64::MAX
    }
    fn file_too_big(&self) {}
    fn broken_pipe(&self) {}
    fn read_user(&self, _: abi::UserAddr, _: &mut [u8]) -> SysResult<()> {
        Err(Errno::EFAULT.into())
    }
    fn write_user(&self, _: abi::UserAddr, _: &[u8]) -> SysResult<()> {
        Err(Errno::EFAULT.into())
    }
    fn as_any(&self) -> &dyn std::any::Any {
        self
    }
}
