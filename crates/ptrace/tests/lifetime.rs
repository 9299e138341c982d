//! Guest host processes die with the kernel, and only then or when told; what is sent from outside does not
//! reach guest code.

mod common;

use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};

use common::{CODE, DATA, Guest, eventually, signal};
use platform::code::{Code, Reg};
use platform::{AddressSpace, ExitStatus, Platform, Trap};
use ptrace::{Mode, Options, Ptrace};

fn platform() -> Ptrace {
    Ptrace::new(Options::new(Mode::Sysemu)).expect("the platform starts")
}

fn counting() -> Code {
    let code = Code::new().set(Reg::Rdi, DATA);
    let top = code.here();
    code.increment().jump(top)
}

/// Whether a process is there and no zombie.
fn alive(pid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit(") ").next().and_then(|rest| rest.chars().next());
    state.is_some_and(|state| !matches!(state, 'Z' | 'X'))
}

/// Waits until the counter at [`DATA`] moves.
fn runs(space: &dyn AddressSpace) -> bool {
    let before = common::word(space, DATA);
    let deadline = Instant::now() + Duration::from_millis(500);
    while Instant::now() < deadline {
        if common::word(space, DATA) != before {
            return true;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    false
}

/// Plays a kernel with guests in every state, tells their pids, and waits to be killed.
fn doomed_kernel() -> ! {
    let platform = platform();
    let mut stopped = Guest::new(&platform, counting());
    let unbound = stopped.context.fork().unwrap();
    let sharing = stopped.context.fork_sharing_memory().unwrap();
    // A process whose first thread has ended.
    let headless = Guest::new(&platform, counting());
    let headless_space = Arc::clone(&headless.space);
    drop(headless);
    let (send, running) = std::sync::mpsc::channel();
    let new = platform.spawn().unwrap();
    let space = Arc::clone(&new.space);
    std::thread::spawn(move || {
        let mut guest = Guest { space: new.space, context: new.thread.bind().unwrap() };
        guest.context.host_calls(&[common::map(CODE, 7), common::map(DATA, 3)]).unwrap();
        guest.load(counting().bytes());
        send.send(()).unwrap();
        guest.trap();
    });
    running.recv().unwrap();
    assert!(runs(&*space));
    let spaces = [&stopped.space, &unbound.space, &sharing.space, &headless_space, &space];
    let pids: Vec<String> = spaces.iter().map(|space| space.host_pid().to_string()).collect();
    println!("pids {}", pids.join(" "));
    loop {
        std::thread::park();
    }
}

fn killed_kernel_leaves_nothing_behind() {
    let test = "a_killed_kernel_leaves_nothing_behind";
    let mut kernel = common::in_role(test, "kernel").stdout(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(kernel.stdout.take().unwrap()).lines();
    let line = lines.map(Result::unwrap).find(|line| line.contains("pids ")).expect("the guests' pids");
    let pids: Vec<i32> =
        line.split_once("pids ").unwrap().1.split(' ').map(|pid| pid.parse().unwrap()).collect();
    assert_eq!(pids.len(), 5);
    assert!(pids.iter().all(|pid| alive(*pid)));
    kernel.kill().unwrap();
    kernel.wait().unwrap();
    for pid in pids {
        eventually("a guest process outlives the kernel", || !alive(pid));
    }
}

#[test]
fn a_killed_kernel_leaves_nothing_behind() {
    if common::role().as_deref() == Some("kernel") {
        doomed_kernel();
    }
    common::also_as_nobody("a_killed_kernel_leaves_nothing_behind", killed_kernel_leaves_nothing_behind);
}

#[test]
fn a_tracer_that_ends_leaves_nothing_running() {
    let platform = platform();
    let start = |end: fn(Guest)| {
        let new = platform.spawn().unwrap();
        let space = Arc::clone(&new.space);
        let ended = std::thread::spawn(move || {
            let mut guest = Guest { space: new.space, context: new.thread.bind().unwrap() };
            guest.context.host_calls(&[common::map(CODE, 7), common::map(DATA, 3)]).unwrap();
            guest.load(counting().bytes());
            guest.context.interrupter().interrupt();
            assert_eq!(guest.context.run(), Trap::Interrupted);
            end(guest);
        })
        .join();
        (space, ended)
    };
    // A context that is never dropped: the host kills (EXITKILL).
    let (space, _) = start(std::mem::forget);
    eventually("a forgotten guest lives on", || !alive(space.host_pid()));
    // A panic: the process is parked until its address space goes.
    let (space, ended) = start(|_guest| panic!("as a handler would"));
    assert!(ended.is_err());
    assert!(!runs(&*space));
    let pid = space.host_pid();
    drop(space);
    assert!(!alive(pid));
}

#[test]
fn a_kill_from_outside_ends_that_process_only() {
    let platform = platform();
    let mut other = Guest::new(&platform, Code::new().call(1, &[]));
    let mut guest = Guest::new(&platform, counting());
    let pid = guest.space.host_pid();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            std::thread::sleep(Duration::from_millis(20));
            signal(pid, libc::SIGKILL);
        });
        assert_eq!(guest.trap(), Trap::Died(ExitStatus::Killed(libc::SIGKILL)));
    });
    assert!(!alive(pid) && std::fs::exists(format!("/proc/{pid}")).unwrap(), "its pid is kept");
    drop(guest);
    assert!(!std::fs::exists(format!("/proc/{pid}")).unwrap(), "and reaped with the last reference");
    assert!(matches!(other.trap(), Trap::Syscall(_)));
}

/// The host pids of this process's children.
fn child_pids() -> Vec<i32> {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    tasks
        .map(|task| std::fs::read_to_string(task.unwrap().path().join("children")).unwrap_or_default())
        .flat_map(|text| text.split_ascii_whitespace().map(|pid| pid.parse().unwrap()).collect::<Vec<_>>())
        .collect()
}

fn name(pid: i32) -> String {
    std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap().trim().to_owned()
}

/// The one that others are forked from, while there are no others.
fn first_guest() -> i32 {
    let guests: Vec<i32> = child_pids().into_iter().filter(|pid| name(*pid) == "umlaut-guest").collect();
    assert_eq!(guests.len(), 1);
    guests[0]
}

/// The numbers of a process in its namespaces, the kernel's first.
fn numbers(pid: i32) -> Vec<i32> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("NSpid:")).unwrap();
    line.split_ascii_whitespace().map(|number| number.parse().unwrap()).collect()
}

/// Whether this host lets us put guests into a pid namespace.
fn namespaces() -> bool {
    ptrace::probe::probe().iter().any(|ability| {
        ability.name == "pid namespace around guests" && ability.state == ptrace::probe::State::Ok
    })
}

/// Its init is killed from outside: all guests end with it, and new ones come in a new namespace.
fn init_killed() {
    let platform = platform();
    let mut guest = Guest::new(&platform, Code::new().call(1, &[]).spin());
    let own = numbers(guest.space.host_pid());
    if !namespaces() {
        println!("skipped: this host allows no pid namespaces");
        assert_eq!(own.len(), numbers(std::process::id().cast_signed()).len());
        return;
    }
    assert_eq!(own.len(), numbers(std::process::id().cast_signed()).len() + 1);
    let inits: Vec<i32> = child_pids().into_iter().filter(|pid| numbers(*pid).last() == Some(&1)).collect();
    assert_eq!(inits.len(), 1);
    signal(inits[0], libc::SIGTERM);
    assert!(matches!(guest.trap(), Trap::Syscall(_)), "it takes no other signal");
    signal(inits[0], libc::SIGKILL);
    assert_eq!(guest.trap(), Trap::Died(ExitStatus::Killed(libc::SIGKILL)));
    drop(guest);
    let mut fresh = Guest::new(&platform, Code::new().call(2, &[]));
    assert!(matches!(fresh.trap(), Trap::Syscall(entry) if entry.number == 2));
    assert_eq!(numbers(fresh.space.host_pid()).len(), own.len());
    assert!(!std::fs::exists(format!("/proc/{}", inits[0])).unwrap());
}

#[test]
fn guests_end_with_their_pid_namespace() {
    common::also_as_nobody("guests_end_with_their_pid_namespace", || {
        alone("guests_end_with_their_pid_namespace", init_killed);
    });
}

fn zygote_killed() {
    let platform = platform();
    let zygote = first_guest();
    let mut guest = Guest::new(&platform, Code::new().call(1, &[]));
    signal(zygote, libc::SIGKILL);
    let mut fresh = Guest::new(&platform, Code::new().call(2, &[]));
    assert!(matches!(guest.trap(), Trap::Syscall(entry) if entry.number == 1));
    assert!(matches!(fresh.trap(), Trap::Syscall(entry) if entry.number == 2));
    drop(guest.context.fork().unwrap());
    drop(fresh.context.fork().unwrap());
    assert!(!std::fs::exists(format!("/proc/{zygote}")).unwrap());
}

#[test]
fn the_first_guest_process_is_replaced_if_killed() {
    alone("the_first_guest_process_is_replaced_if_killed", zygote_killed);
}

#[test]
fn signals_from_outside_do_not_reach_guest_code() {
    let platform = platform();
    let mut guest = Guest::new(&platform, counting());
    let pid = guest.space.host_pid();
    let kick = guest.context.interrupter();
    let space = Arc::clone(&guest.space);
    let parked = platform.spawn().unwrap();
    let parked_pid = parked.space.host_pid();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            for number in 1..32 {
                if number == libc::SIGKILL {
                    continue;
                }
                signal(pid, number);
                // The stub's own breakpoint has the host forget that this one is ignored, so sent to a
                // process without a tracer it ends it.
                if number != libc::SIGTRAP {
                    signal(parked_pid, number);
                }
                assert!(runs(&*space), "stopped by signal {number}");
                assert!(alive(parked_pid), "a parked process died of signal {number}");
            }
            signal(parked_pid, libc::SIGCONT);
            kick.interrupt();
        });
        // SIGUSR1 from outside looks like a kick; the last one is one.
        let mut interruptions = 0;
        while interruptions < 2 {
            match guest.context.run() {
                Trap::Interrupted => interruptions += 1,
                other => panic!("{other:?}"),
            }
        }
    });
    let mut parked = Guest { space: parked.space, context: parked.thread.bind().unwrap() };
    parked.context.host_calls(&[common::map(CODE, 7), common::map(DATA, 3)]).unwrap();
    parked.load(Code::new().call(5, &[]).bytes());
    assert!(matches!(parked.trap(), Trap::Syscall(entry) if entry.number == 5));
}

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

fn rounds_leave_nothing() {
    let platform = platform();
    let before = (child_pids().len(), descriptors());
    for _ in 0..50 {
        let mut guest = Guest::new(&platform, Code::new().call(1, &[]).call(2, &[]));
        guest.trap();
        let child = guest.context.fork().unwrap();
        let sharing = guest.context.fork_sharing_memory().unwrap();
        let thread = guest.context.new_thread().unwrap();
        drop(thread.bind().unwrap());
        let mut child = Guest { space: child.space, context: child.thread.bind().unwrap() };
        child.trap();
        child.space.kill();
        drop(sharing);
    }
    assert_eq!((child_pids().len(), descriptors()), before);
    drop(platform);
    eventually("the zygote outlives its platform", || child_pids().len() < before.0);
}

/// Kills at every moment of everything that a guest thread can be made to do.
fn killed_at_any_moment() {
    for mode in [Mode::Sysemu, Mode::Syscall] {
        killed_at_any_moment_in(mode);
        // The platform's end is the end of a thread.
        eventually("a platform's processes outlive it", || child_pids().is_empty());
    }
}

fn killed_at_any_moment_in(mode: Mode) {
    let platform = Ptrace::new(Options::new(mode)).expect("the platform starts");
    let before = (child_pids().len(), descriptors());
    let mut seed = 1u64;
    for round in 0..300 {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let delay = Duration::from_micros(seed >> 54);
        let code = Code::new().call(1, &[]).jump(0);
        let mut guest = Guest::new(&platform, code);
        let space = Arc::clone(&guest.space);
        let killer = std::thread::spawn(move || {
            std::thread::sleep(delay);
            space.kill();
        });
        let deadline = Instant::now() + Duration::from_secs(20);
        let mut steps = round;
        loop {
            assert!(Instant::now() < deadline, "a killed guest goes on");
            if let Trap::Died(status) = guest.context.run() {
                assert_eq!(status, ExitStatus::Killed(libc::SIGKILL));
                break;
            }
            steps += 1;
            match steps % 4 {
                0 => drop(guest.context.host_calls(&[common::map(0x3000_0000 + steps * 0x10000, 3)])),
                1 => drop(guest.context.fork().map(|new| new.thread.bind().map(drop))),
                2 => drop(guest.context.new_thread().map(|new| new.bind().map(drop))),
                _ => drop(guest.context.fork_sharing_memory()),
            }
        }
        killer.join().unwrap();
    }
    assert_eq!((child_pids().len(), descriptors()), before);
}

#[test]
fn a_kill_at_any_moment_is_the_end() {
    alone("a_kill_at_any_moment_is_the_end", killed_at_any_moment);
}

#[test]
fn nothing_is_left_of_ended_guests() {
    alone("nothing_is_left_of_ended_guests", rounds_leave_nothing);
}

/// Runs `check` in a process of its own, since it looks at all children and descriptors.
fn alone(test: &str, check: fn()) {
    if common::role().is_some() {
        return check();
    }
    let output = common::in_role(test, "alone").output().unwrap();
    let ran = String::from_utf8_lossy(&output.stdout).contains("1 passed");
    assert!(output.status.success() && ran, "{}", String::from_utf8_lossy(&output.stderr));
}
