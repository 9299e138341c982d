//! umlaut on hosts that are old, odd or strict, as far as they can be emulated: it works, or says what is missing.
//!
//! System calls are refused by a filter around umlaut, places by a mount namespace, a processor's features by what the
//! program is told of them at its start. Each case runs as the calling user and, started by root, as nobody too.

mod common;

use std::fs;
use std::process::{Command, Stdio};

use common::auxv::start_without_fsgsbase;
use common::forbid::{Rule, When, deny, refuse};
use common::user::{Host, end, for_each_user};

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

/// A shell that works: processes, a pipe, a file, a program that is linked dynamically.
const WORK: &str = "$U run $P sh -c 'ls / | head -n 1 >/tmp/x; (exit 3); test $? = 3 && echo ok'";

/// Calls that the default profile of container engines refuses who has no capabilities (moby's profiles/seccomp/default.json).
const CONTAINER: &[libc::c_long] = &[
    libc::SYS_acct,
    libc::SYS_add_key,
    libc::SYS_bpf,
    libc::SYS_clock_adjtime,
    libc::SYS_clock_settime,
    libc::SYS_delete_module,
    libc::SYS_fanotify_init,
    libc::SYS_finit_module,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fsopen,
    libc::SYS_fspick,
    libc::SYS_get_mempolicy,
    libc::SYS_init_module,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_ioperm,
    libc::SYS_iopl,
    libc::SYS_kcmp,
    libc::SYS_kexec_file_load,
    libc::SYS_kexec_load,
    libc::SYS_keyctl,
    libc::SYS_lookup_dcookie,
    libc::SYS_mbind,
    libc::SYS_mount,
    libc::SYS_mount_setattr,
    libc::SYS_move_mount,
    libc::SYS_move_pages,
    libc::SYS_name_to_handle_at,
    libc::SYS_nfsservctl,
    libc::SYS_open_by_handle_at,
    libc::SYS_open_tree,
    libc::SYS_perf_event_open,
    libc::SYS_pidfd_getfd,
    libc::SYS_pivot_root,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    libc::SYS_reboot,
    libc::SYS_request_key,
    libc::SYS_set_mempolicy,
    libc::SYS_setns,
    libc::SYS_settimeofday,
    libc::SYS_swapoff,
    libc::SYS_swapon,
    libc::SYS_syslog,
    libc::SYS_umount2,
    libc::SYS_unshare,
    libc::SYS_userfaultfd,
    libc::SYS_vhangup,
];

fn container() -> Vec<Rule> {
    let mut rules: Vec<Rule> = CONTAINER.iter().map(|number| (*number, libc::EPERM, When::Always)).collect();
    rules.extend([
        (libc::SYS_clone3, libc::ENOSYS, When::Always),
        // CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET.
        (libc::SYS_clone, libc::EPERM, When::Bits(0, 0x7e02_0000)),
        // No ADDR_NO_RANDOMIZE among them.
        (libc::SYS_personality, libc::EPERM, When::NotOneOf(0, &[0, 8, 0x2_0000, 0x2_0008, u32::MAX])),
    ]);
    rules
}

/// Several starts: where things come to lie is another place each time.
#[test]
fn in_a_container_with_its_default_profile() {
    for_each_user(|host| {
        for platform in ["", "--platform stub", "--platform sysemu"] {
            let mut script = host.script(&format!("for i in 1 2 3 4; do {WORK} || exit; done; $U check"));
            script.env("P", platform);
            refuse(&mut script, &container());
            end(&mut script).is(0, "ok\nok\nok\nok\n", "");
        }
        // As it was for hosts before Linux 4.8: neither tracing nor reading other processes.
        let mut rules = container();
        for number in [libc::SYS_ptrace, libc::SYS_process_vm_readv, libc::SYS_process_vm_writev] {
            rules.push((number, libc::EPERM, When::Always));
        }
        let mut script = host.script(WORK);
        refuse(&mut script, &rules);
        end(&mut script).is(125, "", "process_vm_readv");
    });
}

/// Listeners of seccomp came with Linux 5.0: clones are not asked about before. Where nobody may take descriptors of others, the
/// listener is sent.
#[test]
fn without_listeners_of_seccomp() {
    for_each_user(|host| {
        let no_listener: Rule = (libc::SYS_seccomp, libc::EINVAL, When::Bits(1, 8));
        let no_descriptor: Rule = (libc::SYS_pidfd_getfd, libc::EPERM, When::Always);
        for (rule, told) in [
            (no_listener, &["NO CONSENT is asked for", "not in force: consent to new host threads"][..]),
            (no_descriptor, &["waits for umlaut's consent"]),
        ] {
            let mut script = host.script(&format!("{WORK} && $U check --security"));
            refuse(&mut script, &[rule]);
            let said = end(&mut script);
            said.is(0, "ok\n", "");
            if stubs::host_lacks().is_none() {
                told.iter().for_each(|told| assert!(said.out.contains(told), "{told}: {}", said.out));
            }
        }
        let mut script = host.script("$U check");
        refuse(&mut script, &[no_listener]);
        end(&mut script).is(0, "--platform auto takes stub\n", "");
    });
}

/// What a yama level of 2 or 3 (kernel.yama.ptrace_scope) leaves to who has no capabilities: no tracing, no other memory.
#[test]
fn where_nobody_may_be_traced() {
    for_each_user(|host| {
        for platform in ["", "--platform stub", "--platform sysemu", "--platform ptrace"] {
            let mut script = host.script(WORK);
            script.env("P", platform);
            deny(
                &mut script,
                &[
                    libc::SYS_ptrace,
                    libc::SYS_process_vm_readv,
                    libc::SYS_process_vm_writev,
                    libc::SYS_pidfd_getfd,
                    libc::SYS_kcmp,
                ],
            );
            end(&mut script).is(
                125,
                "",
                if platform == "--platform stub" { "yama" } else { "Operation not permitted" },
            );
        }
    });
}

/// A processor, or a host before Linux 5.9, without FSGSBASE.
#[test]
fn without_fsgsbase() {
    for_each_user(|host| {
        for words in [&["run", "echo", "ok"][..], &["run", "--platform", "stub", "echo", "ok"]] {
            let mut command = host.umlaut();
            command.args(words).stdout(Stdio::piped()).stderr(Stdio::piped());
            let output = start_without_fsgsbase(&mut command).wait_with_output().unwrap();
            let said = [&output.stdout[..], &output.stderr[..]].map(String::from_utf8_lossy).concat();
            let works = words.len() == 3;
            assert_eq!(output.status.code(), Some(if works { 0 } else { 125 }), "{said}");
            assert_eq!(said.starts_with("ok\n"), works, "{said}");
            assert!(said.contains("no FSGSBASE (Linux 5.9, and a processor that has it)"), "{said}");
        }
    });
}

/// Runs a script where these mounts have been made; `None`: the host lets the user make none.
fn with_mounts(host: &Host, mounts: &str, script: &str) -> Option<common::user::End> {
    let may = |words: &[&str]| {
        Command::new("unshare")
            .args(words)
            .arg("true")
            .stderr(Stdio::null())
            .status()
            .is_ok_and(|it| it.success())
    };
    let root = rustix::process::geteuid().is_root();
    let unshare = if root { &["-m"][..] } else { &["-rm"] };
    if !may(unshare) {
        println!("skipped: no mount namespace for this user");
        return None;
    }
    let mut command = Command::new("unshare");
    let drop = if host.nobody { "setpriv --reuid 65534 --clear-groups" } else { "" };
    let all = format!("{mounts}\nexec {drop} bash -c \"$SCRIPT\"");
    command.args(unshare).args(["bash", "-ec", &all]).env("SCRIPT", script);
    command.env("HERE", host.umlaut.parent().unwrap()).env("U", &host.umlaut).current_dir(&host.dir);
    Some(end(command.stdin(Stdio::null())))
}

#[test]
fn without_shared_memory_or_a_place_for_programs() {
    for_each_user(|host| {
        let no_shm = "mount -t tmpfs -o size=4k,mode=0,ro none /dev/shm";
        let noexec =
            "mount --bind $HERE /mnt; mount -t tmpfs -o noexec none /tmp; U=/mnt/umlaut; cd /mnt/dir";
        for mounts in [no_shm, noexec] {
            for platform in ["", "--platform stub", "--platform sysemu", "--platform ptrace"] {
                let script = format!("P='{platform}'; {WORK}");
                if let Some(said) = with_mounts(host, mounts, &script) {
                    said.is(0, "ok\n", "");
                    assert_eq!(said.err, "", "{mounts}");
                }
            }
        }
    });
}

/// A directory of the control group of processors, for the time of a test.
struct Quota(std::path::PathBuf);

impl Quota {
    /// Half a CPU. `None`: the host has no such group for us.
    fn half() -> Option<Quota> {
        let name = format!("umlaut-test-{}", std::process::id());
        for (parent, file, value) in [
            ("/sys/fs/cgroup/cpu", "cpu.cfs_quota_us", "50000"),
            ("/sys/fs/cgroup", "cpu.max", "50000 100000"),
        ] {
            let group = std::path::Path::new(parent).join(&name);
            if fs::create_dir(&group).is_err() {
                continue;
            }
            let quota = Quota(group);
            if fs::write(quota.0.join(file), value).is_ok() {
                return Some(quota);
            }
        }
        None
    }
}

impl Drop for Quota {
    fn drop(&mut self) {
        // Those that were in it have ended, the host may yet notice.
        for _ in 0..100 {
            if fs::remove_dir(&self.0).is_ok() {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
    }
}

#[test]
fn with_less_than_one_cpu() {
    let Some(quota) = Quota::half() else {
        println!("skipped: no control group with a quota can be made here");
        return;
    };
    let join = format!("echo $$ >{}/cgroup.procs", quota.0.display());
    for_each_user(|host| {
        for platform in ["", "--platform sysemu"] {
            let drop = if host.nobody { "setpriv --reuid 65534 --clear-groups" } else { "" };
            let mut command = Command::new("bash");
            command.args(["-ec", &format!("{join}; exec {drop} bash -c \"$SCRIPT\"")]);
            command.env("SCRIPT", format!("P='{platform}'; {WORK}")).env("U", &host.umlaut);
            end(command.current_dir(&host.dir).stdin(Stdio::null())).is(0, "ok\n", "");
        }
    });
}
