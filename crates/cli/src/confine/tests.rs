//! What a confined thread can still do. Both fences hold for the thread that puts them up, so each test has one of its
//! own.

use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::process::{Child, Command, Stdio};

use super::*;

/// Runs `test` on a thread that has given up new privileges.
fn on_a_thread(test: impl FnOnce() + Send) {
    std::thread::scope(|scope| {
        let run = || {
            rustix::thread::set_no_new_privs(true).unwrap();
            test();
        };
        scope.spawn(run).join().unwrap();
    });
}

fn sleeper() -> Child {
    Command::new("sleep").arg("60").stdin(Stdio::null()).spawn().unwrap()
}

fn end(mut child: Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn only_files_that_are_shown_open() {
    if host::landlock::abi() < 3 {
        println!("skipped: this host's Landlock is older than Linux 6.2, or missing");
        return;
    }
    let outside = tempfile::tempdir().unwrap();
    let (ro, rw) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    for dir in [&outside, &ro, &rw] {
        fs::write(dir.path().join("file"), "text").unwrap();
    }
    let shown = [
        Shown { path: ro.path().into(), writable: false },
        Shown { path: rw.path().into(), writable: true },
        Shown { path: "/not/there".into(), writable: true },
    ];
    let stranger = sleeper();
    let pid = stranger.id();
    on_a_thread(|| {
        assert!(forbid_other_files(&shown).unwrap());
        let refused = |result: io::Result<()>| {
            assert_eq!(result.unwrap_err().kind(), ErrorKind::PermissionDenied);
        };
        let denied = |path: &Path| refused(File::open(path).map(drop));
        denied(&outside.path().join("file"));
        denied(Path::new("/etc/passwd"));
        refused(File::create(ro.path().join("file")).map(drop));
        refused(fs::write(ro.path().join("new"), ""));
        refused(fs::write(outside.path().join("new"), ""));
        refused(fs::rename(ro.path().join("file"), rw.path().join("moved")));
        assert_eq!(fs::read(ro.path().join("file")).unwrap(), b"text");
        fs::create_dir(rw.path().join("dir")).unwrap();
        fs::rename(rw.path().join("file"), rw.path().join("dir/file")).unwrap();
        File::options().write(true).truncate(true).open(rw.path().join("dir/file")).unwrap();
        fs::remove_dir_all(rw.path().join("dir")).unwrap();
        // Memory files are nobody's, and open again.
        let memory = rustix::fs::memfd_create(c"test", rustix::fs::MemfdFlags::CLOEXEC).unwrap();
        let again = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&memory));
        File::options().write(true).open(again).unwrap().write_all(b"text").unwrap();
        // No program of the host's runs, and no process from before can be looked into.
        refused(Command::new("/bin/true").status().map(drop));
        refused(File::open(format!("/proc/{pid}/mem")).map(drop));
        let mut byte = [0];
        let error = host::vm::read_process(pid.cast_signed(), &[(0x1000, 1)], &mut byte).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::PermissionDenied);
        if host::landlock::abi() >= 4 {
            refused(std::net::TcpStream::connect(("127.0.0.1", 1)).map(drop));
            refused(std::net::TcpListener::bind(("127.0.0.1", 0)).map(drop));
        }
    });
    end(stranger);
}

#[test]
fn only_calls_of_the_list_are_made() {
    let stranger = sleeper();
    let pid = rustix::process::Pid::from_child(&stranger);
    on_a_thread(|| {
        host::seccomp::report_refused().unwrap();
        host::seccomp::install(&filter(false, None), host::seccomp::Threads::Own).unwrap();
        let refused = |result: io::Result<()>| {
            assert_eq!(result.unwrap_err().raw_os_error(), Some(libc::EPERM));
        };
        refused(Command::new("/bin/true").status().map(drop));
        refused(std::net::TcpListener::bind(("127.0.0.1", 0)).map(drop));
        refused(std::os::unix::net::UnixDatagram::unbound().map(drop));
        refused(std::os::unix::fs::chown("/nonexistent", Some(0), Some(0)));
        refused(rustix::process::chroot("/").map_err(io::Error::from));
        refused(rustix::process::setsid().map(drop).map_err(io::Error::from));
        let code = rustix::mm::ProtFlags::READ | rustix::mm::ProtFlags::EXEC;
        assert_eq!(map(code), Some(libc::EPERM));
        assert_eq!(map(rustix::mm::ProtFlags::READ), None);
        // What it does all the time.
        std::thread::spawn(|| fs::read("/proc/self/stat").unwrap()).join().unwrap();
        rustix::process::test_kill_process(pid).unwrap();
    });
    end(stranger);
}

/// Root's kernel opens files as two users, and becomes nobody else again.
#[test]
#[allow(unsafe_code, reason = "changing ids")]
fn who_it_is_stays_as_it_is() {
    const GUESTS: u32 = 0x7812_3456;
    let root = rustix::process::geteuid().is_root();
    // SAFETY: integers.
    let set = |number: libc::c_long, ids: [u32; 3]| unsafe {
        let result = libc::syscall(number, ids[0], ids[1], ids[2]);
        (result, if result < 0 { std::io::Error::last_os_error().raw_os_error() } else { None })
    };
    let refused = (-1, Some(libc::EPERM));
    on_a_thread(|| {
        let users = Users { guests: GUESTS, files: (0, 0) };
        host::seccomp::report_refused().unwrap();
        host::seccomp::install(&filter(false, Some(users)), host::seccomp::Threads::Own).unwrap();
        if root {
            for number in [libc::SYS_setfsuid, libc::SYS_setfsgid] {
                assert_eq!(set(number, [GUESTS, 0, 0]), (0, None));
                assert_eq!(set(number, [0, 0, 0]), (i64::from(GUESTS), None));
                assert_eq!(set(number, [1, 0, 0]), refused);
                assert_eq!(set(number, [0, 0, 0]), (0, None));
            }
        }
        for number in [
            libc::SYS_setuid,
            libc::SYS_setgid,
            libc::SYS_setreuid,
            libc::SYS_setregid,
            libc::SYS_setresuid,
            libc::SYS_setresgid,
            libc::SYS_setgroups,
            libc::SYS_capset,
        ] {
            assert_eq!(set(number, [0; 3]), refused, "{number}");
        }
    });
    // Without another user, not even that.
    on_a_thread(|| {
        host::seccomp::report_refused().unwrap();
        host::seccomp::install(&filter(false, None), host::seccomp::Threads::Own).unwrap();
        assert_eq!(set(libc::SYS_setfsuid, [GUESTS, 0, 0]), refused);
    });
}

/// The error of mapping a page.
#[allow(unsafe_code, reason = "mapping memory")]
fn map(protection: rustix::mm::ProtFlags) -> Option<i32> {
    // SAFETY: a fresh mapping at a place that the host chooses, which nobody touches.
    let mapped = unsafe {
        rustix::mm::mmap_anonymous(std::ptr::null_mut(), 4096, protection, rustix::mm::MapFlags::PRIVATE)
    };
    mapped.err().map(rustix::io::Errno::raw_os_error)
}

/// ptrace passes on its platforms only, and no number is listed twice.
#[test]
fn the_list_is_what_the_filter_says() {
    use guest_process::bpf::interpreter::{Data, verdict};
    let mut numbers: Vec<_> = GROUPS.iter().flat_map(|(_, rows)| rows.iter().map(|row| row.0)).collect();
    let count = numbers.len();
    numbers.sort_unstable();
    numbers.dedup();
    assert_eq!(numbers.len(), count);
    let root = Users { guests: 0x7812_3456, files: (0, 5) };
    for (tracing, users) in [(false, None), (true, None), (false, Some(root)), (true, Some(root))] {
        let program = filter(tracing, users);
        for nr in (0..600).chain([0x4000_0000 + 39, u32::MAX]) {
            let check = GROUPS.iter().flat_map(|(_, rows)| rows.iter()).find(|row| row.0 == i64::from(nr));
            for arch in [AUDIT_ARCH_X86_64, 0x4000_0003] {
                for argument in [0, 5, 0x7812_3456, u64::from(u32::MAX), 1 << 32] {
                    let data = Data { nr, arch, ip: 0, args: [argument; 6] };
                    let wanted = arch == AUDIT_ARCH_X86_64
                        && check.is_some_and(|(_, check)| match *check {
                            Check::Any => true,
                            Check::Tracing => tracing,
                            Check::FileUser => users.is_some() && [0, 0x7812_3456].contains(&argument),
                            Check::FileGroup => users.is_some() && [5, 0x7812_3456].contains(&argument),
                            Check::Missing | Check::Quietly => false,
                            Check::OneOf(_, values) => {
                                u32::try_from(argument).is_ok_and(|argument| values.contains(&argument))
                            }
                            Check::All(_, bits) => argument & u64::from(bits) == u64::from(bits),
                            Check::None(_, bits) => argument & u64::from(bits) == 0,
                        });
                    assert_eq!(verdict(&program, &data.words()), Some(wanted), "{data:x?}");
                }
            }
        }
    }
}
