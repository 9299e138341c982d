//! What the tests of the command share: running it as one user or another, and finding all that an instance left.
#![allow(dead_code, reason = "each test program uses a part of it")]

pub(crate) mod auxv;
pub(crate) mod forbid;
pub(crate) mod hostile;
pub(crate) mod listener;
pub(crate) mod user;

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitOptions};
use tempfile::TempDir;

const NOBODY: &str = "65534";

/// The command in a place where everybody may execute it.
pub(crate) struct Umlaut {
    directory: TempDir,
}

/// Whom to run it as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum As {
    Caller,
    Nobody,
}

/// The caller, and with root as the caller an unprivileged user too.
pub(crate) fn users() -> &'static [As] {
    if rustix::process::geteuid().is_root() { &[As::Caller, As::Nobody] } else { &[As::Caller] }
}

impl Umlaut {
    pub(crate) fn new() -> Umlaut {
        let directory = tempfile::Builder::new().prefix("umlaut-life").tempdir_in("/tmp").unwrap();
        std::fs::set_permissions(directory.path(), Permissions::from_mode(0o755)).unwrap();
        let umlaut = Umlaut { directory };
        std::fs::copy(env!("CARGO_BIN_EXE_umlaut"), umlaut.path()).unwrap();
        std::fs::set_permissions(umlaut.path(), Permissions::from_mode(0o755)).unwrap();
        umlaut
    }

    fn path(&self) -> PathBuf {
        self.directory.path().join("umlaut")
    }

    /// `umlaut run --platform PLATFORM sh -c SCRIPT`; `before` are commands that execute it in their place.
    pub(crate) fn run(&self, user: As, before: &[&str], platform: &str, script: &str) -> Command {
        let mut words: Vec<String> = before.iter().map(ToString::to_string).collect();
        if user == As::Nobody {
            let setpriv =
                ["setpriv", "--reuid", NOBODY, "--regid", NOBODY, "--clear-groups", "--no-new-privs", "--"];
            words.extend(setpriv.map(String::from));
        }
        words.push(self.path().to_string_lossy().into_owned());
        words.extend(["run", "--platform", platform, "--", "sh", "-c", script].map(String::from));
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).current_dir("/").env("TMPDIR", "/tmp");
        command
    }
}

/// A process as `/proc/PID/stat` shows it.
#[derive(Clone, Debug)]
pub(crate) struct Process {
    pub(crate) pid: i32,
    pub(crate) parent: i32,
    pub(crate) session: i32,
    pub(crate) state: char,
    pub(crate) name: String,
}

fn process(pid: i32) -> Option<Process> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (start, rest) = stat.rsplit_once(") ")?;
    let fields: Vec<&str> = rest.split(' ').collect();
    Some(Process {
        pid,
        name: start.split_once('(')?.1.to_owned(),
        state: fields.first()?.chars().next()?,
        parent: fields.get(1)?.parse().ok()?,
        session: fields.get(3)?.parse().ok()?,
    })
}

/// All below `root`, zombies left out.
pub(crate) fn descendants(root: i32) -> Vec<Process> {
    let pids = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let all: Vec<Process> = pids.filter_map(process).collect();
    let mut found: Vec<Process> = Vec::new();
    let mut parents = vec![root];
    while let Some(parent) = parents.pop() {
        for child in all.iter().filter(|process| process.parent == parent) {
            parents.push(child.pid);
            found.push(child.clone());
        }
    }
    found.retain(|process| !matches!(process.state, 'Z' | 'X'));
    found
}

/// What loses its parent becomes a child of this process, so nothing of an instance escapes [`descendants`].
pub(crate) fn adopt_orphans() {
    rustix::process::set_child_subreaper(Some(rustix::process::getpid())).unwrap();
}

/// Reaps what was adopted, and other children that have ended.
pub(crate) fn reap_orphans() {
    while let Ok(Some(_)) = rustix::process::wait(WaitOptions::NOHANG) {}
}

pub(crate) fn own_pid() -> i32 {
    rustix::process::getpid().as_raw_nonzero().get()
}

/// A process that is gone already is no error.
pub(crate) fn kill(pid: i32) {
    let _ = rustix::process::kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL);
}

/// Waits for what must come, however loaded the machine is.
pub(crate) fn eventually<T>(what: &str, mut check: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        if let Some(found) = check() {
            return found;
        }
        assert!(Instant::now() < deadline, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Waits until nothing is left below this process.
pub(crate) fn nothing_is_left(what: &str) {
    let deadline = Instant::now() + Duration::from_secs(10);
    loop {
        // The init of a pid namespace ends when all in it are reaped.
        reap_orphans();
        let left = descendants(own_pid());
        if left.is_empty() {
            return;
        }
        assert!(Instant::now() < deadline, "{what}: {left:?}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
