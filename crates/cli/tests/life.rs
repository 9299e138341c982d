//! What remains of an instance when one of its processes is killed from outside: nothing where the kernel or its
//! supervisor was, and all but the one guest process otherwise.

mod common;

use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::OwnedFd;
use std::process::{Child, Stdio};
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use common::{As, Umlaut, descendants, eventually, kill};
use rustix::fs::{Mode, OFlags};
use rustix::termios::{LocalModes, tcgetattr};

/// Processes that compute, fork without end, sleep, have lost their parent, and have a session of their own.
const TREE: &str = "
    ( while :; do :; done ) &
    ( while :; do ( : ); done ) &
    ( while :; do /bin/true; done ) &
    ( sleep 1000 & )
    ( ( while :; do ( ( : ) & ) ; done ) & )
    setsid sh -c 'sleep 1000 & sleep 1000 & wait' &
    echo ready
    wait";

/// Looks at all descendants of this process: one test at a time.
fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    let guard = ONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    common::adopt_orphans();
    guard
}

#[derive(Clone, Copy, Debug)]
enum Victims {
    Kernel,
    Supervisor,
    Both,
}

impl Victims {
    /// Kills them; the kernel is the only child of the supervisor, if there is one yet.
    fn kill(self, supervisor: &Child) {
        let supervisor = supervisor.id().cast_signed();
        let kernel = descendants(supervisor).into_iter().find(|process| process.parent == supervisor);
        match (self, kernel) {
            (Victims::Kernel, Some(kernel)) => kill(kernel.pid),
            (Victims::Both, Some(kernel)) => {
                kill(kernel.pid);
                kill(supervisor);
            }
            _ => kill(supervisor),
        }
    }
}

/// Kills at moments spread from the first instruction to a tree that is in full swing.
fn killed_at_any_moment(victims: Victims) {
    let _alone = alone();
    let umlaut = Umlaut::new();
    let mut seed = 7u64;
    for platform in ["sysemu", "ptrace"] {
        for user in common::users() {
            for round in 0..4 {
                let script = umlaut.run(*user, &[], platform, TREE);
                let mut instance = { script }.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let delay = Duration::from_millis(seed >> 56);
                if round > 0 {
                    // The last rounds strike where the tree stands.
                    let mut line = String::new();
                    BufReader::new(instance.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
                    assert_eq!(line, "ready\n");
                }
                std::thread::sleep(delay);
                victims.kill(&instance);
                let what = format!("{victims:?} killed on {platform}, as {user:?}, round {round}");
                common::nothing_is_left(&what);
                let _ = instance.wait();
            }
        }
    }
}

#[test]
fn nothing_outlives_a_killed_kernel() {
    killed_at_any_moment(Victims::Kernel);
}

#[test]
fn nothing_outlives_a_killed_supervisor() {
    killed_at_any_moment(Victims::Supervisor);
}

#[test]
fn nothing_outlives_kernel_and_supervisor_killed_together() {
    killed_at_any_moment(Victims::Both);
}

/// A killed kernel shows as the exit status of a killed program.
#[test]
fn a_killed_kernel_is_told_by_the_exit_status() {
    let _alone = alone();
    let umlaut = Umlaut::new();
    let mut command = umlaut.run(As::Caller, &[], "auto", "echo ready; sleep 1000");
    let mut instance = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
    read_line(&mut instance);
    Victims::Kernel.kill(&instance);
    assert_eq!(instance.wait().unwrap().code(), Some(137));
    common::nothing_is_left("a killed kernel");
}

fn read_line(instance: &mut Child) -> String {
    let mut line = String::new();
    let out = instance.stdout.as_mut().unwrap();
    // Byte by byte: what follows is for the next one.
    let mut byte = [0];
    while out.read(&mut byte).unwrap() == 1 && byte != *b"\n" {
        line.push(char::from(byte[0]));
    }
    line
}

/// A guest process whose host process is killed from outside has died by SIGKILL for its parent, and nobody else notices.
#[test]
fn a_guest_process_killed_from_outside_dies_alone() {
    let _alone = alone();
    let umlaut = Umlaut::new();
    let script = "
        echo ready; read go
        ( while :; do :; done ) & busy=$!
        ( read never < fifo ) & blocked=$!
        ( kill -STOP $blocked; exit 3 ) & wait $!
        echo started; read go
        wait $busy; echo busy $?
        wait $blocked; echo blocked $?
        ( exit 5 ); echo alive $?
        exit 7";
    let script = format!("cd /tmp; mkfifo fifo; {script}");
    for user in common::users() {
        for platform in ["stub", "sysemu", "ptrace"] {
            let mut command = umlaut.run(*user, &[], platform, &script);
            let mut instance = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
            assert_eq!(read_line(&mut instance), "ready");
            let supervisor = instance.id().cast_signed();
            let guests =
                || descendants(supervisor).into_iter().filter(|process| process.name == "umlaut-guest");
            let before: Vec<i32> = guests().map(|guest| guest.pid).collect();
            let mut input = instance.stdin.take().unwrap();
            input.write_all(b"go\n").unwrap();
            assert_eq!(read_line(&mut instance), "started");
            let fresh = eventually("two children remain", || {
                let fresh: Vec<i32> =
                    guests().map(|guest| guest.pid).filter(|pid| !before.contains(pid)).collect();
                (fresh.len() == 2).then_some(fresh)
            });
            fresh.into_iter().for_each(kill);
            input.write_all(b"go\n").unwrap();
            assert_eq!(read_line(&mut instance), "busy 137", "{platform} as {user:?}");
            assert_eq!(read_line(&mut instance), "blocked 137", "{platform} as {user:?}");
            assert_eq!(read_line(&mut instance), "alive 5");
            assert_eq!(instance.wait().unwrap().code(), Some(7));
            common::nothing_is_left("a program that has ended");
        }
    }
}

/// What all fresh guest processes are forks of has an heir, since the kernel can execute nothing any more.
#[test]
fn processes_are_made_when_the_zygote_has_been_killed() {
    let _alone = alone();
    let umlaut = Umlaut::new();
    let script = "/bin/true; echo ready; read go; /bin/true && echo made $(/bin/echo too)";
    for user in common::users() {
        let mut command = umlaut.run(*user, &[], "stub", script);
        let mut instance = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        assert_eq!(read_line(&mut instance), "ready");
        let supervisor = instance.id().cast_signed();
        let mut guests = descendants(supervisor).into_iter().filter(|process| process.name == "umlaut-guest");
        // It has begun the session that all are in. (Pids come round: it need not have the lowest.)
        kill(guests.find(|guest| guest.pid == guest.session).unwrap().pid);
        instance.stdin.take().unwrap().write_all(b"go\n").unwrap();
        assert_eq!(read_line(&mut instance), "made too", "as {user:?}");
        assert_eq!(instance.wait().unwrap().code(), Some(0));
        common::nothing_is_left("a program that has ended");
    }
}

/// When the host runs out of memory it takes guest processes, not the kernel that runs them.
#[test]
fn guest_processes_go_first_when_memory_runs_out() {
    let _alone = alone();
    let umlaut = Umlaut::new();
    let score = |pid: i32| -> Option<i32> {
        std::fs::read_to_string(format!("/proc/{pid}/oom_score_adj")).ok()?.trim().parse().ok()
    };
    let own = score(common::own_pid()).unwrap();
    for user in common::users() {
        for platform in ["stub", "sysemu"] {
            let mut command = umlaut.run(*user, &[], platform, "echo ready; read go");
            let mut instance = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
            assert_eq!(read_line(&mut instance), "ready");
            let supervisor = instance.id().cast_signed();
            let below = descendants(supervisor);
            let (guests, others): (Vec<_>, Vec<_>) =
                below.iter().partition(|process| process.name == "umlaut-guest");
            // One that has executed a program may have been replaced, and be gone by now.
            let scores: Vec<i32> = guests.iter().filter_map(|guest| score(guest.pid)).collect();
            let wanted = (own + 300).min(1000);
            let as_wanted = !scores.is_empty() && scores.iter().all(|score| *score == wanted);
            assert!(as_wanted, "{platform} as {user:?}: {scores:?}, not {wanted}");
            let kernel = others.iter().find(|process| process.parent == supervisor).unwrap();
            assert_eq!(score(kernel.pid), Some(own));
            drop(instance.stdin.take());
            instance.wait().unwrap();
            common::nothing_is_left("a program that has ended");
        }
    }
}

/// The two ends of a new pseudo-terminal.
fn terminal() -> (OwnedFd, OwnedFd) {
    use rustix::pty::OpenptFlags;
    let master = rustix::pty::openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
    rustix::pty::grantpt(&master).unwrap();
    rustix::pty::unlockpt(&master).unwrap();
    let path = rustix::pty::ptsname(&master, Vec::new()).unwrap();
    let slave =
        rustix::fs::open(path, OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC, Mode::empty()).unwrap();
    (master, slave)
}

/// The user's terminal is as it was, whichever of the two was killed.
#[test]
fn a_terminal_is_restored_by_whoever_survives() {
    let _alone = alone();
    let umlaut = Umlaut::new();
    for victims in [Victims::Kernel, Victims::Supervisor] {
        let (_master, slave) = terminal();
        let before = tcgetattr(&slave).unwrap();
        let mut command = umlaut.run(As::Caller, &["setsid", "--ctty"], "auto", "sleep 1000");
        let stream = || Stdio::from(slave.try_clone().unwrap());
        command.stdin(stream()).stdout(stream()).stderr(stream());
        let mut instance = command.spawn().unwrap();
        let cooked = || tcgetattr(&slave).unwrap().local_modes.contains(LocalModes::ICANON);
        eventually("umlaut makes the terminal raw", || (!cooked()).then_some(()));
        victims.kill(&instance);
        instance.wait().unwrap();
        common::nothing_is_left("on a terminal");
        let after = tcgetattr(&slave).unwrap();
        assert_eq!(
            (after.input_modes, after.output_modes, after.control_modes, after.local_modes),
            (before.input_modes, before.output_modes, before.control_modes, before.local_modes),
            "{victims:?} killed"
        );
    }
}

/// The host would have every thread of the kernel wait when the table grows.
#[test]
fn the_kernel_has_room_for_descriptors_from_the_start() {
    let _alone = alone();
    let umlaut = Umlaut::new();
    let mut command = umlaut.run(As::Caller, &[], "auto", "echo ready; read go");
    let mut instance = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    assert_eq!(read_line(&mut instance), "ready");
    let supervisor = instance.id().cast_signed();
    let kernel = descendants(supervisor).into_iter().find(|process| process.parent == supervisor).unwrap();
    let status = std::fs::read_to_string(format!("/proc/{}/status", kernel.pid)).unwrap();
    let size = status.lines().find_map(|line| line.strip_prefix("FDSize:")).unwrap();
    let size: u64 = size.trim().parse().unwrap();
    drop(instance.stdin.take());
    instance.wait().unwrap();
    common::nothing_is_left("a program that has ended");
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).maximum;
    assert!(size >= limit.unwrap_or(u64::MAX).min(1024), "{size}");
}

/// SIGTERM ends umlaut at every moment of its start.
#[test]
fn a_signal_during_the_start_is_not_lost() {
    use std::os::unix::process::ExitStatusExt;
    let _alone = alone();
    let umlaut = Umlaut::new();
    for step in 0..24 {
        let mut command = umlaut.run(As::Caller, &[], "auto", "sleep 1000");
        let mut instance = command.stdin(Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(3 * step));
        let pid = rustix::process::Pid::from_child(&instance);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        let status = eventually("SIGTERM ends it", || instance.try_wait().unwrap());
        assert!(status.code() == Some(143) || status.signal() == Some(15), "{status:?} after step {step}");
        common::nothing_is_left("SIGTERM");
    }
}
