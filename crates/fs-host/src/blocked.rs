//! What stands in for a mount that is not shown: an empty directory (or file) that cannot be changed.

use std::any::Any;
use std::sync::{Arc, Weak};

use abi::{Errno, FileMode, FileType};
use sync::{Mutex, SysResult};
use vfs::{Attributes, Caller, DirSink, FileDescription, FileOps, Inode, InodeOps, OpenHow, Seek, UserWrite};

use crate::stat::{FileId, HostStat};

/// Inode numbers of stand-ins have this bit, so that they meet no file's.
const STAND_IN: u64 = 1 << 62;

/// The stand-in's inode operations.
pub(crate) struct Blocked {
    hidden: FileId,
    parent: Weak<Inode>,
    shown: Attributes,
}

impl Blocked {
    pub(crate) fn new(parent: &Arc<Inode>, stat: &HostStat, dev: u64) -> Blocked {
        let host = stat.attributes(dev);
        let is_dir = stat.mode().is_dir();
        let file_type = if is_dir { FileType::DIR } else { FileType::REG };
        let shown = Attributes {
            dev,
            ino: STAND_IN | (stat.mount << 20) ^ stat.id.ino,
            mode: FileMode::new(file_type, if is_dir { 0o555 } else { 0o444 }),
            nlink: if is_dir { 2 } else { 1 },
            block_size: 4096,
            atime: host.ctime,
            mtime: host.ctime,
            ctime: host.ctime,
            ..Attributes::default()
        };
        Blocked { hidden: stat.id, parent: Arc::downgrade(parent), shown }
    }

    /// Whether it stands for what `stat` describes.
    pub(crate) fn stands_for(&self, stat: &HostStat) -> bool {
        self.hidden == stat.id
    }
}

impl InodeOps for Blocked {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn attributes(&self, _this: &Arc<Inode>) -> SysResult<Attributes> {
        Ok(self.shown)
    }

    fn open(&self, _this: &Arc<Inode>, how: OpenHow, _caller: &dyn Caller) -> SysResult<Box<dyn FileOps>> {
        if how.flags.is_writable() {
            return Err(Errno::EROFS.into());
        }
        let parent = self.parent.upgrade();
        let parent_ino =
            parent.and_then(|dir| dir.ops.attributes(&dir).ok()).map_or(self.shown.ino, |of| of.ino);
        Ok(Box::new(EmptyFile { shown: self.shown, parent_ino, position: Mutex::new(0) }))
    }

    fn lookup(&self, _this: &Arc<Inode>, _name: &[u8]) -> SysResult<Arc<Inode>> {
        Err(if self.shown.mode.is_dir() { Errno::ENOENT } else { Errno::ENOTDIR }.into())
    }
}

/// An open stand-in.
struct EmptyFile {
    shown: Attributes,
    parent_ino: u64,
    position: Mutex<sync::order::File, u64>,
}

impl FileOps for EmptyFile {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn read(&self, _: &FileDescription, _: &dyn Caller, _: &mut dyn UserWrite) -> SysResult<usize> {
        if self.shown.mode.is_dir() { Err(Errno::EISDIR.into()) } else { Ok(0) }
    }

    fn read_at(
        &self,
        file: &FileDescription,
        caller: &dyn Caller,
        _: u64,
        to: &mut dyn UserWrite,
    ) -> SysResult<usize> {
        self.read(file, caller, to)
    }

    fn seek(&self, _: &FileDescription, to: Seek) -> SysResult<u64> {
        let mut position = self.position.lock();
        let new = match to {
            Seek::Set(offset) | Seek::End(offset) => Some(offset),
            Seek::Current(by) => i64::try_from(*position).ok().and_then(|at| at.checked_add(by)),
            Seek::Data(_) | Seek::Hole(_) => return Err(Errno::ENXIO.into()),
        };
        *position = new.and_then(|new| u64::try_from(new).ok()).ok_or(Errno::EINVAL)?;
        Ok(*position)
    }

    fn read_dir(&self, _: &FileDescription, _: &dyn Caller, to: &mut dyn DirSink) -> SysResult<()> {
        if !self.shown.mode.is_dir() {
            return Err(Errno::ENOTDIR.into());
        }
        let start = *self.position.lock();
        let mut at = start;
        for (name, ino) in [(&b"."[..], self.shown.ino), (b"..", self.parent_ino)]
            .into_iter()
            .skip(usize::try_from(start).unwrap_or(2))
        {
            if !to.entry(name, ino, FileType::DIR, at + 1) {
                break;
            }
            at += 1;
        }
        *self.position.lock() = at;
        Ok(())
    }

    fn attributes(&self) -> Option<SysResult<Attributes>> {
        Some(Ok(self.shown))
    }

    fn sync(&self, _data_only: bool) -> SysResult<()> {
        Ok(())
    }
}
