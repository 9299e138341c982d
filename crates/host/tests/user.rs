//! What a process may do once it is another user in all but files. Who it is concerns the whole process, so this program has one
//! test.

use std::fs::{self, File};
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use host::privileges::{Capabilities, hold_only};
use host::user::{Users, as_guests, become_user, file_ids, is_in_use, may_change, perhaps_as_guests, users};
use rustix::process::{Pid, test_kill_process};

/// As high as those that umlaut takes.
const GUESTS: u32 = 0x7812_3456;

fn sleeper(before: &[&str]) -> Child {
    let words = [before, &["sleep", "60"]].concat();
    let child = Command::new(words[0]).args(&words[1..]).stdin(Stdio::null()).spawn().unwrap();
    while fs::read_to_string(format!("/proc/{}/comm", child.id())).unwrap() != "sleep\n" {
        std::thread::yield_now();
    }
    child
}

fn end(mut child: Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}

/// The ids of the calling thread.
fn own(name: &str) -> Vec<u32> {
    let status = fs::read_to_string("/proc/thread-self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
    line.split_whitespace().map(|id| id.parse().unwrap()).collect()
}

fn maps(process: Pid) -> std::io::Result<String> {
    fs::read_to_string(format!("/proc/{process}/maps"))
}

fn memory(process: Pid) -> std::io::Result<File> {
    File::options().write(true).open(format!("/proc/{process}/mem"))
}

#[test]
fn root_becomes_another_user_in_all_but_files() {
    if !rustix::process::geteuid().is_root() {
        println!("skipped: only root can become another user");
        return;
    }
    let held = host::privileges::permitted().unwrap();
    if held & Capabilities::SETUID.bits() == 0 || may_change().is_err() {
        println!("skipped: this root may not become another user");
        return;
    }
    let group = rustix::process::getegid().as_raw();
    let before = (users(), file_ids(), as_guests(|| own("Uid:")), is_in_use(GUESTS));
    assert_eq!(before, (None, (0, group), vec![0; 4], false));
    let id = GUESTS.to_string();
    let roots = sleeper(&[]);
    let guests = sleeper(&["setpriv", "--reuid", &id, "--regid", &id, "--clear-groups"]);
    let dir = tempfile::tempdir().unwrap();
    // The rest of the process stays root, to end them.
    std::thread::scope(|scope| {
        scope.spawn(|| changed(group, Pid::from_child(&roots), Pid::from_child(&guests), dir.path()));
    });
    end(roots);
    end(guests);
}

fn changed(group: u32, root: Pid, guest: Pid, dir: &Path) {
    become_user(GUESTS).unwrap();
    hold_only(Capabilities::empty()).unwrap();
    let ids = || (own("Uid:"), own("Gid:"), own("Groups:"));
    let usual = (vec![GUESTS, GUESTS, 0, 0], vec![GUESTS, GUESTS, group, group], vec![]);
    assert_eq!((users(), ids()), (Some(Users { guests: GUESTS, files: (0, group) }), usual.clone()));
    assert!(is_in_use(GUESTS));
    // Files are root's.
    fs::write(dir.join("file"), "text").unwrap();
    let made = fs::metadata(dir.join("file")).unwrap();
    assert_eq!((made.uid(), made.gid(), file_ids()), (0, group, (0, group)));
    // Processes are guests', not root's.
    test_kill_process(guest).unwrap();
    assert_eq!(test_kill_process(root), Err(rustix::io::Errno::PERM));
    let refused = |error: std::io::Error| assert_eq!(error.kind(), ErrorKind::PermissionDenied);
    refused(maps(guest).unwrap_err());
    refused(memory(guest).unwrap_err());
    refused(memory(root).unwrap_err());
    as_guests(|| memory(guest)).unwrap();
    refused(as_guests(|| memory(root)).unwrap_err());
    let text = perhaps_as_guests(|| maps(guest)).unwrap();
    let line = text.lines().find(|line| line.ends_with("[stack]")).unwrap();
    let end = u64::from_str_radix(line.split(['-', ' ']).nth(1).unwrap(), 16).unwrap();
    let copy = |process: Pid| {
        host::vm::read_process(process.as_raw_nonzero().get(), &[(end - 8, 1)], &mut [0]).map(drop)
    };
    copy(guest).unwrap();
    refused(copy(root).unwrap_err());
    // Nor settings of the host.
    File::options().write(true).open("/proc/sys/kernel/threads-max").unwrap_err();
    // It goes to and fro, also if something goes wrong in between.
    let between = (vec![GUESTS, GUESTS, 0, GUESTS], vec![GUESTS, GUESTS, group, GUESTS], vec![]);
    assert_eq!(as_guests(ids), between);
    let panic = || as_guests(|| std::panic::resume_unwind(Box::new(())));
    std::panic::catch_unwind(panic).unwrap_err();
    assert_eq!(ids(), usual);
    // A guest process is that user only, and cannot go back.
    let guest = || {
        host::user::become_guest().unwrap();
        as_guests(ids);
        ids()
    };
    let ids = std::thread::scope(|scope| scope.spawn(guest).join().unwrap());
    assert_eq!(ids, (vec![GUESTS; 4], vec![GUESTS; 4], vec![]));
}
