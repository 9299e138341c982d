//! umlaut on hosts, and with command lines, that are not as they should be: it works, or says what failed and what to
//! try, and ends with 125 (its own failure), 126 (not executable) or 127 (not found). Never a panic.
//!
//! Each case runs as the calling user and, started by root, as nobody too.
#![allow(unsafe_code, reason = "a child gives up system calls between fork and exec")]
#![allow(clippy::cast_possible_truncation, reason = "numbers of a filter of a few instructions")]

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const NOBODY: u32 = 65534;

/// A user, with a directory of their own that is the current one, and the binary beside it.
struct Host {
    _parent: tempfile::TempDir,
    umlaut: PathBuf,
    dir: PathBuf,
    nobody: bool,
}

/// What came of a command.
struct End {
    code: i32,
    out: String,
    err: String,
}

impl Host {
    fn new(nobody: bool) -> Host {
        let parent = tempfile::tempdir().unwrap();
        fs::set_permissions(parent.path(), Permissions::from_mode(0o755)).unwrap();
        let (umlaut, dir) = (parent.path().join("umlaut"), parent.path().join("dir"));
        // By another process: what we hold open for writing, a test beside this one may hand to a child.
        let copied = Command::new("cp").arg(env!("CARGO_BIN_EXE_umlaut")).arg(&umlaut).status();
        assert!(copied.unwrap().success());
        fs::create_dir(&dir).unwrap();
        if nobody {
            std::os::unix::fs::chown(&dir, Some(NOBODY), Some(NOBODY)).unwrap();
        }
        Host { _parent: parent, umlaut, dir, nobody }
    }

    /// A shell script; `$U` is umlaut.
    fn script(&self, text: &str) -> Command {
        let mut command = Command::new("bash");
        command.args(["-c", text]).current_dir(&self.dir).env("U", &self.umlaut).stdin(Stdio::null());
        if self.nobody {
            command.uid(NOBODY).gid(NOBODY);
        }
        command
    }

    fn run(&self, text: &str) -> End {
        end(&mut self.script(text))
    }

    /// An executable file.
    fn file(&self, name: &str, content: &[u8]) -> &Path {
        fs::write(self.dir.join(name), content).unwrap();
        fs::set_permissions(self.dir.join(name), Permissions::from_mode(0o755)).unwrap();
        &self.dir
    }
}

fn end(command: &mut Command) -> End {
    let output = command.output().unwrap();
    let end = End {
        code: output.status.code().unwrap_or(-1),
        out: String::from_utf8_lossy(&output.stdout).into_owned(),
        err: String::from_utf8_lossy(&output.stderr).into_owned(),
    };
    assert!(!end.err.contains("panicked") && end.code != 101, "{command:?}: a panic: {}", end.err);
    end
}

impl End {
    #[track_caller]
    fn is(&self, code: i32, out: &str, err: &str) {
        let fits = self.code == code && self.out.contains(out) && self.err.contains(err);
        assert!(
            fits,
            "wanted {code}, {out:?}, {err:?}: {}\nstdout: {}\nstderr: {}",
            self.code, self.out, self.err
        );
    }
}

fn for_each_user(test: impl Fn(&Host)) {
    test(&Host::new(false));
    if rustix::process::geteuid().is_root() {
        test(&Host::new(true));
    }
}

/// Which of 0, 1, 2 are open, to whichever of 1 and 2 is.
const OPEN: &str =
    "'r=; for n in 0 1 2; do [ -e /proc/self/fd/$n ] && r=$r$n; done; echo open=$r 2>&- || echo open=$r >&2'";

#[test]
fn closed_standard_streams_stay_closed() {
    for_each_user(|host| {
        host.run(&format!("exec <&-; $U run sh -c {OPEN}")).is(0, "open=12\n", "");
        host.run(&format!("exec >&-; $U run sh -c {OPEN}")).is(0, "", "open=02\n");
        host.run(&format!("exec 2>&-; $U run sh -c {OPEN}")).is(0, "open=01\n", "");
        host.run("exec <&- >&- 2>&-; $U run sh -c 'exit 3'").is(3, "", "");
    });
}

#[test]
fn output_that_is_full_or_gone_is_no_panic() {
    for_each_user(|host| {
        host.run("$U run sh -c 'exit 3' >/dev/full 2>/dev/full").is(3, "", "");
        host.run("$U run nonexistent 2>/dev/full").is(127, "", "");
        host.run("$U run nonexistent 2>&-").is(127, "", "");
        host.run("$U run --stats true 2>/dev/full").is(0, "", "");
        host.run("$U run --trace true 2>/dev/full").is(0, "", "");
        host.run("$U check >/dev/full").is(125, "", "writing to stdout");
        host.run("$U --help >/dev/full").is(125, "", "");
        host.run("$U check | true; $U run --help | true; $U run --nope 2>&1 | true").is(0, "", "");
        host.run("$U run sh -c 'trap : PIPE; head -c 1000000 /dev/zero; echo $? >&2' | true").is(0, "", "");
    });
}

#[test]
fn odd_current_directories() {
    for_each_user(|host| {
        host.run("mkdir gone && cd gone && rmdir ../gone && $U run pwd").is(0, "/\n", "cannot be told");
        let long = "n=$(printf 'x%.0s' {1..200}); for i in {1..30}; do mkdir $n; cd $n; done; $U run echo ok";
        host.run(long).is(0, "ok\n", "too long");
        let closed =
            "mkdir -p a/b; cd a/b; chmod 0 ../../a; $U run echo ok; e=$?; chmod 755 \"$D\"/a; exit $e";
        end(host.script(closed).env("D", &host.dir)).is(
            0,
            "ok\n",
            if host.nobody { "cannot show" } else { "" },
        );
        host.run("mkdir \"a b'\\\"\\\\\" && cd \"a b'\\\"\\\\\" && $U run touch here").is(0, "", "");
        host.run("cd / && $U run pwd").is(0, "/\n", "");
    });
}

#[test]
fn odd_environments() {
    for_each_user(|host| {
        host.run("HOME=$'/tmp/a b\\'\"$x\\ny' $U run echo ok").is(0, "ok\n", "");
        host.run("HOME=relative TMPDIR=/nonexistent XDG_RUNTIME_DIR=/nonexistent $U run echo ok")
            .is(0, "ok\n", "");
        host.run("HOME=/proc $U run echo ok").is(0, "ok\n", "");
        host.run("env -i \"$U\" run sh -c 'echo ok'").is(0, "ok\n", "");
        host.run("export BAD=$'\\xff\\xfe'; $U run --env-host sh -c 'echo ok'").is(0, "ok\n", "");
    });
}

#[test]
fn low_limits() {
    for_each_user(|host| {
        host.run("ulimit -n 64; $U run sh -c 'ls / | wc -l >/dev/null; echo ok'").is(0, "ok\n", "ulimit -n");
        assert_eq!(host.run("ulimit -n 256; $U run true").err, "");
        host.run("ulimit -n 20; $U run true").is(125, "", "ulimit -n");
        host.run("ulimit -c unlimited; $U run sh -c 'kill -SEGV $$'").is(139, "", "");
        host.run("ulimit -S -f 1; $U run sh -c 'head -c 9000 /dev/zero >/tmp/x && wc -c </tmp/x'")
            .is(0, "9000\n", "");
        if host.nobody {
            host.run("ulimit -u 0; exec $U run true").is(125, "", "ulimit -u");
        }
    });
}

/// Makes a child's calls of these numbers fail with EPERM.
fn deny(command: &mut Command, numbers: &'static [libc::c_long]) {
    let give_up = move || {
        let statement = |code: u32, jf, k| libc::sock_filter { code: code as u16, jt: 0, jf, k };
        let mut filter = vec![statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0)];
        for number in numbers {
            let number = u32::try_from(*number).unwrap_or(u32::MAX);
            filter.push(statement(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 1, number));
            let deny = libc::SECCOMP_RET_ERRNO | libc::EPERM.unsigned_abs();
            filter.push(statement(libc::BPF_RET | libc::BPF_K, 0, deny));
        }
        filter.push(statement(libc::BPF_RET | libc::BPF_K, 0, libc::SECCOMP_RET_ALLOW));
        let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
        // SAFETY: the program lives over the call, which copies it.
        let done = unsafe {
            libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
                && libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program) == 0
        };
        if done { Ok(()) } else { Err(std::io::Error::last_os_error()) }
    };
    // SAFETY: the filter is small; no other thread of the test holds the allocator's lock in a way that a fork breaks
    // (glibc re-initialises it in the child).
    unsafe { command.pre_exec(give_up) };
}

#[test]
fn hosts_that_forbid_things() {
    for_each_user(|host| {
        let mut script = host.script("$U run echo ok; $U check");
        deny(&mut script, &[libc::SYS_ptrace]);
        let said = end(&mut script);
        said.is(0, "ok\n", "");
        assert!(said.out.contains("--platform auto takes stub\n"), "{}", said.out);
        // The stub is executed from a memory file.
        let mut script = host.script("$U run true");
        deny(&mut script, &[libc::SYS_ptrace, libc::SYS_memfd_create]);
        end(&mut script).is(125, "", "ptrace");
        let mut script = host.script("$U check");
        deny(&mut script, &[libc::SYS_ptrace, libc::SYS_memfd_create]);
        end(&mut script).is(125, "", "no platform works on this host: stub: ");
        let mut script = host.script("$U run echo ok");
        deny(&mut script, &[libc::SYS_unshare, libc::SYS_setns, libc::SYS_mount, libc::SYS_bpf]);
        end(&mut script).is(0, "ok\n", "");
        let mut script = host.script("$U run echo ok");
        deny(&mut script, &[libc::SYS_memfd_create]);
        end(&mut script).is(0, "ok\n", "stub does not work here");
        // Without Landlock, and without filters but the first.
        let mut script = host.script("$U run echo ok; $U check --security");
        deny(&mut script, &[444, 445, 446]);
        end(&mut script).is(0, "ok\n", "");
    });
}

#[test]
fn what_holds_guests_in_is_told() {
    for_each_user(|host| {
        let said = host.run("$U check --security");
        said.is(0, "sysemu: guest processes run as uid ", "");
        for fence in
            ["no new privileges", "seccomp filter", "umlaut's own process may make", "checking Landlock"]
        {
            assert!(said.out.contains(fence), "{fence}: {}", said.out);
        }
        for hole in ["NO SECCOMP", "NEW PRIVILEGES", "CAPABILITIES"] {
            assert!(!said.out.contains(hole), "{}", said.out);
        }
    });
}

#[test]
fn command_lines_that_cannot_be() {
    for_each_user(|host| {
        for (words, message) in [
            ("", "Usage"),
            ("frob", "frob"),
            ("run", "PROGRAM"),
            ("run --nope sh", "--nope"),
            ("run --bind x sh", "SRC:DST"),
            ("run --bind /nonexistent:/x sh", "/nonexistent"),
            ("run --root /nonexistent sh", "/nonexistent"),
            ("run --root /etc/passwd sh", "/etc/passwd"),
            ("run --workdir /nonexistent sh", "--workdir /nonexistent"),
            ("run --workdir /etc/passwd sh", "not a directory"),
            ("run --tmpfs relative sh", "absolute"),
            ("run --tmpfs /etc/passwd sh", "/etc/passwd"),
            ("run --env NAME sh", "NAME=VALUE"),
            ("run --env =x sh", "NAME=VALUE"),
            ("run --user nosuch sh", "/etc/passwd"),
            ("run --user 0:nosuch sh", "/etc/group"),
            ("run --user : sh", "USER:GROUP"),
            ("run --memory 3 sh", "1M"),
            ("run --platform kvm sh", "sysemu"),
            ("run --trace=nope sh", "nope"),
            ("run --trace --trace-file /nonexistent/x sh", "/nonexistent/x"),
            ("run --hostname $(printf 'x%.0s' {1..100}) sh", "64"),
        ] {
            let end = host.run(&format!("$U {words}"));
            end.is(125, "", message);
            let head = end.err.lines().next().unwrap_or_default();
            // Without a command at all, help is what there is to say.
            assert!(words.is_empty() || head.starts_with("umlaut: "), "{words}: {head}");
        }
        for words in ["run --nope sh", "run --nope", "run --ro --rw --root / sh", "run"] {
            host.run(&format!("$U {words}")).is(125, "", "Usage: umlaut run ");
        }
        host.run("$U --help && $U run --help && $U --version").is(0, "Usage", "");
    });
}

#[test]
fn users_by_name_are_the_roots_own() {
    for_each_user(|host| {
        // The default root's /etc is the host's.
        host.run("$U run --user nobody sh -c 'echo $(id -un) $USER $HOME'").is(
            0,
            "nobody nobody /nonexistent",
            "",
        );
        host.run("$U run --user 12:nogroup id -gn").is(0, "nogroup\n", "");
        let made = "mkdir -p r/bin r/etc r/usr && ln -s /etc/real r/etc/passwd && echo me:x:7:8::/home/me: >r/etc/real &&
            printf 'club:x:9:you,me\nother:x:10:\n' >r/etc/group";
        host.run(made).is(0, "", "");
        let inside = "$U run --bind /usr:/usr:ro --bind /bin:/bin:ro --bind /lib:/lib:ro --bind /lib64:/lib64:ro --root r";
        host.run(&format!("{inside} --user me sh -c 'id -G; id -u; echo $HOME'")).is(
            0,
            "8 9\n7\n/home/me\n",
            "",
        );
        host.run(&format!("{inside} --user me:other id -G")).is(0, "10\n", "");
        host.run(&format!("{inside} --user nobody id")).is(125, "", "no user nobody");
    });
}

#[test]
fn a_read_only_view_is_read_only_all_over() {
    for_each_user(|host| {
        let write = "for d in . / /tmp /usr; do touch $d/x 2>/dev/null && echo wrote $d; done; echo end";
        host.run(&format!("$U run --ro sh -c '{write}'")).is(0, "end\n", "");
        host.run(&format!("cd /usr && $U run --ro sh -c '{write}'")).is(0, "end\n", "");
        host.run("mkdir out && $U run --ro --bind $PWD/out:/mnt --tmpfs /tmp sh -c 'pwd >/mnt/a && echo b >/tmp/b'; cat out/a")
            .is(0, "/\n", "starting in /");
        host.run("$U run sh -c 'touch x && echo wrote'").is(0, "wrote\n", "");
    });
}

#[test]
fn inherited_files_tell_their_names() {
    for_each_user(|host| {
        let natively = "readlink /proc/self/fd/0; readlink /dev/stdin";
        for stdin in ["f", "/dev/null", "/etc/passwd", "/tmp"] {
            let native = host.run(&format!("touch f; exec <{stdin}; {natively}"));
            host.run(&format!("exec <{stdin}; $U run sh -c '{natively}'")).is(0, &native.out, "");
            assert!(native.out.lines().count() == 2 && native.out.starts_with('/'), "{}", native.out);
        }
        host.run("exec 5<>gone; rm gone; $U run readlink /proc/self/fd/0 <&5").is(0, "/gone (deleted)\n", "");
        host.run("echo | $U run readlink /proc/self/fd/0").is(0, "pipe:[", "");
    });
}

/// An ELF file for `machine` whose interpreter is this.
fn elf(machine: u8, interpreter: &str) -> Vec<u8> {
    let mut file = fs::read("/bin/true").unwrap();
    file[18] = machine;
    let at = file.windows(4).position(|window| window == b"/lib").expect("the interpreter's path");
    let mut path = interpreter.as_bytes().to_vec();
    path.push(0);
    file[at..at + path.len()].copy_from_slice(&path);
    file
}

#[test]
fn programs_that_cannot_run() {
    for_each_user(|host| {
        host.file("text", b"echo hi\n");
        host.file("empty", b"");
        host.file("script", b"#!/nonexistent/sh -e\n");
        host.file("directory-script", b"#!/tmp\n");
        host.file("arm", &elf(183, "/lib/ld.so"));
        host.file("no-linker", &elf(62, "/lib/none.so"));
        host.file("plain", b"#!/bin/sh\n");
        fs::set_permissions(host.dir.join("plain"), Permissions::from_mode(0o644)).unwrap();
        for (program, code, message) in [
            ("''", 127, "empty"),
            ("nonexistent", 127, "PATH"),
            ("/nonexistent/program", 127, "--bind"),
            ("./script", 127, "/nonexistent/sh"),
            ("./no-linker", 127, "/lib/none.so"),
            ("/tmp", 126, "is a directory"),
            ("./", 126, "is a directory"),
            ("./text", 126, "sh ./text"),
            ("./empty", 126, "not a program"),
            ("./arm", 126, "aarch64"),
            ("./plain", 126, "chmod +x"),
            ("./directory-script", 126, "/tmp"),
            ("/etc/passwd/x", 126, "directory"),
            ("$(printf 'x%.0s' {1..5000})", 126, "too long"),
        ] {
            host.run(&format!("$U run {program}")).is(code, "", message);
        }
    });
}
