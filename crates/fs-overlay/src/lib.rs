//! overlay: file systems laid one over the other, all changes in the uppermost.
//!
//! The semantics and the format are those of Linux's overlayfs (Documentation/filesystems/overlayfs.rst) with
//! `redirect_dir=off,index=off`: a name removed below is a *whiteout* in the upper layer (a character device 0:0), a
//! directory that hides what lies below is *opaque* (`trusted.overlay.opaque`), and a file from a lower layer is
//! *copied up* with all its attributes before its first change. Lower hard links
//! are broken by copy-up; a descriptor opened read-only keeps the lower file. One difference: a directory with a lower
//! part can be renamed if it is not too large (it is copied up [whole]); else it is `EXDEV`.
//!
//! `st_dev` is one for all, `st_ino` stays over copy-up (`trusted.overlay.origin` keeps it).
//!
//! Main types: [`Overlay`] (the file system), its nodes ([`node`]) which know their upper and lower parts and switch at
//! copy-up while their `Arc<Inode>` stays, so that locks stay. Neighbours: `vfs`; the layers are any of its file
//! systems, usually `fs-host` below and `fs-tmpfs` above.
//!
//! Lock levels: `Overlay` (all changes of the tree, held over the upper file system's operations, never over the copy
//! of a file's content), `FileSystem` (table of nodes), `Leaf` (a node's parts).
#![forbid(unsafe_code)]
#![deny(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

mod change;
mod copy_up;
mod dir;
mod file;
mod lookup;
mod marks;
mod node;
mod numbers;
mod ops;
mod overlay;
mod rename;
mod whole;

pub use overlay::Overlay;
