//! Threads of one process.

use super::*;
use crate::ExitStatus;
use crate::code::Reg;

pub(super) const CASES: &[Case] = &[
    ("a thread shares memory and has registers of its own", shares),
    ("threads end one by one, in any order", end_in_any_order),
    ("the process outlives its first thread", first_thread_ends),
    ("a kill ends all threads", kill_all),
    ("threads make host calls at the same time", parallel_host_calls),
    ("a fork of a threaded process has one thread", fork_of_threaded),
    ("many threads, one after another", many),
];

fn shares(platform: &dyn Platform) {
    let code = Code::new().set(Reg::Rbx, 3).set(Reg::Rax, 0xdef).to_xmm0().call(56, &[]);
    let code = code.store().from_xmm0().set(Reg::Rdi, DATA + 64).store().call(60, &[]);
    let mut guest = Guest::new(platform, code);
    guest.syscall();
    let new = guest.context.new_thread().expect("new_thread");
    let space = Arc::clone(&guest.space);
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let mut thread = Guest::bind(&space, new);
            let regs = thread.context.registers_mut();
            assert_eq!(regs.rbx, 3, "a copy of the registers");
            (regs.rax, regs.rdi) = (11, DATA);
            thread.expect_call(60, 0);
            assert_eq!(thread.word(DATA + 64), 0xdef, "a copy of the extended state");
        });
    });
    let regs = guest.context.registers_mut();
    (regs.rax, regs.rdi) = (22, DATA + 8);
    guest.expect_call(60, 0);
    assert_eq!((guest.word(DATA), guest.word(DATA + 8)), (11, 22));
}

/// A thread on a thread of the test's, that makes the call 1 with what it is told in its first argument.
fn thread_that_calls<'scope>(
    scope: &'scope std::thread::Scope<'scope, '_>,
    guest: &mut Guest,
    argument: u64,
) -> std::thread::ScopedJoinHandle<'scope, u64> {
    let new = guest.context.new_thread().expect("new_thread");
    let space = Arc::clone(&guest.space);
    scope.spawn(move || {
        let mut thread = Guest::bind(&space, new);
        *thread.context.registers_mut() = Registers::for_new_image(CODE, DATA + PAGE);
        thread.context.registers_mut().rdi = argument;
        thread.context.registers_mut().rax = 1;
        thread.expect_call(1, 0).args[0]
    })
}

fn end_in_any_order(platform: &dyn Platform) {
    let mut guest = Guest::new(platform, Code::new().syscall().jump(0));
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8).map(|i| thread_that_calls(scope, &mut guest, i)).collect();
        for (number, thread) in threads.into_iter().enumerate().rev() {
            assert_eq!(thread.join().unwrap(), number as u64);
        }
    });
    guest.context.registers_mut().rax = 9;
    guest.expect_call(9, 0);
}

fn first_thread_ends(platform: &dyn Platform) {
    let code = Code::new().set(Reg::Rdi, DATA).increment().call(1, &[]).jump(0);
    let mut guest = Guest::new(platform, code);
    let new = guest.context.new_thread().expect("new_thread");
    let space = Arc::clone(&guest.space);
    drop(guest);
    let mut thread = Guest::bind(&space, new);
    for round in 1..100 {
        thread.expect_call(1, 0);
        assert_eq!(thread.word(DATA), round, "memory by the process's pid");
    }
    thread.calls(&[map(0x3000_0000, PAGE, RW), map(0x3000_1000, PAGE, RW)]).unwrap();
    let mut child = Guest::start(thread.context.fork().expect("fork by another thread"));
    child.context.registers_mut().rip = CODE;
    child.expect_call(1, 0);
    drop(thread);
    assert_eq!(word(&*space, DATA), 99, "a process without threads that run");
    drop(space);
    child.expect_call(1, 0);
}

fn kill_all(platform: &dyn Platform) {
    let mut guest = Guest::new(platform, Code::new().spin());
    let dead = Trap::Died(ExitStatus::Killed(libc::SIGKILL));
    let end_if_failed = EndIfFailed(Arc::clone(&guest.space));
    std::thread::scope(|scope| {
        let _end = end_if_failed;
        for _ in 0..3 {
            let new = guest.context.new_thread().expect("new_thread");
            let space = Arc::clone(&guest.space);
            scope.spawn(move || {
                let mut thread = Guest::bind(&space, new);
                thread.context.registers_mut().rip = CODE;
                assert_eq!(thread.trap(), dead);
            });
        }
        let space = Arc::clone(&guest.space);
        scope.spawn(move || {
            std::thread::sleep(std::time::Duration::from_millis(20));
            space.kill();
        });
        assert_eq!(guest.trap(), dead);
    });
    assert!(guest.context.new_thread().is_err() || platform.capabilities().name == "mock");
}

fn parallel_host_calls(platform: &dyn Platform) {
    let mut guest = Guest::new(platform, Code::new());
    let file = |byte: u8| {
        let fd = rustix::fs::memfd_create("test", rustix::fs::MemfdFlags::CLOEXEC).unwrap();
        rustix::io::pwrite(&fd, &[byte; 4096], 0).unwrap();
        fd
    };
    std::thread::scope(|scope| {
        for number in 1..=4u8 {
            let new = guest.context.new_thread().expect("new_thread");
            let space = Arc::clone(&guest.space);
            scope.spawn(move || {
                let mut thread = Guest::bind(&space, new);
                let file = file(number);
                let at = 0x3000_0000 + u64::from(number) * 0x100_0000;
                for _ in 0..100 {
                    let flags = (libc::MAP_PRIVATE | libc::MAP_FIXED_NOREPLACE).cast_unsigned();
                    let fd = std::os::fd::AsFd::as_fd(&file);
                    let file = Some(crate::MapFile { fd, offset: 0 });
                    let mapping = HostCall::Map { addr: UserAddr(at), len: PAGE, prot: RW, flags, file };
                    thread.calls(&[mapping, map(at + PAGE, PAGE, RW)]).unwrap();
                    assert_eq!(thread.word(at) & 0xff, u64::from(number), "its own file");
                    thread.call(HostCall::Unmap { addr: UserAddr(at), len: 2 * PAGE }).unwrap();
                }
            });
        }
    });
}

fn fork_of_threaded(platform: &dyn Platform) {
    let mut guest = Guest::new(platform, Code::new().syscall().jump(0));
    let new = guest.context.new_thread().expect("new_thread");
    let mut child = Guest::start(guest.context.fork().expect("fork"));
    // The child's threads take the places that the parent's have.
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|i| thread_that_calls(scope, &mut child, i)).collect();
        for (thread, number) in threads.into_iter().zip(0..) {
            assert_eq!(thread.join().unwrap(), number);
        }
    });
    let mut thread = Guest::bind(&guest.space, new);
    thread.context.registers_mut().rax = 5;
    thread.expect_call(5, 0);
}

fn many(platform: &dyn Platform) {
    let mut guest = Guest::new(platform, Code::new().syscall().jump(0));
    for round in 0..200 {
        let new = guest.context.new_thread().expect("new_thread");
        let mut thread = Guest::bind(&guest.space, new);
        thread.context.registers_mut().rax = round;
        thread.expect_call(round, 0);
    }
}
