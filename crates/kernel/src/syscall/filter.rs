//! Which calls a trace shows: names and classes, as strace's `-e trace=` has them.

use abi::SYSCALL_END;

use crate::syscall::{Row, table};

/// A set of calls, by number.
#[derive(Clone, Debug)]
pub struct Filter {
    wanted: Vec<bool>,
}

/// A name that is neither a call's nor a class's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is no system call and no class of them (classes: file, desc, process, signal, network, memory, ipc, creds, \
     clock)"
)]
pub struct UnknownName(pub String);

impl Filter {
    /// All calls.
    pub fn all() -> Filter {
        Filter { wanted: vec![true; usize::try_from(SYSCALL_END).unwrap_or(0)] }
    }

    /// From names and classes, classes with or without a `%` before them; `!` before the first name means all but
    /// these. None means all.
    ///
    /// # Errors
    /// The first name that is not known.
    pub fn new(names: &[String]) -> Result<Filter, UnknownName> {
        let (exclude, names) = match names.split_first() {
            None => return Ok(Filter::all()),
            Some((first, rest)) => match first.strip_prefix('!') {
                Some(name) => (true, std::iter::once(name.to_string()).chain(rest.iter().cloned()).collect()),
                None => (false, names.to_vec()),
            },
        };
        let mut filter = Filter::all();
        filter.wanted.fill(exclude);
        for name in &names {
            let class = name.strip_prefix('%').unwrap_or(name);
            let mut known = matches!(class, "all" | "none");
            for row in table::rows() {
                let is_call = row.name == name.as_str();
                let member = is_call || class == "all" || is_in_class(row, class);
                known |= member;
                if let Some(wanted) = filter.wanted.get_mut(usize::from(row.number)).filter(|_| member) {
                    *wanted = !exclude;
                }
            }
            if !known {
                return Err(UnknownName(name.clone()));
            }
        }
        Ok(filter)
    }

    /// Whether the call of this number is wanted.
    pub fn wants(&self, number: u64) -> bool {
        usize::try_from(number).ok().and_then(|number| self.wanted.get(number)).copied().unwrap_or(true)
    }
}

/// The classes that names of arguments do not tell.
const CLASSES: &[(&str, &[&str])] = &[
    (
        "process",
        &[
            "clone",
            "clone3",
            "fork",
            "vfork",
            "execve",
            "execveat",
            "exit",
            "exit_group",
            "wait4",
            "waitid",
            "kill",
            "tkill",
            "tgkill",
            "rt_sigqueueinfo",
            "rt_tgsigqueueinfo",
            "pidfd_open",
            "pidfd_send_signal",
            "unshare",
            "arch_prctl",
        ],
    ),
    (
        "signal",
        &[
            "rt_sigaction",
            "rt_sigprocmask",
            "rt_sigreturn",
            "rt_sigpending",
            "rt_sigtimedwait",
            "rt_sigsuspend",
            "rt_sigqueueinfo",
            "rt_tgsigqueueinfo",
            "sigaltstack",
            "pause",
            "kill",
            "tkill",
            "tgkill",
            "signalfd",
            "signalfd4",
            "pidfd_send_signal",
        ],
    ),
    (
        "network",
        &[
            "socket",
            "socketpair",
            "bind",
            "listen",
            "accept",
            "accept4",
            "connect",
            "getsockname",
            "getpeername",
            "sendto",
            "recvfrom",
            "sendmsg",
            "recvmsg",
            "sendmmsg",
            "recvmmsg",
            "shutdown",
            "setsockopt",
            "getsockopt",
        ],
    ),
    (
        "memory",
        &[
            "brk",
            "mmap",
            "munmap",
            "mprotect",
            "mremap",
            "madvise",
            "msync",
            "mincore",
            "mlock",
            "mlock2",
            "munlock",
            "mlockall",
            "munlockall",
            "pkey_mprotect",
            "remap_file_pages",
            "mbind",
            "set_mempolicy",
            "get_mempolicy",
            "migrate_pages",
            "move_pages",
            "shmat",
            "shmdt",
            "process_madvise",
            "mseal",
            "map_shadow_stack",
            "userfaultfd",
        ],
    ),
    (
        "ipc",
        &[
            "shmget",
            "shmat",
            "shmctl",
            "shmdt",
            "semget",
            "semop",
            "semctl",
            "semtimedop",
            "msgget",
            "msgsnd",
            "msgrcv",
            "msgctl",
        ],
    ),
    (
        "creds",
        &[
            "getuid",
            "geteuid",
            "getgid",
            "getegid",
            "setuid",
            "setgid",
            "setreuid",
            "setregid",
            "setresuid",
            "setresgid",
            "getresuid",
            "getresgid",
            "setfsuid",
            "setfsgid",
            "getgroups",
            "setgroups",
            "capget",
            "capset",
            "prctl",
        ],
    ),
    (
        "clock",
        &[
            "gettimeofday",
            "settimeofday",
            "time",
            "clock_gettime",
            "clock_settime",
            "clock_getres",
            "adjtimex",
            "clock_adjtime",
        ],
    ),
];

fn is_in_class(row: &Row, class: &str) -> bool {
    let has = |type_name: &str| row.arguments.iter().any(|argument| argument.type_name == type_name);
    match class {
        // Calls that take the name of a file.
        "file" => {
            let is_path = |name: &str| matches!(name, "path" | "old" | "new" | "target" | "source");
            row.name == "getcwd"
                || row.arguments.iter().any(|arg| arg.type_name == "UserCStr" && is_path(arg.name))
        }
        // Calls that take or give a descriptor.
        "desc" => has("Fd") || has("PollFds") || has("FdSet") || GIVES_DESCRIPTORS.contains(&row.name),
        "net" => is_in_class(row, "network"),
        _ => CLASSES.iter().any(|(name, calls)| *name == class && calls.contains(&row.name)),
    }
}

/// Calls that give a descriptor and take none.
const GIVES_DESCRIPTORS: &[&str] = &[
    "open",
    "creat",
    "pipe",
    "pipe2",
    "socket",
    "socketpair",
    "epoll_create",
    "epoll_create1",
    "eventfd",
    "eventfd2",
    "timerfd_create",
    "memfd_create",
    "inotify_init",
    "inotify_init1",
    "pidfd_open",
    "fsopen",
    "userfaultfd",
    "memfd_secret",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn wants(names: &[&str], call: &str) -> bool {
        let names: Vec<String> = names.iter().map(|name| name.to_string()).collect();
        let number = abi::syscall_number(call).unwrap();
        Filter::new(&names).unwrap().wants(number.into())
    }

    #[test]
    fn names_and_classes_select() {
        assert!(wants(&[], "read") && wants(&["read", "open"], "read") && !wants(&["open"], "read"));
        assert!(wants(&["file"], "openat") && wants(&["%file"], "rename") && !wants(&["file"], "read"));
        assert!(wants(&["desc"], "read") && wants(&["desc"], "poll") && !wants(&["desc"], "getpid"));
        assert!(wants(&["process"], "wait4") && wants(&["signal"], "kill") && wants(&["memory"], "brk"));
        assert!(wants(&["network"], "bind") && wants(&["net"], "bind"));
    }

    #[test]
    fn a_mark_before_the_first_name_excludes() {
        assert!(!wants(&["!read", "write"], "write") && wants(&["!read"], "open"));
        assert!(!wants(&["none"], "read"));
    }

    #[test]
    fn unknown_names_are_told() {
        assert_eq!(Filter::new(&["frobnicate".into()]).unwrap_err(), UnknownName("frobnicate".into()));
    }

    #[test]
    fn classes_name_calls_that_there_are() {
        for (class, calls) in CLASSES {
            for call in *calls {
                assert!(abi::syscall_number(call).is_some(), "{class}: {call}");
            }
        }
        for call in GIVES_DESCRIPTORS {
            assert!(abi::syscall_number(call).is_some(), "{call}");
        }
    }
}
