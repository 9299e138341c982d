//! What every platform must do, as tests against `dyn Platform`.
//!
//! [`run`] runs one case, [`CASES`] lists them by name. A case panics with the reason. They use guest code
//! from [`code`](crate::code), so the mock passes them too.

#![allow(clippy::cast_possible_truncation, reason = "x86-64 only: usize is u64")]

mod exceptions;
mod kicks;
mod life;
mod memory;
mod state;
mod steps;
mod threads;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use abi::UserAddr;

use crate::code::Code;
use crate::{
    AddressSpace, Context, GuestRange, HostCall, HostCallError, HostCallFailure, NewContext, NewProcess,
    Platform, Reach, Registers, SyscallEntry, Trap,
};

/// A case: its name and what it does.
pub type Case = (&'static str, fn(&dyn Platform));

/// All cases.
pub const CASES: &[&[Case]] = &[
    state::CASES,
    memory::CASES,
    exceptions::CASES,
    steps::CASES,
    kicks::CASES,
    life::CASES,
    threads::CASES,
];

/// Runs all cases on `platform`, naming each on standard output, so that a failure tells which.
pub fn run(platform: &dyn Platform) {
    let name = platform.capabilities().name;
    for (case, check) in CASES.iter().copied().flatten() {
        println!("{name}: {case}");
        let start = std::time::Instant::now();
        check(platform);
        println!("  {} ms", start.elapsed().as_millis());
    }
}

/// Where guest code is put: 16 pages that may be read, written and executed.
const CODE: u64 = 0x10_0000;
/// Where its data is: 16 pages.
const DATA: u64 = 0x20_0000;
const PAGE: u64 = abi::PAGE_SIZE;
const RW: u32 = (libc::PROT_READ | libc::PROT_WRITE).cast_unsigned();
const RWX: u32 = RW | libc::PROT_EXEC.cast_unsigned();
const PRIVATE: u32 = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED_NOREPLACE).cast_unsigned();

/// A guest thread on this thread of the test.
struct Guest {
    context: Box<dyn Context>,
    space: Arc<dyn AddressSpace>,
}

impl Guest {
    /// A fresh process with the code and data pages, about to run `code`.
    fn new(platform: &dyn Platform, code: Code) -> Guest {
        let mut guest = Guest::start(platform.spawn().expect("spawn"));
        guest.calls(&[map(CODE, 16 * PAGE, RWX), map(DATA, 16 * PAGE, RW)]).expect("mapping");
        guest.load(CODE, code);
        guest
    }

    fn start(new: NewProcess) -> Guest {
        Guest { space: new.space, context: new.thread.bind().expect("bind") }
    }

    fn bind(space: &Arc<dyn AddressSpace>, thread: Box<dyn NewContext>) -> Guest {
        Guest { space: Arc::clone(space), context: thread.bind().expect("bind") }
    }

    /// Writes `code` at `at` and sets the registers to start it.
    fn load(&mut self, at: u64, code: Code) {
        assert!(self.put(at, code.bytes()), "code is written");
        *self.context.registers_mut() = Registers::for_new_image(at, DATA + 16 * PAGE);
    }

    fn calls(&mut self, calls: &[HostCall<'_>]) -> Result<u64, HostCallFailure> {
        self.context.host_calls(calls)
    }

    fn call(&mut self, call: HostCall<'_>) -> Result<u64, HostCallError> {
        self.calls(&[call]).map_err(|failure| {
            assert_eq!(failure.index, 0);
            failure.error
        })
    }

    /// Runs to the next trap that is not a spurious interruption.
    fn trap(&mut self) -> Trap {
        loop {
            match self.context.run() {
                Trap::Interrupted => {}
                trap => return trap,
            }
        }
    }

    /// Steps to the next trap that is not a spurious interruption.
    fn step(&mut self) -> Trap {
        loop {
            match self.context.step() {
                Trap::Interrupted => {}
                trap => return trap,
            }
        }
    }

    fn syscall(&mut self) -> SyscallEntry {
        match self.trap() {
            Trap::Syscall(entry) => entry,
            other => panic!("expected a system call, found {other:?}"),
        }
    }

    /// Runs to a system call with this number, answering it with `result`.
    fn expect_call(&mut self, number: u64, result: u64) -> SyscallEntry {
        let entry = self.syscall();
        assert_eq!(entry.number, number, "the call's number");
        self.context.set_result(result);
        entry
    }

    fn put(&self, at: u64, bytes: &[u8]) -> bool {
        self.space.write(bytes, &[range(at, bytes.len())], Reach::Mapped) == bytes.len()
    }

    fn word(&self, at: u64) -> u64 {
        word(&*self.space, at)
    }
}

/// Ends a guest process if the test's thread that holds this panics: else others that run its threads would not come back,
/// and the test would hang instead of failing.
struct EndIfFailed(Arc<dyn AddressSpace>);

impl Drop for EndIfFailed {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.kill();
        }
    }
}

/// Does `act` all the time on a thread of its own while `work` goes on, however that ends. In bursts: in between whoever is
/// disturbed by it gets time, on one CPU too and where the host gives guests less of it than us.
fn beside(act: impl Fn() + Sync, work: impl FnOnce()) {
    const BURST: u32 = 32;
    struct Stop<'a>(&'a AtomicBool);
    impl Drop for Stop<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                for _ in 0..BURST {
                    act();
                    std::thread::yield_now();
                }
                pause();
            }
        });
        let _stop = Stop(&stop);
        work();
    });
}

/// Leaves the CPU to others for a moment.
fn pause() {
    std::thread::sleep(Duration::from_micros(50));
}

fn word(space: &dyn AddressSpace, at: u64) -> u64 {
    let mut bytes = [0; 8];
    assert_eq!(space.read(&[range(at, 8)], &mut bytes, Reach::Mapped), 8, "reading a word at {at:#x}");
    u64::from_le_bytes(bytes)
}

fn range(start: u64, len: usize) -> GuestRange {
    GuestRange { start: UserAddr(start), len }
}

/// A private anonymous mapping at a fixed place.
fn map(addr: u64, len: u64, prot: u32) -> HostCall<'static> {
    HostCall::Map { addr: UserAddr(addr), len, prot, flags: PRIVATE, file: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fails_does_not_hang() {
        let fails = || beside(|| {}, || panic!("as wanted"));
        assert!(std::panic::catch_unwind(fails).is_err());
        let fails = || {
            let mut guest = Guest::new(&crate::mock::Mock::new(), Code::new().spin());
            let space = Arc::clone(&guest.space);
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    let _end = EndIfFailed(space);
                    panic!("as wanted");
                });
                assert!(matches!(guest.trap(), Trap::Died(_)));
            });
        };
        assert!(std::panic::catch_unwind(fails).is_err());
    }
}
