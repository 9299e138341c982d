//! A file that threads of a guest use by themselves is closed on the host when the call returns that closes it, whatever
//! those threads do meanwhile.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Whether a descriptor has its file open: one that is `O_PATH` only knows which it is.
fn is_open(process: &Path, number: &str) -> bool {
    const PATH: u32 = 0o10_000_000;
    let info = fs::read_to_string(process.join("fdinfo").join(number)).unwrap_or_default();
    let flags =
        info.lines().find_map(|line| u32::from_str_radix(line.strip_prefix("flags:")?.trim(), 8).ok());
    flags.is_some_and(|flags| flags & PATH == 0)
}

/// The processes that have a file open by a descriptor whose link begins so.
fn holders(link: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for process in fs::read_dir("/proc").unwrap().flatten() {
        let Ok(files) = fs::read_dir(process.path().join("fd")) else { continue };
        let is_it = |file: fs::DirEntry| {
            fs::read_link(file.path()).is_ok_and(|to| to.to_string_lossy().starts_with(link))
                && is_open(&process.path(), &file.file_name().to_string_lossy())
        };
        if files.flatten().any(is_it) {
            found.push(fs::read_link(process.path().join("exe")).unwrap_or_default());
        }
    }
    found
}

fn build(dir: &Path) {
    let built = Command::new("cc")
        .args(["-O1", "-static", "-pthread", "-Wall", "-Wextra", "-o"])
        .arg(dir.join("closing"))
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/closing/guest.c"))
        .status();
    assert!(built.is_ok_and(|status| status.success()), "cc builds static programs");
}

/// Goes through the guest's steps; `is_own`: whether a process with this executable is one where the file is used.
fn go_through(command: &mut Command, file: &Path, is_own: impl Fn(&Path) -> bool) {
    let link = file.display().to_string();
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut steps = 0;
    for line in BufReader::new(child.stdout.take().unwrap()).lines() {
        let line = line.unwrap();
        let holders = holders(&link);
        match line.as_str() {
            "open" => {
                assert!(holders.iter().any(|exe| is_own(exe)), "step {steps}: nobody uses it: {holders:?}")
            }
            "closed" => assert!(holders.is_empty(), "step {steps}: {holders:?} have it open"),
            "done" => break,
            other => panic!("the guest says {other}"),
        }
        steps += 1;
        stdin.write_all(b"go\n").unwrap();
    }
    assert!(child.wait().unwrap().success());
    assert_eq!(steps, 26);
}

/// The program itself, on the host.
#[test]
fn the_host_closes_at_once() {
    let dir = tempfile::tempdir().unwrap();
    build(dir.path());
    let (program, file) = (dir.path().join("closing"), dir.path().join("file"));
    go_through(Command::new(&program).arg(&file), &file, |exe| exe == program);
}

#[test]
fn what_is_closed_inside_is_closed_on_the_host() {
    let dir = tempfile::tempdir().unwrap();
    build(dir.path());
    let umlaut = Path::new(env!("CARGO_BIN_EXE_umlaut"));
    let mut command = Command::new(umlaut);
    command.args(["run", "--platform", "stub", "--bind"]);
    command.arg(format!("{}:/mnt", dir.path().display())).args(["/mnt/closing", "/mnt/file"]);
    // In the guest's own process.
    go_through(&mut command, &dir.path().join("file"), |exe| exe != umlaut);
}
