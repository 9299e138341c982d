//! Open directories: entries through a descriptor of their own, whose position is the host's.

use std::any::Any;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use abi::{Errno, FileType};
use rustix::fs::{RawDir, RawDirEntry, SeekFrom};
use sync::SysResult;
use vfs::{Attributes, Caller, DirSink, FileDescription, FileOps, Inode, Seek, UserWrite};

use crate::error::{errno, retry};
use crate::node::HostNode;
use crate::stat::HostStat;

/// Bytes of entries asked of the host at once: glibc's own size.
const ENTRIES: usize = 32 * 1024;

/// An open directory of the host.
pub(crate) struct HostDir {
    dir: Arc<OwnedFd>,
    inode: Arc<Inode>,
    /// Regular files may stand for special ones.
    has_special: bool,
}

impl HostDir {
    pub(crate) fn new(dir: Arc<OwnedFd>, inode: Arc<Inode>, has_special: bool) -> HostDir {
        HostDir { dir, inode, has_special }
    }

    fn node(&self) -> SysResult<&HostNode> {
        self.inode.downcast::<HostNode>().ok_or(Errno::EIO.into())
    }

    /// The number and type to show for an entry; `None`: it is hidden.
    fn shown(&self, node: &HostNode, entry: &RawDirEntry<'_>) -> SysResult<Option<(u64, FileType)>> {
        let name = entry.file_name().to_bytes();
        let host_type = file_type(entry.file_type());
        match name {
            b"." => return Ok(Some((entry.ino(), FileType::DIR))),
            // Above the root is the root.
            b".." if node.parent().is_none() => return Ok(Some((node.id.ino, FileType::DIR))),
            b".." => return Ok(Some((entry.ino(), FileType::DIR))),
            _ if node.hides(name) => return Ok(None),
            _ => {}
        }
        if self.has_special && matches!(host_type, FileType::REG) {
            // What cannot be found out is left to the one who looks it up.
            let found = vfs::InodeOps::lookup(node, &self.inode, name);
            return Ok(Some((entry.ino(), found.map_or(FileType(0), |inode| inode.file_type))));
        }
        if !node.fs.options.world_readable_only {
            return Ok(Some((entry.ino(), host_type)));
        }
        match HostStat::at(&self.dir, name) {
            Ok(stat) if node.fs.may_show(&stat) => Ok(Some((entry.ino(), host_type))),
            Ok(_) | Err(rustix::io::Errno::NOENT | rustix::io::Errno::ACCESS) => Ok(None),
            Err(error) => Err(errno(error)),
        }
    }
}

impl FileOps for HostDir {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn read(&self, _: &FileDescription, _: &dyn Caller, _: &mut dyn UserWrite) -> SysResult<usize> {
        Err(Errno::EISDIR.into())
    }

    fn read_at(
        &self,
        _: &FileDescription,
        _: &dyn Caller,
        _: u64,
        _: &mut dyn UserWrite,
    ) -> SysResult<usize> {
        Err(Errno::EISDIR.into())
    }

    fn seek(&self, _: &FileDescription, to: Seek) -> SysResult<u64> {
        let to = match to {
            Seek::Set(at) => SeekFrom::Start(u64::try_from(at).map_err(|_| Errno::EINVAL)?),
            Seek::Current(by) => SeekFrom::Current(by),
            Seek::End(by) => SeekFrom::End(by),
            Seek::Data(_) | Seek::Hole(_) => return Err(Errno::EINVAL.into()),
        };
        rustix::fs::seek(&self.dir, to).map_err(errno)
    }

    fn read_dir(&self, _: &FileDescription, _: &dyn Caller, to: &mut dyn DirSink) -> SysResult<()> {
        let node = self.node()?;
        let mut behind_taken = rustix::fs::tell(&self.dir).map_err(errno)?;
        let mut room: Vec<u8> = Vec::with_capacity(ENTRIES);
        let mut entries = RawDir::new(&*self.dir, room.spare_capacity_mut());
        let mut taken_any = false;
        // One buffer of the host's is given at a time; more only while all in it was hidden.
        while !(entries.is_buffer_empty() && taken_any) {
            let Some(entry) = entries.next() else { break };
            let entry = entry.map_err(errno)?;
            let next = entry.next_entry_cookie();
            if let Some((ino, file_type)) = self.shown(node, &entry)? {
                if !to.entry(entry.file_name().to_bytes(), ino, file_type, next) {
                    // The host gives it, and what comes behind it, again.
                    rustix::fs::seek(&self.dir, SeekFrom::Start(behind_taken)).map_err(errno)?;
                    break;
                }
                taken_any = true;
            }
            behind_taken = next;
        }
        Ok(())
    }

    fn attributes(&self) -> Option<SysResult<Attributes>> {
        let stat = HostStat::of(&self.dir).map_err(errno);
        Some(stat.and_then(|stat| self.node()?.shown(&self.inode, &stat)))
    }

    fn sync(&self, _data_only: bool) -> SysResult<()> {
        retry(|| rustix::fs::fsync(&self.dir)).map_err(errno)
    }
}

/// A directory entry's type; 0 where the host does not tell.
fn file_type(host: rustix::fs::FileType) -> FileType {
    match host {
        rustix::fs::FileType::RegularFile => FileType::REG,
        rustix::fs::FileType::Directory => FileType::DIR,
        rustix::fs::FileType::Symlink => FileType::LNK,
        rustix::fs::FileType::Fifo => FileType::FIFO,
        rustix::fs::FileType::Socket => FileType::SOCK,
        rustix::fs::FileType::CharacterDevice => FileType::CHR,
        rustix::fs::FileType::BlockDevice => FileType::BLK,
        rustix::fs::FileType::Unknown => FileType(0),
    }
}
