//! Device numbers of file systems without a device.

use std::sync::atomic::{AtomicU32, Ordering};

/// A fresh anonymous device number (major 0), for a file system's `st_dev` (Linux: `get_anon_bdev`). Not given
/// twice before 2^20 others.
pub fn anonymous_dev() -> u64 {
    static NEXT: AtomicU32 = AtomicU32::new(32);
    abi::makedev(0, NEXT.fetch_add(1, Ordering::Relaxed))
}
