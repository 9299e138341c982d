//! `umlaut check --security`: what holds guests in on this host, as it is found in force on a guest process of each
//! platform, and what is missing.

use std::collections::HashMap;
use std::fs;

use platform::{Platform, PlatformError};

use crate::check::{line, say};
use crate::host_user::HostUser;
use crate::{confine, host_user};

pub(crate) fn check() -> anyhow::Result<i32> {
    let root = host_user::is_root_outside();
    // As `umlaut run` does before there are guests.
    let user = host_user::choose(HostUser::Auto)?;
    rustix::thread::set_no_new_privs(true)?;
    host_user::change(user)?;
    confine::give_up_capabilities(&[], false)?;
    let mut consent = true;
    for platform in ["stub", "sysemu", "ptrace"] {
        match start(platform) {
            Ok((platform, asks)) => {
                guests(&*platform, asks)?.iter().try_for_each(|text| say(text))?;
                consent &= asks != Some(false);
            }
            Err(error) => say(&format!("{platform}: does not run here: {error}"))?,
        }
    }
    own_process()?.iter().try_for_each(|text| say(text))?;
    for ability in ptrace::probe::fences() {
        say(&line(&ability))?;
    }
    for text in missing(root, consent) {
        say(&format!("not in force: {text}"))?;
    }
    Ok(0)
}

/// The platform, and on `stub` whether clones are asked about.
fn start(platform: &str) -> Result<(Box<dyn Platform>, Option<bool>), PlatformError> {
    let traced = |mode| {
        ptrace::Ptrace::new(ptrace::Options::new(mode)).map(|it| (Box::new(it) as Box<dyn Platform>, None))
    };
    match platform {
        "stub" => stubs::Stubs::new(stubs::Options::default()).map(|it| {
            let asks = it.asks_consent();
            (Box::new(it) as Box<dyn Platform>, Some(asks))
        }),
        "sysemu" => traced(ptrace::Mode::Sysemu),
        _ => traced(ptrace::Mode::Syscall),
    }
}

/// What the host says of a guest process, and whether its clones are asked about.
fn guests(platform: &dyn Platform, asks: Option<bool>) -> anyhow::Result<Vec<String>> {
    let name = platform.capabilities().name;
    let process = platform.spawn()?;
    let pid = process.space.host_pid();
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let own_namespace = fs::read_link("/proc/self/ns/pid").ok();
    let namespace = host::user::as_guests(|| fs::read_link(format!("/proc/{pid}/ns/pid"))).ok();
    let in_namespace = namespace.is_some() && namespace != own_namespace;
    let clones = match asks {
        Some(true) => Some("each process and thread that they make waits for umlaut's consent".to_owned()),
        Some(false) => Some("NO CONSENT is asked for processes and threads that they make".to_owned()),
        None => None,
    };
    Ok(facts(&status, in_namespace, name == "stub")
        .into_iter()
        .chain(clones)
        .map(|fact| format!("{name}: {fact}"))
        .collect())
}

/// The same in words.
fn facts(status: &str, in_namespace: bool, by_address: bool) -> Vec<String> {
    let fields: HashMap<&str, &str> = status.lines().filter_map(|line| line.split_once(":\t")).collect();
    let field = |name: &str| fields.get(name).copied().unwrap_or("?").trim();
    let uids: Vec<&str> = field("Uid").split_whitespace().collect();
    let capabilities = ["CapInh", "CapPrm", "CapEff", "CapAmb"].map(field);
    let no_capability = |set: &&str| u64::from_str_radix(set, 16) == Ok(0);
    let held = if capabilities.iter().all(no_capability) { "no capability" } else { "CAPABILITIES" };
    let bounded = if no_capability(&field("CapBnd")) { ", nor can get one" } else { "" };
    let privileges = if field("NoNewPrivs") == "1" { "no new privileges" } else { "NEW PRIVILEGES POSSIBLE" };
    let filter = match (field("Seccomp"), by_address) {
        ("2", true) => {
            "a seccomp filter by address (docs/host-calls.md); all else is the guest's call, for umlaut"
        }
        ("2", false) => "a seccomp filter that kills what is not the stub's",
        _ => "NO SECCOMP FILTER",
    };
    let namespace =
        if in_namespace { "in a pid namespace of their own" } else { "in the host's pid namespace" };
    vec![
        format!(
            "guest processes run as uid {}, hold {held}{bounded}; {privileges}",
            uids.get(1).unwrap_or(&"?")
        ),
        format!("they are under {filter}"),
        format!("they live {namespace}"),
    ]
}

/// What umlaut's own process gives up.
fn own_process() -> anyhow::Result<Vec<String>> {
    let abi = host::landlock::abi();
    let files = match abi {
        0 => "files of the host by no Landlock: this host has none".to_owned(),
        1 => "files by Landlock (version 1), but not with --rw and writable --bind: it forbids renames"
            .to_owned(),
        2 | 3 => format!("files outside of roots and binds by Landlock (version {abi})"),
        4 | 5 => format!("files outside of roots and binds, and TCP, by Landlock (version {abi})"),
        _ => format!(
            "files outside of roots and binds, TCP, and others' abstract sockets by Landlock (version {abi})"
        ),
    };
    let (own, traced) = (confine::allowed_calls(false), confine::allowed_calls(true));
    let held = host::privileges::permitted()?.count_ones();
    Ok(vec![
        match (host::user::users(), held) {
            (Some(users), _) => format!(
                "umlaut's own process is user {} too, but opens and makes files as user {}; it keeps capabilities only for files \
                 of others: to read them, and two more to write them, with --root, --bind and the like",
                users.guests, users.files.0
            ),
            (None, 0) => "umlaut's own process holds no capability".into(),
            (None, held) => format!("umlaut's own process holds {held} capabilities"),
        },
        format!("umlaut's own process gives up {files}"),
        format!(
            "umlaut's own process may make {own} host calls (with ptrace {traced}): no new process, no program, no new socket"
        ),
    ])
}

/// What this version, or this way of running it, does not have.
fn missing(root: bool, consent: bool) -> Vec<&'static str> {
    let mut missing = Vec::new();
    if root && host::user::users().is_none() {
        missing.push("another user for guests when root runs umlaut: uid 0 without any capability still owns root's files; seccomp, which lets no guest process open anything, and Landlock keep it from them");
    }
    if !consent {
        missing.push("consent to new host threads (seccomp's USER_NOTIF, with no other listener around umlaut): on stub, a guest that took over its process can make threads there, and processes for some seconds");
    }
    if host::user::users().is_none() {
        missing.push("a fence for signals: umlaut's own process may signal what else its user runs");
    }
    missing
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATUS: &str = "Name:\tumlaut-guest\nUid:\t7\t8\t9\t9\nCapInh:\t0000000000000000\nCapPrm:\t0000000000000000\n\
        CapEff:\t0000000000000000\nCapBnd:\t000001ffffffffff\nCapAmb:\t0000000000000000\nNoNewPrivs:\t1\nSeccomp:\t2\n";

    #[test]
    fn what_is_not_in_force_stands_out() {
        let text = facts(STATUS, true, true).join("\n");
        assert!(text.contains("uid 8, hold no capability; no new privileges"), "{text}");
        assert!(text.contains("filter by address") && text.contains("namespace of their own"), "{text}");
        let bad = STATUS.replace("CapEff:\t0000000000000000", "CapEff:\t0000000000000400");
        let bad = bad.replace("Seccomp:\t2", "Seccomp:\t0").replace("NoNewPrivs:\t1", "NoNewPrivs:\t0");
        let text = facts(&bad, false, true).join("\n");
        for warning in
            ["CAPABILITIES", "NEW PRIVILEGES POSSIBLE", "NO SECCOMP FILTER", "the host's pid namespace"]
        {
            assert!(text.contains(warning), "{warning}: {text}");
        }
    }
}
