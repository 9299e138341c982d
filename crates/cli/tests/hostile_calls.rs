//! Every host call from every system-call instruction of the stub, live: what the host lets through is seen from outside, and
//! is on the list of docs/host-calls.md. One in [`SAMPLE`] is tried, or in `UMLAUT_CALLS_SAMPLE` (1: all).

mod common;

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;
use std::sync::atomic::Ordering;

use common::hostile::for_each_user;
use common::listener::{Listener, Seen};

/// Of how many numbers at each instruction one is tried.
const SAMPLE: &str = "127";
/// `restart_syscall`: the host's own, for waits that were interrupted.
const RESTART: i32 = 219;
/// Bytes in which the stub's text lies.
const TEXT: u64 = 0x3000;

/// Where a call came from within the stub's text, if from there, and its number.
fn place(text: u64, (instruction, number): (u64, i32)) -> (Option<u64>, i32) {
    let offset = instruction.checked_sub(text + 2).filter(|offset| *offset < TEXT);
    (offset, number)
}

#[test]
fn what_comes_through_is_on_the_list() {
    if let Some(reason) = stubs::host_lacks() {
        println!("skipped: {reason}");
        return;
    }
    let sample = std::env::var("UMLAUT_CALLS_SAMPLE").unwrap_or(SAMPLE.into());
    let list: BTreeSet<(u64, i32)> =
        stubs::host_call_places().map(|(place, number)| (place, i32::try_from(number).unwrap())).collect();
    for_each_user(|host| {
        let bind = format!("{}:/shared:ro", host.shared().display());
        let words = ["--platform", "stub", "--bind", &bind, "/shared/sites", &sample];
        let mut command = host.umlaut(&words);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let listener = Listener::around(&mut command, abi::GUEST_TOP);
        let mut umlaut = match command.spawn() {
            Ok(umlaut) => umlaut,
            Err(error) => {
                // EBUSY: somebody already listens around us, as some container engines do.
                println!("skipped: no seccomp listener here: {error}");
                return;
            }
        };
        let seen = Seen::default();
        let (text, said, errors) = std::thread::scope(|scope| {
            scope.spawn(|| listener.listen(&seen));
            let mut errors = umlaut.stderr.take().unwrap();
            let errors = scope.spawn(move || {
                let mut text = Vec::new();
                errors.read_to_end(&mut text).unwrap();
                String::from_utf8_lossy(&text).into_owned()
            });
            let mut output = BufReader::new(umlaut.stdout.take().unwrap());
            let mut first = String::new();
            output.read_line(&mut first).unwrap();
            // From here on every guest process has its filter.
            seen.begun.store(true, Ordering::SeqCst);
            let text = first.strip_prefix("text ").and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok());
            let mut said = String::new();
            output.read_to_string(&mut said).unwrap();
            (text, said, errors.join().unwrap())
        });
        let status = umlaut.wait().unwrap();
        assert!(status.success() && !errors.contains("oops"), "{status}: {said}{errors}");
        assert!(said.ends_with("alive\n"), "{said}");
        let text = text.expect("the guest tells where the stub is");
        let calls = std::mem::take(&mut *seen.calls.lock().unwrap());
        let (mut through, mut unlisted) = (BTreeSet::new(), Vec::new());
        for call in calls {
            match place(text, call) {
                (Some(offset), RESTART) if list.contains(&(offset, 202)) || list.contains(&(offset, 449)) => {
                }
                (Some(offset), number) if list.contains(&(offset, number)) => drop(through.insert(offset)),
                // umlaut's own, by the host's vDSO above its stack.
                (None, _) if call.0 > u64::from(u32::MAX) => {}
                _ => unlisted.push(call),
            }
        }
        assert!(unlisted.is_empty(), "came through, and is not on the list: {unlisted:x?} (text {text:x})");
        // Else nothing was seen at all.
        let missing: Vec<_> = list.iter().filter(|(offset, _)| !through.contains(offset)).collect();
        println!("{said}{} of {} instructions were let through, not {missing:x?}", through.len(), list.len());
        assert!(through.len() * 4 >= list.len() * 3, "{through:x?} of {list:x?}");
    });
}
