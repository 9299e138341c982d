//! Locks that others than the guests can hold on a file, such as processes of the host on a directory that is shared
//! with them: what the guests hold together is held there too.

use sync::SysResult;

use super::{LockKind, LockRange};

/// A file's locks outside, as one holder: the guests together. Nothing here waits.
pub trait OutsideLocks: Send + Sync {
    /// Sets what the guests hold on a range of bytes. `false`: somebody outside stands in the way, and nothing changed.
    fn set_record(&self, range: LockRange, kind: Option<LockKind>) -> SysResult<bool>;

    /// A lock of somebody outside that stands in the way of this one.
    fn record_conflict(&self, range: LockRange, kind: LockKind) -> Option<(LockRange, LockKind)>;

    /// Sets the guests' flock. `false`: somebody outside stands in the way, and the guests may have none now.
    fn set_flock(&self, kind: Option<LockKind>) -> SysResult<bool>;
}
