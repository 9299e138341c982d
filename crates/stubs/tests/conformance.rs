//! The platform passes the conformance suite, with every switch, as root and as an unprivileged user.

use std::process::Command;

use stubs::{Options, Stubs};

const AS_USER: &str = "UMLAUT_TEST_AS_USER";

fn conforms(test: &str, options: Options) {
    if let Some(reason) = stubs::host_lacks() {
        println!("skipped: {reason}");
        return;
    }
    let platform = Stubs::new(options).expect("the platform starts");
    platform::conformance::run(&platform);
    if !rustix::process::geteuid().is_root() || std::env::var_os(AS_USER).is_some() {
        return;
    }
    let output = Command::new("setpriv")
        .args(["--reuid", "65534", "--regid", "65534", "--clear-groups", "--no-new-privs", "--"])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env(AS_USER, "")
        .env("TMPDIR", "/tmp")
        .output()
        .expect("setpriv");
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "as an unprivileged user:\n{text}");
    assert!(text.contains("1 passed"), "it ran:\n{text}");
}

#[test]
fn stub() {
    conforms("stub", Options::default());
}

#[test]
fn without_the_fast_ways() {
    conforms(
        "without_the_fast_ways",
        Options {
            batch: false,
            patch: false,
            delegate: false,
            placement: false,
            namespace: false,
            ..Options::default()
        },
    );
}
