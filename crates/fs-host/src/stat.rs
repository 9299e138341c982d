//! A host file's attributes and identity.

use abi::{FileMode, FileType, Timespec};
use rustix::fd::AsFd;
use rustix::fs::{AtFlags, StatxFlags, StatxTimestamp};
use vfs::Attributes;

/// Which file it is. The birth time tells apart files that get the same inode number one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct FileId {
    pub(crate) dev: u64,
    pub(crate) ino: u64,
    pub(crate) born: Option<Time>,
}

/// Seconds and nanoseconds.
pub(crate) type Time = (i64, u32);

/// What the host says of a file.
#[derive(Clone, Copy)]
pub(crate) struct HostStat {
    pub(crate) id: FileId,
    /// The host's id of the mount it was found in; where the host is too old to tell, 0 for all.
    pub(crate) mount: u64,
    mode: FileMode,
    nlink: u32,
    uid: u32,
    gid: u32,
    block_size: u32,
    rdev: u64,
    size: u64,
    blocks: u64,
    accessed: Time,
    modified: Time,
    changed: Time,
}

impl HostStat {
    /// Of an open file; `O_PATH` suffices.
    pub(crate) fn of(file: impl AsFd) -> rustix::io::Result<HostStat> {
        HostStat::new(file, b"", AtFlags::EMPTY_PATH)
    }

    /// Of what `name` is in the directory `dir`: a symbolic link itself, and nothing is mounted by asking.
    pub(crate) fn at(dir: impl AsFd, name: &[u8]) -> rustix::io::Result<HostStat> {
        HostStat::new(dir, name, AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT)
    }

    fn new(dir: impl AsFd, name: &[u8], flags: AtFlags) -> rustix::io::Result<HostStat> {
        let wanted = StatxFlags::BASIC_STATS | StatxFlags::BTIME | StatxFlags::MNT_ID;
        let statx = rustix::fs::statx(dir, name, flags, wanted)?;
        let has = |what: StatxFlags| statx.stx_mask & what.bits() != 0;
        let born = has(StatxFlags::BTIME).then(|| time(statx.stx_btime));
        let id = FileId { dev: dev(statx.stx_dev_major, statx.stx_dev_minor), ino: statx.stx_ino, born };
        Ok(HostStat {
            id,
            mount: if has(StatxFlags::MNT_ID) { statx.stx_mnt_id } else { 0 },
            mode: FileMode::from_bits_retain(u32::from(statx.stx_mode)),
            nlink: statx.stx_nlink,
            uid: statx.stx_uid,
            gid: statx.stx_gid,
            block_size: statx.stx_blksize,
            rdev: dev(statx.stx_rdev_major, statx.stx_rdev_minor),
            size: statx.stx_size,
            blocks: statx.stx_blocks,
            accessed: time(statx.stx_atime),
            modified: time(statx.stx_mtime),
            changed: time(statx.stx_ctime),
        })
    }

    pub(crate) fn mode(&self) -> FileMode {
        self.mode
    }

    pub(crate) fn file_type(&self) -> FileType {
        self.mode.file_type()
    }

    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    /// For telling whether something changed.
    pub(crate) fn changed(&self) -> Time {
        self.changed
    }

    /// Whether everybody may read it (for directories: pass through it).
    pub(crate) fn is_for_all(&self) -> bool {
        match self.file_type() {
            FileType::DIR => self.mode.contains(FileMode::XOTH),
            FileType::LNK => true,
            _ => self.mode.contains(FileMode::ROTH),
        }
    }

    /// The guest's attributes, with the host's owner, mode and device number.
    pub(crate) fn attributes(&self, shown_dev: u64) -> Attributes {
        Attributes {
            dev: shown_dev,
            ino: self.id.ino,
            mode: self.mode,
            nlink: u64::from(self.nlink),
            uid: self.uid,
            gid: self.gid,
            rdev: self.rdev,
            size: self.size,
            block_size: u64::from(self.block_size),
            blocks: self.blocks,
            atime: shown(self.accessed),
            mtime: shown(self.modified),
            ctime: shown(self.changed),
            btime: self.id.born.map(shown),
        }
    }
}

fn dev(major: u32, minor: u32) -> u64 {
    abi::makedev(major, minor)
}

fn time(from: StatxTimestamp) -> Time {
    (from.tv_sec, from.tv_nsec)
}

fn shown((sec, nsec): Time) -> Timespec {
    Timespec { sec, nsec: i64::from(nsec) }
}
