//! The platform passes the conformance suite, with every switch, as root and as an unprivileged user.

use std::process::Command;

use platform::{CallShape, Place};
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

/// All that the stub has code for, as the kernel's table has it.
fn shape(number: u16) -> CallShape {
    const DELEGATED: [libc::c_long; 9] = [
        libc::SYS_read,
        libc::SYS_write,
        libc::SYS_pread64,
        libc::SYS_pwrite64,
        libc::SYS_lseek,
        libc::SYS_readv,
        libc::SYS_writev,
        libc::SYS_preadv,
        libc::SYS_pwritev,
    ];
    let place = match stubs::LEAVES.contains(&number) {
        true if DELEGATED.contains(&number.into()) => Place::Delegated,
        true => Place::Stub,
        false => Place::Kernel,
    };
    CallShape { place, ..CallShape::default() }
}

#[test]
fn stub() {
    conforms("stub", Options { shapes: shape, ..Options::default() });
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
