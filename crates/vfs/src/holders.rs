//! Guest threads that were handed open files, to read and write them without the kernel (delegation).
//!
//! Main types: [`Holder`], such a thread; `Holders`, those of one table of descriptors or one inode. Whoever changes what a
//! hand-out rests on (the number leads elsewhere, the file becomes set-id) does so first and then tells the holders; whoever
//! hands out registers first and then looks again whether all is as it was. So one of the two always sees the other.

use std::sync::atomic::{AtomicBool, Ordering, fence};
use std::sync::{Arc, Weak};

use smallvec::SmallVec;
use sync::{Mutex, order};

/// A guest thread that uses files by itself.
pub trait Holder: Send + Sync {
    /// The file that it uses by this number is to be used through the kernel from now on. No lock is held.
    fn withdraw(&self, fd: u32);
}

type Entry = (u32, Weak<dyn Holder>);

/// Who uses what, by number.
#[derive(Default)]
pub(crate) struct Holders {
    /// Ever used: nearly always not, which is seen without the lock.
    any: AtomicBool,
    entries: Mutex<order::Leaf, Vec<Entry>>,
}

impl Holders {
    /// Adds one; those that are gone make room for it.
    pub(crate) fn add(&self, fd: u32, holder: &Arc<dyn Holder>) {
        let holder = Arc::downgrade(holder);
        let mut entries = self.entries.lock();
        if entries.len().is_power_of_two() {
            entries.retain(|(_, known)| known.strong_count() > 0);
        }
        if !entries.iter().any(|(number, known)| *number == fd && known.ptr_eq(&holder)) {
            entries.push((fd, holder));
        }
        self.any.store(true, Ordering::SeqCst);
        drop(entries);
        // Pairs with the one in `take`.
        fence(Ordering::SeqCst);
    }

    /// Takes out the holders of the numbers that `which` names.
    fn take(&self, which: impl Fn(u32) -> bool) -> SmallVec<[(u32, Arc<dyn Holder>); 4]> {
        // What the caller changed before is seen by whoever is added behind this.
        fence(Ordering::SeqCst);
        if !self.any.load(Ordering::SeqCst) {
            return SmallVec::new();
        }
        let mut entries = self.entries.lock();
        let mut taken = SmallVec::new();
        entries.retain(|(number, holder)| {
            let goes = which(*number);
            if let Some(holder) = holder.upgrade().filter(|_| goes) {
                taken.push((*number, holder));
            }
            !goes
        });
        taken
    }

    /// Tells the holders of the numbers that `which` names.
    pub(crate) fn withdraw(&self, which: impl Fn(u32) -> bool) {
        for (number, holder) in self.take(which) {
            holder.withdraw(number);
        }
    }
}
