//! What guests see of the host when the user names no root: as data, for the command line to mount.
//!
//! The system part of the host's `/`, without secrets and without what not everybody can read, below a throwaway layer;
//! the current directory through a throwaway layer of its own; everything else empty. No home, no other mounts, no
//! sockets; nothing on the host changes.
//!
//! [`RootPlan::new`] decides, [`RootPlan::furnish`] makes what the plan adds to the root.

mod lists;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use abi::{Errno, OpenFlags};
use sync::SysResult;
use vfs::{FileDescription, Inode, KernelCaller, NewNode, NewNodeKind, OpenHow, SliceSource};

use lists::{EMPTY, NEVER, PRIVATE, SECRETS, SYSTEM, VAR};

use crate::{HostFsOptions, OwnerMap, Records, Submounts, View};

/// What of the home directory and the rest of the host is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// The system part only.
    System,
    /// `--home ro`: the home directory too, below a throwaway layer.
    Home,
    /// `--host-all`: everything, other mounts included, below a throwaway layer.
    All,
}

/// What the plan depends on. Paths are absolute and without symbolic links.
#[derive(Clone, Debug)]
pub struct Environment {
    /// The current directory.
    pub cwd: PathBuf,
    /// Why that is not known (it was removed), and `/` stands for it.
    pub lost_cwd: Option<String>,
    /// The user's home, where known.
    pub home: Option<PathBuf>,
    /// All homes that the host's user database names.
    pub homes: Vec<PathBuf>,
    /// The guest's user and group as whose the caller's own files show in its directories.
    pub owner: (u32, u32),
}

impl Environment {
    /// That of this process, for guests that start as `owner`.
    pub fn of_process(owner: (u32, u32)) -> Environment {
        let (cwd, lost_cwd) = match std::env::current_dir() {
            Ok(cwd) => (cwd, None),
            Err(error) => ("/".into(), Some(error.to_string())),
        };
        let home = std::env::var_os("HOME").map(PathBuf::from).filter(|home| home.is_absolute());
        let passwd = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
        let homes = homes_in(&passwd).into_iter().filter_map(|home| home.canonicalize().ok()).collect();
        Environment { cwd, lost_cwd, home: home.and_then(|home| home.canonicalize().ok()), homes, owner }
    }

    /// Whether `path` is a home or holds one.
    fn holds_a_home(&self, path: &Path) -> bool {
        self.home.iter().chain(&self.homes).any(|home| home.starts_with(path))
    }
}

/// The homes of people in the text of /etc/passwd: root's, and those below /home and of ordinary uids.
pub fn homes_in(passwd: &str) -> Vec<PathBuf> {
    let homes = passwd.lines().filter_map(|line| {
        let mut fields = line.split(':');
        let (uid, home) = (fields.nth(2)?.parse::<u32>().ok()?, fields.nth(2)?);
        let is_person = uid == 0 || (1000..65534).contains(&uid);
        (is_person && home.len() > 1 && home.starts_with('/')).then(|| PathBuf::from(home))
    });
    homes.collect()
}

/// A host directory to mount.
#[derive(Clone, Debug)]
pub struct Layer {
    /// Where, inside.
    pub at: PathBuf,
    /// The host's directory.
    pub host: PathBuf,
    pub options: HostFsOptions,
}

/// What to mount, and what to make in the root's throwaway layer.
#[derive(Clone, Debug)]
pub struct RootPlan {
    /// Each below a throwaway layer of its own, the root first, then in the order in which to mount them.
    pub layers: Vec<Layer>,
    /// Directories to make, with their modes, parents before children. Those that are there already stay as they are.
    pub directories: Vec<(PathBuf, u32)>,
    /// Symbolic links to make: name and target.
    pub links: Vec<(PathBuf, PathBuf)>,
    /// Files to make: name, content, mode.
    pub files: Vec<(PathBuf, Vec<u8>, u32)>,
    /// The directory to start in.
    pub workdir: PathBuf,
    /// The host's paths that the layers read: for the fences around this process.
    pub reads: Vec<PathBuf>,
    /// What to warn the user of, once.
    pub warnings: Vec<String>,
    /// Why the current directory is not shown, where it is not.
    pub hint: Option<String>,
}

impl RootPlan {
    /// Decides what is shown.
    pub fn new(environment: &Environment, reach: Reach) -> RootPlan {
        let mut plan = RootPlan {
            layers: vec![Layer { at: "/".into(), host: "/".into(), options: root_options(reach) }],
            directories: EMPTY.iter().map(|(path, mode)| (PathBuf::from(path), *mode)).collect(),
            links: vec![("/var/run".into(), "/run".into()), ("/var/lock".into(), "/run/lock".into())],
            files: vec![("/etc/machine-id".into(), machine_id(), 0o444)],
            workdir: environment.cwd.clone(),
            reads: Vec::new(),
            warnings: Vec::new(),
            hint: None,
        };
        if let Some(why) = &environment.lost_cwd {
            plan.warnings.push(format!("the current directory cannot be told ({why}): starting in /"));
        }
        if reach == Reach::All {
            plan.reads.push("/".into());
            plan.warnings.push("--host-all shows everything that you can read, secrets included".into());
            // Everything is there; what the host has is not made anew.
            plan.directories.retain(|(path, _)| matches!(path.to_str(), Some("/proc" | "/sys" | "/dev")));
            plan.links.clear();
            return plan;
        }
        plan.reads.extend(SYSTEM.iter().chain(&VAR).map(|name| Path::new("/").join(name)));
        if reach == Reach::Home {
            plan.add_home(environment);
        }
        plan.add_cwd(environment, reach);
        plan
    }

    fn add_home(&mut self, environment: &Environment) {
        let Some(home) = environment.home.clone().filter(|home| home.parent().is_some()) else {
            self.warnings.push("--home: HOME names no directory".into());
            return;
        };
        self.warnings.push(format!("--home shows {} and the secrets in it", home.display()));
        self.add_layer(&home, environment.owner);
    }

    fn add_cwd(&mut self, environment: &Environment, reach: Reach) {
        let cwd = &environment.cwd;
        let shown_already = SYSTEM.iter().chain(&VAR).any(|name| cwd.starts_with(Path::new("/").join(name)));
        let in_home = environment.home.as_ref().is_some_and(|home| cwd.starts_with(home));
        if cwd.parent().is_none() || shown_already || (reach == Reach::Home && in_home) {
            return;
        }
        if let Some(why) = hidden_cwd(environment) {
            self.hint = Some(format!("the current directory shows empty ({why}); --bind shows it"));
            // It is there, and empty.
            self.add_directory(cwd);
            return;
        }
        self.add_layer(cwd, environment.owner);
    }

    /// Mounts a directory of the user's where it is on the host.
    fn add_layer(&mut self, path: &Path, owner: (u32, u32)) {
        self.add_directory(path);
        let options =
            HostFsOptions { records: Records::None, ..HostFsOptions::named(false, OwnerMap::own_as(owner)) };
        self.reads.push(path.into());
        self.layers.push(Layer { at: path.into(), host: path.into(), options });
    }

    fn add_directory(&mut self, path: &Path) {
        let mut above: Vec<&Path> = path.ancestors().filter(|path| path.parent().is_some()).collect();
        above.reverse();
        self.directories.extend(above.into_iter().map(|path| (path.to_owned(), 0o755)));
    }

    /// Makes the plan's directories, links and files in the root directory of its first layer.
    pub fn furnish(&self, root: &Arc<Inode>) -> SysResult<()> {
        for (path, mode) in &self.directories {
            make(root, path, NewNodeKind::Directory, *mode)?;
        }
        for (path, target) in &self.links {
            make(root, path, NewNodeKind::Symlink(target.as_os_str().as_encoded_bytes()), 0o777)?;
        }
        for (path, content, mode) in &self.files {
            if let Some(file) = make(root, path, NewNodeKind::File, *mode)? {
                let caller = KernelCaller::new();
                let flags = OpenFlags::WRONLY;
                let file =
                    FileDescription::new(file.ops.open(&file, OpenHow { flags }, &caller)?, None, flags);
                file.ops.write(&file, &caller, &mut SliceSource { bytes: content, taken: 0 })?;
            }
        }
        Ok(())
    }
}

/// Why the current directory is not shown, if it is not.
fn hidden_cwd(environment: &Environment) -> Option<&'static str> {
    let cwd = &environment.cwd;
    if environment.holds_a_home(cwd) {
        return Some("it is a home directory or holds one");
    }
    if NEVER.iter().any(|never| cwd.starts_with(never)) {
        return Some("it belongs to the running system");
    }
    let homes = environment.home.iter().chain(&environment.homes);
    let is_private = homes
        .filter_map(|home| cwd.strip_prefix(home).ok())
        .any(|below| PRIVATE.iter().any(|private| below.starts_with(private)));
    is_private.then_some("it is a private part of a home directory")
}

fn root_options(reach: Reach) -> HostFsOptions {
    let (submounts, view) = match reach {
        Reach::All => (Submounts::Shown, None),
        _ => (Submounts::Hidden, Some(Arc::new(system_view()))),
    };
    HostFsOptions {
        submounts,
        view,
        world_readable_only: reach != Reach::All,
        // `/` on a network file system is to be named: `--root /`.
        named: false,
        records: Records::None,
        ..HostFsOptions::named(false, OwnerMap::Same)
    }
}

fn system_view() -> View {
    let shown = SYSTEM.iter().chain(&VAR).fold(View::only(), |view, path| view.show(path));
    SECRETS.iter().fold(shown, |view, secret| view.hide(&format!("etc/{secret}")))
}

/// 128 random bits in hex, as systemd writes them.
fn machine_id() -> Vec<u8> {
    let mut bytes = [0; 16];
    // Without a source of randomness all guests are the same machine.
    let _ = rustix::rand::getrandom(&mut bytes[..], rustix::rand::GetRandomFlags::empty());
    let mut text: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    text.push('\n');
    text.into_bytes()
}

/// Makes something at `path`; `None` if there is something already, or nothing to make it in.
fn make(
    root: &Arc<Inode>,
    path: &Path,
    kind: NewNodeKind<'_>,
    permissions: u32,
) -> SysResult<Option<Arc<Inode>>> {
    let mut names: Vec<&[u8]> = path.iter().skip(1).map(|name| name.as_encoded_bytes()).collect();
    let Some(name) = names.pop() else { return Ok(None) };
    let found = names.iter().try_fold(root.clone(), |dir, name| dir.ops.lookup(&dir, name));
    let dir = match found {
        Ok(dir) if dir.is_dir() => dir,
        // A link in the way (/var/run on some hosts) leads to what is made anyway.
        Ok(_) => return Ok(None),
        Err(error) if error.errno() == Some(Errno::ENOENT) => return Ok(None),
        Err(error) => return Err(error),
    };
    match dir.ops.create(&dir, name, &NewNode { kind, permissions, uid: 0, gid: 0 }) {
        Ok(inode) => Ok(Some(inode)),
        Err(error) if error.errno() == Some(Errno::EEXIST) => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests;
