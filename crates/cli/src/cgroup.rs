//! A memory cgroup of the instance's own, for `--memory`, where one may be made.
//!
//! One is made only below a cgroup that was given to us: the one that `--cgroup` names, or our own if it is delegated
//! (systemd's `Delegate=yes`) or belongs to the user. Elsewhere a cgroup has one writer, which is somebody else.
//! Both versions do; what tells them apart is which files a fresh cgroup has.

use std::fmt::Write as _;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// A cgroup with a limit on memory. The supervisor makes and removes it, the kernel enters it.
pub(crate) struct MemoryCgroup {
    dir: PathBuf,
    /// Where the supervisor had to go, so that its own cgroup may have controllers (version 2 wants processes in
    /// leaves only).
    moved_to: Option<PathBuf>,
}

impl MemoryCgroup {
    /// Makes one that holds `limit` bytes, below `parent` or the process's own.
    ///
    /// # Errors
    /// Why there is none, for the user.
    pub(crate) fn make(limit: u64, parent: Option<&Path>) -> Result<MemoryCgroup, String> {
        if let Some(parent) = parent {
            return make_below(parent, limit);
        }
        let read = |path: &str| std::fs::read_to_string(path).map_err(|error| format!("{path}: {error}"));
        let own = own_cgroups(&read("/proc/self/cgroup")?, &read("/proc/self/mountinfo")?);
        let mut why = String::new();
        for dir in own {
            let made = match is_delegated(&dir) {
                true => make_below(&dir, limit),
                false => Err(format!("{} is not delegated to us", dir.display())),
            };
            match made {
                Ok(made) => return Ok(made),
                // Writing to a string cannot fail.
                Err(error) => drop(write!(why, "{}{error}", if why.is_empty() { "" } else { "; " })),
            }
        }
        Err(if why.is_empty() { "no memory cgroup is mounted".into() } else { why })
    }

    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    /// Puts the calling process into it, and what it forks from now on.
    pub(crate) fn enter(&self) -> std::io::Result<()> {
        enter(&self.dir)
    }

    /// Removes it; nobody may be in it any more.
    pub(crate) fn remove(&self) {
        // The host may still be taking the last process apart.
        for _ in 0..50 {
            match std::fs::remove_dir(&self.dir) {
                Err(error) if error.raw_os_error() == Some(EBUSY) => {
                    std::thread::sleep(std::time::Duration::from_millis(2));
                }
                _ => break,
            }
        }
        leave(self.moved_to.as_deref());
    }
}

const EBUSY: i32 = rustix::io::Errno::BUSY.raw_os_error();

fn enter(dir: &Path) -> std::io::Result<()> {
    std::fs::write(dir.join("cgroup.procs"), std::process::id().to_string())
}

fn make_below(parent: &Path, limit: u64) -> Result<MemoryCgroup, String> {
    let failed = |what: &Path, error: std::io::Error| format!("{}: {error}", what.display());
    let moved_to = give_controllers(parent)?;
    let dir = parent.join(format!("umlaut-{}", std::process::id()));
    let made = std::fs::create_dir(&dir).map_err(|error| failed(&dir, error)).and_then(|()| {
        let files = [("memory.max", "memory.swap.max"), ("memory.limit_in_bytes", "memory.swappiness")];
        let known = files.iter().find(|(max, _)| dir.join(max).exists());
        let (max, swap) = known.ok_or_else(|| format!("{} has no memory controller", parent.display()))?;
        std::fs::write(dir.join(max), limit.to_string()).map_err(|error| failed(&dir.join(max), error))?;
        // Guests have no swap, as far as the host can be told so.
        let _ = std::fs::write(dir.join(swap), "0");
        Ok(())
    });
    match made {
        Ok(()) => Ok(MemoryCgroup { dir, moved_to }),
        Err(error) => {
            let _ = std::fs::remove_dir(&dir);
            leave(moved_to.as_deref());
            Err(error)
        }
    }
}

/// Lets children of a cgroup of version 2 have the memory controller. Where we are its only process, we move out of
/// the way, to the directory returned.
fn give_controllers(parent: &Path) -> Result<Option<PathBuf>, String> {
    let control = parent.join("cgroup.subtree_control");
    let Ok(given) = std::fs::read_to_string(&control) else { return Ok(None) };
    if given.split_whitespace().any(|name| name == "memory") {
        return Ok(None);
    }
    let offered = std::fs::read_to_string(parent.join("cgroup.controllers")).unwrap_or_default();
    if offered.split_whitespace().all(|name| name != "memory") {
        return Err(format!("{} has no memory controller", parent.display()));
    }
    let give = || std::fs::write(&control, "+memory");
    let Err(error) = give() else { return Ok(None) };
    let alone = std::fs::read_to_string(parent.join("cgroup.procs"))
        .is_ok_and(|pids| pids.trim() == std::process::id().to_string());
    if error.raw_os_error() != Some(EBUSY) || !alone {
        return Err(format!("{}: {error}", control.display()));
    }
    let leaf = parent.join(format!("umlaut-{}.supervisor", std::process::id()));
    let moved = std::fs::create_dir(&leaf).and_then(|()| enter(&leaf)).and_then(|()| give());
    match moved {
        Ok(()) => Ok(Some(leaf)),
        Err(error) => {
            leave(Some(&leaf));
            Err(format!("{}: {error}", leaf.display()))
        }
    }
}

/// Goes back to where [`give_controllers`] came from.
fn leave(leaf: Option<&Path>) {
    let Some((leaf, parent)) = leaf.and_then(|leaf| Some((leaf, leaf.parent()?))) else { return };
    // Whoever gave us the cgroup removes it with what is in it.
    let _ = std::fs::write(parent.join("cgroup.subtree_control"), "-memory");
    let _ = enter(parent);
    let _ = std::fs::remove_dir(leaf);
}

/// Whether a cgroup is ours to divide: its directory is the (ordinary) user's own, or systemd has marked it.
fn is_delegated(dir: &Path) -> bool {
    let uid = rustix::process::geteuid();
    let is_own = std::fs::metadata(dir).is_ok_and(|meta| meta.uid() == uid.as_raw());
    let marked = |name: &str| {
        let mut value = [0; 8];
        let len = rustix::fs::getxattr(dir, name, &mut value[..]).unwrap_or(0);
        value.get(..len) == Some(b"1")
    };
    (!uid.is_root() && is_own) || marked("user.delegate") || marked("trusted.delegate")
}

/// The directories of the cgroups that the process is in and that may have a memory controller, from the texts of
/// `/proc/self/cgroup` and `/proc/self/mountinfo`.
fn own_cgroups(cgroup: &str, mountinfo: &str) -> Vec<PathBuf> {
    let find = |line: &str| {
        let mut fields = line.splitn(3, ':');
        let (number, controllers, path) = (fields.next()?, fields.next()?, fields.next()?);
        let unified = number == "0" && controllers.is_empty();
        if !unified && controllers.split(',').all(|name| name != "memory") {
            return None;
        }
        mountinfo.lines().find_map(|mount| below_mount(mount, unified, path))
    };
    cgroup.lines().filter_map(find).collect()
}

/// Where a line of mountinfo shows the cgroup `path`.
fn below_mount(line: &str, unified: bool, path: &str) -> Option<PathBuf> {
    let (place, kind) = line.split_once(" - ")?;
    let (root, point) = {
        let mut fields = place.split(' ').skip(3);
        (fields.next()?, fields.next()?)
    };
    let mut kind = kind.split(' ');
    let (fs, options) = (kind.next()?, kind.nth(1)?);
    let fits = match unified {
        true => fs == "cgroup2",
        false => fs == "cgroup" && options.split(',').any(|option| option == "memory"),
    };
    let below = Path::new(path).strip_prefix(root).ok()?;
    fits.then(|| Path::new(point).join(below))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "\
31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755
32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu
35 31 0:31 /box /sys/fs/cgroup/memory rw,relatime shared:9 - cgroup cgroup rw,memory
36 31 0:32 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
";

    #[test]
    fn own_cgroups_are_found_where_they_are_mounted() {
        let found = own_cgroups("4:memory:/box/one\n1:cpu:/\n0::/user.slice/run-1.scope\n", MOUNTS);
        let wanted =
            ["/sys/fs/cgroup/memory/one", "/sys/fs/cgroup/unified/user.slice/run-1.scope"].map(PathBuf::from);
        assert_eq!(found, wanted);
        // One that lies outside of what is mounted cannot be reached.
        assert_eq!(own_cgroups("4:memory:/other\n", MOUNTS), [] as [PathBuf; 0]);
        assert_eq!(own_cgroups("", MOUNTS), [] as [PathBuf; 0]);
    }

    /// A directory that is no cgroup is said to have no controller, and left as it was.
    #[test]
    fn what_is_no_cgroup_is_refused() {
        let dir = std::env::temp_dir().join(format!("umlaut-cgroup-test-{}", std::process::id()));
        std::fs::create_dir(&dir).unwrap();
        let made = MemoryCgroup::make(1 << 20, Some(&dir));
        assert!(made.is_err_and(|why| why.contains("no memory controller")));
        std::fs::remove_dir(&dir).expect("it is empty");
    }
}
