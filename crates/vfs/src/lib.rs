//! The virtual file system: descriptors, descriptions, dentries, inodes, mounts, path walk, readiness.
//!
//! Split as Linux does it. A [`FdTable`](fd_table) maps numbers to descriptions; a [`FileDescription`] is one
//! open file with its [`FileOps`]; a [`Dentry`] is a name that leads to an [`Inode`], whose [`InodeOps`] a file
//! system provides; a [`Mount`] puts a file system's tree into the name space, a [`Path`] is a dentry in
//! a mount. Permission checks happen here, in the walk and in `do_` operations; file systems do none.
//!
//! File systems implement [`FileSystem`], [`InodeOps`] and [`FileOps`]. What they need of the calling task
//! comes in by [`Caller`].
//!
//! Neighbours: `kernel` (system calls) above, `fs-*` beside, `sync` and `abi` below. No host calls here.
#![forbid(unsafe_code)]

mod anonymous;
mod caller;
mod capability;
mod cred;
mod dentry;
mod description_state;
mod file;
mod inode;
mod inode_state;
pub mod locks;
mod ready;

pub use anonymous::anonymous_dev;
pub use caller::{Caller, SliceSink, SliceSource, UserRead, UserWrite};
pub use capability::{CapSet, Capability};
pub use cred::Cred;
pub use dentry::{Dentry, MagicTarget, Mount, Path};
pub use description_state::DescriptionState;
pub use file::{DirSink, FileDescription, FileOps, Mapping, OpenHow, Seek};
pub use inode::{
    AttributeChange, Attributes, FileSystem, FsStat, Inode, InodeOps, NewNode, NewNodeKind, RenameMode,
    SetTime, XattrMode,
};
pub use inode_state::InodeState;
pub use ready::Ready;
