//! `umlaut explain-sites` and what `umlaut run --stats` says of the ways by which calls came: both on one small program
//! whose sites are known.

use std::path::Path;
use std::process::{Command, Output, Stdio};

const PROGRAM: &str = r#"
    .globl _start
    .text
    .skip 64, 0x90
_start:
    mov $300, %ebx
    mov $110, %r12d
again:
    mov $110, %eax
    syscall
    .skip 64, 0x90
    mov %r12, %rax
    syscall
    jmp further
    .skip 64, 0x90
further:
    dec %ebx
    jnz again
    xor %edi, %edi
    mov $231, %eax
    syscall
"#;

fn build(dir: &Path) -> std::path::PathBuf {
    let (source, program) = (dir.join("sites.s"), dir.join("sites"));
    std::fs::write(&source, PROGRAM).unwrap();
    let built = Command::new("cc").args(["-nostdlib", "-static", "-o"]).arg(&program).arg(&source).status();
    assert!(built.is_ok_and(|status| status.success()), "cc builds static programs");
    program
}

fn umlaut(words: &[&str], program: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_umlaut"));
    command.args(words).arg(program).stdin(Stdio::null());
    let output = command.output().unwrap();
    assert!(output.status.success(), "{words:?}: {output:?}");
    output
}

fn figure(stats: &str, name: &str) -> u64 {
    let line = stats.lines().find_map(|line| line.trim().strip_prefix(name)?.split_whitespace().next());
    line.and_then(|number| number.parse().ok()).unwrap_or_else(|| panic!("no {name} in {stats}"))
}

#[test]
fn sites_are_explained_and_calls_come_as_it_says() {
    let directory = tempfile::tempdir().unwrap();
    let program = build(directory.path());
    let said = String::from_utf8(umlaut(&["explain-sites"], &program).stdout).unwrap();
    assert!(
        said.ends_with(
            "3 sites: 2 patched by the instruction before, 0 with the one behind, 1 left to SIGSYS\n"
        ),
        "{said}"
    );
    let left = String::from_utf8(umlaut(&["explain-sites", "--left"], &program).stdout).unwrap();
    assert!(left.lines().count() == 2 && left.contains("does not work elsewhere"), "{left}");
    let bind = format!("{}:/shared:ro", directory.path().display());
    let words = ["run", "--platform", "stub", "--stats", "--bind", &bind];
    let output = umlaut(&words, Path::new("/shared/sites"));
    let stats = String::from_utf8(output.stderr).unwrap();
    assert_eq!((figure(&stats, "calls_by_site"), figure(&stats, "calls_by_sigsys")), (301, 300), "{stats}");
}

/// The stub has code for just those calls that the kernel's rows say it may serve.
#[test]
fn the_stub_serves_what_the_table_says() {
    use platform::Place;
    let mut marked: Vec<u16> = kernel::syscall::table::rows()
        .filter(|row| row.place != Place::Kernel)
        .map(|row| row.number)
        .collect();
    let mut leaves = stubs::LEAVES.to_vec();
    marked.sort_unstable();
    leaves.sort_unstable();
    assert_eq!(marked, leaves);
}
