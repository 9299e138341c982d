//! How a host directory is served.

use std::sync::Arc;

use crate::View;

/// Options of one [`HostFs`](crate::HostFs).
#[derive(Clone, Debug)]
pub struct HostFsOptions {
    /// Whether guests may change it.
    pub writable: bool,
    /// Whether the user named the directory: then FUSE and network file systems are served.
    pub named: bool,
    /// What is shown of other mounts below it.
    pub submounts: Submounts,
    /// Whose the files are.
    pub owners: OwnerMap,
    /// Whether and where owners, modes and device numbers are kept that the host's files cannot carry.
    pub records: Records,
    /// Show only what everybody on the host can read.
    pub world_readable_only: bool,
    /// What of the tree is shown; `None`: all.
    pub view: Option<Arc<View>>,
}

impl HostFsOptions {
    /// For `--root DIR` and binds: named by the user, owned as `owners` says.
    pub fn named(writable: bool, owners: OwnerMap) -> HostFsOptions {
        HostFsOptions {
            writable,
            named: true,
            submounts: Submounts::Hidden,
            owners,
            records: Records::Attributes,
            world_readable_only: false,
            view: None,
        }
    }
}

/// Where [records](crate) are kept and read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Records {
    /// Nowhere: files show as the host has them. In a writable root, changing an owner then fails with `EPERM`, set-id
    /// and sticky bits are dropped, and special files cannot be made.
    None,
    /// In `user.umlaut.*` attributes; where a file cannot have any, in its directory's side file. For roots that a guest
    /// administers; costs a few host calls for files seen for the first time.
    Attributes,
    /// In side files only: what file systems without extended attributes do anyway.
    SideFiles,
}

/// What is shown of mounts below the root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Submounts {
    /// An empty directory in their place.
    Hidden,
    /// Their files, unless their file system is of a kind that is always refused.
    Shown,
}

/// Which owner a file without a record shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OwnerMap {
    /// The host's.
    Same,
    /// Files of this host user and group show as `uid` and `gid`, other ids as they are.
    Own { host_uid: u32, host_gid: u32, uid: u32, gid: u32 },
}

impl OwnerMap {
    /// The files of the calling process's user show as root's.
    pub fn own_as_root() -> OwnerMap {
        OwnerMap::own_as((0, 0))
    }

    /// The files of the calling process's user show as belonging to this user and group.
    pub fn own_as((uid, gid): (u32, u32)) -> OwnerMap {
        let (host_uid, host_gid) = host::user::file_ids();
        OwnerMap::Own { host_uid, host_gid, uid, gid }
    }

    /// The ids shown for the host's.
    pub(crate) fn shown(self, uid: u32, gid: u32) -> (u32, u32) {
        match self {
            OwnerMap::Same => (uid, gid),
            OwnerMap::Own { host_uid, host_gid, uid: own, gid: own_group } => {
                (if uid == host_uid { own } else { uid }, if gid == host_gid { own_group } else { gid })
            }
        }
    }
}
