//! Extended attributes, in memory.

use abi::Errno;
use sync::SysResult;
use vfs::XattrMode;

use crate::node::TmpNode;
use crate::usage::PAGE;

/// What tmpfs keeps: no ACLs.
fn check_name(name: &[u8]) -> SysResult<()> {
    let known: [&[u8]; 3] = [b"user.", b"trusted.", b"security."];
    match known.iter().any(|prefix| name.len() > prefix.len() && name.starts_with(prefix)) {
        true => Ok(()),
        false => Err(Errno::EOPNOTSUPP.into()),
    }
}

impl TmpNode {
    pub(crate) fn xattr(&self, name: &[u8]) -> SysResult<Vec<u8>> {
        check_name(name)?;
        self.lock().xattrs.get(name).cloned().ok_or(Errno::ENODATA.into())
    }

    /// Sets an attribute, or takes it away. What attributes take is counted in pages. `ENOSPC`.
    pub(crate) fn change_xattr(&self, name: &[u8], value: Option<&[u8]>, mode: XattrMode) -> SysResult<()> {
        check_name(name)?;
        let mut state = self.lock();
        let old = state.xattrs.get(name).map(Vec::len);
        match (mode, old) {
            (XattrMode::Create, Some(_)) => return Err(Errno::EEXIST.into()),
            (XattrMode::Replace, None) => return Err(Errno::ENODATA.into()),
            _ => {}
        }
        let size: usize =
            state.xattrs.iter().map(|(name, value)| name.len().saturating_add(value.len())).sum();
        let without = size.saturating_sub(old.map_or(0, |len| len.saturating_add(name.len())));
        let with = without.saturating_add(value.map_or(0, |value| value.len().saturating_add(name.len())));
        let (before, after) = ((size as u64).div_ceil(PAGE), (with as u64).div_ceil(PAGE));
        if after > before {
            self.fs.space.charge(after.saturating_sub(before))?;
        } else {
            self.fs.space.give_back(before.saturating_sub(after));
        }
        state.xattr_pages = state.xattr_pages.saturating_add(after).saturating_sub(before);
        match value {
            Some(value) => drop(state.xattrs.insert(name.to_vec(), value.to_vec())),
            None => drop(state.xattrs.remove(name)),
        }
        state.changed();
        Ok(())
    }
}
