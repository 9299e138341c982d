//! Finding a name in all layers.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use abi::Errno;
use smallvec::SmallVec;
use sync::{SysError, SysResult};
use vfs::Inode;

use crate::marks::{is_opaque, is_whiteout};
use crate::node::{Lowers, OverlayNode};

/// The parts of a file in the layers. At least one, but for an empty overlay's root.
#[derive(Clone)]
pub(crate) struct Found {
    pub(crate) upper: Option<Arc<Inode>>,
    pub(crate) lowers: Lowers,
}

impl Found {
    /// The part that speaks for the file.
    pub(crate) fn real(&self) -> SysResult<&Arc<Inode>> {
        self.upper.as_ref().or(self.lowers.first()).ok_or(Errno::ESTALE.into())
    }

    /// Whether the file is the same: lower parts of a directory apart.
    pub(crate) fn is_like(&self, other: &Found) -> bool {
        match (&self.upper, &other.upper) {
            (Some(a), Some(b)) => Arc::ptr_eq(a, b),
            (None, None) => match (self.lowers.first(), other.lowers.first()) {
                (Some(a), Some(b)) => Arc::ptr_eq(a, b),
                _ => false,
            },
            _ => false,
        }
    }

    /// Whether `now` is what became of it by copy-up.
    pub(crate) fn was(&self, now: &Found) -> bool {
        let same_lower = match (self.lowers.first(), now.lowers.first()) {
            (Some(a), Some(b)) => Arc::ptr_eq(a, b),
            _ => false,
        };
        self.upper.is_none() && now.upper.is_some() && same_lower
    }

    /// Whether all parts are the same.
    pub(crate) fn is_same(&self, other: &Found) -> bool {
        let same = |(a, b): (&Arc<Inode>, &Arc<Inode>)| Arc::ptr_eq(a, b);
        // What a copied-up file was made of does not matter any more.
        let lowers_matter = self.real().is_ok_and(|real| real.is_dir()) || self.upper.is_none();
        self.is_like(other)
            && (!lowers_matter
                || (self.lowers.len() == other.lowers.len()
                    && self.lowers.iter().zip(&other.lowers).all(same)))
    }
}

impl OverlayNode {
    /// What `name` is in this directory; `None`: nothing.
    pub(crate) fn find(&self, name: &[u8]) -> SysResult<Option<Found>> {
        self.find_and(name, |_| Ok(())).map(|found| found.map(|(found, ())| found))
    }

    /// The inode of what `name` is in this directory, `this`.
    pub(crate) fn find_inode(&self, this: &Arc<Inode>, name: &[u8]) -> SysResult<Option<Arc<Inode>>> {
        let found = self.find_and(name, |found| self.overlay.intern(this, name, found.clone()))?;
        Ok(found.map(|(_, inode)| inode))
    }

    /// Finds `name`, and does `then` with it; all again if what was found may have been copied up meanwhile, or may
    /// show only for a moment.
    fn find_and<T>(
        &self,
        name: &[u8],
        then: impl Fn(&Found) -> SysResult<T>,
    ) -> SysResult<Option<(Found, T)>> {
        loop {
            let before = self.overlay.changes.load(Ordering::SeqCst);
            let Some(found) = self.find_now(name)? else { return Ok(None) };
            let result = then(&found)?;
            let after = self.overlay.changes.load(Ordering::SeqCst);
            if found.upper.is_some() || (before == after && before.is_multiple_of(2)) {
                return Ok(Some((found, result)));
            }
            // Only until the change is through, a few steps in the upper layer.
            std::thread::yield_now();
        }
    }

    /// The same without regard to changes under way: for those who make them.
    pub(crate) fn find_now(&self, name: &[u8]) -> SysResult<Option<Found>> {
        let parts = self.parts();
        let upper = match &parts.upper {
            None => None,
            Some(dir) => found_or_none(dir.ops.lookup(dir, name))?,
        };
        match &upper {
            Some(upper) if is_whiteout(upper)? => return Ok(None),
            Some(upper) if !upper.is_dir() || (!parts.lowers.is_empty() && is_opaque(upper)?) => {
                return Ok(Some(Found { upper: Some(upper.clone()), lowers: SmallVec::new() }));
            }
            _ => {}
        }
        let lowers = lower_parts(&parts.lowers, name, upper.is_some())?;
        let nothing = upper.is_none() && lowers.is_empty();
        Ok((!nothing).then_some(Found { upper, lowers }))
    }

    /// Whether a lower layer has `name`, so that removing it takes a whiteout.
    pub(crate) fn lower_has(&self, name: &[u8]) -> SysResult<bool> {
        let parts = self.parts();
        Ok(!lower_parts(&parts.lowers, name, false)?.is_empty())
    }
}

/// What `name` is in the lower directories `dirs`. With `merge`, a directory lies above: only directories count.
fn lower_parts(dirs: &Lowers, name: &[u8], merge: bool) -> SysResult<Lowers> {
    let mut parts = Lowers::new();
    for (index, dir) in dirs.iter().enumerate() {
        let Some(part) = found_or_none(dir.ops.lookup(dir, name))? else { continue };
        if is_whiteout(&part)? {
            break;
        }
        if !part.is_dir() {
            if parts.is_empty() && !merge {
                parts.push(part);
            }
            break;
        }
        let is_last = index + 1 == dirs.len();
        let ends = !is_last && is_opaque(&part)?;
        parts.push(part);
        if ends {
            break;
        }
    }
    Ok(parts)
}

fn found_or_none(result: SysResult<Arc<Inode>>) -> SysResult<Option<Arc<Inode>>> {
    match result {
        Ok(inode) => Ok(Some(inode)),
        Err(SysError::Errno(Errno::ENOENT)) => Ok(None),
        Err(error) => Err(error),
    }
}
