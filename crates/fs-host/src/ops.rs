//! The inode operations of host files.

use std::any::Any;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use abi::{Errno, FileMode, FileType, OpenFlags};
use rustix::fs::OFlags;
use sync::SysResult;
use vfs::locks::OutsideLocks;
use vfs::{
    AttributeChange, Attributes, Caller, FileOps, Inode, InodeOps, NewNode, OpenHow, RenameMode, XattrMode,
};

use crate::View;
use crate::blocked::Blocked;
use crate::descriptors::DirFd;
use crate::dir::HostDir;
use crate::error::{component, errno, moved, stale};
use crate::file::HostFile;
use crate::node::{Cached, Handle, HostNode};
use crate::seen;
use crate::side::HIDDEN;
use crate::stat::HostStat;

impl HostNode {
    /// Whether guests may not see this name in this directory.
    pub(crate) fn hides(&self, name: &[u8]) -> bool {
        (self.fs.keeps_records() && name.starts_with(HIDDEN))
            || self.view.as_ref().is_some_and(|view| !view.shows(name))
    }

    /// The inode of what `stat` says `name` is. Its place is not noted.
    fn child(&self, this: &Arc<Inode>, dir: &DirFd, name: &[u8], stat: &HostStat) -> SysResult<Arc<Inode>> {
        let view = self.view.as_ref().and_then(|view| view.below(name));
        if stat.mount != dir.mount {
            let mounted = self.fs.open_path(&dir.fd, name, OFlags::empty(), true).map_err(errno)?;
            let found = HostStat::of(&mounted).map_err(errno)?;
            if found.id != stat.id || found.mount != stat.mount {
                return Err(stale());
            }
            if !self.fs.may_cross(view.as_deref(), &mounted, &found)? {
                return self.fs.intern_blocked(this, stat);
            }
        }
        if !self.fs.may_show(stat) {
            return Err(Errno::ENOENT.into());
        }
        self.intern_found(this, dir, name, stat, view)
    }

    /// The inode of a file that is to be shown. An empty regular file may stand for a special one.
    fn intern_found(
        &self,
        this: &Arc<Inode>,
        dir: &DirFd,
        name: &[u8],
        stat: &HostStat,
        view: Option<Arc<View>>,
    ) -> SysResult<Arc<Inode>> {
        let may_be_special = self.fs.keeps_records() && stat.file_type() == FileType::REG && stat.size() == 0;
        if !may_be_special {
            return self.fs.intern(stat, stat.file_type(), view);
        }
        if let Some(known) = self.fs.known(stat.id)
            && let Some(node) = known.downcast::<HostNode>()
            && matches!(node.cached_record(stat.changed()), Cached::Record(_))
        {
            return Ok(known);
        }
        let record = self.record_at(this, dir, name, stat)?;
        let file_type = record.and_then(|record| record.special_type(stat)).unwrap_or(FileType::REG);
        self.fs.intern(stat, file_type, view)
    }

    /// Whether `name` still is `child`.
    fn is_still(&self, this: &Arc<Inode>, name: &[u8], child: &Arc<Inode>) -> SysResult<bool> {
        let name = component(name)?;
        if self.hides(name) {
            return Ok(false);
        }
        let dir = self.dir_fd(this)?;
        let stat = HostStat::at(&dir.fd, name).map_err(moved)?;
        if let Some(blocked) = child.downcast::<Blocked>() {
            return Ok(stat.mount != dir.mount && blocked.stands_for(&stat));
        }
        let Some(node) = child.downcast::<HostNode>() else { return Ok(false) };
        if node.id != stat.id || !self.fs.may_show(&stat) {
            return Ok(false);
        }
        // Something mounted since is looked at anew.
        let is_still = stat.mount == dir.mount || Arc::ptr_eq(&self.child(this, &dir, name, &stat)?, child);
        if is_still {
            seen::note(&self.fs, &stat);
        }
        Ok(is_still)
    }

    /// Opens this file again for a guest to keep. `ENFILE`: there are no more descriptors for guests.
    fn open_for_guest(&self, this: &Arc<Inode>, handle: &Handle, flags: OFlags) -> SysResult<OwnedFd> {
        if let Ok(file) = host::descriptors::for_guest(self.reopen(this, handle, flags)?) {
            return Ok(file);
        }
        self.fs.shrink_descriptors();
        let file = self.reopen(this, handle, flags)?;
        host::descriptors::for_guest(file).map_err(|_| Errno::ENFILE.into())
    }

    fn open_regular(&self, this: &Arc<Inode>, flags: OpenFlags) -> SysResult<Box<dyn FileOps>> {
        if flags.is_writable() && !self.fs.options.writable {
            return Err(Errno::EROFS.into());
        }
        let handle = self.handle_to_open(this)?;
        let passed = flags.bits() & HOST_OPEN_FLAGS;
        let file = match self.open_for_guest(this, &handle, OFlags::from_bits_retain(passed)) {
            // O_NOATIME is the owner's; the guest's idea of the owner is not the host's.
            Err(error) if flags.contains(OpenFlags::NOATIME) && error.errno() == Some(Errno::EPERM) => {
                self.open_for_guest(this, &handle, OFlags::from_bits_retain(passed) - OFlags::NOATIME)
            }
            other => other,
        };
        let file = Arc::new(file?);
        self.note_open(&file);
        Ok(Box::new(HostFile::new(file, this.clone())))
    }

    fn open_dir(&self, this: &Arc<Inode>) -> SysResult<Box<dyn FileOps>> {
        let dir = self.dir_fd(this)?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        let file = self.open_for_guest(this, &Handle::Dir(dir), flags)?;
        if self.fs.options.world_readable_only {
            // Being for all, for a directory, was: everybody may pass through it.
            let mode = HostStat::of(&file).map_err(errno)?.mode();
            if !mode.contains(FileMode::ROTH) {
                return Err(Errno::EACCES.into());
            }
        }
        let has_special = self.may_have_special(this, &file)?;
        let file = Arc::new(file);
        self.note_open(&file);
        Ok(Box::new(HostDir::new(file, this.clone(), has_special)))
    }
}

/// The flags of `open` that the host's description takes over.
const HOST_OPEN_FLAGS: u32 = OpenFlags::ACCESS_MASK
    | OpenFlags::APPEND.bits()
    | OpenFlags::DIRECT.bits()
    | OpenFlags::SYNC.bits()
    | OpenFlags::DSYNC.bits()
    | OpenFlags::NOATIME.bits();

impl InodeOps for HostNode {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn attributes(&self, this: &Arc<Inode>) -> SysResult<Attributes> {
        match seen::once(&self.fs, self.id, |stat| self.shown_if_known(stat)) {
            Some(shown) => Ok(shown),
            None => self.shown(this, &self.stat()?),
        }
    }

    fn open(&self, this: &Arc<Inode>, how: OpenHow, _caller: &dyn Caller) -> SysResult<Box<dyn FileOps>> {
        match this.file_type {
            FileType::REG => self.open_regular(this, how.flags),
            FileType::DIR => self.open_dir(this),
            // FIFOs, sockets and devices are the kernel's to open, and links are followed before.
            _ => Err(Errno::ENXIO.into()),
        }
    }

    fn lookup(&self, this: &Arc<Inode>, name: &[u8]) -> SysResult<Arc<Inode>> {
        let name = component(name)?;
        if self.hides(name) {
            return Err(Errno::ENOENT.into());
        }
        let dir = self.dir_fd(this)?;
        loop {
            let moment = self.fs.moves.now();
            let stat = HostStat::at(&dir.fd, name).map_err(errno)?;
            let inode = self.child(this, &dir, name, &stat)?;
            let noted = match inode.downcast::<HostNode>() {
                Some(node) => node.note_found((this, &dir), name, inode.is_dir(), moment)?,
                None => true,
            };
            // Else the name was given to another file meanwhile, or to none.
            if noted {
                seen::note(&self.fs, &stat);
                return Ok(inode);
            }
        }
    }

    fn revalidate(&self, this: &Arc<Inode>, name: &[u8], child: &Arc<Inode>) -> bool {
        self.is_still(this, name, child).unwrap_or(false)
    }

    fn set_attributes(&self, this: &Arc<Inode>, change: &AttributeChange) -> SysResult<()> {
        seen::forget();
        self.change(this, change)
    }

    fn create(&self, this: &Arc<Inode>, name: &[u8], node: &NewNode<'_>) -> SysResult<Arc<Inode>> {
        seen::forget();
        self.make(this, name, node)
    }

    fn create_unnamed(&self, this: &Arc<Inode>, node: &NewNode<'_>) -> SysResult<Arc<Inode>> {
        seen::forget();
        self.make_unnamed(this, node)
    }

    fn link(&self, this: &Arc<Inode>, name: &[u8], target: &Arc<Inode>) -> SysResult<()> {
        seen::forget();
        self.add_link(this, name, target)
    }

    fn unlink(&self, this: &Arc<Inode>, name: &[u8], child: &Arc<Inode>) -> SysResult<()> {
        seen::forget();
        self.remove(this, name, child)
    }

    fn rmdir(&self, this: &Arc<Inode>, name: &[u8], child: &Arc<Inode>) -> SysResult<()> {
        seen::forget();
        self.remove(this, name, child)
    }

    fn rename(
        &self,
        this: &Arc<Inode>,
        name: &[u8],
        to_dir: &Arc<Inode>,
        to_name: &[u8],
        mode: RenameMode,
    ) -> SysResult<()> {
        seen::forget();
        self.move_name(this, name, to_dir, to_name, mode)
    }

    fn outside_locks(&self, this: &Arc<Inode>) -> Option<Arc<dyn OutsideLocks>> {
        self.host_locks(this)
    }

    fn get_xattr(&self, this: &Arc<Inode>, name: &[u8]) -> SysResult<Vec<u8>> {
        self.xattr(this, name)
    }

    fn set_xattr(&self, this: &Arc<Inode>, name: &[u8], value: &[u8], mode: XattrMode) -> SysResult<()> {
        seen::forget();
        self.put_xattr(this, name, value, mode)
    }

    fn remove_xattr(&self, this: &Arc<Inode>, name: &[u8]) -> SysResult<()> {
        seen::forget();
        self.drop_xattr(this, name)
    }

    fn list_xattrs(&self, this: &Arc<Inode>) -> SysResult<Vec<Vec<u8>>> {
        self.xattrs(this)
    }

    fn read_link(&self, this: &Arc<Inode>) -> SysResult<Vec<u8>> {
        let link = self.handle(this)?;
        let target = rustix::fs::readlinkat(&link, "", Vec::new()).map_err(|error| match error {
            // An empty name on something else than a link.
            rustix::io::Errno::NOENT => Errno::EINVAL.into(),
            other => errno(other),
        })?;
        Ok(target.into_bytes())
    }
}
