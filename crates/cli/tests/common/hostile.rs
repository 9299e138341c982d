//! A user with hostile programs of their own, and umlaut to run them by.

use std::collections::BTreeSet;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const NOBODY: u32 = 65534;
/// The hostile programs.
pub(crate) const PROGRAMS: [&str; 7] = ["guest", "race", "stub", "sites", "others", "clones", "hoard"];
/// In the environment of umlaut, where no guest may find it.
pub(crate) const CANARY: &str = "canary-in-the-callers-environment";

/// A user with a directory of their own, `shared`, that holds the hostile program.
pub(crate) struct Host {
    pub(crate) parent: tempfile::TempDir,
    pub(crate) nobody: bool,
}

impl Host {
    pub(crate) fn new(nobody: bool) -> Host {
        let parent = tempfile::tempdir().unwrap();
        fs::set_permissions(parent.path(), Permissions::from_mode(0o755)).unwrap();
        // By another process: what we hold open for writing, a test beside this one may hand to a child.
        let copied =
            Command::new("cp").arg(env!("CARGO_BIN_EXE_umlaut")).arg(parent.path().join("umlaut")).status();
        assert!(copied.unwrap().success());
        let host = Host { parent, nobody };
        fs::create_dir(host.shared()).unwrap();
        for program in PROGRAMS {
            let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/hostile/").to_owned() + program + ".c";
            let built = Command::new("cc")
                .args(["-O1", "-static", "-pthread", "-w", &source, "-o"])
                .arg(host.shared().join(program))
                .args(stubs::PLACES.map(|(name, value)| format!("-D{name}={value}")))
                .status();
            assert!(built.is_ok_and(|status| status.success()), "cc builds static programs");
        }
        if nobody {
            std::os::unix::fs::chown(host.shared(), Some(NOBODY), Some(NOBODY)).unwrap();
        }
        host
    }

    pub(crate) fn shared(&self) -> PathBuf {
        self.parent.path().join("shared")
    }

    pub(crate) fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.current_dir(self.parent.path()).env("CANARY", CANARY).stdin(Stdio::null());
        if self.nobody {
            command.uid(NOBODY).gid(NOBODY);
        }
        command
    }

    pub(crate) fn umlaut(&self, words: &[&str]) -> Command {
        let mut command = self.command(&self.parent.path().join("umlaut"));
        command.arg("run").args(words);
        command
    }

    /// Whether the kernel is asked for its consent to clones here.
    pub(crate) fn asks_consent(&self) -> bool {
        let mut check = self.command(&self.parent.path().join("umlaut"));
        text(check.args(["check", "--security"])).contains("waits for umlaut's consent\n")
    }

    /// stdout of a run that ends well.
    #[track_caller]
    pub(crate) fn run(&self, words: &[&str]) -> String {
        text(&mut self.umlaut(words))
    }
}

#[track_caller]
pub(crate) fn text(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && !err.contains("oops"), "{command:?}: {:?}\n{out}{err}", output.status);
    out.into_owned()
}

pub(crate) fn for_each_user(test: impl Fn(&Host)) {
    test(&Host::new(false));
    if rustix::process::geteuid().is_root() {
        test(&Host::new(true));
    }
}

/// All descendants of a process, as the host lists them.
pub(crate) fn descendants(pid: u32) -> BTreeSet<u32> {
    let parent = |pid: u32| -> Option<u32> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        stat.rsplit(')').next()?.split_whitespace().nth(1)?.parse().ok()
    };
    let all: Vec<u32> = fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .collect();
    let mut found = BTreeSet::from([pid]);
    loop {
        let more: Vec<u32> = all
            .iter()
            .copied()
            .filter(|pid| !found.contains(pid) && parent(*pid).is_some_and(|parent| found.contains(&parent)))
            .collect();
        if more.is_empty() {
            return found;
        }
        found.extend(more);
    }
}
