//! Host threads and processes that a guest of the platform `stub` makes without the kernel's order: with consent there are
//! none, whatever it does; where the host cannot ask for consent, processes end at the kernel's next look. Counted on the
//! host, from outside.

mod common;

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{ChildStdout, Stdio};

use common::forbid::without_listeners;
use common::hostile::{Host, descendants, for_each_user};

/// Whether there is anything to be tried.
fn asks(host: &Host) -> bool {
    if let Some(reason) = stubs::host_lacks() {
        println!("skipped: {reason}");
        return false;
    }
    let asks = host.asks_consent();
    if !asks {
        println!("skipped: this host does not ask for consent");
    }
    asks
}

/// The host threads of each guest process below `umlaut`.
fn threads(umlaut: u32) -> Vec<usize> {
    let is_guest = |pid: &u32| {
        std::fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name == "umlaut-guest\n")
    };
    let count = |pid: u32| std::fs::read_dir(format!("/proc/{pid}/task")).map_or(0, Iterator::count);
    descendants(umlaut).into_iter().filter(is_guest).map(count).collect()
}

fn line(output: &mut BufReader<ChildStdout>) -> String {
    let mut line = String::new();
    output.read_line(&mut line).unwrap();
    line
}

/// What came of a case.
struct End {
    /// What the looks have shown.
    looks: Vec<Vec<usize>>,
    /// What the guest has said behind them.
    said: String,
    errors: String,
}

/// Runs a case, of which each line that is `expected` is answered after a look.
fn run(host: &Host, case: &str, expected: &[&str], consent: bool) -> End {
    let bind = format!("{}:/shared:ro", host.shared().display());
    let mut command = host.umlaut(&["--platform", "stub", "--bind", &bind, "/shared/clones", case]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    if !consent {
        without_listeners(&mut command);
    }
    let mut umlaut = command.spawn().unwrap();
    let (mut input, mut output) =
        (umlaut.stdin.take().unwrap(), BufReader::new(umlaut.stdout.take().unwrap()));
    let looks = expected.iter().map(|wanted| {
        assert_eq!(line(&mut output), format!("{wanted}\n"), "{case}");
        let seen = threads(umlaut.id());
        input.write_all(b"\n").unwrap();
        seen
    });
    let looks = looks.collect();
    let mut rest = String::new();
    output.read_to_string(&mut rest).unwrap();
    let said = umlaut.wait_with_output().unwrap();
    let errors = String::from_utf8_lossy(&said.stderr);
    assert!(said.status.success() && !errors.contains("oops"), "{case}: {rest}{errors}");
    End { looks, said: rest, errors: errors.into_owned() }
}

#[test]
fn nobody_clones_without_an_order() {
    for_each_user(|host| {
        if asks(host) {
            let End { looks, said, .. } = run(host, "alone", &["before", "after"], true);
            assert_eq!(looks[0], looks[1]);
            assert_eq!(said, "alive\n");
        }
    });
}

/// Of twenty tries with one order, by a guest that has taken the place of its stub.
#[test]
fn an_order_is_good_for_one_clone() {
    for_each_user(|host| {
        if asks(host) {
            assert_eq!(run(host, "often", &[], true).said, "ordered 1, made 1\n");
            // Else it has tried nothing.
            assert_eq!(run(host, "often", &[], false).said, "ordered 1, made 20\n");
        }
    });
}

/// Threads that a process of the case `attack` has by orders: its first, the attacker, and those that sleep.
const ORDERED: usize = 1 + 1 + 6;

#[test]
fn nobody_takes_the_clones_of_others() {
    for_each_user(|host| {
        if asks(host) {
            let End { looks, said, .. } = run(host, "attack", &["at work"], true);
            assert!(looks[0].iter().all(|threads| *threads <= ORDERED), "{looks:?}");
            assert!(looks[0].contains(&ORDERED), "none has come through: {looks:?}");
            assert_eq!(said, "");
        }
    });
}

/// A thread that says that it has ended, and stays: within half a minute its process ends.
#[test]
fn nobody_keeps_a_thread_that_has_ended() {
    for_each_user(|host| {
        if asks(host) {
            let End { said, errors, .. } = run(host, "pretend", &[], true);
            assert_eq!(said, "killed 9\nalive\n");
            assert!(errors.contains("has not ended as it says"), "{errors}");
        }
    });
}
