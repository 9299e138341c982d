//! hostfs: a directory of the host as a file system of the guest.
//!
//! It serves a hostile guest that races renames and symbolic links below the directory, from a process that may
//! be root. What holds, whatever the guest or other host processes do:
//!
//! - *One component at a time.* Every host call names one component in a directory that is held by descriptor,
//!   and follows no link; `..` is never asked for. So nothing leads out of the root.
//! - *Identity first.* A file is known by device, inode number and birth time. What is found under a name is
//!   opened `O_PATH`, its identity and type checked, and only a regular file or directory is then reopened for
//!   I/O. Host FIFOs, sockets and devices show as such and are never opened or connected to.
//! - *Only file systems that were checked* ([`check`]): never proc, sysfs and their like. Other mounts below
//!   the root are shown where the options allow it, else as an empty directory.
//! - *Nothing privileged is made on the host*: no set-id bits, no `security.*` attributes, no device nodes, no
//!   foreign owners. In writable roots with [records](HostFsOptions::records) such things are kept in extended
//!   attributes of our own (`user.umlaut.*`, in [`record`]), which guests can neither read nor write.
//!
//! An inode holds no descriptor: it knows its *places* (parent and name, several for hard links). Descriptors of
//! directories are cached, a bounded number of them, and of a few files that are opened again and again ([`kept`]). When the host's tree has moved below our feet, an operation
//! fails with `ESTALE`, and the path walk looks names up afresh.
//!
//! # Owners
//! [`OwnerMap::Same`] shows the host's owners: for the default root, whose files belong to root as the guest
//! does. [`OwnerMap::Own`] shows what belongs to the user running umlaut as the guest's root (or another id): for
//! `--root`, `--bind` and the current directory, which an ordinary user owns. A record goes before either.
//!
//! Main types: [`HostFs`], [`HostFsOptions`], [`View`] (what of a tree is shown), [`default_root`]. Neighbours:
//! `vfs` (the traits), `fs-overlay`, which lays a throwaway layer over it.
//!
//! Lock levels: `FileSystem` (inode table, descriptor cache), `Leaf` (an inode's places). None is held across
//! host calls.
#![forbid(unsafe_code)]
#![deny(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

mod blocked;
mod buffer;
mod change;
pub mod check;
mod create;
pub mod default_root;
mod descriptors;
mod dir;
mod error;
mod file;
mod fs;
mod kept;
mod locks;
mod moves;
mod node;
mod ops;
mod options;
mod places;
mod record;
mod seen;
mod side;
mod stat;
mod view;
mod xattr;

pub use fs::{HostFs, OpenError};
pub use options::{HostFsOptions, OwnerMap, Records, Submounts};
pub use view::{View, glob};
