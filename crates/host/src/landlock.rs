//! Landlock: the calling thread, and all that it starts from then on, gives up what no rule lets it do
//! (landlock(7)).
//!
//! # Safety
//! The structures are plain data of the host's ABI, which live for the length of each call.
#![allow(unsafe_code, reason = "Landlock's three calls have no safe wrapper")]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use crate::check;

const CREATE_RULESET: libc::c_long = 444;
const ADD_RULE: libc::c_long = 445;
const RESTRICT_SELF: libc::c_long = 446;
/// `LANDLOCK_CREATE_RULESET_VERSION`.
const VERSION: u32 = 1;
/// `LANDLOCK_RULE_PATH_BENEATH`.
const PATH_BENEATH: u32 = 1;

bitflags::bitflags! {
    /// What may be done to files (`LANDLOCK_ACCESS_FS_*`).
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Access: u64 {
        const EXECUTE = 1 << 0;
        const WRITE_FILE = 1 << 1;
        const READ_FILE = 1 << 2;
        const READ_DIR = 1 << 3;
        const REMOVE_DIR = 1 << 4;
        const REMOVE_FILE = 1 << 5;
        const MAKE_CHAR = 1 << 6;
        const MAKE_DIR = 1 << 7;
        const MAKE_REG = 1 << 8;
        const MAKE_SOCK = 1 << 9;
        const MAKE_FIFO = 1 << 10;
        const MAKE_BLOCK = 1 << 11;
        const MAKE_SYM = 1 << 12;
        /// From ABI 2 on: renames and links between directories, which ABI 1 never allows.
        const REFER = 1 << 13;
        /// From ABI 3 on.
        const TRUNCATE = 1 << 14;
        /// From ABI 5 on.
        const IOCTL_DEV = 1 << 15;
    }
}

impl Access {
    /// What concerns regular files.
    pub const FILE: Access = Access::EXECUTE
        .union(Access::WRITE_FILE)
        .union(Access::READ_FILE)
        .union(Access::TRUNCATE)
        .union(Access::IOCTL_DEV);

    /// All that this version of the ABI knows.
    fn known(abi: u32) -> Access {
        let bits = match abi {
            0 => 0,
            1 => 13,
            2 => 14,
            3 | 4 => 15,
            _ => 16,
        };
        Access::from_bits_truncate((1 << bits) - 1)
    }
}

/// The version of the host's Landlock; 0: it has none.
pub fn abi() -> u32 {
    // SAFETY: asks for the version, and takes no structure.
    let version = unsafe { libc::syscall(CREATE_RULESET, std::ptr::null::<u8>(), 0, VERSION) };
    u32::try_from(version).unwrap_or(0)
}

/// `struct landlock_ruleset_attr`.
#[repr(C)]
struct RulesetAttr {
    handled_fs: u64,
    handled_net: u64,
    scoped: u64,
}

/// `struct landlock_path_beneath_attr`.
#[repr(C, packed)]
struct PathBeneath {
    allowed: u64,
    parent: i32,
}

/// What is to be allowed.
pub struct Ruleset {
    ruleset: OwnedFd,
    handled: Access,
}

impl Ruleset {
    /// One that allows nothing of what concerns files, no TCP (ABI 4), and no connection to abstract sockets of those
    /// outside (ABI 6).
    ///
    /// # Errors
    /// `ENOSYS`, `EOPNOTSUPP`: the host has no Landlock, or not in force.
    pub fn new() -> io::Result<Ruleset> {
        /// `LANDLOCK_ACCESS_NET_BIND_TCP` and `_CONNECT_TCP`; `LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET`.
        const NET: u64 = 3;
        const ABSTRACT_SOCKETS: u64 = 1;
        let abi = abi();
        if abi == 0 {
            return Err(io::Error::from_raw_os_error(libc::ENOSYS));
        }
        let handled = Access::known(abi);
        let attr = RulesetAttr {
            handled_fs: handled.bits(),
            handled_net: if abi >= 4 { NET } else { 0 },
            scoped: if abi >= 6 { ABSTRACT_SOCKETS } else { 0 },
        };
        let size = match abi {
            0..4 => 8,
            4 | 5 => 16,
            _ => size_of::<RulesetAttr>(),
        };
        // SAFETY: see above; a descriptor of our own comes back.
        let ruleset = unsafe {
            let fd = check(libc::syscall(CREATE_RULESET, &raw const attr, size, 0))?;
            OwnedFd::from_raw_fd(i32::try_from(fd).map_err(io::Error::other)?)
        };
        Ok(Ruleset { ruleset, handled })
    }

    /// Allows `access` to a file, or to a directory and all below it. What the host does not know is left out.
    ///
    /// # Errors
    /// What the host says.
    pub fn allow(&self, file: BorrowedFd<'_>, is_directory: bool, access: Access) -> io::Result<()> {
        let mut allowed = access & self.handled;
        if !is_directory {
            allowed &= Access::FILE;
        }
        if allowed.is_empty() {
            return Ok(());
        }
        let rule = PathBeneath { allowed: allowed.bits(), parent: file.as_raw_fd() };
        // SAFETY: see above.
        check(unsafe { libc::syscall(ADD_RULE, self.ruleset.as_raw_fd(), PATH_BENEATH, &raw const rule, 0) })
            .map(drop)
    }

    /// Puts it in force for the calling thread, which has given up new privileges.
    ///
    /// # Errors
    /// What the host says.
    pub fn restrict_self(self) -> io::Result<()> {
        // SAFETY: takes integers.
        check(unsafe { libc::syscall(RESTRICT_SELF, self.ruleset.as_raw_fd(), 0) }).map(drop)
    }
}
