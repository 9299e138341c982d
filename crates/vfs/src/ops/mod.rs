//! The operations on paths and inodes, one function for each system call, in Linux's order of checks.
//!
//! They take an [`FsContext`](crate::FsContext), `dirfd` and path as the call has them (the path without its
//! zero), and decoded flags. Neighbours: `namei` finds, `permission` decides, file systems act; the
//! kernel's handlers call.

mod attr;
mod create;
mod exec;
mod open;
mod remove;
mod rename;
mod stat;
mod times;
mod xattr;

pub use attr::{
    chmod, chown, fallocate, fchmod, fchown, ftruncate, is_without_privileges, remove_privileges, truncate,
};
pub use create::{link, make_socket, mkdir, mknod, symlink};
pub use exec::{Executable, open_exec};
pub use open::{OpenRequest, open, open_path};
pub use remove::{rmdir, unlink};
pub use rename::rename;
pub use stat::{Stat, access, chdir, chroot_target, fchdir, mount_statfs_flags, readlink, stat, statfs};
pub use times::{TimesChange, futimens, utimens};
pub use xattr::{XattrTarget, get_xattr, list_xattrs, remove_xattr, set_xattr, xattr_target};
