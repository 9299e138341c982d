//! Files without a path: what `stat` says of pipes, eventfds and their like, and where their numbers come from.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use abi::{FileMode, FileType, Timespec};
use sync::{Mutex, SysResult, order};
use vfs::locks::FileLocks;
use vfs::{AttributeChange, Attributes, Caller, SetTime};

/// The file systems that only the kernel mounts: devices and inode numbers of files without a path.
pub struct AnonFiles {
    /// `st_dev` of pipes (Linux: pipefs).
    pipe_dev: u64,
    /// `st_dev` of sockets (Linux: sockfs).
    socket_dev: u64,
    /// `st_dev` of eventfds, epolls, … (Linux: anon_inodefs).
    anon_dev: u64,
    next_ino: AtomicU64,
}

impl Default for AnonFiles {
    fn default() -> Self {
        AnonFiles {
            pipe_dev: vfs::anonymous_dev(),
            socket_dev: vfs::anonymous_dev(),
            anon_dev: vfs::anonymous_dev(),
            next_ino: AtomicU64::new(ANON_INO + 1),
        }
    }
}

/// All of Linux's anonymous inodes are one.
const ANON_INO: u64 = 1;

impl AnonFiles {
    /// A number for a pipe or socket.
    pub fn next_ino(&self) -> u64 {
        self.next_ino.fetch_add(1, Ordering::Relaxed)
    }

    /// Attributes of a new pipe.
    pub fn pipe(&self, caller: &dyn Caller) -> OwnAttributes {
        self.owned(caller, self.pipe_dev, FileMode::new(FileType::FIFO, 0o600))
    }

    /// Attributes of a new socket.
    pub fn socket(&self, caller: &dyn Caller) -> OwnAttributes {
        self.owned(caller, self.socket_dev, FileMode::new(FileType::SOCK, 0o777))
    }

    fn owned(&self, caller: &dyn Caller, dev: u64, mode: FileMode) -> OwnAttributes {
        let cred = caller.cred();
        let now = now();
        let attributes = Attributes {
            dev,
            ino: self.next_ino(),
            mode,
            nlink: 1,
            uid: cred.fsuid,
            gid: cred.fsgid,
            block_size: abi::PAGE_SIZE,
            atime: now,
            mtime: now,
            ctime: now,
            ..Attributes::default()
        };
        OwnAttributes { attributes: Mutex::new(attributes), locks: OnceLock::new() }
    }

    /// Attributes of an eventfd and its like: a mode without a type.
    pub fn anonymous(&self) -> Attributes {
        Attributes {
            dev: self.anon_dev,
            ino: ANON_INO,
            mode: FileMode::new(FileType(0), 0o600),
            nlink: 1,
            block_size: abi::PAGE_SIZE,
            ..Attributes::default()
        }
    }
}

/// The present time of the host's, for time stamps.
pub fn now() -> Timespec {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::RealtimeCoarse);
    Timespec { sec: time.tv_sec, nsec: time.tv_nsec }
}

/// What a pipe or socket has in place of an inode: attributes, and locks.
pub struct OwnAttributes {
    attributes: Mutex<order::Leaf, Attributes>,
    locks: OnceLock<Box<FileLocks>>,
}

impl OwnAttributes {
    pub fn get(&self) -> Attributes {
        *self.attributes.lock()
    }

    /// The locks on it.
    pub fn locks(&self) -> &FileLocks {
        self.locks.get_or_init(Default::default)
    }

    /// `fchmod`, `fchown`, `futimens`; a size is not for these.
    pub fn change(&self, change: &AttributeChange) -> SysResult<()> {
        let time = |to: SetTime| match to {
            SetTime::Now => now(),
            SetTime::At(at) => at,
        };
        let mut own = self.attributes.lock();
        let kind = FileType(own.mode.bits() & 0o170_000);
        own.mode = change.permissions.map_or(own.mode, |bits| FileMode::new(kind, bits));
        own.uid = change.uid.unwrap_or(own.uid);
        own.gid = change.gid.unwrap_or(own.gid);
        own.atime = change.atime.map_or(own.atime, time);
        own.mtime = change.mtime.map_or(own.mtime, time);
        own.ctime = now();
        Ok(())
    }
}
