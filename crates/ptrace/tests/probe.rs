//! The probes on hosts that lack something: this one, made poorer for a child.
//!
//! # Safety
//! The filters lie in the frames that install them.
#![allow(unsafe_code, reason = "installs seccomp filters in children of the test")]
#![allow(clippy::cast_possible_truncation, reason = "constants of the host's ABI")]

mod common;

use std::process::Command;

use common::Guest;
use platform::Trap;
use platform::code::Code;
use ptrace::probe::{State, choose, probe};
use ptrace::{Mode, Options, Ptrace};

/// Has `ptrace` fail with `errno` from now on: with this request, or with all.
fn forbid_ptrace(request: Option<u32>, errno: u32) {
    let statement = |code: u32, k: u32| libc::sock_filter { code: code as u16, jt: 0, jf: 0, k };
    let unless = |k: u32, skip: u8| libc::sock_filter {
        code: (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16,
        jt: 0,
        jf: skip,
        k,
    };
    let load = libc::BPF_LD | libc::BPF_W | libc::BPF_ABS;
    let mut code = vec![statement(load, 0)];
    match request {
        Some(request) => {
            code.extend([unless(libc::SYS_ptrace as u32, 3), statement(load, 16), unless(request, 1)])
        }
        None => code.push(unless(libc::SYS_ptrace as u32, 1)),
    }
    code.push(statement(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ERRNO | errno));
    code.push(statement(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ALLOW));
    let program = libc::sock_fprog { len: code.len() as u16, filter: code.as_mut_ptr() };
    // SAFETY: the program lies in this frame.
    unsafe {
        assert_eq!(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
        // All threads of this process: SECCOMP_FILTER_FLAG_TSYNC.
        assert_eq!(libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, 1, &raw const program), 0);
    }
}

fn state(name: &str) -> State {
    probe().into_iter().find(|ability| ability.name == name).unwrap().state
}

/// Runs this test again in a process of its own, which plays `role`.
fn again(test: &str, role: &str) {
    let output = common::in_role(test, role).output().unwrap();
    let ran = String::from_utf8_lossy(&output.stdout).contains("1 passed");
    assert!(output.status.success() && ran, "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn without_sysemu_ptrace_is_chosen_and_told_why() {
    if common::role().is_none() {
        return again("without_sysemu_ptrace_is_chosen_and_told_why", "poor");
    }
    // PTRACE_SYSEMU, as on an architecture that lacks it.
    forbid_ptrace(Some(31), libc::EIO as u32);
    assert_eq!(state("PTRACE_SYSEMU"), State::Missing);
    assert_eq!(state("ptrace"), State::Ok);
    let choice = choose().unwrap();
    assert_eq!(choice.mode, Mode::Syscall);
    assert_eq!(choice.why, "PTRACE_SYSEMU: Input/output error; using PTRACE_SYSCALL");
    let error = Ptrace::new(Options::new(Mode::Sysemu)).err().expect("no sysemu");
    assert!(error.to_string().starts_with("trying to intercept a system call: "), "{error}");
    let platform = Ptrace::new(Options::new(choice.mode)).unwrap();
    let mut guest = Guest::new(&platform, Code::new().call(5, &[]));
    assert!(matches!(guest.trap(), Trap::Syscall(entry) if entry.number == 5));
}

#[test]
fn without_ptrace_nothing_is_chosen_and_told_why() {
    if common::role().is_none() {
        return again("without_ptrace_nothing_is_chosen_and_told_why", "poor");
    }
    forbid_ptrace(None, libc::EPERM as u32);
    let why = choose().unwrap_err();
    assert!(why.starts_with("ptrace: Operation not permitted"), "{why}");
    let error = Ptrace::new(Options::new(Mode::Sysemu)).err().expect("no platform");
    assert_eq!(error.to_string(), "attaching to a guest thread: Operation not permitted (os error 1)");
}

#[test]
fn probes_work_unprivileged() {
    common::also_as_nobody("probes_work_unprivileged", || {
        for name in ["ptrace", "process_vm_readv", "pidfd", "memfd seals", "seccomp TRAP"] {
            assert_eq!(state(name), State::Ok, "{name}");
        }
    });
}

/// `vm.memfd_noexec` = 2 in a pid namespace: the stub comes from a temporary file.
#[test]
fn without_executable_memfds_the_stub_is_a_file() {
    const TEST: &str = "without_executable_memfds_the_stub_is_a_file";
    if common::role().is_some() {
        let ability = probe().into_iter().find(|ability| ability.name == "executable memfd").unwrap();
        assert_eq!(ability.state, State::Missing);
        println!("{}", ability.detail);
        let platform = Ptrace::new(Options::new(Mode::Sysemu)).unwrap();
        let mut guest = Guest::new(&platform, Code::new().call(5, &[]));
        assert!(matches!(guest.trap(), Trap::Syscall(entry) if entry.number == 5));
        let left = std::fs::read_dir(std::env::temp_dir()).unwrap().map(|entry| entry.unwrap().file_name());
        assert!(left.into_iter().all(|name| !name.to_string_lossy().starts_with(".umlaut-stub")));
        return;
    }
    if !rustix::process::geteuid().is_root() || !std::fs::exists("/proc/sys/vm/memfd_noexec").unwrap() {
        println!("SKIPPED: needs root and vm.memfd_noexec (Linux 6.3)");
        return;
    }
    let inner = common::in_role(TEST, "strict");
    let script = "echo 2 > /proc/sys/vm/memfd_noexec && exec \"$@\"";
    let output = Command::new("unshare")
        .args(["--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c", script, "sh"])
        .arg(inner.get_program())
        .args(inner.get_args())
        .envs(inner.get_envs().filter_map(|(name, value)| Some((name, value?))))
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let ran = text.contains("1 passed");
    assert!(output.status.success() && ran, "{text}{}", String::from_utf8_lossy(&output.stderr));
}
