//! Who umlaut's processes are to the host: run by root, a user that nobody else is (`--host-user`); else the user who runs it.

mod common;

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::process::{Child, Stdio};

use common::descendants;
use common::forbid::deny;
use common::user::{Host, end, for_each_user};
use host::privileges::Capabilities;

const PLATFORMS: [&str; 3] = ["stub", "sysemu", "ptrace"];
const NOBODY: u32 = 65534;
/// All sets empty.
const NOTHING: &str = "0000000000000000";

/// Tells why a test is left out, unless root runs it.
fn is_root() -> bool {
    let needed = Capabilities::SETUID | Capabilities::SETGID | Capabilities::KILL;
    let held = Capabilities::from_bits_truncate(host::privileges::permitted().unwrap());
    let root = rustix::process::geteuid().is_root() && held.contains(needed);
    if !root {
        println!("skipped: only root with {needed:?} becomes another user");
    }
    root
}

/// A line of `/proc/PID/status`; `None` if there is no such process any more.
fn status_if_there(pid: i32, name: &str) -> Option<String> {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).unwrap();
    Some(value.split_whitespace().collect::<Vec<_>>().join(" "))
}

fn status(pid: i32, name: &str) -> String {
    status_if_there(pid, name).unwrap()
}

/// A running instance with some guest processes.
struct Instance {
    supervisor: Child,
    kernel: i32,
    guests: Vec<i32>,
}

impl Instance {
    fn start(host: &Host, options: &[&str]) -> Instance {
        let script = "sleep 1000 & (sleep 1000; :) & echo ready; wait";
        let mut command = host.umlaut();
        command.arg("run").args(options).args(["sh", "-c", script]).stdout(Stdio::piped());
        let mut supervisor = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(supervisor.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n");
        let id = supervisor.id().cast_signed();
        let below = descendants(id);
        let kernel = below.iter().find(|process| process.parent == id).unwrap().pid;
        let guests: Vec<i32> = below.iter().filter(|it| it.parent != id).map(|it| it.pid).collect();
        Instance { supervisor, kernel, guests }
    }

    /// Of all guest processes that are still there, the shell and what it has started at least, a line says this: one that
    /// executes a program is replaced.
    fn all_say(&self, name: &str, wanted: &str) {
        let said: Vec<String> =
            self.guests.iter().filter_map(|guest| status_if_there(*guest, name)).collect();
        assert!(said.len() >= 3 && said.iter().all(|text| text == wanted), "{name}: {said:?}");
    }

    /// Who the guest processes are, all of them and in all respects, without any capability.
    fn user(&self) -> u32 {
        let user = status(self.kernel, "Uid").split(' ').next().unwrap().to_owned();
        let all = [user.as_str(); 4].join(" ");
        self.all_say("Uid", &all);
        for set in ["CapInh", "CapPrm", "CapEff", "CapAmb"] {
            self.all_say(set, NOTHING);
        }
        self.all_say("NoNewPrivs", "1");
        user.parse().unwrap()
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        common::kill(self.kernel);
        let _ = self.supervisor.wait();
    }
}

#[test]
fn root_s_guest_processes_are_a_user_of_their_own() {
    if !is_root() {
        return;
    }
    let host = Host::new(false);
    let file_group = rustix::process::getegid().as_raw();
    for platform in PLATFORMS {
        let start = || Instance::start(&host, &["--platform", platform]);
        let (one, other) = (start(), start());
        for instance in [&one, &other] {
            let user = instance.user();
            assert!(user >= 1000, "{user}");
            instance.all_say("Gid", &[user.to_string().as_str(); 4].join(" "));
            instance.all_say("Groups", "");
            instance.all_say("CapBnd", NOTHING);
            // Its own user, but for files; and no capability that would make up for it.
            let kernel = |name| status(instance.kernel, name);
            assert_eq!(kernel("Uid"), format!("{user} {user} 0 0"));
            assert_eq!(kernel("Gid"), format!("{user} {user} {file_group} {file_group}"));
            assert_eq!((kernel("Groups"), kernel("CapBnd")), (String::new(), NOTHING.into()));
            let held = u64::from_str_radix(&kernel("CapPrm"), 16).unwrap();
            assert_eq!(held & !(1 << 2), 0, "more than CAP_DAC_READ_SEARCH: {held:x}");
        }
        assert_ne!(one.user(), other.user());
    }
}

/// In a root that nothing but the system's part is in, root's kernel holds no capability at all.
#[test]
fn capabilities_are_for_files_of_others_only() {
    if !is_root() {
        return;
    }
    let mut host = Host::new(false);
    host.dir = "/".into();
    let instance = Instance::start(&host, &[]);
    assert_eq!(status(instance.kernel, "CapPrm"), NOTHING);
}

#[test]
fn the_user_can_be_chosen() {
    for_each_user(|host| {
        let root = rustix::process::geteuid().is_root() && !host.nobody;
        let own = if host.nobody { NOBODY } else { rustix::process::geteuid().as_raw() };
        for platform in PLATFORMS {
            let none = Instance::start(host, &["--platform", platform, "--host-user", "none"]);
            assert_eq!(none.user(), own);
        }
        if root && is_root() {
            let instance = Instance::start(host, &["--host-user", "2000000001"]);
            assert_eq!(instance.user(), 2_000_000_001);
        } else if !root {
            let auto = Instance::start(host, &["--host-user", "auto"]);
            assert_eq!(auto.user(), own);
            host.run("$U run --host-user 2000000001 true").is(125, "", "only root may choose");
        }
        host.run("$U run --host-user 0 true").is(125, "", "0 is root");
        host.run("$U run --host-user me true").is(125, "", "auto, none or the number of a user");
    });
}

/// Who the caller is inside, and to whom files belong on the host, does not depend on it.
#[test]
fn files_stay_root_s() {
    if !is_root() {
        return;
    }
    let host = Host::new(false);
    let place = host.dir.join("place");
    for path in ["private", "private/old", "free"] {
        let path = place.join(path);
        fs::create_dir_all(&path).unwrap();
        chown(&path, Some(1234), Some(5678)).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();
    }
    fs::write(place.join("private/secret"), "secret\n").unwrap();
    chown(place.join("private/secret"), Some(1234), Some(5678)).unwrap();
    fs::set_permissions(place.join("private/secret"), fs::Permissions::from_mode(0o600)).unwrap();
    let script = "
        test $(id -u):$(id -g) = 0:0
        cat private/secret; echo more >>private/secret; chmod 640 private/secret
        rmdir private/old; mkdir private/new free/new
        echo text >private/new/file; ln -s file private/new/link; ln private/new/file free/hard
        mknod free/null c 1 3; mkfifo free/fifo; chown 7:8 free/hard
        test $(stat -c %u:%g private/new):$(stat -c %u:%g free/hard) = 0:0:7:8
        touch -d @1000 private/secret; truncate -s 3 private/new/file; mv free/new private/moved
        echo ok";
    for platform in PLATFORMS {
        let mut command = host.umlaut();
        command.args(["run", "--platform", platform, "--bind", &format!("{}:/place", place.display())]);
        command.args(["--workdir", "/place", "sh", "-ec", script]);
        end(&mut command).is(0, "secret\n", "");
        let owner = |name: &str| {
            let meta = fs::symlink_metadata(place.join(name)).unwrap();
            (meta.uid(), meta.gid(), meta.permissions().mode() & 0o7777)
        };
        assert_eq!(owner("private/secret"), (1234, 5678, 0o640));
        assert_eq!(owner("private/moved"), (0, 0, 0o755));
        for made in ["private/new", "private/new/file", "private/new/link", "free/hard", "free/null"] {
            assert_eq!((owner(made).0, owner(made).1), (0, 0), "{made}");
        }
        // As it was.
        for name in ["private/new", "private/moved"] {
            fs::remove_dir_all(place.join(name)).unwrap();
        }
        for name in ["hard", "null", "fifo"] {
            fs::remove_file(place.join("free").join(name)).unwrap();
        }
        fs::create_dir(place.join("private/old")).unwrap();
        fs::write(place.join("private/secret"), "secret\n").unwrap();
    }
}

/// What the kernel asks of the host's `/proc` about guest processes.
#[test]
fn the_kernel_looks_at_guest_processes() {
    for_each_user(|host| {
        let script = "
            grep -q stack /proc/self/maps && grep -q ^Rss /proc/self/smaps && grep -q ^Rss /proc/self/smaps_rollup || echo maps
            test $(awk '{ print $2 }' /proc/self/statm) -gt 10 || echo statm
            (kill -SEGV $BASHPID); test -s core || echo core
            perl -e 'sub f { f($_[0] - 1) if $_[0] } no warnings; f(20000)' || echo stack
            ulimit -Sc 0; echo ok";
        for platform in PLATFORMS {
            let mut command = host.umlaut();
            command.args(["run", "--platform", platform, "--memory", "256M", "--workdir", "/tmp"]);
            command.args(["bash", "-c", &format!("ulimit -c unlimited; {script}")]);
            let said = end(&mut command);
            said.is(0, "ok\n", "");
            assert_eq!(said.out, "ok\n", "{platform}: {}", said.err);
        }
        // What takes more than --memory is found and ended.
        let eater = "$U run --memory 64M sh -c 'head -c 200M /dev/zero | tail -c 150M | wc -c; echo after'";
        host.run(eater).is(0, "after\n", "");
    });
}

/// Root's processes are not counted, so a soft limit of its is not for guests either.
#[test]
fn limits_on_processes_are_not_root_s() {
    if !is_root() {
        return;
    }
    let host = Host::new(false);
    for platform in PLATFORMS {
        let script = "for i in 1 2 3 4 5 6 7 8; do sleep 0.1 & done; wait; echo all";
        let run = format!("ulimit -Su 2; $U run --platform {platform} sh -c '{script}'");
        host.run(&run).is(0, "all\n", "");
    }
}

/// Where `/proc` tells users of their own processes only.
#[test]
fn where_proc_hides_processes_of_others() {
    if !is_root() {
        return;
    }
    let host = Host::new(false);
    let mount = "mount -t proc -o hidepid=2 proc /proc";
    if !host.run(&format!("unshare -m sh -c '{mount}'")).err.is_empty() {
        println!("skipped: no mount namespace, or no proc of its own");
        return;
    }
    // Enough for sort to start threads.
    let inside =
        "times >/dev/null; seq 300000 | sort --parallel=2 -r | head -n 1; grep -c ^ /proc/self/smaps";
    for platform in PLATFORMS {
        let outside = format!("{mount}; exec $U run --platform {platform} --memory 256M bash -c \"$INSIDE\"");
        let mut script = host.script("unshare -m bash -ec \"$OUTSIDE\"");
        let said = end(script.env("OUTSIDE", outside).env("INSIDE", inside));
        said.is(0, "99999\n", "");
        let lines = said.out.lines().last().and_then(|line| line.parse::<u32>().ok());
        assert!(lines.is_some_and(|lines| lines > 20), "{}{}", said.out, said.err);
    }
}

/// Where root may not become another user, it stays as it is, and one line says so.
#[test]
fn where_there_is_no_other_user() {
    if !is_root() {
        return;
    }
    let host = Host::new(false);
    let without =
        |capability: &str| format!("setpriv --bounding-set=-{capability} --inh-caps=-{capability} $U");
    let bare = "sh -c 'id -u'";
    for (command, why) in [
        (without("setuid"), "no CAP_SETUID"),
        (without("setgid"), "no CAP_SETGID"),
        (without("kill"), "no CAP_KILL"),
        ("unshare -Ur $U".into(), "no other user"),
    ] {
        let said = host.run(&format!("{command} run {bare}"));
        if said.err.starts_with("unshare: ") || said.err.starts_with("setpriv: ") {
            println!("skipped: {}", said.err.trim());
            continue;
        }
        said.is(0, "0\n", why);
        assert_eq!(said.err.lines().count(), 1, "{}", said.err);
        let said = host.run(&format!("{command} run --host-user none {bare}"));
        said.is(0, "0\n", "");
        assert_eq!(said.err, "");
        host.run(&format!("{command} run --host-user 2000000001 {bare}")).is(125, "", why);
        host.run(&format!("{command} check --security")).is(0, "not in force: another user", why);
    }
    // An ordinary user whom a namespace calls root is none.
    let said =
        host.run(&format!("setpriv --reuid 65534 --regid 65534 --clear-groups unshare -Ur $U run {bare}"));
    if said.err.starts_with("unshare: ") {
        println!("skipped: {}", said.err.trim());
    } else {
        said.is(0, "0\n", "");
        assert_eq!(said.err, "");
    }
    let mut script = host.script(&format!("$U run {bare}"));
    deny(&mut script, &[libc::SYS_setresuid]);
    end(&mut script).is(0, "0\n", "setresuid");
    // In a container some ids are there.
    let said = host.run(&format!(
        "unshare -U --map-users=100000,0,65536 --map-groups=100000,0,65536 --setuid 0 --setgid 0 $U run {bare}"
    ));
    if said.err.contains("unshare") {
        println!("skipped: a user namespace with many ids: {}", said.err);
    } else {
        said.is(0, "0\n", "");
        assert_eq!(said.err, "");
    }
    // Nothing is missing.
    let said = host.run("$U check --security");
    assert!(!said.out.contains("not in force: another user"), "{}", said.out);
}
