//! Records: the owner, mode and device number of a file where the host's file cannot carry them.
//!
//! A record is the extended attribute `user.umlaut.attributes` of the file, text of five fields: format, uid, gid,
//! mode (octal, with the type), device number. Symbolic links carry no such attributes, and some file systems know
//! none at all: then it stands in the [side file](crate::side) of the directory.
//!
//! Devices, FIFOs and sockets are empty regular files with a record that tells their type. A directory that has (or
//! had) one carries `user.umlaut.special`, so that listings of all others need not ask for each file.
//!
//! A record is only read from, and written to, a file whose identity was checked through a descriptor: a guest that
//! swaps names must not get another file's owner or set-id bits.

use std::marker::PhantomData;
use std::sync::Arc;

use abi::{Errno, FileMode, FileType};
use rustix::fd::{AsFd, AsRawFd, BorrowedFd};
use rustix::fs::{OFlags, XattrFlags};
use rustix::io::Errno as HostErrno;
use smallvec::SmallVec;
use sync::SysResult;
use vfs::{Attributes, Inode};

use crate::descriptors::DirFd;
use crate::error::{errno, moved, stale};
use crate::node::{Cached, HostNode};
use crate::places::Place;
use crate::stat::HostStat;
use crate::{HostFs, Records};

/// The prefix of all attributes that are ours.
pub(crate) const OURS: &[u8] = b"user.umlaut.";
const ATTRIBUTES: &str = "user.umlaut.attributes";
const SPECIAL: &str = "user.umlaut.special";

/// What a file shows instead of what the host says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    pub(crate) mode: FileMode,
    pub(crate) rdev: u64,
}

impl Record {
    pub(crate) fn of(attributes: &Attributes) -> Record {
        let Attributes { uid, gid, mode, rdev, .. } = *attributes;
        Record { uid, gid, mode, rdev }
    }

    pub(crate) fn to_text(self) -> String {
        format!("1 {} {} {:o} {:x}", self.uid, self.gid, self.mode.bits(), self.rdev)
    }

    /// `None` for what is not a record of ours: the host's user can write anything there.
    pub(crate) fn from_text(text: &[u8]) -> Option<Record> {
        let mut fields = std::str::from_utf8(text).ok()?.split(' ');
        let mut next = || fields.next();
        if next()? != "1" {
            return None;
        }
        let record = Record {
            uid: next()?.parse().ok()?,
            gid: next()?.parse().ok()?,
            mode: FileMode::from_bits_retain(u32::from_str_radix(next()?, 8).ok()?),
            rdev: u64::from_str_radix(next()?, 16).ok()?,
        };
        next().is_none().then_some(record)
    }

    /// Whether it makes the host's regular file `stat` something special.
    pub(crate) fn special_type(&self, stat: &HostStat) -> Option<FileType> {
        let kind = self.mode.file_type();
        let is_special = matches!(kind, FileType::FIFO | FileType::SOCK | FileType::CHR | FileType::BLK);
        (is_special && stat.file_type() == FileType::REG && stat.size() == 0).then_some(kind)
    }

    /// Puts what it says into the attributes of the file `stat`.
    pub(crate) fn apply(&self, stat: &HostStat, attributes: &mut Attributes) {
        (attributes.uid, attributes.gid) = (self.uid, self.gid);
        let kind = self.special_type(stat).unwrap_or(stat.file_type());
        attributes.mode = FileMode::new(kind, self.mode.permissions());
        if kind != stat.file_type() {
            attributes.rdev = self.rdev;
        }
    }
}

/// The path by which the host reaches an open file: there is no other way to the attributes of one held `O_PATH`. The
/// file stays open as long.
pub(crate) struct ProcPath<'a> {
    path: String,
    file: PhantomData<BorrowedFd<'a>>,
}

impl<'a> ProcPath<'a> {
    pub(crate) fn of(file: &'a impl AsFd) -> ProcPath<'a> {
        let path = format!("/proc/self/fd/{}", file.as_fd().as_raw_fd());
        ProcPath { path, file: PhantomData }
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.path
    }
}

/// Whether a failed call on an extended attribute says that the file cannot have any.
pub(crate) fn has_none(error: HostErrno) -> bool {
    // EPERM: symbolic links and special files.
    matches!(error, HostErrno::OPNOTSUPP | HostErrno::PERM | HostErrno::NOSYS)
}

/// The record in a file's attributes.
fn read_xattr(fs: &HostFs, file: &impl AsFd) -> SysResult<Result<Option<Record>, NoXattrs>> {
    if fs.options.records == Records::SideFiles {
        return Ok(Err(NoXattrs));
    }
    let mut value = [0; 96];
    match rustix::fs::getxattr(ProcPath::of(file).as_str(), ATTRIBUTES, &mut value[..]) {
        Ok(len) => Ok(Ok(value.get(..len).and_then(Record::from_text))),
        // EACCES: a file that we may not read; what we made we may.
        Err(HostErrno::NODATA | HostErrno::RANGE | HostErrno::ACCESS) => Ok(Ok(None)),
        Err(error) if has_none(error) => Ok(Err(NoXattrs)),
        Err(error) => Err(errno(error)),
    }
}

/// The file can have no attributes.
struct NoXattrs;

impl HostNode {
    /// The record of this file, whose state is `stat`.
    pub(crate) fn record(&self, this: &Arc<Inode>, stat: &HostStat) -> SysResult<Option<Record>> {
        if !self.fs.keeps_records() {
            return Ok(None);
        }
        let generation = match self.cached_record(stat.changed()) {
            Cached::Record(record) => return Ok(record),
            Cached::Unknown(generation) => generation,
        };
        let record = if carries_attributes(stat) { self.read_record(this)? } else { self.side_record()? };
        self.cache_read_record(stat.changed(), record, generation);
        Ok(record)
    }

    fn read_record(&self, this: &Arc<Inode>) -> SysResult<Option<Record>> {
        let handle = self.handle(this)?;
        match read_xattr(&self.fs, &handle)? {
            Ok(record) => Ok(record),
            Err(NoXattrs) => self.side_record(),
        }
    }

    /// The record in the side file of a directory that it was found in.
    fn side_record(&self) -> SysResult<Option<Record>> {
        for Place { dir, name } in self.side_places()? {
            let Some(node) = dir.downcast::<HostNode>() else { continue };
            if let Some(record) = node.side_get(&dir, &name, self.id.ino)? {
                return Ok(Some(record));
            }
        }
        Ok(None)
    }

    /// The directories and names under which side files know this file; the root stands in its own.
    fn side_places(&self) -> SysResult<SmallVec<[Place; 1]>> {
        if self.is_root() {
            let place = Place { dir: self.fs.root_inode()?, name: b".".as_slice().into() };
            return Ok(SmallVec::from_iter([place]));
        }
        Ok(self.places())
    }

    /// Writes the record of this file, open as `file`; `None` removes it.
    pub(crate) fn write_record(&self, file: &impl AsFd, record: Option<Record>) -> SysResult<()> {
        self.record_changes();
        let carries = carries_attributes(&HostStat::of(file).map_err(errno)?);
        let stored = if carries { write_xattr(&self.fs, file, record)? } else { Err(NoXattrs) };
        if stored.is_err() {
            for Place { dir, name } in self.side_places()? {
                if let Some(node) = dir.downcast::<HostNode>() {
                    node.side_put(&dir, &name, self.id.ino, record)?;
                }
            }
        }
        let stat = HostStat::of(file).map_err(errno)?;
        self.cache_record(stat.changed(), record);
        Ok(())
    }

    /// The record of the regular file `stat`, found as `name` in this directory.
    pub(crate) fn record_at(
        &self,
        this: &Arc<Inode>,
        dir: &DirFd,
        name: &[u8],
        stat: &HostStat,
    ) -> SysResult<Option<Record>> {
        let file =
            self.fs.open_path(&dir.fd, name, OFlags::empty(), stat.mount != dir.mount).map_err(moved)?;
        let now = HostStat::of(&file).map_err(errno)?;
        if now.id != stat.id {
            return Err(stale());
        }
        match read_xattr(&self.fs, &file)? {
            Ok(record) => Ok(record),
            Err(NoXattrs) => self.side_get(this, name, stat.id.ino),
        }
    }

    /// Notes that this directory has special files.
    pub(crate) fn mark_special(&self, this: &Arc<Inode>) -> SysResult<()> {
        if self.fs.options.records == Records::SideFiles {
            return Ok(());
        }
        let dir = self.dir_fd(this)?;
        match rustix::fs::setxattr(ProcPath::of(&dir.fd).as_str(), SPECIAL, b"1", XattrFlags::empty()) {
            Err(error) if !has_none(error) => Err(errno(error)),
            // Without attributes, the side file tells.
            _ => Ok(()),
        }
    }

    /// Whether this directory, open as `dir`, may have special files.
    pub(crate) fn may_have_special(&self, this: &Arc<Inode>, dir: &impl AsFd) -> SysResult<bool> {
        match self.fs.options.records {
            Records::None => return Ok(false),
            Records::SideFiles => return self.side_has_special(this),
            Records::Attributes => {}
        }
        match rustix::fs::getxattr(ProcPath::of(dir).as_str(), SPECIAL, &mut [0; 8][..]) {
            Ok(_) => Ok(true),
            Err(HostErrno::NODATA | HostErrno::ACCESS) => Ok(false),
            Err(error) if has_none(error) => self.side_has_special(this),
            Err(error) => Err(errno(error)),
        }
    }
}

/// Whether the host's file can carry `user.*` attributes: symbolic links and special files cannot (xattr(7)).
fn carries_attributes(stat: &HostStat) -> bool {
    matches!(stat.file_type(), FileType::REG | FileType::DIR)
}

/// Writes a record into a file's attributes, before anybody knows the file.
pub(crate) fn write_new(fs: &HostFs, file: &impl AsFd, record: Record) -> SysResult<bool> {
    write_xattr(fs, file, Some(record)).map(|stored| stored.is_ok())
}

fn write_xattr(fs: &HostFs, file: &impl AsFd, record: Option<Record>) -> SysResult<Result<(), NoXattrs>> {
    if fs.options.records == Records::SideFiles {
        return Ok(Err(NoXattrs));
    }
    let path = ProcPath::of(file);
    let path = path.as_str();
    let result = match record {
        Some(record) => {
            rustix::fs::setxattr(path, ATTRIBUTES, record.to_text().as_bytes(), XattrFlags::empty())
        }
        None => match rustix::fs::removexattr(path, ATTRIBUTES) {
            Err(HostErrno::NODATA) => Ok(()),
            other => other,
        },
    };
    match result {
        Ok(()) => Ok(Ok(())),
        Err(HostErrno::OPNOTSUPP | HostErrno::NOSYS) => Ok(Err(NoXattrs)),
        // Not ours to change: what `chmod` and `chown` of another's file say.
        Err(HostErrno::ACCESS) => Err(Errno::EPERM.into()),
        Err(error) => Err(errno(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_survive_their_text() {
        let record = Record {
            uid: 1000,
            gid: u32::MAX,
            mode: FileMode::from_bits_retain(0o104755),
            rdev: abi::makedev(4, 64),
        };
        assert_eq!(Record::from_text(record.to_text().as_bytes()), Some(record));
        for bad in ["", "1", "1 0 0 644", "1 0 0 644 0 0", "2 0 0 644 0", "1 -1 0 644 0", "1 0 0 9 0"] {
            assert_eq!(Record::from_text(bad.as_bytes()), None, "{bad}");
        }
    }
}
