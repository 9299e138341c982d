//! A host file's attributes and identity.

use abi::{FileMode, FileType, Timespec};
use rustix::fd::AsFd;
use rustix::fs::{AtFlags, Statx, StatxFlags, StatxTimestamp};
use vfs::Attributes;

/// Which file it is. The birth time tells apart files that get the same inode number one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct FileId {
    pub(crate) dev: u64,
    pub(crate) ino: u64,
    pub(crate) born: Option<(i64, u32)>,
}

/// What the host says of a file.
#[derive(Clone, Copy)]
pub(crate) struct HostStat {
    statx: Statx,
    pub(crate) id: FileId,
    /// The host's id of the mount it was found in; where the host is too old to tell, 0 for all.
    pub(crate) mount: u64,
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
        let born = has(StatxFlags::BTIME).then_some((statx.stx_btime.tv_sec, statx.stx_btime.tv_nsec));
        let id = FileId { dev: dev(statx.stx_dev_major, statx.stx_dev_minor), ino: statx.stx_ino, born };
        let mount = if has(StatxFlags::MNT_ID) { statx.stx_mnt_id } else { 0 };
        Ok(HostStat { statx, id, mount })
    }

    pub(crate) fn mode(&self) -> FileMode {
        FileMode::from_bits_retain(u32::from(self.statx.stx_mode))
    }

    pub(crate) fn file_type(&self) -> FileType {
        self.mode().file_type()
    }

    pub(crate) fn size(&self) -> u64 {
        self.statx.stx_size
    }

    /// Seconds and nanoseconds; for telling whether something changed.
    pub(crate) fn changed(&self) -> (i64, u32) {
        (self.statx.stx_ctime.tv_sec, self.statx.stx_ctime.tv_nsec)
    }

    /// Whether everybody may read it (for directories: pass through it).
    pub(crate) fn is_for_all(&self) -> bool {
        let mode = self.mode();
        match mode.file_type() {
            FileType::DIR => mode.contains(FileMode::XOTH),
            FileType::LNK => true,
            _ => mode.contains(FileMode::ROTH),
        }
    }

    /// The guest's attributes, with the host's owner, mode and device number.
    pub(crate) fn attributes(&self, shown_dev: u64) -> Attributes {
        let statx = &self.statx;
        Attributes {
            dev: shown_dev,
            ino: statx.stx_ino,
            mode: self.mode(),
            nlink: u64::from(statx.stx_nlink),
            uid: statx.stx_uid,
            gid: statx.stx_gid,
            rdev: dev(statx.stx_rdev_major, statx.stx_rdev_minor),
            size: statx.stx_size,
            block_size: u64::from(statx.stx_blksize),
            blocks: statx.stx_blocks,
            atime: time(statx.stx_atime),
            mtime: time(statx.stx_mtime),
            ctime: time(statx.stx_ctime),
            btime: self.id.born.map(|(sec, nsec)| Timespec { sec, nsec: i64::from(nsec) }),
        }
    }
}

fn dev(major: u32, minor: u32) -> u64 {
    abi::makedev(major, minor)
}

fn time(from: StatxTimestamp) -> Timespec {
    Timespec { sec: from.tv_sec, nsec: i64::from(from.tv_nsec) }
}
