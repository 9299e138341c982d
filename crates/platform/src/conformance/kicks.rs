//! Kicks, and blocking host calls.

use std::sync::atomic::AtomicU64;
use std::time::Instant;

use abi::Errno;

use super::*;
use crate::{FutexCall, Interrupter};

pub(super) const CASES: &[Case] = &[
    ("a kick ends a run", kick_ends_run),
    ("a kick between two runs is not lost", kick_between_runs),
    ("a kick ends a blocking host call", kick_ends_futex),
    ("a kick does not disturb other host calls", kick_and_host_calls),
    ("many kicks are few interruptions", storm),
    ("no kick is lost", none_lost),
    ("a kick after the end is harmless", kick_after_end),
    ("futexes: mismatch, timeout, wake", futexes),
    ("futexes: requeue", requeue),
];

fn kick_ends_run(platform: &dyn Platform) {
    let mut guest = Guest::new(platform, Code::new().spin());
    for _ in 0..20 {
        let kick = guest.context.interrupter();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(Duration::from_millis(1));
                kick.interrupt();
            });
            assert_eq!(guest.context.run(), Trap::Interrupted);
        });
        assert_eq!(guest.context.registers().rip, CODE);
    }
}

fn kick_between_runs(platform: &dyn Platform) {
    let mut guest = Guest::new(platform, Code::new().call(1, &[]).spin());
    guest.context.interrupter().interrupt();
    assert_eq!(guest.context.run(), Trap::Interrupted, "before the first run");
    guest.expect_call(1, 0);
    guest.context.interrupter().interrupt();
    guest.context.interrupter().interrupt();
    assert_eq!(guest.context.run(), Trap::Interrupted);
    // Kicked during a host call that cannot block: reported by the next run.
    guest.context.interrupter().interrupt();
    guest.call(map(0x3000_0000, PAGE, RW)).unwrap();
    assert_eq!(guest.context.run(), Trap::Interrupted);
}

fn wait_on(at: u64, val: u32, timeout: Option<(i64, i64)>) -> HostCall<'static> {
    let op = libc::FUTEX_WAIT_BITSET.cast_unsigned();
    HostCall::Futex(FutexCall { op, val, timeout, val3: u32::MAX, ..futex(at) })
}

fn futex(at: u64) -> FutexCall {
    FutexCall { uaddr: UserAddr(at), op: 0, val: 0, timeout: None, val2: 0, uaddr2: UserAddr::NULL, val3: 0 }
}

fn in_ms(ms: i64) -> Option<(i64, i64)> {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    let ns = now.tv_nsec + ms * 1_000_000;
    Some((now.tv_sec + ns / 1_000_000_000, ns % 1_000_000_000))
}

fn kick_ends_futex(platform: &dyn Platform) {
    let mut guest = Guest::new(platform, Code::new().call(1, &[]));
    guest.context.interrupter().interrupt();
    assert_eq!(guest.call(wait_on(DATA, 0, None)), Err(HostCallError::Interrupted), "kicked before");
    guest.context.interrupter().interrupt();
    guest.call(map(0x3000_0000, PAGE, RW)).unwrap();
    assert_eq!(guest.call(wait_on(DATA, 0, None)), Err(HostCallError::Interrupted), "and by another call");
    for timeout in [None, in_ms(60_000)] {
        for _ in 0..10 {
            let kick = guest.context.interrupter();
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    std::thread::sleep(Duration::from_millis(1));
                    kick.interrupt();
                });
                assert_eq!(guest.call(wait_on(DATA, 0, timeout)), Err(HostCallError::Interrupted));
            });
        }
    }
    guest.expect_call(1, 0);
}

fn kick_and_host_calls(platform: &dyn Platform) {
    let mut guest = Guest::new(platform, Code::new().call(1, &[]));
    let kick = guest.context.interrupter();
    let work = || {
        let deadline = Instant::now() + Duration::from_millis(300);
        let mut rounds = 0u64;
        while rounds < 2 || Instant::now() < deadline {
            let at = 0x3000_0000 + rounds % 16 * 4 * PAGE;
            guest.calls(&[map(at, PAGE, RW), map(at + PAGE, PAGE, RW)]).unwrap();
            assert!(guest.put(at, b"x"));
            assert_eq!(guest.context.compare_exchange(UserAddr(at + 8), 0, 1), Ok(0));
            guest.call(HostCall::Unmap { addr: UserAddr(at), len: 2 * PAGE }).unwrap();
            drop(Guest::start(guest.context.fork().unwrap()));
            guest.context.run();
            guest.load(CODE, Code::new().call(1, &[]));
            rounds += 1;
        }
    };
    beside(|| kick.interrupt(), work);
}

fn storm(platform: &dyn Platform) {
    let mut guest = Guest::new(platform, Code::new().call(1, &[]).spin());
    let kick = guest.context.interrupter();
    for _ in 0..10_000 {
        kick.interrupt();
    }
    let mut interruptions = 0;
    while guest.context.run() == Trap::Interrupted {
        interruptions += 1;
    }
    assert!((1..=2).contains(&interruptions), "{interruptions} interruptions");
}

/// Another thread posts numbers and kicks after each; the guest spins. Each must be seen in time.
fn none_lost(platform: &dyn Platform) {
    const ROUNDS: u64 = 500;
    /// How often the other thread looks before it pauses.
    const LOOKS: u32 = 1000;
    let mut guest = Guest::new(platform, Code::new().spin());
    let kick: Arc<dyn Interrupter> = guest.context.interrupter();
    let end_if_lost = EndIfFailed(Arc::clone(&guest.space));
    let (posted, seen) = (AtomicU64::new(0), AtomicU64::new(0));
    let (posted, seen) = (&posted, &seen);
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let _end = end_if_lost;
            for number in 1..=ROUNDS {
                posted.store(number, Ordering::Release);
                kick.interrupt();
                let deadline = Instant::now() + Duration::from_secs(60);
                let mut looks = 0u32;
                while seen.load(Ordering::Acquire) < number {
                    looks += 1;
                    if !looks.is_multiple_of(LOOKS) {
                        std::hint::spin_loop();
                        continue;
                    }
                    assert!(Instant::now() < deadline, "kick {number} was lost");
                    pause();
                }
            }
        });
        while seen.load(Ordering::Relaxed) < ROUNDS {
            let trap = guest.context.run();
            if trap != Trap::Interrupted {
                // Nobody is to wait for this thread.
                seen.store(u64::MAX, Ordering::Release);
                panic!("{trap:?} instead of an interruption");
            }
            seen.store(posted.load(Ordering::Acquire), Ordering::Release);
        }
    });
}

fn kick_after_end(platform: &dyn Platform) {
    let guest = Guest::new(platform, Code::new().spin());
    let kick = guest.context.interrupter();
    let space = Arc::clone(&guest.space);
    drop(guest);
    kick.interrupt();
    assert!(space.write(b"x", &[range(DATA, 1)], Reach::Mapped) == 1, "a parked process lives on");
}

fn futexes(platform: &dyn Platform) {
    let mut guest = Guest::new(platform, Code::new());
    let failed = |errno| Err(HostCallError::Failed(errno));
    assert_eq!(guest.call(wait_on(DATA, 1, None)), failed(Errno::EAGAIN));
    let before = Instant::now();
    assert_eq!(guest.call(wait_on(DATA, 0, in_ms(20))), failed(Errno::ETIMEDOUT));
    assert!(before.elapsed() >= Duration::from_millis(19));
    let wait = FutexCall { op: libc::FUTEX_WAIT.cast_unsigned(), timeout: in_ms(20), ..futex(DATA) };
    assert_eq!(
        guest.call(HostCall::Futex(wait)),
        failed(Errno::ETIMEDOUT),
        "absolute, whatever the operation"
    );
    assert_eq!(guest.call(wait_on(0x3000_0000, 0, None)), failed(Errno::EFAULT));
    assert_eq!(guest.call(wait_on(abi::GUEST_TOP, 0, None)), failed(Errno::EFAULT));
    // PI operations tell host tids: refused.
    let pi = HostCall::Futex(FutexCall { op: libc::FUTEX_LOCK_PI.cast_unsigned(), ..futex(DATA) });
    assert_eq!(guest.call(pi), failed(Errno::ENOSYS));
    let wake =
        |at, val| HostCall::Futex(FutexCall { op: libc::FUTEX_WAKE.cast_unsigned(), val, ..futex(at) });
    assert_eq!(guest.call(wake(DATA, 1)), Ok(0));
    let new = guest.context.new_thread().unwrap();
    let space = Arc::clone(&guest.space);
    std::thread::scope(|scope| {
        let _end = EndIfFailed(Arc::clone(&guest.space));
        let waiter = scope.spawn(move || Guest::bind(&space, new).call(wait_on(DATA, 0, None)));
        while !waiter.is_finished() && guest.call(wake(DATA, 1)) == Ok(0) {
            pause();
        }
        assert_eq!(waiter.join().unwrap(), Ok(0));
    });
}

fn requeue(platform: &dyn Platform) {
    let mut guest = Guest::new(platform, Code::new());
    let new = guest.context.new_thread().unwrap();
    let space = Arc::clone(&guest.space);
    let move_waiters = |expected| {
        let op = libc::FUTEX_CMP_REQUEUE.cast_unsigned();
        let uaddr2 = UserAddr(DATA + 8);
        HostCall::Futex(FutexCall { op, val: 0, val2: 10, uaddr2, val3: expected, ..futex(DATA) })
    };
    let wake = HostCall::Futex(FutexCall { op: libc::FUTEX_WAKE.cast_unsigned(), val: 1, ..futex(DATA + 8) });
    assert_eq!(guest.call(move_waiters(1)), Err(HostCallError::Failed(Errno::EAGAIN)));
    std::thread::scope(|scope| {
        let _end = EndIfFailed(Arc::clone(&guest.space));
        let waiter = scope.spawn(move || Guest::bind(&space, new).call(wait_on(DATA, 0, None)));
        while !waiter.is_finished() && guest.call(move_waiters(0)) == Ok(0) {
            pause();
        }
        assert_eq!(guest.call(wake), Ok(1));
        assert_eq!(waiter.join().unwrap(), Ok(0));
    });
}
