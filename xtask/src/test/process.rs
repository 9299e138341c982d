//! Runs one program: own process group, clean environment, output captured, killed at its time limit.
//!
//! [`Job`] says what to run, [`Outcome`] what came of it. Neighbours: `guest` and `programs` make the jobs.
use std::ffi::OsString;
use std::io::{Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, getgid, getuid, kill_process_group, pidfd_open};

/// Where programs are looked up natively: umlaut's default, so that both sides find the same.
pub(crate) const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// What is kept of each output stream; the rest is read and dropped, so that a runaway writer ends at its time limit.
const KEPT: usize = 4 << 20;

/// No home: nothing that a program keeps there shall pass from one run to the next.
pub(crate) const HOME: &str = "/nonexistent";

/// The uid and gid that stand for "an unprivileged user": `nobody`.
pub(crate) const NOBODY: u32 = 65534;

/// Held while a program starts and while one is copied: a child that another thread is just starting would inherit the
/// copy's descriptor for writing until its own exec, and running the copy would give ETXTBSY.
static STARTING: Mutex<()> = Mutex::new(());

/// Copies a program to where it will be run, for all to read and execute, and for `user` to own.
///
/// # Errors
/// If it cannot be copied.
pub(crate) fn copy_program(from: &Path, to: &Path, user: User) -> Result<()> {
    let _no_starts = STARTING.lock();
    std::fs::copy(from, to).with_context(|| format!("copying {}", from.display()))?;
    std::fs::set_permissions(to, std::os::unix::fs::PermissionsExt::from_mode(0o755))?;
    if user == User::Nobody {
        std::os::unix::fs::chown(to, Some(NOBODY), Some(NOBODY))?;
    }
    Ok(())
}

/// Who runs a program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum User {
    /// uid 0, as the tests themselves.
    Root,
    /// `nobody`, without groups and with no_new_privs.
    Nobody,
    /// The ordinary user who runs the tests.
    Caller,
}

impl User {
    /// What USER says.
    pub(crate) fn login(self) -> &'static str {
        if self == User::Root { "root" } else { "nobody" }
    }

    /// Uid and gid, as `--user` wants them.
    pub(crate) fn ids(self) -> String {
        match self {
            User::Root => "0:0".into(),
            User::Nobody => format!("{NOBODY}:{NOBODY}"),
            User::Caller => format!("{}:{}", getuid().as_raw(), getgid().as_raw()),
        }
    }

    /// The word for expectation files and reports: `root` or `user`.
    pub(crate) fn word(self) -> &'static str {
        match self {
            User::Root => "root",
            User::Nobody | User::Caller => "user",
        }
    }
}

/// One program to run.
pub(crate) struct Job {
    pub(crate) argv: Vec<OsString>,
    pub(crate) dir: PathBuf,
    pub(crate) user: User,
    /// Variables besides the few that every program gets.
    pub(crate) env: Vec<(OsString, OsString)>,
    /// What it reads; `None` is /dev/null.
    pub(crate) stdin: Option<Vec<u8>>,
    pub(crate) timeout: Duration,
}

/// How a program ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Ended {
    Exit(i32),
    Signal(i32),
    TimedOut(Duration),
    NotStarted(String),
}

impl std::fmt::Display for Ended {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Ended::Exit(code) => write!(f, "exit status {code}"),
            Ended::Signal(number) => write!(f, "ended by signal {number}"),
            Ended::TimedOut(limit) => write!(f, "still running after {} s, killed", limit.as_secs()),
            Ended::NotStarted(why) => write!(f, "not started: {why}"),
        }
    }
}

/// What came of a [`Job`].
pub(crate) struct Outcome {
    pub(crate) ended: Ended,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: Vec<u8>,
}

impl Outcome {
    /// How it ended and what it said, for people.
    pub(crate) fn text(&self) -> String {
        let stream = |name: &str, bytes: &[u8]| match bytes {
            [] => String::new(),
            _ => format!("{name}:\n{}\n", String::from_utf8_lossy(bytes).trim_end()),
        };
        format!("{}\n{}{}", self.ended, stream("stdout", &self.stdout), stream("stderr", &self.stderr))
    }
}

impl Job {
    /// Runs the program to its end or its time limit. Never fails: what went wrong is in [`Outcome::ended`].
    pub(crate) fn run(&self) -> Outcome {
        let mut command = self.command();
        let spawned = {
            let _no_copies = STARTING.lock();
            command.spawn()
        };
        match spawned {
            Ok(child) => self.attend(child),
            Err(error) => Outcome {
                ended: Ended::NotStarted(format!("{}: {error}", self.argv[0].to_string_lossy())),
                stdout: Vec::new(),
                stderr: Vec::new(),
            },
        }
    }

    fn command(&self) -> Command {
        // Whoever started us may have had signals ignored (a background job, nohup): programs would inherit that.
        let mut argv: Vec<OsString> = vec!["env".into(), "--default-signal".into()];
        if self.user == User::Nobody {
            let words = "setpriv --reuid 65534 --regid 65534 --clear-groups --no-new-privs --";
            argv.extend(words.split(' ').map(OsString::from));
        }
        argv.extend(self.argv.iter().cloned());
        let mut command = Command::new(&argv[0]);
        command.args(&argv[1..]).current_dir(&self.dir).env_clear();
        command.envs([("PATH", PATH), ("HOME", HOME), ("USER", self.user.login())]);
        command.envs([("LANG", "C.UTF-8"), ("TZ", "UTC0")]);
        command.env("TERM", "xterm").envs(self.env.iter().cloned()).process_group(0);
        command.stdin(if self.stdin.is_some() { Stdio::piped() } else { Stdio::null() });
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    fn attend(&self, mut child: Child) -> Outcome {
        let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        if let (Some(input), Some(mut stdin)) = (self.stdin.clone(), child.stdin.take()) {
            std::thread::spawn(move || {
                let _ = stdin.write_all(&input); // a program need not read its input: EPIPE is no fault
            });
        }
        let stdout = child.stdout.take().map(collect);
        let stderr = child.stderr.take().map(collect);
        let in_time = group.is_some_and(|pid| wait_until(pid, Instant::now() + self.timeout));
        if !in_time && let Some(group) = group {
            let _ = kill_process_group(group, Signal::KILL);
        }
        let status = child.wait();
        // Background children may hold the pipes open; what they write later is not this program's output.
        let grace = Duration::from_secs(2);
        let stdout = stdout.and_then(|from| drain(&from, grace));
        let stderr = stderr.and_then(|from| drain(&from, grace));
        if in_time
            && (stdout.is_none() || stderr.is_none())
            && let Some(group) = group
        {
            let _ = kill_process_group(group, Signal::KILL);
        }
        let ended = match status {
            _ if !in_time => Ended::TimedOut(self.timeout),
            Ok(status) => match (status.code(), status.signal()) {
                (Some(code), _) => Ended::Exit(code),
                (None, signal) => Ended::Signal(signal.unwrap_or(0)),
            },
            Err(error) => Ended::NotStarted(error.to_string()),
        };
        Outcome { ended, stdout: stdout.unwrap_or_default(), stderr: stderr.unwrap_or_default() }
    }
}

/// Reads a stream to its end on a thread of its own; chunks arrive as they come.
fn collect(mut from: impl Read + Send + 'static) -> Receiver<Vec<u8>> {
    let (send, receive) = channel();
    std::thread::spawn(move || {
        let mut buffer = vec![0; 64 << 10];
        while let Ok(n) = from.read(&mut buffer) {
            if n == 0 || send.send(buffer[..n].to_vec()).is_err() {
                break;
            }
        }
    });
    receive
}

/// All that was read, or `None` if the stream is still open `grace` after its program ended and brought nothing.
fn drain(from: &Receiver<Vec<u8>>, grace: Duration) -> Option<Vec<u8>> {
    let deadline = Instant::now() + grace;
    let mut all = Vec::new();
    loop {
        match from.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(chunk) => all.extend(chunk.into_iter().take(KEPT.saturating_sub(all.len()))),
            Err(std::sync::mpsc::RecvTimeoutError::Disconnected) => return Some(all),
            Err(std::sync::mpsc::RecvTimeoutError::Timeout) if all.is_empty() => return None,
            Err(std::sync::mpsc::RecvTimeoutError::Timeout) => return Some(all),
        }
    }
}

/// Waits for a child of ours to end, without reaping it. False at the deadline.
fn wait_until(pid: Pid, deadline: Instant) -> bool {
    let Ok(pidfd) = pidfd_open(pid, PidfdFlags::empty()) else { return false };
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let limit = Timespec { tv_sec: left.as_secs().cast_signed(), tv_nsec: left.subsec_nanos().into() };
        match poll(&mut [PollFd::new(&pidfd, PollFlags::IN)], Some(&limit)) {
            Ok(0) => return false,
            Ok(_) => return true,
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => return false,
        }
    }
}
