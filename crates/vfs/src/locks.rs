//! Record locks and flocks of one file.

/// The locks held on a file.
#[derive(Default)]
pub struct FileLocks {}
