//! Kicks at random moments: a guest's thread in tight loops of calls (served in the stub, on delegated files, handed over) and
//! none, and another that sends it numbered real-time signals. Each arrives once and in order, and disturbs nothing.
//! `UMLAUT_KICKS` says how many (10,000).

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

fn build(dir: &Path) -> PathBuf {
    let program = dir.join("kicks");
    let built = Command::new("cc")
        .args(["-O1", "-static", "-pthread", "-Wall", "-Wextra", "-o"])
        .arg(&program)
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/kicks/guest.c"))
        .status();
    assert!(built.is_ok_and(|status| status.success()), "cc builds static programs");
    program
}

fn count() -> u64 {
    std::env::var("UMLAUT_KICKS").ok().and_then(|text| text.parse().ok()).unwrap_or(10_000)
}

#[track_caller]
fn all_arrive(command: &mut Command, count: u64) {
    let output = command.arg(count.to_string()).stdin(Stdio::null()).output().unwrap();
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{command:?}: {:?}\n{out}{err}", output.status);
    assert_eq!(out, format!("arrived {count}\n"), "{err}");
}

/// The program itself, on the host.
#[test]
fn the_host_loses_none() {
    let dir = tempfile::tempdir().unwrap();
    all_arrive(&mut Command::new(build(dir.path())), count().min(10_000));
}

fn umlaut(platform: &str, count: u64) {
    let dir = tempfile::tempdir().unwrap();
    build(dir.path());
    let mut command = Command::new(env!("CARGO_BIN_EXE_umlaut"));
    command.args(["run", "--platform", platform, "--bind"]);
    command.arg(format!("{}:/mnt:ro", dir.path().display())).arg("/mnt/kicks");
    all_arrive(&mut command, count);
}

#[test]
fn no_kick_is_missed_or_comes_twice_on_stub() {
    umlaut("stub", count());
}

#[test]
fn no_kick_is_missed_or_comes_twice_on_sysemu() {
    umlaut("sysemu", count() / 10);
}
