//! Record locks and flocks of one file.

/// The locks held on a file.
#[derive(Default)]
pub struct FileLocks {}

impl FileLocks {
    /// The last reference to an open file went.
    pub(crate) fn description_closed(&self, _owner: u64) {}

    /// A descriptor of the file was closed by a process.
    pub(crate) fn owner_closed(&self, _owner: u64) {}
}
