//! Sets a machine up for the tests: packages, users, the binary under test; looks for leftovers at the end.
use std::path::Path;
use std::process::Command;

use anyhow::Context;
use rustix::process::{Pid, Signal, WaitOptions, geteuid, kill_process, waitpid};

use super::process::User;
use super::{Plan, open_to_all};

/// A command that tests use, and the Debian package that brings it.
const NEEDED: [(&str, &str); 21] = [
    ("gcc", "gcc"),
    ("g++", "g++"),
    ("make", "make"),
    ("busybox", "busybox"),
    ("bash", "bash"),
    ("dash", "dash"),
    ("awk", "mawk"),
    ("xz", "xz-utils"),
    ("bzip2", "bzip2"),
    ("python3", "python3"),
    ("perl", "perl"),
    ("git", "git"),
    ("less", "less"),
    ("vi", "vim-tiny"),
    ("ps", "procps"),
    ("setpriv", "util-linux"),
    ("file", "file"),
    ("bc", "bc"),
    ("diff", "diffutils"),
    ("patch", "patch"),
    ("strip", "binutils"),
];

/// Bytes that a build from a fresh clone and the tests write: below that the disk is told to be short.
const NEEDED_SPACE: u64 = 5 << 30;

/// Says whether the disks of the build and of scratch files have room. Without it each build and half of the tests fail
/// in a way of their own.
pub(crate) fn space(plan: &Plan) {
    for place in [plan.workspace.as_path(), plan.scratch.path()] {
        let Ok(disk) = rustix::fs::statvfs(place) else { continue };
        let free = disk.f_bavail.saturating_mul(disk.f_frsize);
        if free < NEEDED_SPACE {
            plan.report.line(&format!(
                "short of space: {} MiB are left on the disk of {}, a build from nothing and the tests write up to {} MiB",
                free >> 20,
                place.display(),
                NEEDED_SPACE >> 20
            ));
        }
    }
}

/// Whether a command is on the PATH that tests use.
pub(crate) fn has(command: &str) -> bool {
    super::process::PATH.split(':').any(|dir| Path::new(dir).join(command).exists())
}

/// Installs what is missing, as root on a machine with apt; says what stays missing.
pub(crate) fn packages(plan: &Plan) {
    let missing = || NEEDED.iter().filter(|(command, _)| !has(command)).collect::<Vec<_>>();
    let wanted: Vec<&str> = missing().iter().map(|(_, package)| *package).collect();
    if wanted.is_empty() {
        return;
    }
    if geteuid().is_root() && has("apt-get") {
        plan.report.stage(&format!("apt-get install {}", wanted.join(" ")));
        let apt = |words: &[&str]| {
            let mut apt = Command::new("apt-get");
            apt.args(["-q", "-y"]).args(words).env("DEBIAN_FRONTEND", "noninteractive");
            match apt.output() {
                Ok(output) if output.status.success() => true,
                Ok(output) => {
                    plan.report.line(&String::from_utf8_lossy(&output.stderr));
                    false
                }
                Err(error) => {
                    plan.report.line(&format!("apt-get: {error}"));
                    false
                }
            }
        };
        apt(&["update"]);
        let install = ["install", "--no-install-recommends"];
        if !apt(&[&install[..], &wanted].concat()) {
            for package in &wanted {
                apt(&[&install[..], &[package]].concat()); // one that is not to be had must not keep the others away
            }
        }
    }
    for (command, package) in missing() {
        let how =
            if geteuid().is_root() { "could not be installed" } else { "install it, or run this as root" };
        plan.report
            .line(&format!("missing: {command} (package {package}): {how}; tests that need it are skipped"));
    }
}

/// The users that tests run as; what cannot be had is counted as skipped.
pub(crate) fn users(plan: &Plan, only_root: bool, only_unprivileged: bool) -> Vec<User> {
    if !geteuid().is_root() {
        if !only_unprivileged {
            plan.report.skipped("all runs as root: the tests were not started by root", 1);
        }
        return if only_root { Vec::new() } else { vec![User::Caller] };
    }
    let mut users = Vec::new();
    if !only_unprivileged {
        users.push(User::Root);
    }
    if !only_root {
        if has("setpriv") {
            users.push(User::Nobody);
        } else {
            plan.report.skipped("all runs as an unprivileged user: no setpriv (package util-linux)", 1);
        }
    }
    users
}

/// Builds the release binary and puts a copy where every user can run it. False if there is none.
pub(crate) fn umlaut(plan: &Plan, given: Option<&Path>) -> bool {
    let built = plan.workspace.join("target/release/umlaut");
    if given.is_none() {
        plan.report.stage("cargo build --release");
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let built = Command::new(cargo)
            .args(["build", "--release", "--package", "cli", "--bin", "umlaut", "--color", "never"])
            .current_dir(&plan.workspace)
            .output();
        match built {
            Ok(output) if output.status.success() => {}
            Ok(output) => {
                plan.report.failed("build of umlaut", String::from_utf8_lossy(&output.stderr));
                return false;
            }
            Err(error) => {
                plan.report.failed("build of umlaut", error.to_string());
                return false;
            }
        }
    }
    let copy = plan.scratch.path().join("bin/umlaut");
    let copied = std::fs::copy(given.unwrap_or(&built), &copy).map_err(anyhow::Error::from);
    if let Err(error) = copied.and_then(|_| open_to_all(&copy)) {
        plan.report.failed("copy of umlaut", format!("{error:#}"));
        return false;
    }
    true
}

/// Of the platforms, those on which this host lets guests run; what is left out is counted as skipped.
pub(crate) fn platforms_of_host(plan: &Plan) -> Vec<String> {
    let binary = plan.scratch.path().join("bin/umlaut");
    let works = |platform: &&String| {
        let tried = Command::new(&binary).args(["run", "--platform", platform, "true"]).output();
        let told =
            tried.map(|output| String::from_utf8_lossy(&output.stderr).into_owned()).unwrap_or_default();
        let refused = told.contains("this host does not let guests run");
        if refused {
            plan.report.skipped(format!("all of {platform}: {}", told.trim()), 1);
        }
        !refused
    };
    plan.platforms.iter().filter(works).cloned().collect()
}

/// Copies the files of a directory to where every user can read them.
///
/// # Errors
/// If a file cannot be copied.
pub(crate) fn copy_for_all(from: &Path, to: &Path) -> anyhow::Result<()> {
    std::fs::create_dir_all(to)?;
    open_to_all(to)?;
    for entry in std::fs::read_dir(from).with_context(|| from.display().to_string())? {
        let entry = entry?;
        if entry.file_type()?.is_file() {
            let copy = to.join(entry.file_name());
            std::fs::copy(entry.path(), &copy)?;
            open_to_all(&copy)?;
        }
    }
    Ok(())
}

/// What tests left running has become our child (we are a subreaper): that is a failure, and it is ended.
pub(crate) fn left_behind(plan: &Plan) {
    let own = std::process::id().to_string();
    for _ in 0..10 {
        while let Ok(Some(_)) = waitpid(None, WaitOptions::NOHANG) {}
        let Ok(entries) = std::fs::read_dir("/proc") else { return };
        let mut found = false;
        for entry in entries.flatten() {
            let Ok(stat) = std::fs::read_to_string(entry.path().join("stat")) else { continue };
            let Some((head, tail)) = stat.rsplit_once(')') else { continue };
            let mut fields = tail.split_whitespace();
            let (state, parent) = (fields.next(), fields.next());
            if parent != Some(own.as_str()) || state == Some("Z") {
                continue;
            }
            // PF_EXITING: it runs nothing any more, and goes when those in its pid namespace have been reaped.
            let flags = fields.nth(4).and_then(|flags| flags.parse::<u32>().ok()).unwrap_or(0);
            if flags & 4 != 0 {
                found = true;
                continue;
            }
            let pid = entry.file_name().to_string_lossy().parse().ok().and_then(Pid::from_raw);
            let Some(pid) = pid else { continue };
            found = true;
            plan.report.failed("a process was left behind", format!("{head})"));
            let _ = kill_process(pid, Signal::KILL);
        }
        if !found {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
}
