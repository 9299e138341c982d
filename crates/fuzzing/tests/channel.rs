//! What the kernel makes of guests of the platform `stub` that say that they have done what they have not.

use std::os::fd::{AsFd, OwnedFd};

use abi::UserAddr;
use platform::{HostCall, HostCallError, MapFile, Platform, Trap};
use stubs::adversary::{Adversary, Memory, Wait, play};
use stubs::{Options, Stubs};

/// The reason by which a guest says that an order is done.
const DONE: u32 = 4;

/// Does nothing that it is ordered, and says that it is done.
struct Idler;

impl Adversary for Idler {
    fn touched(&mut self, _memory: &Memory<'_>, _offset: u64) {}

    fn lets_through(&mut self, _memory: &Memory<'_>) -> bool {
        false
    }

    fn awaited(&mut self, memory: &Memory<'_>) -> Wait {
        memory.post(DONE);
        Wait::Really(std::time::Duration::from_secs(20))
    }
}

fn memory_file() -> OwnedFd {
    rustix::fs::memfd_create(c"handed", rustix::fs::MemfdFlags::CLOEXEC).unwrap()
}

/// Else descriptors in flight would add up, and the host allows a user's processes so many of them in all.
#[test]
fn a_guest_that_does_not_receive_what_it_is_handed_is_killed() {
    if let Some(reason) = stubs::host_lacks() {
        println!("skipped: {reason}");
        return;
    }
    let stubs = Stubs::new(Options { placement: false, namespace: false, ..Options::default() }).unwrap();
    let made = stubs.spawn().unwrap();
    let mut context = made.thread.bind().unwrap();
    let playing = play(Box::new(Idler));
    let anonymous = HostCall::Map { addr: UserAddr(0x10_0000), len: 4096, prot: 3, flags: 0x32, file: None };
    assert!(context.host_calls(&[anonymous]).is_ok(), "its own memory is its own affair");
    let file = memory_file();
    let file = Some(MapFile { fd: file.as_fd(), offset: 0 });
    let mapped = HostCall::Map { addr: UserAddr(0x10_0000), len: 4096, prot: 3, flags: 0x12, file };
    assert_eq!(context.host_calls(&[mapped]).unwrap_err().error, HostCallError::Died);
    assert!(matches!(context.run(), Trap::Died(_)));
    drop(playing);
    // Others are served as before.
    assert!(stubs.spawn().unwrap().thread.bind().unwrap().host_calls(&[mapped]).is_ok());
}
