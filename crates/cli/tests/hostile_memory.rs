//! Memory that a guest of the platform `stub` hides from its process's size: a memory file that was sent to its stub for a
//! moment, kept and filled. While the kernel has it too, `--memory` counts it, and to who keeps it; then it can hold nothing.

mod common;

use common::hostile::{Host, for_each_user};

/// MiB that are hidden.
const HIDDEN: &str = "100";

/// What the hostile program says, and umlaut; beside it a shell that must not be killed for it.
fn run(host: &Host, limit: &str, case: &str) -> (String, String) {
    let bind = format!("{}:/shared:ro", host.shared().display());
    let script = format!("/shared/hoard {case} {HIDDEN}; echo status $?");
    let words = ["--platform", "stub", "--memory", limit, "--bind", &bind, "sh", "-c", &script];
    let output = host.umlaut(&words).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr))
}

#[test]
fn memory_files_that_are_kept_count_or_are_empty() {
    if let Some(reason) = stubs::host_lacks() {
        println!("skipped: {reason}");
        return;
    }
    for_each_user(|host| {
        // That it can be hidden from a process's size at all: where there is room for it, nobody minds.
        let (said, errors) = run(host, "4G", "live");
        assert!(said.contains("keeps 1 after -12\nfilled 1\nalive\nstatus 0\n"), "{said}{errors}");
        let (said, errors) = run(host, "64M", "live");
        assert!(said.ends_with("status 137\n") && !said.contains("alive"), "{said}{errors}");
        assert!(errors.contains("(hoard)") && !errors.contains("(sh)"), "{said}{errors}");
        for case in ["gone", "child"] {
            let (said, errors) = run(host, "64M", case);
            assert!(said.contains("keeps 1 after -1"), "{case}: {said}{errors}");
            assert!(said.ends_with("filled 0\nalive\nstatus 0\n"), "{case}: {said}{errors}");
        }
    });
}
