//! What file systems may know of the task that calls them.

use std::any::Any;

use abi::UserAddr;
use sync::{SysResult, Waiter};

use crate::Cred;

/// The calling task, as file operations see it. The kernel's `CurrentTask` implements it.
pub trait Caller {
    /// What it blocks with.
    fn waiter(&self) -> &Waiter;

    /// Its credentials.
    fn cred(&self) -> &Cred;

    /// Its limit on file sizes in bytes (`RLIMIT_FSIZE`). The task gets SIGXFSZ by
    /// [`file_too_big`](Caller::file_too_big) when a write would begin at or behind it.
    fn file_size_limit(&self) -> u64;

    /// Sends SIGXFSZ; the operation then fails with `EFBIG`.
    fn file_too_big(&self);

    /// Sends SIGPIPE (the operation then fails with `EPIPE`).
    fn broken_pipe(&self);

    /// Copies from its memory, for `ioctl`s. `EFAULT` unless all of it is there.
    fn read_user(&self, from: UserAddr, into: &mut [u8]) -> SysResult<()>;

    /// Copies to its memory, likewise.
    fn write_user(&self, to: UserAddr, bytes: &[u8]) -> SysResult<()>;

    /// For the kernel's own files, which get their `CurrentTask` back from it.
    fn as_any(&self) -> &dyn Any;
}

/// Where a read's bytes go: a guest's buffers, or memory of the kernel's.
///
/// Files that consume what they give (pipes, sockets, terminals) put first and commit then, and only what was
/// taken.
pub trait UserWrite {
    /// Bytes that still fit.
    fn room(&self) -> usize;
    /// Puts them; returns how many were taken. Fewer than given and than [`room`](UserWrite::room) means
    /// that the next byte faults: `EFAULT` if nothing was transferred at all, else a short count.
    fn put(&mut self, bytes: &[u8]) -> usize;
}

/// Where a write's bytes come from.
pub trait UserRead {
    /// Bytes left.
    fn left(&self) -> usize;
    /// Takes the next ones; fewer than `into` holds (and than were left) means a fault at the next byte.
    fn take(&mut self, into: &mut [u8]) -> usize;
    /// Gives the last `bytes` taken back, because the file did not accept them.
    fn untake(&mut self, bytes: usize);
}

impl UserWrite for Vec<u8> {
    /// A vector takes all; callers bound what they read into it by other means.
    fn room(&self) -> usize {
        usize::MAX
    }
    fn put(&mut self, bytes: &[u8]) -> usize {
        self.extend_from_slice(bytes);
        bytes.len()
    }
}

/// A slice of the kernel's as the source of a write.
pub struct SliceSource<'a> {
    pub bytes: &'a [u8],
    pub taken: usize,
}

impl UserRead for SliceSource<'_> {
    fn left(&self) -> usize {
        self.bytes.len() - self.taken
    }
    fn take(&mut self, into: &mut [u8]) -> usize {
        let rest = self.bytes.get(self.taken..).unwrap_or(&[]);
        let count = rest.len().min(into.len());
        if let (Some(to), Some(from)) = (into.get_mut(..count), rest.get(..count)) {
            to.copy_from_slice(from);
        }
        self.taken += count;
        count
    }
    fn untake(&mut self, bytes: usize) {
        self.taken = self.taken.saturating_sub(bytes);
    }
}

/// A slice of the kernel's as the destination of a read.
pub struct SliceSink<'a> {
    pub bytes: &'a mut [u8],
    pub filled: usize,
}

impl UserWrite for SliceSink<'_> {
    fn room(&self) -> usize {
        self.bytes.len() - self.filled
    }
    fn put(&mut self, bytes: &[u8]) -> usize {
        let count = bytes.len().min(self.room());
        if let (Some(to), Some(from)) =
            (self.bytes.get_mut(self.filled..self.filled + count), bytes.get(..count))
        {
            to.copy_from_slice(from);
        }
        self.filled += count;
        count
    }
}
