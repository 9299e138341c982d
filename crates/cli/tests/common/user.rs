//! A user of umlaut with a directory of their own, and what comes of the commands that they give.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const NOBODY: u32 = 65534;

/// A user, with a directory of their own that is the current one, and the binary beside it.
pub(crate) struct Host {
    _parent: tempfile::TempDir,
    pub(crate) umlaut: PathBuf,
    pub(crate) dir: PathBuf,
    pub(crate) nobody: bool,
}

/// What came of a command.
pub(crate) struct End {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Host {
    pub(crate) fn new(nobody: bool) -> Host {
        let parent = tempfile::tempdir().unwrap();
        fs::set_permissions(parent.path(), Permissions::from_mode(0o755)).unwrap();
        let (umlaut, dir) = (parent.path().join("umlaut"), parent.path().join("dir"));
        // By another process: what we hold open for writing, a test beside this one may hand to a child.
        let copied = Command::new("cp").arg(env!("CARGO_BIN_EXE_umlaut")).arg(&umlaut).status();
        assert!(copied.unwrap().success());
        fs::create_dir(&dir).unwrap();
        if nobody {
            std::os::unix::fs::chown(&dir, Some(NOBODY), Some(NOBODY)).unwrap();
        }
        Host { _parent: parent, umlaut, dir, nobody }
    }

    /// A shell script; `$U` is umlaut.
    pub(crate) fn script(&self, text: &str) -> Command {
        let mut command = Command::new("bash");
        command.args(["-c", text]).current_dir(&self.dir).env("U", &self.umlaut).stdin(Stdio::null());
        if self.nobody {
            command.uid(NOBODY).gid(NOBODY);
        }
        command
    }

    /// umlaut itself.
    pub(crate) fn umlaut(&self) -> Command {
        let mut command = Command::new(&self.umlaut);
        command.current_dir(&self.dir).stdin(Stdio::null());
        if self.nobody {
            command.uid(NOBODY).gid(NOBODY);
        }
        command
    }

    pub(crate) fn run(&self, text: &str) -> End {
        end(&mut self.script(text))
    }

    /// An executable file.
    pub(crate) fn file(&self, name: &str, content: &[u8]) -> &Path {
        fs::write(self.dir.join(name), content).unwrap();
        fs::set_permissions(self.dir.join(name), Permissions::from_mode(0o755)).unwrap();
        &self.dir
    }
}

pub(crate) fn end(command: &mut Command) -> End {
    let output = command.output().unwrap();
    let end = End {
        code: output.status.code().unwrap_or(-1),
        out: String::from_utf8_lossy(&output.stdout).into_owned(),
        err: String::from_utf8_lossy(&output.stderr).into_owned(),
    };
    assert!(!end.err.contains("panicked") && end.code != 101, "{command:?}: a panic: {}", end.err);
    end
}

impl End {
    #[track_caller]
    pub(crate) fn is(&self, code: i32, out: &str, err: &str) {
        let fits = self.code == code && self.out.contains(out) && self.err.contains(err);
        assert!(
            fits,
            "wanted {code}, {out:?}, {err:?}: {}\nstdout: {}\nstderr: {}",
            self.code, self.out, self.err
        );
    }
}

pub(crate) fn for_each_user(test: impl Fn(&Host)) {
    test(&Host::new(false));
    if rustix::process::geteuid().is_root() {
        test(&Host::new(true));
    }
}
