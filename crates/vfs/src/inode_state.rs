//! What the layers above hang on an inode.

use std::any::Any;
use std::sync::{Arc, OnceLock};

use sync::Mutex;
use sync::order::Inode as InodeLevel;

/// State that belongs to a file whatever its file system: made when first needed, gone with the inode.
#[derive(Default)]
pub struct InodeState {
    /// A FIFO's pipe, the socket bound to the name: the kernel's own types.
    object: Mutex<InodeLevel, Option<Arc<dyn Any + Send + Sync>>>,
    /// Record locks and flocks.
    locks: OnceLock<Box<crate::locks::FileLocks>>,
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

    /// The locks on the file.
    pub fn locks(&self) -> &crate::locks::FileLocks {
        self.locks.get_or_init(Default::default)
    }

    /// The locks, if anybody ever took one.
    pub fn existing_locks(&self) -> Option<&crate::locks::FileLocks> {
        self.locks.get().map(|locks| &**locks)
    }
}
