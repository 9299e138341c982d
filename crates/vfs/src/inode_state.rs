//! What the layers above hang on an inode.

use std::any::Any;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Arc, OnceLock};

use abi::Errno;
use sync::order::Inode as InodeLevel;
use sync::{Mutex, SysResult};

use crate::holders::Holders;
use crate::{Holder, Inode};

/// State that belongs to a file whatever its file system: made when first needed, gone with the inode.
#[derive(Default)]
pub struct InodeState {
    /// A FIFO's pipe, the socket bound to the name: the kernel's own types.
    object: Mutex<InodeLevel, Option<Arc<dyn Any + Send + Sync>>>,
    /// Record locks and flocks.
    locks: OnceLock<Box<crate::locks::FileLocks>>,
    /// Open for writing so many times, or, negative, so many times running as a program (Linux: `i_writecount`).
    writers: AtomicI32,
    /// Known to have no set-id bits and no capabilities, so that a write need not ask (Linux: S_NOSEC).
    pub(crate) without_privileges: AtomicBool,
    /// Threads that write to it without the kernel, by the number that they have for it.
    writing: Holders,
    /// Has no name but may get one (`O_TMPFILE` without `O_EXCL`; Linux: I_LINKABLE).
    pub(crate) linkable: AtomicBool,
}

/// Keeps a file from being opened for writing while it runs as a program.
pub struct DenyWrite(Arc<Inode>);

impl Drop for DenyWrite {
    fn drop(&mut self) {
        self.0.attached.writers.fetch_add(1, Ordering::SeqCst);
    }
}

/// Counts a file as open for writing.
pub(crate) struct WriteAccess(Arc<Inode>);

impl Drop for WriteAccess {
    fn drop(&mut self) {
        self.0.attached.writers.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Inode {
    /// From now on nobody opens it for writing. `ETXTBSY` if somebody has.
    pub fn deny_write(self: &Arc<Self>) -> SysResult<DenyWrite> {
        let step = |count: i32| if count > 0 { None } else { count.checked_sub(1) };
        match self.attached.writers.fetch_update(Ordering::SeqCst, Ordering::SeqCst, step) {
            Ok(_) => Ok(DenyWrite(self.clone())),
            Err(_) => Err(Errno::ETXTBSY.into()),
        }
    }

    /// Whether somebody has it open for writing.
    pub fn is_written_to(&self) -> bool {
        self.attached.writers.load(Ordering::SeqCst) > 0
    }

    /// Counts it as open for writing. `ETXTBSY` while it runs as a program.
    pub(crate) fn write_access(self: &Arc<Self>) -> SysResult<WriteAccess> {
        let step = |count: i32| if count < 0 { None } else { count.checked_add(1) };
        match self.attached.writers.fetch_update(Ordering::SeqCst, Ordering::SeqCst, step) {
            Ok(_) => Ok(WriteAccess(self.clone())),
            Err(_) => Err(Errno::ETXTBSY.into()),
        }
    }
}

impl InodeState {
    /// The object attached, if it is a `T`.
    pub fn object<T: Any + Send + Sync>(&self) -> Option<Arc<T>> {
        self.object.lock().clone()?.downcast().ok()
    }

    /// The object attached, made by `make` when there is none yet; `None` if another type is attached.
    pub fn object_or<T: Any + Send + Sync>(&self, make: impl FnOnce() -> Arc<T>) -> Option<Arc<T>> {
        let mut slot = self.object.lock();
        match &*slot {
            Some(object) => object.clone().downcast().ok(),
            None => {
                let made = make();
                *slot = Some(made.clone());
                Some(made)
            }
        }
    }

    /// Attaches `object`, or takes what is attached away.
    pub fn set_object(&self, object: Option<Arc<dyn Any + Send + Sync>>) {
        *self.object.lock() = object;
    }

    /// `holder` writes to the file by itself from now on, until it gets set-id bits or capabilities, which a write takes.
    /// `false`: it may have some.
    pub fn hand_out_for_writing(&self, fd: u32, holder: &Arc<dyn Holder>) -> bool {
        self.writing.add(fd, holder);
        self.without_privileges.load(Ordering::SeqCst)
    }

    /// It has got set-id bits or capabilities.
    pub(crate) fn privileges_given(&self) {
        self.without_privileges.store(false, Ordering::SeqCst);
        self.writing.withdraw(|_| true);
    }

    /// The locks on the file.
    pub fn locks(&self) -> &crate::locks::FileLocks {
        self.locks.get_or_init(Default::default)
    }

    /// The locks, if anybody ever took one.
    pub fn existing_locks(&self) -> Option<&crate::locks::FileLocks> {
        self.locks.get().map(|locks| &**locks)
    }
}
