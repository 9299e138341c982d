//! Locks against a model that knows each byte, and waits.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the model's small numbers are indices too"
)]

use std::sync::Arc;
use std::time::Duration;

use abi::{AT_FDCWD, OpenFlags};
use proptest::prelude::*;
use sync::Interrupts;

use super::*;
use crate::ops;
use crate::test_caller::{TestCaller, TestWorld};
use crate::test_support::{errno, world};

fn open(world: &TestWorld) -> Arc<FileDescription> {
    let caller = TestCaller::root();
    let request = ops::OpenRequest::open(OpenFlags::RDWR, 0).unwrap();
    ops::open(&world.context(&caller), AT_FDCWD, b"/dir/file", &request).unwrap()
}

fn range(start: i64, len: i64) -> LockRange {
    LockRange::new(0, start, len).unwrap()
}

fn process(id: u64) -> LockOwner {
    LockOwner::Process { id, pid: i32::try_from(id).unwrap() }
}

fn set(file: &FileDescription, owner: LockOwner, kind: Option<LockKind>, range: LockRange) -> Option<Errno> {
    errno(set_record(file, owner, kind, range, LockWait::No, &TestCaller::root()))
}

const BYTES: i64 = 12;
const OWNERS: u64 = 3;

fn kind() -> impl Strategy<Value = Option<LockKind>> {
    prop_oneof![Just(None), Just(Some(LockKind::Shared)), Just(Some(LockKind::Exclusive))]
}

proptest! {
    #[test]
    fn record_locks_are_what_each_byte_says(
        ops in prop::collection::vec((0..OWNERS, 0..BYTES, 0..BYTES, kind(), 0..10_u8), 1..120)
    ) {
        let mut records = Records::default();
        let mut model = vec![[None; BYTES as usize + 1]; OWNERS as usize];
        for (owner, start, len, kind, close) in ops {
            if close == 0 {
                let had = model[owner as usize].iter().any(Option::is_some);
                prop_assert_eq!(records.remove_owner(Owner::Process(owner)), had);
                model[owner as usize] = [None; BYTES as usize + 1];
                continue;
            }
            // Length 0: to the end, which is the model's last byte.
            let len = len.min(BYTES - start);
            let range = range(start, len);
            let end = if len == 0 { BYTES + 1 } else { start + len };
            let bytes = start as usize..end as usize;
            let want = Record {
                owner: Owner::Process(owner), pid: 1, kind: kind.unwrap_or(LockKind::Shared), range,
            };
            let blocked = kind.is_some() && (0..OWNERS).filter(|other| *other != owner).any(|other| {
                model[other as usize][bytes.clone()].iter().flatten().any(|held: &LockKind| held.conflicts(kind.unwrap()))
            });
            prop_assert_eq!(kind.is_some() && records.conflict(&want).is_some(), blocked);
            if !blocked {
                let weaker = records.set(want, kind.is_none());
                let lost = model[owner as usize][bytes.clone()].iter().any(|held| {
                    held.is_some() && kind.is_none()
                        || *held == Some(LockKind::Exclusive) && kind == Some(LockKind::Shared)
                });
                // A wake too many is harmless, one too few is not.
                prop_assert!(weaker || !lost);
                model[owner as usize][bytes].fill(kind);
            }
            let mut next = 0;
            for (piece, kind) in records.together(LockRange::new(0, 0, 0).unwrap()) {
                prop_assert_eq!(piece.start(), next, "the pieces cover all");
                next = piece.end().saturating_add(1);
                for at in piece.start()..=piece.end().min(BYTES) {
                    let held = model.iter().filter_map(|owner| owner[at as usize]);
                    let most = held.fold(None, |most, kind| {
                        if most == Some(LockKind::Exclusive) { most } else { Some(kind) }
                    });
                    prop_assert_eq!(kind, most);
                }
            }
            prop_assert_eq!(next, i64::MAX);
            for owner in 0..OWNERS {
                let held = records.of_owner(Owner::Process(owner));
                let mut bytes = [None; BYTES as usize + 1];
                for (range, kind) in &held {
                    for at in range.start()..=range.end().min(BYTES) {
                        prop_assert!(bytes[at as usize].is_none(), "overlap");
                        bytes[at as usize] = Some(*kind);
                    }
                }
                prop_assert_eq!(&bytes, &model[owner as usize]);
                // Merged: side by side means different kinds.
                for pair in held.windows(2) {
                    prop_assert!(pair[0].1 != pair[1].1 || !pair[0].0.touches(pair[1].0));
                }
            }
        }
    }
}

#[test]
fn posix_locks_go_with_any_descriptor_and_ofd_locks_with_the_last() {
    let (_, world) = world();
    let caller = TestCaller::root();
    let (one, two, other) = (open(&world), open(&world), open(&world));
    let exclusive = Some(LockKind::Exclusive);
    assert_eq!(set(&one, process(1), exclusive, range(0, 10)), None);
    assert_eq!(set(&two, process(1), exclusive, range(5, 10)), None);
    assert_eq!(set(&other, process(2), Some(LockKind::Shared), range(14, 1)), Some(Errno::EAGAIN));
    // Closing another descriptor of the file drops them all.
    two.descriptor_closed(1, &caller).unwrap();
    assert_eq!(set(&other, process(2), Some(LockKind::Shared), range(0, 0)), None);
    other.descriptor_closed(2, &caller).unwrap();

    assert_eq!(set(&one, LockOwner::Description, exclusive, range(0, 0)), None);
    assert_eq!(set(&two, LockOwner::Description, exclusive, range(3, 1)), Some(Errno::EAGAIN));
    assert_eq!(set(&one, process(1), exclusive, range(3, 1)), Some(Errno::EAGAIN));
    one.descriptor_closed(1, &caller).unwrap();
    assert_eq!(set(&two, LockOwner::Description, exclusive, range(3, 1)), Some(Errno::EAGAIN));
    drop(one);
    assert_eq!(set(&two, LockOwner::Description, exclusive, range(3, 1)), None);
}

#[test]
fn getlk_tells_whose_lock_stands_in_the_way() {
    let (_, world) = world();
    let file = open(&world);
    let given =
        Flock { lock_type: LockType::WRLCK, whence: 0, start: 3, len: 1, pid: 99, ..Flock::default() };
    let ask = |owner| get_record(&file, owner, LockKind::Exclusive, range(3, 1), given).unwrap();
    assert_eq!(ask(process(2)), Flock { lock_type: LockType::UNLCK, ..given });
    set(&file, process(1), Some(LockKind::Shared), range(2, 0));
    let found = Flock { lock_type: LockType::RDLCK, whence: 0, start: 2, len: 0, pid: 1, ..given };
    assert_eq!(ask(process(2)), found);
    assert_eq!(ask(process(1)).lock_type, LockType::UNLCK);
    set(&file, process(1), None, range(0, 0));
    set(&file, LockOwner::Description, Some(LockKind::Shared), range(0, 5));
    assert_eq!(ask(process(1)).pid, -1);
}

#[test]
fn locks_need_the_access_that_they_are_about() {
    let (_, world) = world();
    let caller = TestCaller::root();
    let request = ops::OpenRequest::open(OpenFlags::WRONLY, 0).unwrap();
    let file = ops::open(&world.context(&caller), AT_FDCWD, b"/dir/file", &request).unwrap();
    assert_eq!(set(&file, process(1), Some(LockKind::Shared), range(0, 0)), Some(Errno::EBADF));
    assert_eq!(set(&file, process(1), Some(LockKind::Exclusive), range(0, 0)), None);
}

#[test]
fn a_waiter_gets_the_lock_when_it_is_released() {
    let (_, world) = world();
    let (held, wanted) = (open(&world), open(&world));
    assert_eq!(set(&held, process(1), Some(LockKind::Exclusive), range(0, 0)), None);
    let waiting = std::thread::spawn(move || {
        let deadlocks = Deadlocks::new();
        let caller = TestCaller::root();
        let wait = LockWait::Yes(&deadlocks);
        set_record(&wanted, process(2), Some(LockKind::Shared), range(5, 5), wait, &caller).unwrap();
        assert!(deadlocks.is_empty());
        flock(&wanted, FlockOp::EX, &caller).unwrap();
    });
    flock(&held, FlockOp::SH, &TestCaller::root()).unwrap();
    std::thread::sleep(Duration::from_millis(20));
    assert!(!waiting.is_finished());
    set(&held, process(1), None, range(0, 0));
    std::thread::sleep(Duration::from_millis(20));
    assert!(!waiting.is_finished());
    drop(held);
    waiting.join().unwrap();
}

#[test]
fn a_circle_of_waits_is_refused_and_a_signal_ends_a_wait() {
    let (_, world) = world();
    let deadlocks = Arc::new(Deadlocks::new());
    let file = open(&world);
    let exclusive = Some(LockKind::Exclusive);
    assert_eq!(set(&file, process(1), exclusive, range(1, 1)), None);
    assert_eq!(set(&file, process(2), exclusive, range(2, 1)), None);
    let (send, receive) = std::sync::mpsc::channel();
    let theirs = (file.clone(), deadlocks.clone());
    let second = std::thread::spawn(move || {
        let caller = TestCaller::root();
        send.send(caller.waiter().parker().clone()).unwrap();
        set_record(&theirs.0, process(2), exclusive, range(1, 1), LockWait::Yes(&theirs.1), &caller)
    });
    let parker = receive.recv().unwrap();
    while deadlocks.is_empty() {
        std::thread::yield_now();
    }
    let caller = TestCaller::root();
    let closing = set_record(&file, process(1), exclusive, range(2, 1), LockWait::Yes(&deadlocks), &caller);
    assert_eq!(errno(closing), Some(Errno::EDEADLK));
    parker.interrupt(Interrupts::SIGNAL);
    assert!(matches!(second.join().unwrap(), Err(sync::SysError::Restart(_))));
    assert!(deadlocks.is_empty());
}

#[test]
fn changing_a_flock_lets_go_of_it_first() {
    let (_, world) = world();
    let caller = TestCaller::root();
    let (one, two) = (open(&world), open(&world));
    flock(&one, FlockOp::SH, &caller).unwrap();
    flock(&two, FlockOp::SH, &caller).unwrap();
    assert_eq!(errno(flock(&one, FlockOp::EX | FlockOp::NB, &caller)), Some(Errno::EAGAIN));
    // The shared one is gone too, as on Linux.
    flock(&two, FlockOp::EX | FlockOp::NB, &caller).unwrap();
    assert_eq!(errno(flock(&one, FlockOp::SH | FlockOp::NB, &caller)), Some(Errno::EAGAIN));
    assert_eq!(errno(flock(&one, FlockOp::SH | FlockOp::EX, &caller)), Some(Errno::EINVAL));
    flock(&two, FlockOp::UN, &caller).unwrap();
    flock(&one, FlockOp::SH | FlockOp::NB, &caller).unwrap();
}
