//! What the main program starts with: arguments, environment, user, directory, descriptors.

use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

use abi::OpenFlags;
use anyhow::{Context, anyhow, bail};
use kernel::exec::ExecArguments;
use kernel::fs::Fs;
use kernel::fs::host_file::HostFile;
use kernel::kernel::MainProgramSpec;
use kernel::resource::Limits;
use vfs::{Cred, FdTable, FileDescription};

use crate::options::RunOptions;
use crate::root::NameSpace;
use crate::user::User;

/// PATH inside, unless --env sets it.
const DEFAULT_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// Variables of the caller's that are passed on.
const PASSED_ON: [&str; 4] = ["TERM", "LANG", "TZ", "LC_ALL"];

/// Everything that the main program starts with.
pub(crate) fn spec(
    options: &RunOptions,
    console: Vec<i32>,
    name_space: &NameSpace,
) -> anyhow::Result<MainProgramSpec> {
    let user = &name_space.user;
    let environment = environment(options, user);
    let arguments: Vec<Vec<u8>> = options.program.iter().map(|word| word.as_bytes().to_vec()).collect();
    let path = arguments.first().cloned().unwrap_or_default();
    let root = name_space.root.clone();
    let workdir = options.workdir.clone().map_or_else(|| name_space.workdir.clone(), String::into_bytes);
    Ok(MainProgramSpec {
        exec: ExecArguments {
            dirfd: abi::AT_FDCWD,
            path,
            empty_path: false,
            no_follow: false,
            arguments,
            environment: environment.iter().map(|entry| entry.as_bytes().to_vec()).collect(),
        },
        cred: Cred::user(user.uid, user.gid, &user.groups),
        files: descriptors()?,
        fs: Fs::new(root.clone(), root, umask()),
        workdir,
        console,
        limits: Limits::default(),
        ignored: abi::SigSet(host::signal::ignored_at_start()),
        as_init: options.as_pid_1,
    })
}

/// The caller's umask, which new files of guests have as well, on the host too; `0o22` where the host does not tell (before
/// Linux 4.7).
fn umask() -> u32 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let text = status.lines().find_map(|line| line.strip_prefix("Umask:"));
    text.and_then(|text| u32::from_str_radix(text.trim(), 8).ok()).unwrap_or(0o22) & 0o777
}

fn environment(options: &RunOptions, user: &User) -> Vec<String> {
    let mut variables: Vec<(String, String)> = Vec::new();
    let mut set = |key: &str, value: String| {
        variables.retain(|(known, _)| known != key);
        variables.push((key.to_string(), value));
    };
    if options.env_host {
        for (key, value) in std::env::vars_os() {
            if let (Ok(key), Ok(value)) = (key.into_string(), value.into_string()) {
                set(&key, value);
            }
        }
    } else {
        for key in PASSED_ON {
            if let Ok(value) = std::env::var(key) {
                set(key, value);
            }
        }
        set("PATH", DEFAULT_PATH.into());
        let shown = options.home.as_ref().and_then(|_| std::env::var("HOME").ok());
        let usual = match (&user.named, user.uid) {
            (Some(named), _) => (named.home.clone(), named.name.clone()),
            (None, 0) => ("/root".into(), "root".into()),
            (None, uid) => ("/".into(), uid.to_string()),
        };
        set("HOME", shown.unwrap_or(usual.0));
        set("USER", usual.1);
    }
    for entry in &options.env {
        let (key, value) = entry.split_once('=').unwrap_or((entry, ""));
        set(key, value.to_string());
    }
    variables.into_iter().map(|(key, value)| format!("{key}={value}")).collect()
}

/// stdin, stdout and stderr as they were; one that is closed stays so.
fn descriptors() -> anyhow::Result<FdTable> {
    let files = FdTable::new();
    let (stdin, stdout, stderr) = (std::io::stdin(), std::io::stdout(), std::io::stderr());
    for (number, fd) in (0u8..).zip([stdin.as_fd(), stdout.as_fd(), stderr.as_fd()]) {
        if host::streams::was_open(number.into()) {
            let installed = files.install_from(inherited(fd)?, number.into(), 16, false);
            installed.map_err(|error| anyhow!("standard streams: {error}"))?;
        }
    }
    Ok(files)
}

fn inherited(fd: BorrowedFd<'_>) -> anyhow::Result<Arc<FileDescription>> {
    let flags = rustix::fs::fcntl_getfl(fd).context("looking at the standard streams")?;
    let access = OpenFlags::from_bits_retain(flags.bits() & 3);
    if access.bits() == 3 {
        bail!("a standard stream was opened for neither reading nor writing");
    }
    let kept = access | (OpenFlags::from_bits_retain(flags.bits()) & OpenFlags::APPEND);
    let own = rustix::io::fcntl_dupfd_cloexec(fd, 3)?;
    Ok(FileDescription::new(Box::new(HostFile::new(own)), None, kept))
}
