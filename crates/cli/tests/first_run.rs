//! umlaut on hosts, and with command lines, that are not as they should be: it works, or says what failed and what to
//! try, and ends with 125 (its own failure), 126 (not executable) or 127 (not found). Never a panic.
//!
//! Each case runs as the calling user and, started by root, as nobody too.

mod common;

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

use common::user::{end, for_each_user};

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
        host.run("$U run --trace --trace-file /dev/full true").is(0, "", "the trace cannot be written");
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
        let new = "mkdir -p new && cd new && umask 027 && $U run --bind $PWD:/b sh -c 'umask; > /b/file' && stat -c %a file";
        host.run(new).is(0, "0027\n640\n", "");
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
        host.file("dos", b"#!/bin/sh\r\necho hi\r\n");
        host.run("chmod +x dos; $U run ./dos").is(127, "", r"/bin/sh\r (the line after #!) is not there");
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
