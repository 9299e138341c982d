//! Guest memory as the kernel records it.
//!
//! The host keeps the memory itself (pages, copy-on-write, faults); an [`Mm`] records what is mapped where. Every
//! change is carried out in the guest's context by host calls and recorded from the host's answer, under the Mm's
//! sleeping lock (INVARIANTS 2.2). Copies to and from the guest go by `copy.rs`.
//!
//! Lock levels: `Mm` for the record; never held across host calls or copies.

pub mod advise;
mod copy;
pub mod host_maps;
mod inspect;
pub mod lock;
mod map;
pub mod memfd;
pub mod other;
pub mod remap;
pub mod residency;
mod stack;
pub mod syscalls;
mod trampolines;
mod vma;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use abi::MembarrierCmd;
use platform::AddressSpace;
use sync::{Mutex, MutexGuard, SleepLock, SleepLockGuard, SysResult, Waiter, order};

pub use copy::{UserSink, UserSource};
pub use inspect::Access;
pub use map::{MMAP_MIN_ADDR, MapRequest};
pub use platform::GuestRange;
pub use trampolines::Trampolines;
pub use vma::{Backing, SharedMemory, Vma, VmaFlags, VmaMap};

/// A guest address space, as one host process has it.
pub struct Mm {
    pub space: Arc<dyn AddressSpace>,
    shared: Arc<Shared>,
    /// What the host process was told of how far stacks may grow, in bytes; `NOT_TOLD` at first.
    stack_limit: AtomicU64,
}

/// No limit that a process can have: page sizes divide none of them, and this is odd.
const NOT_TOLD: u64 = u64::MAX - 2;

/// What host processes that share memory (vfork) have in common.
struct Shared {
    /// Held across the host calls that change mappings, and across fork.
    lock: SleepLock,
    record: Mutex<order::Mm, MmRecord>,
    /// Tasks that use this memory.
    users: AtomicUsize,
    /// How often trampolines have gone while others used the memory.
    moved: AtomicU64,
    /// Some of it is locked or sealed, or was: advice about it is the kernel's to look at.
    asks_advice: AtomicBool,
}

/// What is mapped where, and where things are.
#[derive(Clone, Default)]
pub struct MmRecord {
    pub vmas: VmaMap,
    /// Of patched programs: what the guest does not see.
    pub trampolines: Vec<Trampolines>,
    /// Those that had to go while others used the memory, with what [`Mm::moved`] was then: tasks that have not run since may be
    /// in them.
    pub(crate) departed: Vec<(u64, Trampolines)>,
    pub layout: Layout,
    /// The executable, for /proc/PID/exe.
    pub exe: Option<vfs::Path>,
    /// Keeps the executable from being written to.
    pub deny_write: Option<Arc<vfs::DenyWrite>>,
    /// The auxiliary vector as it lies on the stack.
    pub auxv: Vec<u8>,
    /// `mlockall(MCL_FUTURE)`; `true`: when touched (`MCL_ONFAULT`).
    pub lock_future: Option<bool>,
    /// The barriers that it is registered for (`membarrier`).
    pub membarriers: MembarrierCmd,
}

/// Where the parts of an image are, for brk, placement and /proc.
#[derive(Clone, Copy, Debug, Default)]
pub struct Layout {
    /// Mappings are placed below this.
    pub mmap_base: u64,
    pub start_code: u64,
    pub end_code: u64,
    pub start_data: u64,
    pub end_data: u64,
    pub start_brk: u64,
    pub brk: u64,
    /// The first stack pointer.
    pub start_stack: u64,
    /// End of the stack's mapping.
    pub stack_top: u64,
    pub arg_start: u64,
    pub arg_end: u64,
    pub env_start: u64,
    pub env_end: u64,
}

impl Mm {
    /// A new address space with one user.
    pub fn new(space: Arc<dyn AddressSpace>, record: MmRecord) -> Arc<Mm> {
        let is_sealed = record.vmas.iter().any(|vma| vma.flags.contains(VmaFlags::SEALED));
        let shared = Shared {
            lock: SleepLock::new(),
            record: Mutex::new(record),
            users: AtomicUsize::new(1),
            moved: AtomicU64::new(0),
            asks_advice: AtomicBool::new(is_sealed),
        };
        Arc::new(Mm { space, shared: Arc::new(shared), stack_limit: AtomicU64::new(NOT_TOLD) })
    }

    /// Takes the sleeping lock under which mappings change.
    pub fn lock(&self, waiter: &Waiter) -> SysResult<SleepLockGuard<'_>> {
        Ok(self.shared.lock.lock(waiter)?)
    }

    /// The record of mappings.
    pub fn record(&self) -> MutexGuard<'_, MmRecord> {
        self.shared.record.lock()
    }

    /// Tasks that use this memory, in this host process or in one that shares it.
    pub fn users(&self) -> usize {
        self.shared.users.load(Ordering::SeqCst)
    }

    /// How often trampolines have gone while others used the memory. A task whose guest runs has left them
    /// ([`CurrentTask::follow_moves`](crate::task::CurrentTask)).
    pub(crate) fn moved(&self) -> u64 {
        self.shared.moved.load(Ordering::SeqCst)
    }

    /// Whether advice about this memory is to come to the kernel, which knows what of it is locked or sealed.
    pub(crate) fn asks_advice(&self) -> bool {
        self.shared.asks_advice.load(Ordering::SeqCst)
    }

    /// What tells address spaces apart: the same for all that share the memory.
    pub fn identity(&self) -> usize {
        Arc::as_ptr(&self.shared).addr()
    }

    /// Whether it is the same memory, seen from this host process or another.
    pub fn shares_with(&self, other: &Mm) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }

    /// For one more thread.
    pub fn share(self: &Arc<Self>) -> Arc<Mm> {
        self.shared.users.fetch_add(1, Ordering::SeqCst);
        self.clone()
    }

    /// For a process that shares the memory (vfork).
    pub fn share_from(&self, space: Arc<dyn AddressSpace>) -> Arc<Mm> {
        self.shared.users.fetch_add(1, Ordering::SeqCst);
        let stack_limit = AtomicU64::new(self.stack_limit.load(Ordering::Relaxed));
        Arc::new(Mm { space, shared: self.shared.clone(), stack_limit })
    }

    /// A user leaves.
    pub fn release(&self) {
        self.shared.users.fetch_sub(1, Ordering::SeqCst);
    }

    /// A copy of the record for a process that was forked off, with its own memory.
    pub fn fork(&self, space: Arc<dyn AddressSpace>) -> Arc<Mm> {
        let mut record = self.record().clone();
        // Locks on memory are not inherited.
        record.lock_future = None;
        record.vmas.for_each_mut(|vma| vma.flags.remove(VmaFlags::LOCKED | VmaFlags::LOCK_ON_FAULT));
        let child = Mm::new(space, record);
        child.shared.moved.store(self.moved(), Ordering::SeqCst);
        // The host's limits are inherited.
        child.stack_limit.store(self.stack_limit.load(Ordering::Relaxed), Ordering::Relaxed);
        child
    }
}
