//! The marks in a layer: whiteouts, opaque directories, the number that a copied-up file had.

use std::sync::Arc;

use abi::{Errno, FileType};
use sync::{SysError, SysResult};
use vfs::{Inode, NewNodeKind, XattrMode};

const OPAQUE: &[u8] = b"trusted.overlay.opaque";
const ORIGIN: &[u8] = b"trusted.overlay.origin";
const PRIVATE: &[u8] = b"trusted.overlay.";

/// The number that a guest's own device 0:0 has in the upper layer, where 0:0 itself would be a whiteout: one that
/// nobody can ask for, since `mknod` takes 32 bits.
const DEVICE_ZERO: u64 = 1 << 32;

/// What to make in the upper layer for what a guest makes. Linux's overlayfs refuses the device 0:0 (`ovl_mknod`); ours
/// has it, as the file systems below would.
pub(crate) fn escaped(kind: NewNodeKind<'_>) -> NewNodeKind<'_> {
    match kind {
        NewNodeKind::CharDevice(0) => NewNodeKind::CharDevice(DEVICE_ZERO),
        other => other,
    }
}

/// The number that guests see of a device whose number in a layer is `rdev`.
pub(crate) fn unescaped(rdev: u64) -> u64 {
    if rdev == DEVICE_ZERO { 0 } else { rdev }
}

/// Whether a name of a layer says that nothing is there.
pub(crate) fn is_whiteout(inode: &Arc<Inode>) -> SysResult<bool> {
    Ok(inode.file_type == FileType::CHR && inode.ops.attributes(inode)?.rdev == 0)
}

/// Whether a directory of a layer hides what lies below.
pub(crate) fn is_opaque(dir: &Arc<Inode>) -> SysResult<bool> {
    match dir.ops.get_xattr(dir, OPAQUE) {
        Ok(value) => Ok(value == b"y"),
        Err(error) => none(error).map(|()| false),
    }
}

/// Makes a directory of the upper layer opaque.
pub(crate) fn set_opaque(dir: &Arc<Inode>) -> SysResult<()> {
    dir.ops.set_xattr(dir, OPAQUE, b"y", XattrMode::Any)
}

/// The number kept with a file of the upper layer.
pub(crate) fn origin(inode: &Arc<Inode>) -> SysResult<Option<u64>> {
    match inode.ops.get_xattr(inode, ORIGIN) {
        Ok(value) => Ok(std::str::from_utf8(&value).ok().and_then(|text| text.parse().ok())),
        Err(error) => none(error).map(|()| None),
    }
}

/// Keeps `number` with a file of the upper layer. Where that cannot be, the number changes once the file is no longer
/// in use.
pub(crate) fn set_origin(inode: &Arc<Inode>, number: u64) -> SysResult<()> {
    let text = number.to_string();
    inode.ops.set_xattr(inode, ORIGIN, text.as_bytes(), XattrMode::Any).or_else(none)
}

/// Whether an attribute is the overlay's own, not for guests.
pub(crate) fn is_private(name: &[u8]) -> bool {
    name.starts_with(PRIVATE)
}

/// That an attribute is not there, or that there are none.
pub(crate) fn none(error: SysError) -> SysResult<()> {
    match error.errno() {
        // Symbolic links and devices of some file systems carry none (EPERM).
        Some(Errno::ENODATA | Errno::EOPNOTSUPP | Errno::EPERM | Errno::EACCES) => Ok(()),
        _ => Err(error),
    }
}
