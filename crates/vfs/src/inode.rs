//! Inodes, and what a file system provides.

use std::any::Any;
use std::sync::Arc;

use abi::{Errno, FileMode, FileType, Timespec};
use sync::SysResult;

use crate::{Caller, FileOps, OpenHow};

/// A mounted file system (Linux: `super_block`).
pub trait FileSystem: Send + Sync {
    /// `overlay`, `tmpfs`, …: as /proc/mounts names it.
    fn kind(&self) -> &'static str;
    /// `st_dev` of its files, in Linux's encoding.
    fn dev(&self) -> u64;
    /// Its root directory.
    fn root(&self) -> Arc<Inode>;
    fn stat(&self) -> SysResult<FsStat>;
    /// Its own mount options for /proc/mounts, beside `rw` and the like: `lowerdir=…`. May be empty.
    fn options(&self) -> String {
        String::new()
    }
    /// Whether names may change without the dentries knowing (the host's directories): the walk then asks
    /// [`InodeOps::revalidate`] before it trusts a cached last component.
    fn changes_outside(&self) -> bool {
        false
    }
    /// Whether its names are made up from something else (proc): every component is asked for again, and one that
    /// is not there is `ENOENT` even to whoever would create it, before any permission is looked at.
    fn is_generated(&self) -> bool {
        false
    }
    fn sync(&self) -> SysResult<()> {
        Ok(())
    }
}

/// What `statfs` says.
#[derive(Clone, Copy, Debug, Default)]
pub struct FsStat {
    pub magic: i64,
    pub block_size: u64,
    pub blocks: u64,
    pub blocks_free: u64,
    pub blocks_available: u64,
    pub files: u64,
    pub files_free: u64,
    pub name_max: u64,
    pub fsid: [i32; 2],
}

/// A file, apart from its names. A file system makes one [`Inode`] at a time for each of its files: identity of
/// the `Arc` is identity of the file.
pub struct Inode {
    pub fs: Arc<dyn FileSystem>,
    pub file_type: FileType,
    pub ops: Box<dyn InodeOps>,
    /// What the layers above hang on it: record locks, a FIFO's pipe, the socket bound to it. Made on demand.
    pub attached: crate::inode_state::InodeState,
}

impl Inode {
    pub fn new(fs: Arc<dyn FileSystem>, file_type: FileType, ops: Box<dyn InodeOps>) -> Arc<Inode> {
        Arc::new(Inode { fs, file_type, ops, attached: Default::default() })
    }

    /// The file system's own type behind it, if it is `T`.
    pub fn downcast<T: InodeOps>(&self) -> Option<&T> {
        let ops: &dyn Any = self.ops.as_any();
        ops.downcast_ref()
    }

    pub fn is_dir(&self) -> bool {
        self.file_type == FileType::DIR
    }
}

/// What `stat` tells. Times and sizes are fresh at each call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Attributes {
    pub dev: u64,
    pub ino: u64,
    pub mode: FileMode,
    pub nlink: u64,
    pub uid: u32,
    pub gid: u32,
    pub rdev: u64,
    pub size: u64,
    pub block_size: u64,
    /// In units of 512 bytes.
    pub blocks: u64,
    pub atime: Timespec,
    pub mtime: Timespec,
    pub ctime: Timespec,
    /// Where the file system knows it.
    pub btime: Option<Timespec>,
}

/// A time to set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetTime {
    Now,
    At(Timespec),
}

/// Attributes to change; `None` leaves one as it is. Checked already: who may, and the clearing of set-id bits.
#[derive(Clone, Copy, Debug, Default)]
pub struct AttributeChange {
    /// Permission bits with set-id and sticky bits.
    pub permissions: Option<u32>,
    pub uid: Option<u32>,
    pub gid: Option<u32>,
    pub size: Option<u64>,
    pub atime: Option<SetTime>,
    pub mtime: Option<SetTime>,
}

/// A node to make.
#[derive(Clone, Copy, Debug)]
pub struct NewNode<'a> {
    pub kind: NewNodeKind<'a>,
    /// Permission bits, the umask applied.
    pub permissions: u32,
    pub uid: u32,
    pub gid: u32,
}

#[derive(Clone, Copy, Debug)]
pub enum NewNodeKind<'a> {
    File,
    Directory,
    Symlink(&'a [u8]),
    Fifo,
    Socket,
    CharDevice(u64),
    BlockDevice(u64),
}

/// `renameat2`'s flags, decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RenameMode {
    Replace,
    NoReplace,
    Exchange,
}

/// `setxattr`'s flags, decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum XattrMode {
    Any,
    Create,
    Replace,
}

/// What a file system does with one of its inodes. `this` is the inode that the operations belong to. Directory
/// operations are called on directories only; names are 1 to 255 bytes without `/` and never `.` or `..`.
/// The caller has checked permissions, mount flags and (through the dentries) types; the file system still
/// answers `EEXIST`, `ENOENT`, `ENOTEMPTY`, … itself, since it alone can do so atomically.
#[allow(unused_variables, reason = "defaults ignore their arguments")]
pub trait InodeOps: Any + Send + Sync {
    fn as_any(&self) -> &dyn Any;

    fn attributes(&self, this: &Arc<Inode>) -> SysResult<Attributes>;

    fn set_attributes(&self, this: &Arc<Inode>, change: &AttributeChange) -> SysResult<()> {
        Err(Errno::EPERM.into())
    }

    /// Makes the open file. Not called for FIFOs, sockets and devices, which the kernel opens itself, unless
    /// `opens_itself`. `O_TRUNC` has been carried out by `set_attributes`.
    fn open(&self, this: &Arc<Inode>, how: OpenHow, caller: &dyn Caller) -> SysResult<Box<dyn FileOps>>;

    // Directories.

    fn lookup(&self, this: &Arc<Inode>, name: &[u8]) -> SysResult<Arc<Inode>> {
        Err(Errno::ENOTDIR.into())
    }

    /// Whether `child`, found under `name` earlier, is still what is there. Only for file systems that
    /// [change outside](FileSystem::changes_outside).
    fn revalidate(&self, this: &Arc<Inode>, name: &[u8], child: &Arc<Inode>) -> bool {
        true
    }

    fn create(&self, this: &Arc<Inode>, name: &[u8], node: &NewNode<'_>) -> SysResult<Arc<Inode>> {
        Err(Errno::EPERM.into())
    }

    /// A file without a name (`O_TMPFILE`).
    fn create_unnamed(&self, this: &Arc<Inode>, node: &NewNode<'_>) -> SysResult<Arc<Inode>> {
        Err(Errno::EOPNOTSUPP.into())
    }

    fn link(&self, this: &Arc<Inode>, name: &[u8], target: &Arc<Inode>) -> SysResult<()> {
        Err(Errno::EPERM.into())
    }

    /// Removes a name of something that is not a directory.
    fn unlink(&self, this: &Arc<Inode>, name: &[u8], child: &Arc<Inode>) -> SysResult<()> {
        Err(Errno::EPERM.into())
    }

    fn rmdir(&self, this: &Arc<Inode>, name: &[u8], child: &Arc<Inode>) -> SysResult<()> {
        Err(Errno::EPERM.into())
    }

    /// Renames within the file system. `this` and `to_dir` may be the same.
    fn rename(
        &self,
        this: &Arc<Inode>,
        name: &[u8],
        to_dir: &Arc<Inode>,
        to_name: &[u8],
        mode: RenameMode,
    ) -> SysResult<()> {
        Err(Errno::EPERM.into())
    }

    // Symbolic links.

    fn read_link(&self, this: &Arc<Inode>) -> SysResult<Vec<u8>> {
        Err(Errno::EINVAL.into())
    }

    /// The text of a link that depends on who reads it (`/proc/self`).
    fn read_link_as(&self, this: &Arc<Inode>, caller: &dyn Caller) -> SysResult<Vec<u8>> {
        self.read_link(this)
    }

    /// For links which lead to an object, not along a path (`/proc/PID/fd/N`, `exe`, `cwd`, `root`). `None`: an
    /// ordinary link.
    fn follow(&self, this: &Arc<Inode>, caller: &dyn Caller) -> Option<SysResult<crate::MagicTarget>> {
        None
    }

    // Extended attributes, whole values. Names with their prefix.

    fn get_xattr(&self, this: &Arc<Inode>, name: &[u8]) -> SysResult<Vec<u8>> {
        Err(Errno::EOPNOTSUPP.into())
    }
    fn set_xattr(&self, this: &Arc<Inode>, name: &[u8], value: &[u8], mode: XattrMode) -> SysResult<()> {
        Err(Errno::EOPNOTSUPP.into())
    }
    fn remove_xattr(&self, this: &Arc<Inode>, name: &[u8]) -> SysResult<()> {
        Err(Errno::EOPNOTSUPP.into())
    }
    fn list_xattrs(&self, this: &Arc<Inode>) -> SysResult<Vec<Vec<u8>>> {
        Err(Errno::EOPNOTSUPP.into())
    }

    /// Where locks on this file are to be taken too, because others than the guests use it. Called with no lock held;
    /// `None`: nowhere.
    fn outside_locks(&self, this: &Arc<Inode>) -> Option<Arc<dyn crate::locks::OutsideLocks>> {
        None
    }

    /// Whether `open` of this inode is the file system's even where its type is a FIFO, socket or device.
    fn opens_itself(&self) -> bool {
        false
    }

    /// Whether permission checks use something else than mode and owner (proc's PID files): `None` for the usual
    /// check; `mask` as in `access(2)`: 4 read, 2 write, 1 execute.
    fn permission(&self, this: &Arc<Inode>, caller: &dyn Caller, mask: u32) -> Option<SysResult<()>> {
        None
    }
}
