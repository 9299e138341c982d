//! The guests' session, which the host's scheduler takes for a group of its own.

use std::process::Command;

use platform::Platform;
use stubs::{Options, Stubs};

const INSIDE: &str = "UMLAUT_TEST_IN_A_SESSION";
/// What a session's `/proc/PID/autogroup` is to say (sched(7)).
const NICE: &str = "7";

/// The niceness of a process's session; `None`: the host does not group sessions.
fn nice_of(pid: &str) -> Option<String> {
    let group = std::fs::read_to_string(format!("/proc/{pid}/autogroup")).ok()?;
    Some(group.trim_end().rsplit_once(" nice ")?.1.to_owned())
}

/// Only so the host takes what is asked for at once, and more than once.
fn may_administer() -> bool {
    const SYS_ADMIN: u32 = 21;
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:")).unwrap();
    u64::from_str_radix(effective.trim(), 16).unwrap() & 1 << SYS_ADMIN != 0
}

/// Else they would get no time beside a session that is nicer, or take it from one that is not.
#[test]
fn guests_weigh_what_umlaut_does() {
    if let Some(reason) = stubs::host_lacks() {
        return println!("skipped: {reason}");
    }
    if nice_of("self").is_none() || !may_administer() {
        return println!("skipped: the host groups no sessions, or lets us not weigh them");
    }
    if std::env::var_os(INSIDE).is_some() {
        let platform = Stubs::new(Options::default()).expect("the platform starts");
        let guest = platform.spawn().expect("a guest process");
        let theirs = nice_of(&guest.space.host_pid().to_string());
        assert_eq!((nice_of("self").as_deref(), theirs.as_deref()), (Some(NICE), Some(NICE)));
        return;
    }
    let output = Command::new("setsid")
        .args(["--wait", "sh", "-c", &format!("echo {NICE} >/proc/self/autogroup && exec \"$0\" \"$@\"")])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "guests_weigh_what_umlaut_does", "--nocapture"])
        .env(INSIDE, "")
        .output()
        .expect("setsid");
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.contains("1 passed"), "in a session of its own:\n{text}");
}
