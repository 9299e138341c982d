//! The table of workloads: name, group, what one operation is, how it is run.
//!
//! Main types: [`Workload`], [`How`]. Neighbours: `bench-guest` has those of its own, `data` prepares whole commands.

use anyhow::bail;

/// What belongs together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Group {
    /// Single system calls.
    Calls,
    /// Threads, processes, programs, kernels.
    Processes,
    /// What umlaut's ancestors were measured by.
    Ancestors,
    /// Real programs on real input.
    Applications,
}

impl Group {
    pub(crate) const ALL: [Group; 4] =
        [Group::Calls, Group::Processes, Group::Ancestors, Group::Applications];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Group::Calls => "calls",
            Group::Processes => "processes",
            Group::Ancestors => "ancestors",
            Group::Applications => "applications",
        }
    }
}

/// How a workload is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum How {
    /// `bench-guest run NAME`, which times itself.
    Guest,
    /// The same where it means something only without a kernel of ours around it.
    GuestNatively,
    /// A whole command that `data` prepares, timed from within.
    Command,
    /// A program that ends at once, timed from outside.
    Start,
    /// Memory that a kernel takes for one shell.
    KernelMemory,
}

/// When it runs without being named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Set {
    /// By `--quick`, and always.
    Quick,
    Default,
    /// Only when it or its group is named.
    Named,
}

/// A row of the table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Workload {
    pub(crate) name: &'static str,
    pub(crate) group: Group,
    /// What it does, and what one operation is.
    pub(crate) what: &'static str,
    pub(crate) how: How,
    pub(crate) set: Set,
    /// Whether where its threads run changes it so much that it is measured on one CPU too.
    pub(crate) placement: bool,
    /// Rounds at most: what takes seconds runs less often.
    pub(crate) most_rounds: u32,
    /// A round that does not count comes first. What takes minutes hardly notices what was cold at its start.
    pub(crate) warm_up: bool,
    /// Host context switches a second are a figure of it.
    pub(crate) switches: bool,
}

const fn call(name: &'static str, set: Set, what: &'static str) -> Workload {
    let (group, how) = (Group::Calls, How::Guest);
    let (placement, most_rounds, warm_up, switches) = (true, 1000, true, false);
    Workload { name, group, what, how, set, placement, most_rounds, warm_up, switches }
}

const fn process(name: &'static str, set: Set, what: &'static str) -> Workload {
    Workload { group: Group::Processes, ..call(name, set, what) }
}

/// Several figures of processes that call at once.
const fn at_once(name: &'static str, how: How, what: &'static str) -> Workload {
    Workload { group: Ancestors, how, placement: false, most_rounds: 15, ..call(name, Named, what) }
}

const fn command(name: &'static str, group: Group, set: Set, what: &'static str) -> Workload {
    Workload { group, how: How::Command, placement: false, most_rounds: 5, ..call(name, set, what) }
}

use Group::{Ancestors, Applications, Processes};
use Set::{Default, Named, Quick};

pub(crate) const ALL: &[Workload] = &[
    call("getpid", Quick, "getpid by libc's syscall()"),
    call("getpid-libc", Quick, "getpid as libc calls it: the number moved right before"),
    call("gettid", Default, "gettid"),
    call(
        "hand-over",
        Quick,
        "sched_get_priority_max: a call that does nothing, and that only the kernel serves",
    ),
    call("clock_gettime", Quick, "the time, by the vDSO where there is one"),
    call("read-zero", Quick, "read of 1 byte of /dev/zero"),
    call("read-1", Default, "read of 1 byte of a cached file"),
    call("read-4k", Quick, "read of 4 KiB of a cached file"),
    call("read-64k", Default, "read of 64 KiB of a cached file"),
    call("pread-1", Default, "pread of 1 byte of a cached file"),
    call("pread-4k", Quick, "pread of 4 KiB of a cached file"),
    call("pread-64k", Default, "pread of 64 KiB of a cached file"),
    call("write-1", Default, "write of 1 byte over a cached file"),
    call("write-4k", Quick, "write of 4 KiB over a cached file"),
    call("write-64k", Default, "write of 64 KiB over a cached file"),
    call("pwrite-1", Default, "pwrite of 1 byte over a cached file"),
    call("pwrite-4k", Default, "pwrite of 4 KiB over a cached file"),
    call("pwrite-64k", Default, "pwrite of 64 KiB over a cached file"),
    call("lseek", Default, "lseek to the start"),
    call("fstat", Default, "fstat of a file"),
    call("stat", Quick, "stat of a file by name"),
    call("stat-missing", Default, "stat of a name that is not there"),
    call("open-close", Quick, "open and close of a file"),
    call("readdir-1000", Default, "opening and reading a directory of 1,000 names"),
    call("create-unlink", Default, "making and removing a file"),
    call("rename", Default, "rename in one directory"),
    call("pipe-ping-pong", Quick, "a byte to another process and back by pipes"),
    call("unix-ping-pong", Default, "the same by a pair of AF_UNIX sockets"),
    call("futex-ping-pong", Default, "a word to another thread and back by futexes"),
    call("futex-wake", Default, "futex wake with nobody waiting"),
    call("eventfd", Default, "write and read of an eventfd"),
    call("epoll-1000", Default, "epoll_wait with one of 1,000 descriptors ready"),
    call("poll-10", Default, "poll of 10 descriptors, none ready"),
    call("signal-self", Default, "a signal to oneself, with its handler"),
    call("signal-other", Default, "a signal to another thread that computes, until its handler has run"),
    call("sigprocmask", Default, "blocking a signal and unblocking it again"),
    call("sched_yield", Default, "sched_yield"),
    call("page-touch", Quick, "first write to a page of anonymous memory"),
    call("page-read", Default, "first read of a page of anonymous memory"),
    call("mmap-touch-munmap", Quick, "mmap of 64 KiB, a write to each page, munmap"),
    call("mprotect", Default, "mprotect of 64 KiB"),
    call("brk", Default, "growing the heap by 64 KiB, a write to each page, shrinking it"),
    process("thread", Default, "a thread that ends at once, joined"),
    process("fork-exit", Quick, "fork, exit of the child, wait"),
    process("fork-exit-1m", Default, "the same with 1 MiB touched"),
    process("fork-exit-100m", Default, "the same with 100 MiB touched"),
    process("spawn-static", Default, "posix_spawn of a static program, wait"),
    process("spawn-dynamic", Default, "posix_spawn of /bin/true, wait"),
    process("fork-exec-dynamic", Quick, "fork, exec of /bin/true, wait"),
    command("shell-500", Processes, Default, "a shell that runs /bin/true 500 times"),
    command("python-20", Processes, Default, "python3 -c 'import json, subprocess', 20 times"),
    Workload {
        how: How::Start,
        most_rounds: 1000,
        ..command("start", Processes, Quick, "/bin/true, started from outside: a kernel's start and end")
    },
    Workload {
        how: How::KernelMemory,
        most_rounds: 1,
        ..command(
            "kernel-memory",
            Processes,
            Default,
            "memory of the kernel that runs one waiting shell (all of its process that is resident)",
        )
    },
    Workload {
        placement: false,
        most_rounds: 3,
        ..process("idle", Default, "processor time of kernel and guest while the guest sleeps for a second")
    },
    Workload {
        group: Ancestors,
        most_rounds: 3,
        placement: true,
        ..call("getpid-1m", Named, "getpid, exactly 1,000,000 times")
    },
    command("copy-4k", Ancestors, Default, "dd of 128 MiB in blocks of 4 KiB: cp as it was in 2006"),
    command("copy-64k", Ancestors, Default, "dd of 128 MiB in blocks of 64 KiB"),
    command("cp", Ancestors, Named, "cp of 128 MiB, as today's cp copies"),
    at_once(
        "contention",
        How::Guest,
        "getpid in 1, 2 and as many processes as there are CPUs; what each loses by the others, in per cent",
    ),
    at_once("contention-hand-over", How::Guest, "the same with the call of hand-over"),
    at_once(
        "tracers",
        How::GuestNatively,
        "natively: what two bare tracers under PTRACE_SYSEMU lose by each other, as threads and as processes",
    ),
    at_once(
        "pairs",
        How::GuestNatively,
        "natively: what two pairs of processes lose by each other that pass a byte to and fro by pipes",
    ),
    command("find-cat", Ancestors, Named, "find DIR -type f -exec cat {} \\; over 1,000 files of /usr/lib"),
    command("dd", Ancestors, Named, "dd bs=1M of a file of 256 MiB"),
    command("build", Ancestors, Named, "make -j1 of 31 C files"),
    command("build-j2", Ancestors, Named, "make -j2 of 31 C files"),
    Workload {
        switches: true,
        ..command(
            "switches",
            Ancestors,
            Named,
            "three such builds at once; the host's context switches a second",
        )
    },
    Workload {
        most_rounds: 1,
        warm_up: false,
        ..command(
            "kernel-build",
            Ancestors,
            Named,
            "make tinyconfig and make -j2 of the Linux tree given by --kernel-source; `build` means it then too",
        )
    },
    command("sqlite", Applications, Default, "sqlite3: 20,000 inserts, 200 transactions of one, queries"),
    command("git-status", Applications, Default, "git status in a tree of 20,000 files"),
    command("tar", Applications, Default, "tar of 1,000 files of /usr/lib"),
    command("sort", Applications, Default, "sort of 400,000 lines"),
    command(
        "python",
        Applications,
        Default,
        "a short set of python3: numbers, dictionaries, JSON, regular expressions, files",
    ),
    command("compile", Applications, Default, "c++ -O1 of a file with the usual headers"),
];

/// The workloads that these names mean, in the table's order. `build` means the kernel's too where its source is given.
///
/// # Errors
/// If a name is neither a workload nor a group.
pub(crate) fn chosen(
    names: &[String],
    quick: bool,
    kernel_source: bool,
) -> anyhow::Result<Vec<&'static Workload>> {
    let is_group = |name: &String| name == "all" || Group::ALL.iter().any(|group| group.name() == name);
    for name in names {
        if !is_group(name) && !ALL.iter().any(|workload| workload.name == name) {
            bail!("no workload or group `{name}`; `umlaut bench --list` tells them");
        }
    }
    let in_set = |workload: &Workload| match workload.set {
        Quick => true,
        Default => !quick,
        Named => false,
    };
    let wanted = |workload: &&Workload| {
        let named = |name: &String| {
            name == workload.name
                || (is_group(name) && (name == "all" || name == workload.group.name()))
                || (kernel_source && name == "build" && workload.name == "kernel-build")
        };
        if names.is_empty() { in_set(workload) } else { names.iter().any(named) }
    };
    Ok(ALL.iter().filter(wanted).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(words: &[&str], quick: bool) -> Vec<&'static str> {
        let words: Vec<String> = words.iter().map(|word| (*word).to_string()).collect();
        chosen(&words, quick, false).expect("known names").iter().map(|workload| workload.name).collect()
    }

    #[test]
    fn names_and_groups_choose() {
        assert_eq!(names(&["read-4k", "getpid"], false), ["getpid", "read-4k"]);
        assert!(names(&["ancestors"], false).contains(&"build"));
        assert_eq!(names(&["all"], false).len(), ALL.len());
        assert!(!names(&[], false).contains(&"build"));
        assert!(names(&[], true).len() < names(&[], false).len());
        let error = chosen(&["getpit".into()], false, false).expect_err("not known");
        assert!(error.to_string().contains("--list"));
        let with_source = chosen(&["build".into()], false, true).expect("known names");
        assert_eq!(
            with_source.iter().map(|workload| workload.name).collect::<Vec<_>>(),
            ["build", "kernel-build"]
        );
    }

    #[test]
    fn no_name_stands_twice() {
        let mut names: Vec<_> = ALL.iter().map(|workload| workload.name).collect();
        names.extend(Group::ALL.map(Group::name));
        names.sort_unstable();
        let count = names.len();
        names.dedup();
        assert_eq!(names.len(), count);
    }
}
