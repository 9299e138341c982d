//! tmpfs: a file system in memory, as Linux's.
//!
//! [`TmpFs`] is the file system; an inode's [`TmpNode`] holds its metadata, a directory's entries or a file's
//! [`Data`](data::Data). Small files are pages in the kernel's memory. A file that is mapped or has more
//! than 64 KiB becomes a host memfd, whose own size, blocks and modification time are the truth from then on; each
//! open description then has a host description of its own, where its offset and `O_APPEND` lie.
//! [`memfd`] makes files without a name, for `memfd_create`.
//!
//! Lock levels: `MemoryTree` (the shape of the tree), then one `Inode` at a time, `File` (an open file's position).
//! Neighbours: `vfs` above; the host's memfds by rustix.
#![forbid(unsafe_code)]

mod buffer;
mod data;
mod dir;
mod file;
mod fs;
mod host_data;
mod memfd;
mod node;
mod node_data;
mod node_ops;
mod open_dir;
mod pages;
mod time;
mod transfer;
mod usage;
mod xattr;

pub use file::TmpFile;
pub use fs::{TmpFs, TmpFsOptions};
pub use host_data::SelfFds;
pub use memfd::{MemfdOptions, memfd};
pub use node::TmpNode;
pub use usage::HostPages;

#[cfg(test)]
mod tests;
