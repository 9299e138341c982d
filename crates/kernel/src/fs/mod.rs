//! Files: the system calls on them, and the kernel's own kinds of open files.

pub mod anon;
pub mod async_io;
pub mod delegation;
pub mod devices;
pub mod epoll;
pub mod eventfd;
pub mod fcntl;
pub mod host_file;
pub mod ioctl;
mod mem_devices;
pub mod names;
pub mod open;
pub mod pipe;
pub mod poll;
pub mod rw;
pub mod select;
pub mod special;
pub mod stat;
pub mod xattr;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use sync::{Mutex, order};
use vfs::{FdTable, FileDescription, FsContext, FsPlace, Path};

use crate::task::CurrentTask;

/// A table of descriptors, as tasks share it (`CLONE_FILES`). Its last user's end closes all of them.
pub struct Files {
    pub table: FdTable,
    users: AtomicUsize,
}

impl Files {
    pub fn new(table: FdTable) -> Arc<Files> {
        Arc::new(Files { table, users: AtomicUsize::new(1) })
    }

    /// For one more task.
    pub fn share(self: &Arc<Self>) -> Arc<Files> {
        self.users.fetch_add(1, Ordering::SeqCst);
        self.clone()
    }

    /// A copy for a fork.
    pub fn copy(&self) -> Arc<Files> {
        Files::new(self.table.copy())
    }

    pub fn is_shared(&self) -> bool {
        self.users.load(Ordering::SeqCst) > 1
    }

    /// A user leaves; the last one closes all.
    pub fn release(&self, task: &CurrentTask) {
        if self.users.fetch_sub(1, Ordering::SeqCst) == 1 {
            for file in self.table.remove_all() {
                task.close_description(&file);
            }
        }
    }
}

/// Where a task is in the name space (`CLONE_FS`).
pub struct Fs {
    place: Mutex<order::Leaf, Arc<FsPlace>>,
}

impl Fs {
    pub fn new(root: Path, cwd: Path, umask: u32) -> Arc<Fs> {
        Arc::new(Fs { place: Mutex::new(Arc::new(FsPlace { root, cwd, umask })) })
    }

    pub fn copy(&self) -> Arc<Fs> {
        Arc::new(Fs { place: Mutex::new(self.get()) })
    }

    pub fn get(&self) -> Arc<FsPlace> {
        self.place.lock().clone()
    }

    /// Changes it; what it held before is dropped without the lock.
    pub fn update(&self, change: impl FnOnce(&mut FsPlace)) {
        let mut new = FsPlace::clone(&self.get());
        change(&mut new);
        let old = std::mem::replace(&mut *self.place.lock(), Arc::new(new));
        drop(old);
    }

    /// Sets the umask and gives the old one, at once: threads that share it see each other's (Linux: `xchg`).
    pub fn replace_umask(&self, new: u32) -> u32 {
        let mut place = self.place.lock();
        let old = place.umask;
        let changed = Arc::new(FsPlace { umask: new, ..FsPlace::clone(&place) });
        let before = std::mem::replace(&mut *place, changed);
        // What it held is dropped without the lock.
        drop(place);
        drop(before);
        old
    }
}

impl CurrentTask {
    /// What path operations work with.
    pub fn fs_context(&self) -> FsContext<'_> {
        FsContext::new(
            &self.task.kernel.mounts,
            self.fs.get(),
            &self.files.table,
            self,
            &*self.task.kernel.special_files,
        )
    }

    /// What closing a descriptor does to its open file.
    pub(crate) fn close_description(&self, file: &Arc<FileDescription>) {
        // Errors of a close at exit or exec have nobody to go to.
        let _ = file.descriptor_closed(self.files_owner(), self);
    }

    /// The key under which this task's table of descriptors owns record locks.
    pub fn files_owner(&self) -> u64 {
        Arc::as_ptr(&self.files).addr() as u64
    }

    /// Makes the table of descriptors its own (exec).
    pub(crate) fn unshare_files(&mut self) {
        if self.files.is_shared() {
            let own = self.files.copy();
            let old = self.files.clone();
            self.set_files(own);
            old.release(self);
        }
    }
}
