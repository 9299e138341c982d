//! Hostile guests through the product, as the calling user and, started by root, as nobody: ways into the host kernel
//! that are not system calls, forged frames, the host's file systems inside a root or bind, privileges on a `--rw` root,
//! names that move while they are walked (`UMLAUT_RACE_SECONDS`, 2, for each), a guest that jumps into its stub (to one byte
//! in `UMLAUT_JUMP_STEP`, 41), and what guest host processes hold.

mod common;

use std::collections::BTreeSet;
use std::fs::{self, Permissions};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use common::forbid::without_listeners;
use common::hostile::{Host, descendants, for_each_user, text};

const PLATFORMS: [&str; 3] = ["sysemu", "ptrace", "stub"];

#[test]
fn other_ways_into_the_host_kernel_lead_nowhere() {
    for_each_user(|host| {
        let bind = format!("{}:/shared", host.shared().display());
        for platform in PLATFORMS {
            let said = host.run(&[
                "--platform",
                platform,
                "--bind",
                &bind,
                "/shared/guest",
                "entries",
                "/shared/made",
            ]);
            assert!(said.contains("int80 mkdir -38\n") && said.contains("x32 mkdir -38\n"), "{said}");
            assert!(said.ends_with("there 0\nalive\n"), "{said}");
            // The same number made by the host, on a path that is the host's.
            let path = host.shared().join("made-outside");
            host.run(&[
                "--platform",
                platform,
                "--bind",
                &bind,
                "/shared/guest",
                "entries",
                path.to_str().unwrap(),
            ]);
            assert!(!path.exists() && !host.shared().join("made").exists());
        }
    });
}

#[test]
fn forged_frames_end_as_on_the_host() {
    for_each_user(|host| {
        let native = text(host.command(&host.shared().join("guest")).arg("frames"));
        let bind = format!("{}:/shared:ro", host.shared().display());
        for platform in PLATFORMS {
            let inside = host.run(&["--platform", platform, "--bind", &bind, "/shared/guest", "frames"]);
            assert_eq!(native, inside, "{platform}");
        }
    });
}

#[test]
fn privileges_on_a_writable_root_never_reach_the_host() {
    for_each_user(|host| {
        let root = host.shared();
        let owner = fs::metadata(&root).unwrap().uid();
        let said = host.run(&["--root", root.to_str().unwrap(), "--rw", "/guest", "privileges"]);
        assert!(said.contains("inside: mode 6755 owner 1234:5678\n"), "{said}");
        assert!(said.contains("mknod 0\n") && said.contains("mkfifo 0\n"), "{said}");
        let mut seen = 0;
        for entry in fs::read_dir(&root).unwrap() {
            let (path, meta) = (entry.as_ref().unwrap().path(), entry.unwrap().metadata().unwrap());
            let kind = meta.file_type();
            assert!(!kind.is_char_device() && !kind.is_block_device(), "{}: a device", path.display());
            assert_eq!(meta.mode() & 0o6000, 0, "{}: set-id", path.display());
            if !common::hostile::PROGRAMS.iter().any(|own| path.ends_with(own)) {
                assert_eq!(meta.uid(), owner, "{}: owned by a guest's user", path.display());
            }
            let mut value = [0u8; 64];
            let caps = rustix::fs::lgetxattr(&path, "security.capability", &mut value[..]);
            assert!(caps.is_err(), "{}: has capabilities", path.display());
            seen += 1;
        }
        assert!(seen >= 4, "only {seen} entries");
    });
}

#[test]
fn the_hosts_kernel_file_systems_do_not_show() {
    for_each_user(|host| {
        for (bind, probe) in [
            ("/proc:/x", "cat /x/self/environ /x/*/environ /x/self/mem /x/version"),
            ("/sys:/x", "cat /x/kernel/* /x/power/state"),
            ("/dev:/x", "head -c 1 /x/null; head -c 1 /x/zero; cat /x/kmsg /x/full"),
        ] {
            let script = format!("{probe} 2>/dev/null | wc -c; ls -A /x | grep -v '^\\.' | wc -l");
            let output = host.umlaut(&["--bind", bind, "sh", "-c", &script]).output().unwrap();
            let said = String::from_utf8_lossy(&output.stdout);
            // Refused when it is mounted, or nothing in it can be read.
            let refused = output.status.code() == Some(125);
            assert!(refused || said.starts_with("0\n"), "{bind}: {said}");
        }
        // Whatever is below our own proc, sys and dev: not the host's.
        let script = "umount /proc /sys /dev 2>/dev/null; cat /proc/*/environ /proc/self/mem 2>/dev/null | \
                      tr '\\0' '\\n' | grep -c canary-in; ls /proc/1/root/ >/dev/null 2>&1; echo alive";
        for words in [&["--root", "/", "sh", "-c", script][..], &["--host-all", "sh", "-c", script]] {
            if host.nobody && words[0] == "--root" && fs::read_dir("/").is_err() {
                continue;
            }
            assert_eq!(host.run(words), "0\nalive\n", "{words:?}");
        }
        // Sockets and FIFOs of the host are names.
        rustix::fs::mknodat(
            rustix::fs::CWD,
            host.shared().join("fifo"),
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::from_raw_mode(0o666),
            0,
        )
        .unwrap();
        let listener = std::os::unix::net::UnixListener::bind(host.shared().join("socket")).unwrap();
        fs::set_permissions(host.shared().join("socket"), Permissions::from_mode(0o777)).unwrap();
        listener.set_nonblocking(true).unwrap();
        let bind = format!("{}:/shared", host.shared().display());
        let script = "import socket\ns = socket.socket(socket.AF_UNIX)\ntry:\n s.connect('/shared/socket')\n print('connected')\n\
                      except OSError: print('refused')";
        assert_eq!(host.run(&["--bind", &bind, "python3", "-c", script]), "refused\n");
        assert!(listener.accept().is_err(), "a guest reached a socket of the host's");
        // One end inside, none outside: a FIFO of the host's would have both.
        let script = "(echo through >/shared/fifo &); read line </shared/fifo; echo $line";
        assert_eq!(host.run(&["--bind", &bind, "timeout", "5", "sh", "-c", script]), "through\n");
    });
}

const OUTSIDE: &str = "the canary lives outside";

/// A directory of the host's that is bound writable, beside one that is not; names in it move while a guest walks them:
/// directories and links to the other directory change places, and directories wander out and back.
fn race_over_a_bind(host: &Host, platform: &str, seconds: u64) {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    use std::sync::atomic::{AtomicBool, Ordering};
    let dir = tempfile::tempdir_in(host.parent.path()).unwrap();
    let (inside, outside, away) =
        (dir.path().join("inside"), dir.path().join("outside"), dir.path().join("away"));
    fs::create_dir_all(inside.join("dir/sub")).unwrap();
    fs::create_dir(&outside).unwrap();
    fs::create_dir(&away).unwrap();
    fs::write(inside.join("dir/file"), "inside").unwrap();
    fs::write(outside.join("file"), OUTSIDE).unwrap();
    fs::write(outside.join("only-outside"), "").unwrap();
    std::os::unix::fs::symlink(&outside, inside.join("link")).unwrap();
    // From where they come to be, in `dir`.
    std::os::unix::fs::symlink("../../outside", inside.join("other-link")).unwrap();
    std::os::unix::fs::symlink("../../outside/file", inside.join("file-link")).unwrap();
    fs::set_permissions(dir.path(), Permissions::from_mode(0o755)).unwrap();
    if host.nobody {
        // Also what is outside is the guest's user's: nothing but hostfs keeps it.
        let given = Command::new("chown").args(["-hR", "65534:65534"]).arg(dir.path()).status();
        assert!(given.unwrap().success());
    }
    let before = fs::symlink_metadata(outside.join("file")).unwrap();
    let done = AtomicBool::new(false);
    let exchange = |a: &Path, b: &Path| {
        // Either may be gone for a moment, by the guest's own doing.
        let _ = renameat_with(CWD, a, CWD, b, RenameFlags::EXCHANGE);
    };
    // By its descriptor: by its name we could come to be outside ourselves.
    let real = fs::File::open(inside.join("dir")).unwrap();
    let exchange_in = |name: &str, link: &Path| {
        let _ = renameat_with(&real, name, CWD, link, RenameFlags::EXCHANGE);
    };
    let said = std::thread::scope(|scope| {
        scope.spawn(|| {
            let [dir, link, other, to_file] =
                ["dir", "link", "other-link", "file-link"].map(|name| inside.join(name));
            while !done.load(Ordering::Relaxed) {
                exchange(&dir, &link);
                exchange(&dir, &link);
                exchange_in("sub", &other);
                exchange_in("sub", &other);
                exchange_in("file", &to_file);
                exchange_in("file", &to_file);
                let _ = fs::rename(&dir, away.join("dir"));
                let _ = fs::rename(&link, &dir);
                let _ = fs::rename(&dir, &link);
                let _ = fs::rename(away.join("dir"), &dir);
                std::thread::sleep(std::time::Duration::from_micros(300));
            }
        });
        let bind = format!("{}:/mnt", inside.display());
        let program = format!("{}:/program:ro", host.shared().display());
        let seconds = seconds.to_string();
        let words = ["--platform", platform, "--bind", &bind, "--bind", &program];
        let command = ["/program/race", "/mnt", &seconds, OUTSIDE];
        // Not from where the view of the current directory shows what is outside.
        let output = host.umlaut(&[&words[..], &command].concat()).current_dir("/").output();
        done.store(true, Ordering::Relaxed);
        output.unwrap()
    });
    let text = String::from_utf8_lossy(&said.stdout);
    let errors = String::from_utf8_lossy(&said.stderr);
    assert_eq!(text, "rounds 1 opened 1\nseen 0\nalive\n", "{platform}: {errors}");
    assert!(!errors.contains("oops"), "{errors}");
    let after = fs::symlink_metadata(outside.join("file")).unwrap();
    assert_eq!(
        (before.mode(), before.uid(), before.mtime_nsec()),
        (after.mode(), after.uid(), after.mtime_nsec())
    );
    assert_eq!(fs::read_to_string(outside.join("file")).unwrap(), OUTSIDE);
    let mut value = [0; 8];
    assert!(rustix::fs::getxattr(outside.join("file"), "user.mark", &mut value[..]).is_err());
    let names: BTreeSet<_> =
        fs::read_dir(&outside).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["file", "only-outside"].map(Into::into).into());
}

#[test]
fn names_that_move_lead_nowhere() {
    let seconds = std::env::var("UMLAUT_RACE_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(2);
    for_each_user(|host| {
        for platform in ["sysemu", "stub"] {
            race_over_a_bind(host, platform, seconds);
        }
    });
}

/// Our code and memory in its own process are the guest's to spoil: others go on, and nothing is left behind.
#[test]
fn a_guest_that_spoils_its_stub_harms_itself_alone() {
    let step = std::env::var("UMLAUT_JUMP_STEP").unwrap_or("41".into());
    for_each_user(|host| {
        let bind = format!("{}:/shared:ro", host.shared().display());
        let asks = host.asks_consent();
        // Beside each other: the kernel has patience with those that do not answer.
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut umlaut =
                    host.umlaut(&["--platform", "stub", "--bind", &bind, "/shared/stub", "hide"]);
                without_listeners(&mut umlaut);
                let said = text(&mut umlaut);
                assert!(said.contains("hidden 1\nstill there 0\n"), "without consent: {said}");
            });
            for case in ["counters", "scribble", "jumps", "hide", "elsewhere", "storms", "frames"] {
                let (bind, step) = (&bind, &step);
                scope.spawn(move || {
                    let said = host.run(&["--platform", "stub", "--bind", bind, "/shared/stub", case, step]);
                    assert!(said.ends_with("alive\n"), "{case}: {said}");
                    if case == "frames" {
                        assert_eq!(said, "handled 5, killed 7\nalive\n");
                    }
                    if case == "storms" {
                        assert!(said.contains("ended in time 1\n"), "{said}");
                    }
                    if case == "hide" && asks {
                        assert!(said.contains("hidden 0\n"), "{said}");
                    }
                });
            }
        });
    });
}

#[test]
fn guest_host_processes_hold_one_descriptor() {
    for_each_user(|host| {
        let bind = format!("{}:/shared:ro", host.shared().display());
        let mut umlaut =
            host.umlaut(&["--bind", &bind, "/shared/guest", "pause"]).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(umlaut.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n");
        let exe = |pid: u32| fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default();
        let own = exe(umlaut.id());
        let guests: Vec<u32> = descendants(umlaut.id()).into_iter().filter(|pid| exe(*pid) != own).collect();
        let held: Vec<(u32, Vec<PathBuf>)> = guests
            .iter()
            .filter_map(|pid| {
                let files = fs::read_dir(format!("/proc/{pid}/fd")).ok()?;
                Some((*pid, files.flatten().filter_map(|file| fs::read_link(file.path()).ok()).collect()))
            })
            .collect();
        umlaut.kill().unwrap();
        umlaut.wait().unwrap();
        assert!(!held.is_empty(), "no guest host process was seen");
        for (pid, files) in held {
            let sockets = files.iter().filter(|file| file.to_string_lossy().starts_with("socket:")).count();
            assert!(files.len() <= 1 && sockets == files.len(), "{pid} holds {files:?}");
        }
    });
}

/// What is delegated is the guest's own file at its own access, and the table that says so leads to nothing else.
#[test]
fn forged_entries_lead_to_no_other_file() {
    for_each_user(|host| {
        let bind = format!("{}:/shared:ro", host.shared().display());
        let mut umlaut = host
            .umlaut(&["--platform", "stub", "--bind", &bind, "/shared/stub", "files"])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines: Vec<String> =
            BufReader::new(umlaut.stdout.take().unwrap()).lines().take(3).map_while(Result::ok).collect();
        let held: Vec<(PathBuf, u32)> = descendants(umlaut.id())
            .into_iter()
            .filter_map(|pid| fs::read_dir(format!("/proc/{pid}/fd")).ok())
            .flat_map(|files| files.flatten())
            .filter_map(|file| {
                let number = file.file_name();
                let info = file.path().parent()?.with_file_name("fdinfo").join(number);
                let info = fs::read_to_string(info).ok()?;
                let flags = info.lines().find_map(|line| line.strip_prefix("flags:"))?.trim();
                Some((fs::read_link(file.path()).ok()?, u32::from_str_radix(flags, 8).ok()?))
            })
            .filter(|(path, _)| path.ends_with("shared/stub"))
            .collect();
        umlaut.kill().unwrap();
        umlaut.wait().unwrap();
        assert_eq!(
            lines,
            ["control socket 1", "delegated 1, read by others 0, written 0", "ready"],
            "on stub"
        );
        assert!(!held.is_empty(), "the file is open on the host");
        for (path, flags) in held {
            // O_PATH (the kernel's names of files) or O_RDONLY.
            assert_eq!(flags & 3, 0, "{path:?} is open with {flags:o}");
        }
    });
}
