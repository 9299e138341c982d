//! Processes: fork, death.

use super::*;
use crate::ExitStatus;
use crate::code::Reg;

pub(super) const CASES: &[Case] = &[
    ("a fork has a copy of memory, registers and extended state", fork_copies),
    ("forks of forks", generations),
    ("a fork shares shared memory", fork_shares),
    ("a vfork child shares memory and is another process", vfork),
    ("a killed process is dead everywhere", kill),
    ("a process that nobody ran can go", unused),
    ("many processes", many),
];

fn fork_copies(platform: &dyn Platform) {
    let code = Code::new()
        .set(Reg::Rbx, 77)
        .set(Reg::Rax, 0xabc)
        .to_xmm0()
        .call(57, &[])
        .set(Reg::Rdi, DATA)
        .store()
        .from_xmm0()
        .set(Reg::Rdi, DATA + 8)
        .store()
        .call(60, &[]);
    let mut parent = Guest::new(platform, code);
    assert!(parent.put(DATA + 16, b"before"));
    parent.syscall();
    let mut child = Guest::start(parent.context.fork().expect("fork"));
    assert_ne!(child.space.host_pid(), parent.space.host_pid());
    parent.context.set_result(5);
    assert!(parent.put(DATA + 16, b"parent"));
    child.context.registers_mut().rax = 0;
    assert_eq!(child.context.registers().rbx, 77);
    for (guest, result) in [(&mut parent, 5), (&mut child, 0)] {
        guest.expect_call(60, 0);
        assert_eq!(guest.word(DATA), result, "its own result");
        assert_eq!(guest.word(DATA + 8), 0xabc, "extended state");
    }
    let mut text = [0; 6];
    assert_eq!(child.space.read(&[range(DATA + 16, 6)], &mut text, Reach::Mapped), 6);
    assert_eq!(&text, b"before");
    // The child can do all that its parent can.
    child.call(map(0x3000_0000, PAGE, RW)).unwrap();
    assert!(child.put(0x3000_0000, b"x") && !parent.put(0x3000_0000, b"x"));
}

fn generations(platform: &dyn Platform) {
    let mut guest = Guest::new(platform, Code::new().set(Reg::Rdi, DATA).increment().call(1, &[]));
    let mut ancestors = Vec::new();
    for generation in 1..=6 {
        guest.expect_call(1, 0);
        assert_eq!(guest.word(DATA), generation);
        let child = Guest::start(guest.context.fork().expect("fork"));
        // Every other ancestor dies before its descendants.
        if generation % 2 == 0 {
            ancestors.push(std::mem::replace(&mut guest, child));
        } else {
            guest = child;
        }
        guest.context.registers_mut().rip = CODE;
    }
    drop(ancestors);
    guest.expect_call(1, 0);
    assert_eq!(guest.word(DATA), 7);
}

fn fork_shares(platform: &dyn Platform) {
    let mut parent = Guest::new(platform, Code::new());
    let flags = (libc::MAP_SHARED | libc::MAP_ANONYMOUS | libc::MAP_FIXED_NOREPLACE).cast_unsigned();
    let at = 0x3000_0000;
    parent.call(HostCall::Map { addr: UserAddr(at), len: PAGE, prot: RW, flags, file: None }).unwrap();
    let child = Guest::start(parent.context.fork().expect("fork"));
    assert!(child.put(at, &7u64.to_le_bytes()));
    assert_eq!(parent.word(at), 7);
}

fn vfork(platform: &dyn Platform) {
    let code = Code::new().call(58, &[]).set(Reg::Rdi, DATA).store().call(60, &[]);
    let mut parent = Guest::new(platform, code);
    parent.syscall();
    let mut child = Guest::start(parent.context.fork_sharing_memory().expect("fork_sharing_memory"));
    assert_ne!(child.space.host_pid(), parent.space.host_pid());
    child.context.registers_mut().rax = 33;
    child.expect_call(60, 0);
    assert_eq!(parent.word(DATA), 33, "the child's store");
    child.calls(&[map(0x3000_0000, PAGE, RW), map(0x3000_1000, PAGE, RW)]).unwrap();
    assert!(parent.put(0x3000_0000, b"x"), "the child's mapping");
    child.space.kill();
    assert_eq!(child.trap(), Trap::Died(ExitStatus::Killed(libc::SIGKILL)));
    drop(child);
    parent.context.set_result(44);
    parent.expect_call(60, 0);
    assert_eq!(parent.word(DATA), 44);
}

fn kill(platform: &dyn Platform) {
    let mut guest = Guest::new(platform, Code::new().spin());
    let dead = Trap::Died(ExitStatus::Killed(libc::SIGKILL));
    std::thread::scope(|scope| {
        let space = Arc::clone(&guest.space);
        scope.spawn(move || {
            std::thread::sleep(std::time::Duration::from_millis(5));
            space.kill();
        });
        assert_eq!(guest.trap(), dead, "while it ran");
    });
    assert_eq!(guest.trap(), dead, "and ever after");
    assert!(!guest.put(DATA, b"x"));
    assert_eq!(guest.space.read(&[range(DATA, 1)], &mut [0], Reach::Growing), 0);
    assert_eq!(guest.call(map(0x3000_0000, PAGE, RW)), Err(HostCallError::Died));
    assert!(guest.context.compare_exchange(UserAddr(DATA), 0, 1).is_err());
    let death = guest.space.death().expect("a death descriptor");
    let mut poll = [rustix::event::PollFd::from_borrowed_fd(death, rustix::event::PollFlags::IN)];
    let limit = rustix::event::Timespec { tv_sec: 10, tv_nsec: 0 };
    assert_eq!(rustix::event::poll(&mut poll, Some(&limit)), Ok(1), "its death shows");
    guest.context.interrupter().interrupt();
    assert_eq!(guest.trap(), dead);

    // Killed while stopped, and while it waits in a host call.
    let mut guest = Guest::new(platform, Code::new().call(1, &[]));
    guest.expect_call(1, 0);
    guest.space.kill();
    assert_eq!(guest.trap(), dead);
    let mut guest = Guest::new(platform, Code::new());
    std::thread::scope(|scope| {
        let space = Arc::clone(&guest.space);
        scope.spawn(move || {
            std::thread::sleep(std::time::Duration::from_millis(5));
            space.kill();
        });
        let wait = crate::FutexCall {
            uaddr: UserAddr(DATA),
            op: libc::FUTEX_WAIT.cast_unsigned(),
            val: 0,
            timeout: None,
            val2: 0,
            uaddr2: UserAddr::NULL,
            val3: 0,
        };
        assert_eq!(guest.call(HostCall::Futex(wait)), Err(HostCallError::Died));
    });
    assert_eq!(guest.trap(), dead);
}

fn unused(platform: &dyn Platform) {
    let new = platform.spawn().unwrap();
    drop(new);
    let NewProcess { space, thread } = platform.spawn().unwrap();
    drop(thread);
    assert_eq!(space.read(&[range(DATA, 1)], &mut [0], Reach::Mapped), 0);
    let mut guest = Guest::new(platform, Code::new().call(1, &[]));
    drop(guest.context.fork().unwrap());
    drop(guest.context.fork_sharing_memory().unwrap());
    drop(guest.context.new_thread().unwrap());
    guest.expect_call(1, 0);
}

fn many(platform: &dyn Platform) {
    let mut guests: Vec<Guest> =
        (0..20).map(|i| Guest::new(platform, Code::new().call(i, &[]).call(100 + i, &[]))).collect();
    for (guest, number) in guests.iter_mut().zip(0..) {
        guest.expect_call(number, 0);
    }
    for (guest, number) in guests.iter_mut().zip(100..) {
        guest.expect_call(number, 0);
    }
    // From several threads at once.
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..10 {
                    let mut guest = Guest::new(platform, Code::new().call(1, &[]).call(2, &[]));
                    guest.expect_call(1, 0);
                    let mut child = Guest::start(guest.context.fork().unwrap());
                    child.expect_call(2, 0);
                    guest.expect_call(2, 0);
                }
            });
        }
    });
}
