//! Host calls made in a guest's own host thread: the one primitive that changes its memory.

use std::os::fd::BorrowedFd;

use abi::{Errno, FutexWaitv, MembarrierCmd, UserAddr};

/// Words that one `futex_waitv` waits on, at most.
pub const FUTEX_WAITV_MAX: usize = 128;

/// A host file to map.
#[derive(Clone, Copy, Debug)]
pub struct MapFile<'a> {
    /// Handed to the guest process for the length of the call, then closed there.
    pub fd: BorrowedFd<'a>,
    /// In bytes, a multiple of the page size.
    pub offset: u64,
}

impl HostCall<'_> {
    /// The commands of [`HostCall::Membarrier`].
    pub const MEMBARRIERS: MembarrierCmd = MembarrierCmd::PRIVATE_EXPEDITED
        .union(MembarrierCmd::PRIVATE_EXPEDITED_SYNC_CORE)
        .union(MembarrierCmd::REGISTER_PRIVATE_EXPEDITED)
        .union(MembarrierCmd::REGISTER_PRIVATE_EXPEDITED_SYNC_CORE)
        .union(MembarrierCmd::REGISTER_GLOBAL_EXPEDITED);
}

/// One host call in the guest's host thread. A closed list: a platform lets nothing else through.
/// All ranges lie below [`abi::GUEST_TOP`].
#[derive(Clone, Copy, Debug)]
pub enum HostCall<'a> {
    /// `mmap`: `flags` holds MAP_FIXED or MAP_FIXED_NOREPLACE; no HUGETLB, no LOCKED.
    Map {
        addr: UserAddr,
        len: u64,
        prot: u32,
        flags: u32,
        file: Option<MapFile<'a>>,
    },
    Unmap {
        addr: UserAddr,
        len: u64,
    },
    Protect {
        addr: UserAddr,
        len: u64,
        prot: u32,
    },
    /// `mremap` with `old_len` not 0. `to` given: MAYMOVE | FIXED (| DONTUNMAP); else in place.
    Remap {
        addr: UserAddr,
        old_len: u64,
        new_len: u64,
        to: Option<UserAddr>,
        keep_old: bool,
    },
    Advise {
        addr: UserAddr,
        len: u64,
        advice: i32,
    },
    /// `futex`: may block until woken, timed out or kicked.
    Futex(FutexCall),
    /// `futex_waitv`: may block until one is woken (its index is the result), timed out or kicked. At most
    /// [`FUTEX_WAITV_MAX`] words, each below [`abi::GUEST_TOP`]; flags are the host's to judge.
    FutexWaitv {
        waiters: &'a [FutexWaitv],
        /// Absolute, `(seconds, nanoseconds)`, on the monotonic clock or (`realtime`) the other.
        timeout: Option<(i64, i64)>,
        realtime: bool,
    },
    /// `membarrier` for the guest's own memory: PRIVATE_EXPEDITED, PRIVATE_EXPEDITED_SYNC_CORE and the registrations of
    /// these and of GLOBAL_EXPEDITED.
    Membarrier(MembarrierCmd),
    /// Unmaps all that the guest has, up to [`abi::GUEST_TOP`] (exec in place).
    UnmapAll,
}

/// A futex operation on the host, with the host's own semantics. Timeouts are absolute.
#[derive(Clone, Copy, Debug)]
pub struct FutexCall {
    pub uaddr: UserAddr,
    /// Operation with FUTEX_PRIVATE_FLAG and FUTEX_CLOCK_REALTIME; no PI, no FD.
    pub op: u32,
    pub val: u32,
    /// Absolute time `(seconds, nanoseconds)` for WAIT_BITSET, a count for REQUEUE and WAKE_OP.
    pub timeout: Option<(i64, i64)>,
    pub val2: u32,
    pub uaddr2: UserAddr,
    pub val3: u32,
}

/// Why a host call did not succeed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostCallError {
    /// The host's answer.
    Failed(Errno),
    /// A kick ended a blocking call.
    Interrupted,
    /// The guest process is gone.
    Died,
}

/// A batch stopped at this call; those before it were done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostCallFailure {
    pub index: usize,
    pub error: HostCallError,
}
