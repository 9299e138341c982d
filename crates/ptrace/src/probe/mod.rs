//! What this host can do, found by doing it: each probe in a child process of its own, with a deadline, so
//! that neither a missing ability nor a hostile host harms the caller.
//!
//! [`probe`] gives all for `umlaut check`; [`choose`] is `--platform auto`.
//!
//! Modules: `child` (the harness), `tracing`, `seccomp`, `other` (the probes).

mod child;
mod other;
mod seccomp;
mod tracing;

use crate::shared::Mode;
use child::{Outcome, in_child};

/// Whether the host can do something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    Ok,
    /// Not in this kernel, or forbidden to this user.
    Missing,
    /// There, but limited, as the detail says.
    Limited,
}

/// One line of `umlaut check`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ability {
    pub name: &'static str,
    pub state: State,
    /// More for the user: a version, why it is missing, what is done instead. May be empty.
    pub detail: String,
}

impl Ability {
    fn new(name: &'static str, state: State, detail: impl Into<String>) -> Ability {
        Ability { name, state, detail: detail.into() }
    }

    fn is_ok(&self) -> bool {
        self.state != State::Missing
    }

    /// From a probe that answers yes or no.
    fn of(name: &'static str, probe: fn() -> Result<(), i32>) -> Ability {
        match in_child(probe) {
            Outcome::Done => Ability::new(name, State::Ok, ""),
            other => Ability::new(name, State::Missing, other.to_string()),
        }
    }

    fn or_else(mut self, instead: &str) -> Ability {
        if self.state == State::Missing {
            self.detail = format!("{}; {instead}", self.detail);
        }
        self
    }
}

/// Probes everything. Takes some milliseconds; seconds where the host hangs a probe.
pub fn probe() -> Vec<Ability> {
    vec![
        ptrace(),
        sysemu(),
        Ability::of("PTRACE_SYSEMU_SINGLESTEP", tracing::sysemu_singlestep)
            .or_else("guests are stepped by the trap flag"),
        yama(),
        Ability::of("process_vm_readv", tracing::read_memory),
        Ability::of("seccomp TRAP", seccomp::trap),
        Ability::of("seccomp USER_NOTIF", seccomp::user_notif),
        Ability::of("syscall user dispatch", seccomp::user_dispatch),
        Ability::of("memfd seals", other::memfd_seals),
        memfd_exec(),
        Ability::of("FSGSBASE", other::fsgsbase),
        Ability::of("pidfd", other::pidfd),
        Ability::of("close_range", other::close_range),
        Ability::of("user namespaces", other::user_namespaces),
        Ability::of("pid namespace around guests", other::pid_namespaces)
            .or_else("guests are ended through PDEATHSIG and the supervisor alone"),
        landlock(),
        kvm(),
    ]
}

/// What of the host's the fences around guests are made of, for `umlaut check --security`.
pub fn fences() -> Vec<Ability> {
    vec![
        Ability::of("seccomp TRAP", seccomp::trap).or_else("no platform stub"),
        landlock().or_else("guests and umlaut's own process are kept from files by hostfs, credentials and seccomp only"),
        Ability::of("pid namespace around guests", other::pid_namespaces)
            .or_else("guests end by PDEATHSIG and the supervisor: one that took over its process could outlive a killed umlaut"),
        Ability::of("mseal", other::mseal).or_else("the stub's text is kept in place by the filter's bounds alone"),
        memfd_exec(),
        yama(),
        Ability::of("FSGSBASE", other::fsgsbase).or_else("no platform stub"),
        Ability::of("seccomp USER_NOTIF", seccomp::user_notif),
    ]
}

fn ptrace() -> Ability {
    Ability::of("ptrace", tracing::syscall).or_else("no platform works without it")
}

fn sysemu() -> Ability {
    Ability::of("PTRACE_SYSEMU", tracing::sysemu).or_else("using PTRACE_SYSCALL")
}

fn yama() -> Ability {
    const NAME: &str = "yama";
    let scope = std::fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope");
    match scope.as_deref().map(str::trim) {
        Err(_) => Ability::new(NAME, State::Ok, "not in force"),
        Ok(scope @ ("0" | "1")) => {
            Ability::new(NAME, State::Ok, format!("ptrace_scope {scope}: children may be traced"))
        }
        Ok(scope) => {
            // What it comes to for us, the ptrace probe has tried.
            Ability::new(NAME, State::Limited, format!("ptrace_scope {scope}: tracing needs CAP_SYS_PTRACE"))
        }
    }
}

fn memfd_exec() -> Ability {
    let level = std::fs::read_to_string("/proc/sys/vm/memfd_noexec").unwrap_or_default();
    let mut ability =
        Ability::of("executable memfd", other::memfd_exec).or_else("the stub is put into a temporary file");
    if !matches!(level.trim(), "" | "0") {
        ability.detail = format!("{} (vm.memfd_noexec = {})", ability.detail, level.trim());
    }
    ability
}

fn landlock() -> Ability {
    let mut ability = Ability::of("Landlock", other::landlock);
    if ability.is_ok() {
        ability.detail = format!("version {}", host::landlock::abi());
    }
    ability
}

fn kvm() -> Ability {
    Ability::of("/dev/kvm", other::kvm).or_else("not needed")
}

/// What `--platform auto` takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    pub mode: Mode,
    /// Why no better one, for the user; empty for the best.
    pub why: String,
}

/// The best platform of this crate that works here.
///
/// # Errors
/// Why none does, for the user.
pub fn choose() -> Result<Choice, String> {
    let sysemu = sysemu();
    if sysemu.is_ok() {
        return Ok(Choice { mode: Mode::Sysemu, why: String::new() });
    }
    let ptrace = ptrace();
    if ptrace.is_ok() {
        return Ok(Choice { mode: Mode::Syscall, why: format!("{}: {}", sysemu.name, sysemu.detail) });
    }
    let yama = yama();
    let hint = match yama.state {
        State::Ok => {
            "ptrace is forbidden here: perhaps a container's seccomp profile (docker: --cap-add SYS_PTRACE)"
        }
        _ => "sysctl kernel.yama.ptrace_scope must be 0 or 1",
    };
    Err(format!("{}: {}. {hint}", ptrace.name, ptrace.detail))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_host_can_what_the_platforms_need() {
        let abilities = probe();
        for ability in &abilities {
            println!("{}: {:?} {}", ability.name, ability.state, ability.detail);
        }
        // These tests run on hosts that can; the rest is as it may be.
        for name in ["ptrace", "process_vm_readv", "pidfd", "close_range", "memfd seals"] {
            let ability = abilities.iter().find(|ability| ability.name == name).unwrap();
            assert_eq!(ability.state, State::Ok, "{name}: {}", ability.detail);
        }
        let sysemu = abilities.iter().find(|ability| ability.name == "PTRACE_SYSEMU").unwrap();
        let expected = if sysemu.state == State::Ok { Mode::Sysemu } else { Mode::Syscall };
        assert_eq!(choose().unwrap().mode, expected);
    }

    #[test]
    fn probes_that_fail_in_every_way_are_survived() {
        assert_eq!(in_child(|| Ok(())), Outcome::Done);
        assert_eq!(in_child(|| Err(libc::ENOSYS)), Outcome::Failed(libc::ENOSYS));
        assert_eq!(in_child(child::crash), Outcome::Killed(libc::SIGKILL));
        assert_eq!(child::in_child_for(child::hang, std::time::Duration::from_millis(50)), Outcome::Hung);
        assert_eq!(Outcome::Failed(libc::EPERM).to_string(), "Operation not permitted");
    }
}
