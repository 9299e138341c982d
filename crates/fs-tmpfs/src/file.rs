//! Open regular files.
//!
//! While the file's bytes are pages in the kernel, the description's offset is here. Once they lie in a memfd it
//! lies in a host description of this description's own, opened with its access mode and O_APPEND: what is
//! mapped and delegated.

use std::any::Any;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use abi::{Errno, FallocFlags, FcntlCmd, MAX_RW_COUNT, OpenFlags};
use rustix::fs::{OFlags, SealFlags, SeekFrom};
use sync::order::File as FileLevel;
use sync::{Mutex, SleepLock, SysResult};
use vfs::{
    Caller, FileDescription, FileOps, HandOut, Inode, Mapping, MountFlags, Seek, UserRead, UserWrite, rw,
};

use crate::host_data::errno;
use crate::node::TmpNode;
use crate::node_ops::needs_atime;
use crate::time::now;
use crate::transfer::{read_out, write_in};
use crate::usage::PAGE;

/// An open regular file of a tmpfs.
pub struct TmpFile {
    inode: Arc<Inode>,
    flags: AtomicU32,
    position: Mutex<FileLevel, Position>,
    /// Held over a read or write at the offset (Linux: `f_pos_lock`).
    order: SleepLock,
    /// The host description keeps the access time, for those who read it without the kernel.
    host_keeps_atime: AtomicBool,
    /// It was handed to those who write without the kernel: their pages are counted when they close it.
    handed_for_writing: AtomicBool,
}

/// Bytes that a thread writes by itself before its pages are counted, at most; and the part of the free space.
const MOST_UNCOUNTED: u64 = 16 << 20;
const LEAST_UNCOUNTED: u64 = 1 << 20;
const UNCOUNTED_PART: u64 = 16;

struct Position {
    /// The truth while `host` is `None`.
    offset: u64,
    host: Option<Arc<OwnedFd>>,
}

/// Updates the access time after a read, as the description's flags and its mount's say.
pub(crate) fn touch_atime(node: &TmpNode, file: &FileDescription) {
    if file.flags().contains(OpenFlags::NOATIME) {
        return;
    }
    let mount = file.path.as_ref().map_or(MountFlags::empty(), |path| path.mount.flags());
    let mut state = node.lock();
    let off = mount.intersects(MountFlags::NOATIME | MountFlags::RDONLY)
        || (state.mode.is_dir() && mount.contains(MountFlags::NODIRATIME));
    let (atime, mtime, ctime) = (state.atime, state.mtime, state.ctime);
    if !off && (!mount.contains(MountFlags::RELATIME) || needs_atime(atime, mtime, ctime)) {
        state.atime = now();
    }
}

/// `EINVAL` if a transfer could end beyond the largest offset (Linux: `rw_verify_area`).
fn check_end(start: u64, count: usize) -> SysResult<()> {
    let end = start.checked_add(count.min(MAX_RW_COUNT) as u64);
    if end.is_some_and(|end| i64::try_from(end).is_ok()) { Ok(()) } else { Err(Errno::EINVAL.into()) }
}

impl TmpFile {
    pub(crate) fn new(inode: Arc<Inode>, flags: OpenFlags) -> TmpFile {
        TmpFile {
            inode,
            flags: AtomicU32::new(flags.bits()),
            position: Mutex::new(Position { offset: 0, host: None }),
            order: SleepLock::new(),
            host_keeps_atime: AtomicBool::new(false),
            handed_for_writing: AtomicBool::new(false),
        }
    }

    fn node(&self) -> SysResult<&TmpNode> {
        self.inode.downcast().ok_or(Errno::EIO.into())
    }

    /// This description's host description, if the file lies in a memfd; opened when first needed.
    fn host(&self) -> SysResult<Option<Arc<OwnedFd>>> {
        let node = self.node()?;
        let Some(memfd) = node.memfd()? else { return Ok(None) };
        let mut position = self.position.lock();
        if let Some(host) = &position.host {
            return Ok(Some(host.clone()));
        }
        let flags = OpenFlags::from_bits_retain(self.flags.load(Ordering::Relaxed));
        let host = Arc::new(node.fs.self_fds.reopen(&memfd, flags)?);
        rustix::fs::seek(&host, SeekFrom::Start(position.offset)).map_err(errno)?;
        position.host = Some(host.clone());
        Ok(Some(host))
    }

    fn offset(&self) -> SysResult<u64> {
        let position = self.position.lock();
        match &position.host {
            Some(host) => rustix::fs::tell(host).map_err(errno),
            None => Ok(position.offset),
        }
    }

    fn set_offset(&self, to: u64) -> SysResult<()> {
        let mut position = self.position.lock();
        if let Some(host) = &position.host {
            rustix::fs::seek(host, SeekFrom::Start(to)).map_err(errno)?;
        }
        position.offset = to;
        Ok(())
    }

    /// Has the host keep the access time of reads by this description, if it would be kept as the mount says.
    fn let_host_keep_atime(&self, file: &FileDescription, host: &OwnedFd) -> Option<bool> {
        let mount = file.path.as_ref().map_or(MountFlags::empty(), |path| path.mount.flags());
        if mount.intersects(MountFlags::NOATIME | MountFlags::RDONLY)
            || file.flags().contains(OpenFlags::NOATIME)
            || self.host_keeps_atime.load(Ordering::Relaxed)
        {
            return Some(true);
        }
        if !mount.contains(MountFlags::RELATIME) {
            return Some(false);
        }
        self.host_keeps_atime.store(true, Ordering::Relaxed);
        self.set_host_flags(host, file.flags()).ok()?;
        self.node().ok()?.keep_host_atime().ok()?;
        Some(true)
    }

    fn set_host_flags(&self, host: &OwnedFd, flags: OpenFlags) -> rustix::io::Result<()> {
        let mut there = OFlags::empty();
        let keeps = self.host_keeps_atime.load(Ordering::Relaxed) && !flags.contains(OpenFlags::NOATIME);
        there.set(OFlags::NOATIME, !keeps);
        there.set(OFlags::APPEND, flags.contains(OpenFlags::APPEND));
        rustix::fs::fcntl_setfl(host, there)
    }

    /// Writes at `at` (or the offset, which moves); the caller holds the locks.
    fn write_to(
        &self,
        file: &FileDescription,
        caller: &dyn Caller,
        at: Option<u64>,
        from: &mut dyn UserRead,
    ) -> SysResult<usize> {
        let node = self.node()?;
        let total = from.left().min(MAX_RW_COUNT);
        if total == 0 {
            return Ok(0);
        }
        let offset = match at {
            Some(at) => at,
            None => self.offset()?,
        };
        check_end(offset, total)?;
        let append = file.flags().contains(OpenFlags::APPEND);
        let start = if append { node.size()? } else { offset };
        let total = rw::limit_write(caller, start, total)?;
        if let Some(host) = self.host()? {
            return write_in(from, total, |done, bytes| {
                let start = start.saturating_add(done);
                node.host_write(&host, at.map(|at| at.saturating_add(done)), start, bytes)
            });
        }
        let done = write_in(from, total, |done, bytes| node.write_at(start.saturating_add(done), bytes))?;
        if at.is_none() {
            self.set_offset(start.saturating_add(done as u64))?;
        }
        Ok(done)
    }
}

impl FileOps for TmpFile {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn read(&self, file: &FileDescription, caller: &dyn Caller, to: &mut dyn UserWrite) -> SysResult<usize> {
        let node = self.node()?;
        let _order = self.order.lock(caller.waiter())?;
        let done = if let Some(host) = self.host()? {
            let read = |_, into: &mut [u8]| rustix::io::read(&host, into).map_err(errno);
            read_out(to, read, |back| {
                // It was read from there, so it can be gone back to.
                let back = i64::try_from(back).unwrap_or(0);
                let _ = rustix::fs::seek(&host, SeekFrom::Current(back.saturating_neg()));
            })?
        } else {
            let start = self.offset()?;
            check_end(start, to.room())?;
            let done = read_out(to, |done, into| node.read_at(start.saturating_add(done), into), |_| {})?;
            // A seek meanwhile wins.
            if self.offset()? == start {
                self.set_offset(start.saturating_add(done as u64))?;
            }
            done
        };
        touch_atime(node, file);
        Ok(done)
    }

    fn write(
        &self,
        file: &FileDescription,
        caller: &dyn Caller,
        from: &mut dyn UserRead,
    ) -> SysResult<usize> {
        let _order = self.order.lock(caller.waiter())?;
        let _writing = self.node()?.writing.lock(caller.waiter())?;
        self.write_to(file, caller, None, from)
    }

    fn read_at(
        &self,
        file: &FileDescription,
        _: &dyn Caller,
        offset: u64,
        to: &mut dyn UserWrite,
    ) -> SysResult<usize> {
        let node = self.node()?;
        let done = read_out(to, |done, into| node.read_at(offset.saturating_add(done), into), |_| {})?;
        touch_atime(node, file);
        Ok(done)
    }

    fn write_at(
        &self,
        file: &FileDescription,
        caller: &dyn Caller,
        offset: u64,
        from: &mut dyn UserRead,
    ) -> SysResult<usize> {
        let _writing = self.node()?.writing.lock(caller.waiter())?;
        self.write_to(file, caller, Some(offset), from)
    }

    fn seek(&self, _: &FileDescription, to: Seek) -> SysResult<u64> {
        let node = self.node()?;
        let from = |base: u64, by: i64| -> SysResult<u64> {
            let base = i64::try_from(base).map_err(|_| Errno::EINVAL)?;
            let to = base.checked_add(by).ok_or(Errno::EINVAL)?;
            Ok(u64::try_from(to).map_err(|_| Errno::EINVAL)?)
        };
        let data = |at: i64, hole| match u64::try_from(at) {
            Ok(at) => node.seek_data(at, hole),
            Err(_) => Err(Errno::ENXIO.into()),
        };
        let to = match to {
            Seek::Set(at) => u64::try_from(at).map_err(|_| Errno::EINVAL)?,
            Seek::Current(0) => return self.offset(),
            Seek::Current(by) => from(self.offset()?, by)?,
            Seek::End(by) => from(node.size()?, by)?,
            Seek::Data(at) => data(at, false)?,
            Seek::Hole(at) => data(at, true)?,
        };
        self.set_offset(to)?;
        Ok(to)
    }

    fn truncate(&self, _: &FileDescription, caller: &dyn Caller, size: u64) -> SysResult<()> {
        let _writing = self.node()?.writing.lock(caller.waiter())?;
        self.node()?.truncate(size)
    }

    fn allocate(
        &self,
        _: &FileDescription,
        caller: &dyn Caller,
        mode: u32,
        offset: u64,
        len: u64,
    ) -> SysResult<()> {
        let _writing = self.node()?.writing.lock(caller.waiter())?;
        self.node()?.allocate(FallocFlags::from_bits_retain(mode), offset, len)
    }

    fn sync(&self, _: bool) -> SysResult<()> {
        Ok(())
    }

    fn mapping(&self, _: &FileDescription, _writable_shared: bool) -> SysResult<Mapping> {
        let node = self.node()?;
        node.make_host()?;
        node.lend();
        self.host()?.map(Mapping::Host).ok_or(Errno::ENODEV.into())
    }

    fn flags_changed(&self, file: &FileDescription, changed: OpenFlags) -> SysResult<()> {
        let new = file.flags();
        self.flags.store(new.bits(), Ordering::Relaxed);
        let position = self.position.lock();
        let on_host = OpenFlags::APPEND | OpenFlags::NOATIME;
        if let Some(host) = position.host.as_ref().filter(|_| changed.intersects(on_host)) {
            self.set_host_flags(host, new).map_err(errno)?;
        }
        Ok(())
    }

    /// Bytes that lie in the kernel move into a memfd only for those who use them often.
    fn hand_out(&self, file: &FileDescription, often: bool) -> Option<HandOut> {
        let node = self.node().ok()?;
        if often {
            node.make_host().ok()?;
        }
        let host = self.host().ok()??;
        if file.is_readable() && !self.let_host_keep_atime(file, &host)? {
            return None;
        }
        let space = &node.fs.space;
        let limited = space.limit() != 0;
        let free = if limited { space.free().saturating_mul(PAGE) } else { u64::MAX };
        let budget = (free / UNCOUNTED_PART).min(MOST_UNCOUNTED);
        // A limit that somebody asked for is kept to the byte.
        let may_write = (!limited || node.fs.has_default_limits()) && budget >= LEAST_UNCOUNTED;
        if may_write && file.is_writable() {
            self.handed_for_writing.store(true, Ordering::Relaxed);
        }
        node.lend();
        Some(HandOut { file: host, may_write, budget: Some(budget) })
    }

    fn flush(&self, _: &FileDescription, _: &dyn Caller) -> SysResult<()> {
        if self.handed_for_writing.load(Ordering::Relaxed) {
            self.node()?.recount();
        }
        Ok(())
    }

    /// One that was not asked to allow them says so, as Linux's tmpfs does.
    fn fcntl(
        &self,
        _: &FileDescription,
        _: &dyn Caller,
        command: FcntlCmd,
        argument: u64,
    ) -> SysResult<usize> {
        if !matches!(command, FcntlCmd::ADD_SEALS | FcntlCmd::GET_SEALS) {
            return Err(Errno::EINVAL.into());
        }
        let node = self.node()?;
        node.make_host()?;
        let host = self.host()?.ok_or(Errno::EINVAL)?;
        if command == FcntlCmd::GET_SEALS {
            return Ok(node.seals()?.bits() as usize);
        }
        // An `unsigned int` on Linux.
        let seals = SealFlags::from_bits_retain(u32::try_from(argument & 0xffff_ffff).unwrap_or(0));
        node.add_seals(seals, &host)?;
        Ok(0)
    }
}
