//! What `fcntl` keeps with an open file.

use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use abi::{FOwnerEx, FOwnerType};
use sync::{Mutex, order};

use crate::FileDescription;

/// Who gets SIGIO and SIGURG of an open file, and how.
#[derive(Default)]
pub struct DescriptionState {
    /// Kind and pid, as `F_GETOWN_EX` gives them; a pid of 0: nobody.
    owner: AtomicU64,
    /// Real and effective user of who chose the owner.
    chosen_by: AtomicU64,
    signal: AtomicI32,
    /// The descriptor by which signals were asked for (Linux: `fa_fd`).
    async_fd: AtomicI32,
}

/// Two halves of an atomic word.
fn halves(word: u64) -> (u32, u32) {
    (u32::try_from(word >> 32).unwrap_or(0), u32::try_from(word & 0xffff_ffff).unwrap_or(0))
}

impl DescriptionState {
    /// The owner that was chosen (`F_SETOWN`, `F_SETOWN_EX`); it may have gone since.
    pub fn owner(&self) -> FOwnerEx {
        let (kind, pid) = halves(self.owner.load(Ordering::Relaxed));
        FOwnerEx { owner_type: FOwnerType(kind.cast_signed()), pid: pid.cast_signed() }
    }
    /// Sets the owner, for a caller of this real and effective user: whom that one may signal gets the signals.
    pub fn set_owner(&self, owner: FOwnerEx, uid: u32, euid: u32) {
        self.chosen_by.store(u64::from(uid) << 32 | u64::from(euid), Ordering::Relaxed);
        let kind = u64::from(owner.owner_type.0.cast_unsigned());
        self.owner.store(kind << 32 | u64::from(owner.pid.cast_unsigned()), Ordering::Relaxed);
    }
    /// Real and effective user of who chose the owner.
    pub fn chosen_by(&self) -> (u32, u32) {
        halves(self.chosen_by.load(Ordering::Relaxed))
    }
    /// `F_SETSIG`'s signal, 0 for SIGIO.
    pub fn signal(&self) -> i32 {
        self.signal.load(Ordering::Relaxed)
    }
    pub fn set_signal(&self, signal: i32) {
        self.signal.store(signal, Ordering::Relaxed);
    }
    /// The descriptor that a signal of `F_SETSIG` names.
    pub fn async_fd(&self) -> i32 {
        self.async_fd.load(Ordering::Relaxed)
    }
    pub fn set_async_fd(&self, fd: i32) {
        self.async_fd.store(fd, Ordering::Relaxed);
    }
}

/// The open files of an object whose owners want signals when something comes (Linux: a list of `fasync_struct`).
#[derive(Default)]
pub struct AsyncFiles {
    /// How many entries there are: nearly always none, which is seen without the lock.
    count: AtomicU64,
    files: Mutex<order::Leaf, Vec<Weak<FileDescription>>>,
}

impl AsyncFiles {
    /// Puts an open file in, or takes it out (Linux: `fasync_helper`). Those that have been closed go too.
    pub fn set(&self, file: &Arc<FileDescription>, on: bool) {
        let mut files = self.files.lock();
        files.retain(|known| known.strong_count() > 0 && !std::ptr::eq(known.as_ptr(), Arc::as_ptr(file)));
        if on {
            files.push(Arc::downgrade(file));
        }
        self.count.store(files.len() as u64, Ordering::SeqCst);
    }

    /// Whether nobody asked.
    pub fn is_empty(&self) -> bool {
        self.count.load(Ordering::SeqCst) == 0
    }

    /// Those that are still open.
    pub fn all(&self) -> Vec<Arc<FileDescription>> {
        self.files.lock().iter().filter_map(Weak::upgrade).collect()
    }
}
