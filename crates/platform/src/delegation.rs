//! Files that a guest thread uses without the kernel: host descriptors that it was handed.

use std::os::fd::BorrowedFd;

/// An open host file, and what a guest thread may do with it by itself.
#[derive(Clone, Copy, Debug)]
pub struct DelegatedFile<'a> {
    /// The number by which the guest knows it, below [`DelegatedFile::NUMBERS`].
    pub descriptor: u32,
    /// The very description whose offset and flags the guest's has, open for no more than it may.
    pub file: BorrowedFd<'a>,
    pub read: bool,
    pub write: bool,
    /// Bytes that the thread may write to this and other such files before it asks the kernel again; `None`: as many as
    /// it likes. A well-behaved thread's own word: what it is worth is the accounting of those.
    pub budget: Option<u64>,
}

impl DelegatedFile<'_> {
    /// Guest descriptors from this one on are never delegated.
    pub const NUMBERS: u32 = 1024;
}

/// What a thread has read and written by itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DelegatedIo {
    pub read_calls: u64,
    pub read_chars: u64,
    pub write_calls: u64,
    pub written_chars: u64,
}

/// What a guest thread holds, as any thread of the kernel may take it away.
pub trait Delegations: Send + Sync {
    /// From now on calls on this number reach the kernel; one that is being made is not waited for. Where the calling thread
    /// serves another guest thread of the process, the host's file is closed before that one goes on, or before the thread
    /// itself does. Else the thread closes it when it is next in the platform's hands, before its guest goes on; `true`: so it
    /// is, and it had better come. `false`: it did not hold it, or need not come.
    fn withdraw(&self, descriptor: u32) -> bool;

    /// The same for all that it holds.
    fn withdraw_all(&self) -> bool;

    /// Whether it holds a file by that number.
    fn holds(&self, descriptor: u32) -> bool;

    /// What it has read and written since this was last asked, by its own word. On its own kernel thread.
    fn take_io(&self) -> DelegatedIo;
}
