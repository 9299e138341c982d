//! A guest process killed in each state that a tracee can be in: whatever its tracer does next says so and comes back,
//! and no call of a guest's is ever executed by the host, on both platforms.

mod common;

use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

use abi::UserAddr;
use common::{CODE, DATA, Guest};
use platform::code::{Code, Reg};
use platform::{
    Context, ExitStatus, FutexCall, GuestRange, HostCall, HostCallError, NewContext, Platform, Reach,
    Registers, Trap,
};
use ptrace::{Mode, Options, Ptrace};

const DEAD: Trap = Trap::Died(ExitStatus::Killed(libc::SIGKILL));

fn platforms() -> impl Iterator<Item = Ptrace> {
    [Mode::Sysemu, Mode::Syscall]
        .into_iter()
        .map(|mode| Ptrace::new(Options::new(mode)).expect("the platform starts"))
}

type State = (&'static str, Code, fn(&mut Guest));

/// What brings a fresh guest into each state in which its tracer can be asked for something.
fn states() -> Vec<State> {
    fn nothing(_: &mut Guest) {}
    fn entry(guest: &mut Guest) {
        assert!(matches!(guest.trap(), Trap::Syscall(_)));
    }
    fn exception(guest: &mut Guest) {
        assert!(matches!(guest.trap(), Trap::Exception(_)));
    }
    fn kicked(guest: &mut Guest) {
        guest.context.interrupter().interrupt();
        assert_eq!(guest.context.run(), Trap::Interrupted);
    }
    fn owed(guest: &mut Guest) {
        guest.context.interrupter().interrupt();
        guest.context.host_calls(&[common::map(0x3000_0000, 3)]).unwrap();
    }
    fn forked(guest: &mut Guest) {
        entry(guest);
        drop(guest.context.fork().unwrap());
    }
    fn threaded(guest: &mut Guest) {
        entry(guest);
        drop(guest.context.new_thread().unwrap());
    }
    let call = || Code::new().call(1, &[]);
    vec![
        ("after a host call", call(), nothing),
        ("at the entry of a system call", call(), entry),
        ("at the delivery of a fault's signal", Code::new().ud2(), exception),
        ("at a breakpoint", Code::new().int3(), exception),
        ("at the delivery of a kick", Code::new().spin(), kicked),
        ("with a kick swallowed", call(), owed),
        ("after a fork", call(), forked),
        ("after the end of a thread", call(), threaded),
    ]
}

type Step = (&'static str, fn(&mut Guest));

/// All that a tracer can ask for. Each must come back; what succeeds came before the death.
const STEPS: &[Step] = &[
    ("run", |_| {}),
    ("registers", |guest| assert_eq!(guest.context.registers().cs, Registers::USER_CS)),
    ("registers_mut", |guest| guest.context.registers_mut().rax = 1),
    ("set_result", |guest| guest.context.set_result(1)),
    ("fp_state", |guest| drop(guest.context.fp_state())),
    ("reset_fp_state", |guest| {
        let _ = guest.context.reset_fp_state();
    }),
    ("one host call", |guest| {
        let _ = guest.context.host_calls(&[common::map(0x4000_0000, 3)]);
    }),
    ("two host calls", |guest| {
        let _ = guest.context.host_calls(&[common::map(0x4000_0000, 3), common::map(0x4100_0000, 3)]);
    }),
    ("compare_exchange", |guest| {
        let _ = guest.context.compare_exchange(UserAddr(DATA), 0, 1);
    }),
    ("fork", |guest| drop(guest.context.fork())),
    ("fork_sharing_memory", |guest| drop(guest.context.fork_sharing_memory())),
    ("new_thread", |guest| drop(guest.context.new_thread().map(|new| new.bind().map(drop)))),
    ("set_cpus", |guest| guest.context.set_cpus(&[1])),
    ("set_nice", |guest| guest.context.set_nice(1)),
];

#[test]
fn a_tracee_killed_in_any_stop_is_dead_for_every_request() {
    for platform in platforms() {
        for (state, code, reach) in states() {
            for (step, ask) in STEPS {
                let mut guest = Guest::new(&platform, code.clone());
                reach(&mut guest);
                guest.space.kill();
                ask(&mut guest);
                let trap = guest.trap();
                assert_eq!(trap, DEAD, "{}: killed {state}, then {step}", platform.capabilities().name);
                assert_eq!(guest.trap(), DEAD, "and ever after");
                let call = guest.context.host_calls(&[common::map(0x5000_0000, 3)]);
                assert_eq!(call.unwrap_err().error, HostCallError::Died);
                assert!(guest.context.fork().is_err() && guest.context.new_thread().is_err());
            }
        }
    }
}

/// A process and a thread that were killed before anybody attached to them.
#[test]
fn a_parked_one_that_is_killed_can_be_bound_and_is_dead() {
    for platform in platforms() {
        let new = platform.spawn().unwrap();
        new.space.kill();
        assert_eq!(new.thread.bind().unwrap().run(), DEAD);
        let mut guest = Guest::new(&platform, Code::new().call(1, &[]));
        guest.trap();
        let thread = guest.context.new_thread().unwrap();
        let child = guest.context.fork().unwrap();
        let sharing = guest.context.fork_sharing_memory().unwrap();
        guest.space.kill();
        assert_eq!(thread.bind().unwrap().run(), DEAD);
        assert_eq!(guest.trap(), DEAD);
        // The others are processes of their own.
        for (space, thread) in [(child.space, child.thread), (sharing.space, sharing.thread)] {
            let mut other = Guest { context: thread.bind().unwrap(), space };
            other.context.registers_mut().rip = CODE;
            assert!(matches!(other.trap(), Trap::Syscall(_)));
            other.space.kill();
            assert_eq!(other.trap(), DEAD);
        }
    }
}

/// Stopped from outside (job control, or a user's `kill -STOP`): what the kernel needs is done all the same.
#[test]
fn a_process_that_somebody_stopped_still_works() {
    for platform in platforms() {
        let new = platform.spawn().unwrap();
        common::signal(new.space.host_pid(), libc::SIGSTOP);
        common::eventually("a parked process is stopped", || host_state(new.space.host_pid()) == 'T');
        let mut guest = Guest { context: new.thread.bind().unwrap(), space: new.space };
        guest.context.host_calls(&[common::map(CODE, 7), common::map(DATA, 3)]).unwrap();
        guest.load(Code::new().call(1, &[]).spin().bytes());
        assert!(matches!(guest.trap(), Trap::Syscall(_)));
        for round in 0..3 {
            common::signal(guest.space.host_pid(), libc::SIGSTOP);
            let child = guest.context.fork().unwrap();
            let thread = guest.context.new_thread().unwrap();
            drop(thread.bind().unwrap());
            let mut child = Guest { context: child.thread.bind().unwrap(), space: child.space };
            common::signal(child.space.host_pid(), libc::SIGSTOP);
            child.context.registers_mut().rip = CODE;
            assert!(matches!(child.trap(), Trap::Syscall(_)));
            guest.context.host_calls(&[common::map(0x3000_0000 + round * 0x10_0000, 3)]).unwrap();
        }
    }
}

fn host_state(pid: i32) -> char {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    stat.rsplit(") ").next().unwrap().chars().next().unwrap()
}

fn wait_for_ever() -> HostCall<'static> {
    HostCall::Futex(FutexCall {
        uaddr: UserAddr(DATA),
        op: libc::FUTEX_WAIT.cast_unsigned(),
        val: 0,
        timeout: None,
        val2: 0,
        uaddr2: UserAddr::NULL,
        val3: 0,
    })
}

/// One thread runs, one waits in a host call, one is stopped at a system call, one is not bound yet.
#[test]
fn a_process_with_threads_in_all_states_dies_as_one() {
    for platform in platforms() {
        let mut guest = Guest::new(&platform, Code::new().call(1, &[]).spin());
        guest.trap();
        let space = Arc::clone(&guest.space);
        let unbound = guest.context.new_thread().unwrap();
        std::thread::scope(|scope| {
            let (tell, started) = channel();
            let mut start = |act: fn(&mut dyn Context)| {
                let new = guest.context.new_thread().unwrap();
                let tell = tell.clone();
                scope.spawn(move || {
                    let mut context = new.bind().unwrap();
                    tell.send(()).unwrap();
                    act(&mut *context);
                    assert_eq!(context.run(), DEAD);
                })
            };
            start(|context| assert_eq!(context.run(), DEAD));
            start(|context| {
                let failure = context.host_calls(&[wait_for_ever()]).unwrap_err();
                assert_eq!(failure.error, HostCallError::Died);
            });
            (0..2).for_each(|_| started.recv().unwrap());
            std::thread::sleep(Duration::from_millis(20));
            space.kill();
        });
        assert_eq!(unbound.bind().unwrap().run(), DEAD);
        assert_eq!(guest.trap(), DEAD);
    }
}

/// A thread that panics while its guest is in any state leaves nothing of it running; the process goes with its memory.
#[test]
fn a_tracer_that_panics_leaves_nothing_running() {
    for platform in &platforms().collect::<Vec<_>>() {
        for (state, code, reach) in states() {
            let (tell, told) = channel();
            let tracer = std::thread::scope(|scope| {
                let tracer = scope.spawn(move || {
                    let mut guest = Guest::new(platform, code);
                    tell.send(Arc::clone(&guest.space)).unwrap();
                    reach(&mut guest);
                    panic!("as a handler would");
                });
                tracer.join()
            });
            assert!(tracer.is_err());
            let space = told.recv().unwrap();
            let pid = space.host_pid();
            common::eventually("parked in the stub, or dead", || host_state(pid) != 'R');
            drop(space);
            assert!(!std::fs::exists(format!("/proc/{pid}")).unwrap(), "{state}");
        }
    }
}

/// Children and threads whose first own instruction is mkdir, bound by other threads while kicks and kills come: the
/// host makes none of these directories.
#[test]
fn no_call_of_a_guest_is_made_by_the_host_while_clones_are_attached_to() {
    const NAME: u64 = DATA + 0x100;
    let directory = std::env::temp_dir().join(format!("umlaut-states-{}", std::process::id()));
    let path = format!("{}\0", directory.to_str().unwrap());
    let mut seed = 3u64;
    for platform in platforms() {
        for round in 0..60 {
            let code =
                Code::new().set(Reg::Rdi, NAME).set(Reg::Rsi, 0o777).set(Reg::Rax, 83).syscall().jump(0);
            let mut guest = Guest::new(&platform, code);
            let name = [GuestRange { start: UserAddr(NAME), len: path.len() }];
            assert_eq!(guest.space.write(path.as_bytes(), &name, Reach::Mapped), path.len());
            assert!(matches!(guest.trap(), Trap::Syscall(entry) if entry.number == 83));
            let space = Arc::clone(&guest.space);
            std::thread::scope(|scope| {
                let drive = |new: Box<dyn NewContext>| {
                    let mut context = new.bind().unwrap();
                    context.registers_mut().rip = CODE;
                    for _ in 0..20 {
                        match context.run() {
                            Trap::Syscall(entry) => assert_eq!(entry.number, 83),
                            Trap::Interrupted => {}
                            trap => {
                                assert_eq!(trap, DEAD);
                                break;
                            }
                        }
                    }
                };
                for turn in 0..3 {
                    let thread = guest.context.new_thread();
                    let child = guest.context.fork();
                    if let Ok(thread) = thread {
                        scope.spawn(move || drive(thread));
                    }
                    if let Ok(child) = child {
                        scope.spawn(move || {
                            let _space = child.space;
                            drive(child.thread);
                        });
                    }
                    if turn == 1 && round % 2 == 0 {
                        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                        let (space, delay) = (Arc::clone(&space), Duration::from_micros(seed >> 54));
                        scope.spawn(move || {
                            std::thread::sleep(delay);
                            space.kill();
                        });
                    }
                    guest.context.interrupter().interrupt();
                    let _ = guest.context.run();
                }
            });
            assert!(!directory.exists(), "{}: the host made the directory", platform.capabilities().name);
        }
    }
}
