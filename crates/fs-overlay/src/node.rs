//! One file of the overlay: its parts in the layers, and where it is.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use smallvec::SmallVec;
use sync::order::Leaf;
use sync::{Mutex, SysResult};
use vfs::{Attributes, Inode};

use crate::lookup::Found;
use crate::{Overlay, marks};

/// Parts in the lower layers, the topmost first; only directories have several.
pub(crate) type Lowers = SmallVec<[Arc<Inode>; 1]>;

/// A directory and a name in it.
pub(crate) type Place = (Arc<Inode>, Box<[u8]>);

/// A file of the overlay: the operations of its inode.
pub(crate) struct OverlayNode {
    pub(crate) overlay: Arc<Overlay>,
    state: Mutex<Leaf, State>,
    /// The number shown, once it is known; 0 before.
    number: AtomicU64,
}

struct State {
    parts: Found,
    /// Where it is in the overlay: for copy-up. `None` for the root and files without a name.
    place: Option<Place>,
    /// Its name is gone.
    removed: bool,
}

impl OverlayNode {
    pub(crate) fn new(overlay: Arc<Overlay>, parts: Found, place: Option<Place>) -> OverlayNode {
        let state = Mutex::new(State { parts, place, removed: false });
        OverlayNode { overlay, state, number: AtomicU64::new(0) }
    }

    /// The parts as they are now.
    pub(crate) fn parts(&self) -> Found {
        self.state.lock().parts.clone()
    }

    /// The part that speaks for the file, and whether it lies in the upper layer.
    pub(crate) fn real(&self) -> SysResult<(Arc<Inode>, bool)> {
        let state = self.state.lock();
        state.parts.real().map(|real| (real.clone(), state.parts.upper.is_some()))
    }

    pub(crate) fn upper(&self) -> Option<Arc<Inode>> {
        self.state.lock().parts.upper.clone()
    }

    /// Whether it is the node of `found`, which was found at `place`; lower directories that changed are taken over.
    pub(crate) fn takes(&self, found: &Found, place: Option<&Place>) -> bool {
        // Let go after the lock.
        let mut _old = Lowers::new();
        let mut state = self.state.lock();
        if state.removed {
            return false;
        }
        if !found.is_like(&state.parts) {
            // Found before it was copied up, or while it was.
            let is_here = match (&state.place, place) {
                (Some((dir, name)), Some((at, found_name))) => Arc::ptr_eq(dir, at) && name == found_name,
                _ => false,
            };
            return is_here && found.was(&state.parts);
        }
        if !found.is_same(&state.parts) {
            _old = std::mem::replace(&mut state.parts.lowers, found.lowers.clone());
            drop(state);
        }
        true
    }

    /// From now on its part in the upper layer is `upper`.
    pub(crate) fn set_upper(&self, upper: Arc<Inode>) {
        self.state.lock().parts.upper = Some(upper);
    }

    /// Takes the upper part back that [`set_upper`](OverlayNode::set_upper) gave.
    pub(crate) fn unset_upper(&self) {
        let upper = self.state.lock().parts.upper.take();
        drop(upper);
    }

    /// Forgets the lower parts: they are hidden.
    pub(crate) fn forget_lowers(&self) {
        let lowers = std::mem::take(&mut self.state.lock().parts.lowers);
        drop(lowers);
    }

    pub(crate) fn place(&self) -> Option<Place> {
        self.state.lock().place.clone()
    }

    pub(crate) fn set_place(&self, dir: &Arc<Inode>, name: &[u8]) {
        let old = {
            let mut state = self.state.lock();
            state.removed = false;
            state.place.replace((dir.clone(), name.into()))
        };
        drop(old);
    }

    pub(crate) fn is_removed(&self) -> bool {
        self.state.lock().removed
    }

    pub(crate) fn set_removed(&self) {
        self.state.lock().removed = true;
    }

    /// The inode number shown. It is that of the part which the file had first.
    pub(crate) fn number(&self, real: &Arc<Inode>, attributes: &Attributes) -> SysResult<u64> {
        let known = self.number.load(Ordering::Relaxed);
        if known != 0 {
            return Ok(known);
        }
        let origin = if self.upper().is_some() { marks::origin(real)? } else { None };
        let number = match origin {
            Some(origin) => origin,
            None => self.overlay.numbers.shown(attributes.dev, attributes.ino),
        };
        self.number.store(number, Ordering::Relaxed);
        Ok(number)
    }

    /// Forgets the number: a lower hard link was broken.
    pub(crate) fn forget_number(&self) {
        self.number.store(0, Ordering::Relaxed);
    }

    /// The attributes shown for those of `real`, one of its parts.
    pub(crate) fn shown(&self, real: &Arc<Inode>, mut attributes: Attributes) -> SysResult<Attributes> {
        attributes.ino = self.number(real, &attributes)?;
        attributes.dev = vfs::FileSystem::dev(&*self.overlay);
        attributes.rdev = marks::unescaped(attributes.rdev);
        let (lower_only, merged, removed) = {
            let state = self.state.lock();
            let has_upper = state.parts.upper.is_some();
            (!has_upper, state.parts.lowers.len() + usize::from(has_upper) > 1, state.removed)
        };
        if attributes.mode.is_dir() && merged {
            // As overlayfs: the links of a merged directory are not counted.
            attributes.nlink = 1;
        }
        if lower_only && removed {
            attributes.nlink = attributes.nlink.saturating_sub(1);
        }
        Ok(attributes)
    }
}

impl Drop for OverlayNode {
    /// Lets go of the chain of parents one by one: dropped each by the next, a deep tree would exhaust the stack.
    fn drop(&mut self) {
        let mut place = self.state.get_mut().place.take();
        while let Some((dir, _)) = place {
            place = Arc::into_inner(dir).and_then(|inode| {
                inode.downcast::<OverlayNode>().and_then(|node| node.state.lock().place.take())
            });
        }
    }
}
