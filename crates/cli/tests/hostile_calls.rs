//! What guests can do with what is in their own host processes, and beside each other. Every host call from every system-call
//! instruction of the stub, live: what the host lets through is seen from outside, and is on the list of docs/host-calls.md.
//! One in [`SAMPLE`] is tried, or in `UMLAUT_CALLS_SAMPLE` (1: all).

mod common;

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::Stdio;
use std::sync::atomic::Ordering;

use common::hostile::{descendants, for_each_user};
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

/// What was handed to it, its socket, its record of mappings, the frames by which it comes back: all that is the guest's, to
/// spoil. Others go on, and it ends at the latest when it is told to.
#[test]
fn a_guest_that_spoils_what_it_was_given_harms_itself_alone() {
    if let Some(reason) = stubs::host_lacks() {
        println!("skipped: {reason}");
        return;
    }
    for_each_user(|host| {
        let bind = format!("{}:/shared:ro", host.shared().display());
        std::thread::scope(|scope| {
            for case in ["sockets", "delegated", "mappings", "frames"] {
                let bind = &bind;
                scope.spawn(move || {
                    let said = host.run(&["--platform", "stub", "--bind", bind, "/shared/others", case]);
                    assert_eq!(said, "maps files 1\nalive\n", "{case}");
                });
            }
        });
    });
}

/// The host's CPU time of a process, in ticks.
fn ticks(pid: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let fields = stat.rsplit(')').next().unwrap_or("").split_whitespace().skip(11).take(2);
    fields.filter_map(|field| field.parse::<u64>().ok()).sum()
}

/// After ten thousand quick calls by guests that make their stub watch for ever, nobody watches any more.
#[test]
fn nobody_watches_for_a_guest_that_has_gone() {
    if let Some(reason) = stubs::host_lacks() {
        println!("skipped: {reason}");
        return;
    }
    for_each_user(|host| {
        let bind = format!("{}:/shared:ro", host.shared().display());
        let words = ["--platform", "stub", "--bind", &bind, "/shared/others", "watching"];
        let mut umlaut = host.umlaut(&words).stdout(Stdio::piped()).spawn().unwrap();
        let mut output = BufReader::new(umlaut.stdout.take().unwrap());
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        assert_eq!(line, "quiet\n");
        let all = || descendants(umlaut.id()).into_iter().map(ticks).sum::<u64>();
        let before = all();
        std::thread::sleep(std::time::Duration::from_secs(2));
        let used = all().saturating_sub(before);
        let mut said = String::new();
        output.read_to_string(&mut said).unwrap();
        assert!(umlaut.wait().unwrap().success() && said.ends_with("alive\n"), "{said}");
        // Of 200, on one CPU: one that watched would take all of them.
        assert!(used < 100, "{used} ticks in two seconds in which nobody does anything");
    });
}

/// Two instances of one user, each with a guest that leaves a mark wherever it can and looks for the other's.
#[test]
fn two_guests_side_by_side_see_nothing_of_each_other() {
    const SCRIPT: &str = r"
import glob, os, socket, sys, time
own, other = sys.argv[1:]
with open('/tmp/mark-' + own, 'w') as file: file.write(own)
with open('/dev/shm/mark-' + own, 'w') as file: file.write(own)
s = socket.socket(socket.AF_UNIX); s.bind('\0mark-' + own); s.listen()
print('ready', flush=True)
sys.stdin.readline()
seen = glob.glob('/tmp/mark-*') + glob.glob('/dev/shm/mark-*')
assert sorted(seen) == ['/dev/shm/mark-' + own, '/tmp/mark-' + own], seen
try:
    socket.socket(socket.AF_UNIX).connect('\0mark-' + other)
    print('connected')
except ConnectionRefusedError: pass
for pid in os.listdir('/proc'):
    if not pid.isdigit(): continue
    command = open('/proc/' + pid + '/cmdline').read()
    assert other not in command.split('\0')[3:4], command
for pid in range(2, 400):
    if pid != os.getpid() and not os.path.exists('/proc/%d' % pid):
        try: os.kill(pid, 9); print('killed', pid)
        except ProcessLookupError: pass
for host in sys.stdin.readline().split():
    try: os.kill(int(host), 9); print('killed', host)
    except ProcessLookupError: pass
print('nothing', flush=True)
";
    for_each_user(|host| {
        for platform in ["stub", "sysemu"] {
            let mut both: Vec<_> = [("one", "two"), ("two", "one")]
                .map(|(own, other)| {
                    let words = ["--platform", platform, "python3", "-c", SCRIPT, own, other];
                    host.umlaut(&words).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap()
                })
                .into();
            let mut outputs: Vec<_> =
                both.iter_mut().map(|one| BufReader::new(one.stdout.take().unwrap())).collect();
            for output in &mut outputs {
                let mut line = String::new();
                output.read_line(&mut line).unwrap();
                assert_eq!(line, "ready\n", "{platform}");
            }
            // Each is told the host's pids of the other's.
            let pids: Vec<String> = both
                .iter()
                .map(|one| {
                    descendants(one.id())
                        .iter()
                        .filter(|pid| **pid > 400)
                        .map(|pid| format!("{pid} "))
                        .collect()
                })
                .collect();
            for (one, pids) in both.iter_mut().zip(pids.iter().rev()) {
                writeln!(one.stdin.take().unwrap(), "\n{pids}").unwrap();
            }
            for (one, output) in both.iter_mut().zip(&mut outputs) {
                let mut said = String::new();
                output.read_to_string(&mut said).unwrap();
                assert_eq!(said, "nothing\n", "{platform}");
                assert!(one.wait().unwrap().success());
            }
        }
    });
}
