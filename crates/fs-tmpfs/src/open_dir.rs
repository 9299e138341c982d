//! Open directories.

use std::any::Any;
use std::sync::Arc;

use abi::{Errno, FileType};
use sync::order::File as FileLevel;
use sync::{Mutex, SysResult};
use vfs::{Caller, DirSink, FileDescription, FileOps, Inode, Seek, UserWrite};

use crate::dir::FIRST;
use crate::file::touch_atime;
use crate::node::TmpNode;

/// Entries that are copied out of the directory at a time.
const BATCH: usize = 128;

/// A description of a directory: 0 is before `.`, 1 before `..`, then a position among the entries.
pub(crate) struct OpenDir {
    inode: Arc<Inode>,
    position: Mutex<FileLevel, u64>,
}

impl OpenDir {
    pub(crate) fn new(inode: Arc<Inode>) -> OpenDir {
        OpenDir { inode, position: Mutex::new(0) }
    }

    fn node(&self) -> SysResult<&TmpNode> {
        self.inode.downcast().ok_or(Errno::EIO.into())
    }

    /// Gives entries from `at` on until the sink is full; the position behind the last one taken.
    fn list(&self, file: &FileDescription, mut at: u64, to: &mut dyn DirSink) -> SysResult<u64> {
        let node = self.node()?;
        if at == 0 {
            if !to.entry(b".", node.ino, FileType::DIR, 1) {
                return Ok(at);
            }
            at = 1;
        }
        if at == 1 {
            if !to.entry(b"..", self.parent_ino(file).unwrap_or(node.ino), FileType::DIR, FIRST) {
                return Ok(at);
            }
            at = FIRST;
        }
        loop {
            let batch = node.lock().entries()?.list(at, BATCH);
            if batch.is_empty() {
                return Ok(at);
            }
            for (entry, next) in batch {
                let ino = entry.inode.downcast::<TmpNode>().map_or(0, |node| node.ino);
                if !to.entry(&entry.name, ino, entry.inode.file_type, next) {
                    return Ok(at);
                }
                at = next;
            }
        }
    }

    fn parent_ino(&self, file: &FileDescription) -> Option<u64> {
        let parent = file.path.as_ref()?.dentry.parent()?;
        parent.inode.downcast::<TmpNode>().map(|node| node.ino)
    }
}

impl FileOps for OpenDir {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn read(&self, _: &FileDescription, _: &dyn Caller, _: &mut dyn UserWrite) -> SysResult<usize> {
        Err(Errno::EISDIR.into())
    }

    fn seek(&self, _: &FileDescription, to: Seek) -> SysResult<u64> {
        let mut position = self.position.lock();
        let at = match to {
            Seek::Set(at) => at,
            Seek::Current(by) => {
                i64::try_from(*position).unwrap_or(i64::MAX).checked_add(by).ok_or(Errno::EINVAL)?
            }
            _ => return Err(Errno::EINVAL.into()),
        };
        *position = u64::try_from(at).map_err(|_| Errno::EINVAL)?;
        Ok(*position)
    }

    fn read_dir(&self, file: &FileDescription, _: &dyn Caller, to: &mut dyn DirSink) -> SysResult<()> {
        // Linux: a directory that was removed lists nothing, not even itself.
        if self.node()?.lock().nlink == 0 {
            return Err(Errno::ENOENT.into());
        }
        let start = *self.position.lock();
        let end = self.list(file, start, to)?;
        let mut position = self.position.lock();
        // A seek meanwhile wins.
        if *position == start {
            *position = end;
        }
        drop(position);
        touch_atime(self.node()?, file);
        Ok(())
    }

    fn sync(&self, _: bool) -> SysResult<()> {
        Ok(())
    }
}
