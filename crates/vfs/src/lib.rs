//! The virtual file system: descriptors, descriptions, dentries, inodes, mounts, path walk, readiness.
//!
//! Split as Linux does it. A [`FdTable`] maps numbers to descriptions; a [`FileDescription`] is one
//! open file with its [`FileOps`]; a [`Dentry`] is a name that leads to an [`Inode`], whose [`InodeOps`] a file
//! system provides; a [`Mount`] puts a file system's tree into the name space, a [`Path`] is a dentry in
//! a mount. Permission checks happen here, in the walk and in [`ops`]; file systems do none.
//!
//! File systems implement [`FileSystem`], [`InodeOps`] and [`FileOps`]. What they need of the calling task
//! comes in by [`Caller`].
//!
//! Neighbours: `kernel` (system calls) above, `fs-*` beside, `sync` and `abi` below. No host calls here.
#![forbid(unsafe_code)]

mod anonymous;
mod caller;
mod context;
mod cred;
mod dcache;
mod dentry;
mod description_state;
mod fd_table;
mod file;
mod holders;
mod inode;
mod inode_state;
mod kernel_caller;
mod listed_directory;
pub mod locks;
mod mount;
mod mount_flags;
mod mount_text;
mod namei;
mod operation;
pub mod ops;
mod path;
mod permission;
mod ready;
pub mod rw;
#[cfg(feature = "test-caller")]
pub mod test_caller;
#[cfg(test)]
#[path = "tests/support.rs"]
mod test_support;
mod watchers;

pub use abi::{CapSet, Capability};
pub use anonymous::anonymous_dev;
pub use caller::{Caller, SliceSink, SliceSource, UserRead, UserWrite};
pub use context::{FsContext, FsPlace, NoSpecialFiles, SpecialFiles};
pub use cred::Cred;
pub use dcache::DentryCache;
pub use dentry::Dentry;
pub use description_state::{AsyncFiles, DescriptionState};
pub use fd_table::{FdEntry, FdTable, NR_OPEN, Reserved};
pub use file::{DirSink, FileDescription, FileOps, HandOut, Mapping, OpenHow, Seek};
pub use holders::Holder;
pub use inode::{
    AttributeChange, Attributes, FileSystem, FsStat, Inode, InodeOps, NewNode, NewNodeKind, RenameMode,
    SetTime, XattrMode,
};
pub use inode_state::{DenyWrite, InodeState};
pub use kernel_caller::KernelCaller;
pub use listed_directory::{ListedDirectory, ListedEntry};
pub use mount::{Mount, MountTable};
pub use mount_flags::{MountFlags, Protections, UmountFlags};
pub use namei::{Last, Lookup, Parent};
pub use operation::Operation;
pub use path::{MagicTarget, Path, d_path, getcwd};
pub use permission::{MAY_EXEC, MAY_READ, MAY_WRITE, generic_permission, inode_permission, is_owner};
pub use ready::Ready;
pub use watchers::{Watcher, Watchers};
