//! A file's bytes in a host memfd.

use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;

use abi::{Errno, OpenFlags, Timespec};
use host::lent::Lent;
use rustix::fs::{FallocateFlags, MemfdFlags, Mode, OFlags, SealFlags, SeekFrom, Stat, Timestamps};
use rustix::io::Errno as HostErrno;
use sync::{SysError, SysResult};

use crate::pages::Pages;
use crate::usage::{Counter, PAGE};

/// The guest's errno for a failed host call. Running out of descriptors is our shortage, not the guest's: `ENFILE`.
pub(crate) fn errno(error: HostErrno) -> SysError {
    match error {
        HostErrno::MFILE => Errno::ENFILE.into(),
        other => Errno::from_raw(other.raw_os_error()).into(),
    }
}

/// The kernel process's own `/proc/self/fd`, through which a host descriptor is opened once more.
#[derive(Clone)]
pub struct SelfFds(Arc<OwnedFd>);

impl SelfFds {
    /// Opens it. Of the calling process, so not to be carried over a fork.
    ///
    /// # Errors
    /// If /proc is not to be had.
    pub fn open() -> std::io::Result<SelfFds> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(SelfFds(Arc::new(rustix::fs::open("/proc/self/fd", flags, Mode::empty())?)))
    }

    /// Another host description of the same memfd, with the access mode and O_APPEND of `flags`.
    pub(crate) fn reopen(&self, file: &Lent, flags: OpenFlags) -> SysResult<OwnedFd> {
        let access = match flags.bits() & OpenFlags::ACCESS_MASK {
            0 => OFlags::RDONLY,
            1 => OFlags::WRONLY,
            _ => OFlags::RDWR,
        };
        let mut flags_there = access | OFlags::CLOEXEC | OFlags::NOATIME;
        flags_there.set(OFlags::APPEND, flags.contains(OpenFlags::APPEND));
        let number = file.as_raw_fd().to_string();
        let file = rustix::fs::openat(&*self.0, number, flags_there, Mode::empty()).map_err(errno)?;
        host::descriptors::for_guest(file).map_err(|_| Errno::ENFILE.into())
    }
}

/// `MFD_ALLOW_SEALING` and `MFD_NOEXEC_SEAL`: with one of them a memfd may be sealed.
const SEALABLE: MemfdFlags = MemfdFlags::ALLOW_SEALING.union(MemfdFlags::NOEXEC_SEAL);
/// The bits of a mode that allow execution.
const EXECUTION: u32 = 0o111;

/// A memfd, and what of the file system's space it is counted as.
pub(crate) struct HostData {
    pub(crate) memfd: Arc<Lent>,
    charged: u64,
    /// It is a guest's memfd.
    is_guests: bool,
    /// The seals that the host does not know of: those that would keep the kernel from emptying it in the end.
    seals: SealFlags,
    /// Some read it without the kernel: the host's access time counts where it is later than this.
    atime_since: Option<Timespec>,
    /// The host's change time after what is no change to guests (moving a file here); another one counts.
    own_ctime: Option<Timespec>,
}

/// Makes a memfd in which programs may be executed, where the host lets one choose.
fn new_memfd(name: &[u8], flags: MemfdFlags) -> rustix::io::Result<OwnedFd> {
    const EXEC: u32 = 0x10;
    const NOEXEC_SEAL: u32 = 0x8;
    let flags = flags | MemfdFlags::CLOEXEC;
    let chosen = flags.bits() & (EXEC | NOEXEC_SEAL) != 0;
    let with = |extra: u32| rustix::fs::memfd_create(name, flags | MemfdFlags::from_bits_retain(extra));
    if chosen {
        return with(0);
    }
    match with(EXEC) {
        // An old host does not know the flag; one with vm.memfd_noexec=2 refuses it.
        Err(HostErrno::INVAL) => with(0),
        Err(HostErrno::ACCESS) => with(NOEXEC_SEAL),
        result => result,
    }
}

impl HostData {
    /// An empty memfd with the guest's flags of `memfd_create`.
    pub(crate) fn new(name: &[u8], flags: u32) -> SysResult<HostData> {
        let flags = MemfdFlags::from_bits_retain(flags);
        let memfd = new_memfd(name, flags | MemfdFlags::ALLOW_SEALING).map_err(errno)?;
        let memfd = host::descriptors::for_guest(memfd).map_err(|_| Errno::ENFILE)?;
        Ok(HostData {
            memfd: Arc::new(Lent::later(memfd)),
            charged: 0,
            is_guests: true,
            seals: if flags.intersects(SEALABLE) { SealFlags::empty() } else { SealFlags::SEAL },
            atime_since: None,
            own_ctime: None,
        })
    }

    /// Takes over what the new mode of a guest's memfd says of execution. `EPERM`: that is sealed (`F_SEAL_EXEC`).
    pub(crate) fn set_mode(&self, permissions: u32) -> SysResult<()> {
        if !self.is_guests {
            return Ok(());
        }
        let mode = self.stat()?.st_mode;
        if self.seals.contains(SealFlags::EXEC) && (mode ^ permissions) & EXECUTION != 0 {
            return Err(Errno::EPERM.into());
        }
        // What else the mode says is not for the host: it is our file there.
        let mode = Mode::from_bits_truncate(permissions & EXECUTION) | Mode::RUSR | Mode::WUSR;
        rustix::fs::fchmod(&*self.memfd, mode).map_err(errno)
    }

    /// What `pages` hold, with modification time `mtime`. The charge for the pages goes over to it.
    pub(crate) fn from_pages(pages: &Pages, mtime: Timespec, space: &Counter) -> SysResult<HostData> {
        let mut data = HostData::new(b"umlaut-tmpfs", 0)?;
        data.is_guests = false;
        rustix::fs::ftruncate(&data.memfd, pages.size()).map_err(errno)?;
        for (offset, page) in pages.iter() {
            let allocate =
                || rustix::fs::fallocate(&data.memfd, FallocateFlags::KEEP_SIZE, offset, PAGE).map_err(errno);
            let Some(page) = page else {
                allocate()?;
                continue;
            };
            // Written up to the end of the file only, or the file would grow.
            let left = usize::try_from(pages.size().saturating_sub(offset)).unwrap_or(usize::MAX);
            let mut page = page.get(..left).unwrap_or(page);
            if page.is_empty() {
                // Behind the end: allocating it twice makes it data.
                allocate()?;
                allocate()?;
            }
            let mut at = offset;
            while !page.is_empty() {
                let count = rustix::io::pwrite(&data.memfd, page, at).map_err(errno)?;
                page = page.get(count..).unwrap_or(&[]);
                at = at.saturating_add(count as u64);
            }
        }
        data.set_mtime(mtime)?;
        data.own_ctime = Some(ctime_of(&data.stat()?));
        data.charged = pages.count();
        space.note_host(0, data.charged);
        Ok(data)
    }

    pub(crate) fn stat(&self) -> SysResult<Stat> {
        rustix::fs::fstat(&self.memfd).map_err(errno)
    }

    /// From now on reads that only the host sees count as accesses.
    pub(crate) fn keep_atime(&mut self) -> SysResult<()> {
        if self.atime_since.is_none() {
            self.atime_since = Some(atime_of(&self.stat()?));
        }
        Ok(())
    }

    /// The access time was set: earlier reads no longer count.
    pub(crate) fn atime_was_set(&mut self) -> SysResult<()> {
        if self.atime_since.is_some() {
            self.atime_since = Some(atime_of(&self.stat()?));
        }
        Ok(())
    }

    /// When it was last read, if only the host may know.
    pub(crate) fn atime(&self, stat: &Stat) -> Option<Timespec> {
        let since = self.atime_since?;
        Some(atime_of(stat)).filter(|atime| *atime > since)
    }

    /// When the host last saw it changed, unless it was by us and without the guests' knowing.
    pub(crate) fn ctime(&self, stat: &Stat) -> Option<Timespec> {
        Some(ctime_of(stat)).filter(|ctime| Some(*ctime) != self.own_ctime)
    }

    pub(crate) fn size(&self) -> SysResult<u64> {
        Ok(u64::try_from(self.stat()?.st_size).unwrap_or(0))
    }

    pub(crate) fn set_mtime(&mut self, mtime: Timespec) -> SysResult<()> {
        let omit = rustix::fs::Timespec { tv_sec: 0, tv_nsec: rustix::fs::UTIME_OMIT };
        let mtime = rustix::fs::Timespec { tv_sec: mtime.sec, tv_nsec: mtime.nsec };
        let times = Timestamps { last_access: omit, last_modification: mtime };
        let is_unseen = self.ctime(&self.stat()?).is_none();
        rustix::fs::futimens(&self.memfd, &times).map_err(errno)?;
        if is_unseen {
            self.own_ctime = Some(ctime_of(&self.stat()?));
        }
        Ok(())
    }

    /// Counts again what it holds: writes and mappings have allocated pages. `extra` was charged beforehand.
    pub(crate) fn recount(&mut self, extra: u64, space: &Counter) {
        let blocks = self.stat().map_or(0, |stat| u64::try_from(stat.st_blocks).unwrap_or(0));
        let now = blocks.div_ceil(PAGE / 512);
        space.correct(self.charged.saturating_add(extra), now);
        if !self.memfd.is_lent() {
            space.note_host(self.charged, now);
        }
        self.charged = now;
    }

    /// From now on guest processes may hold it: it is in the register of such files, and no longer in the file system's
    /// account of what lies on the host.
    pub(crate) fn lend(&self, space: &Counter) {
        if self.memfd.lend() {
            space.note_host(self.charged, 0);
        }
    }

    /// All seals, as guests see them.
    pub(crate) fn seals(&self) -> SysResult<SealFlags> {
        Ok(self.seals | rustix::fs::fcntl_get_seals(&*self.memfd).map_err(errno)?)
    }

    /// `F_ADD_SEALS` by an open description of it, which must be writable. Linux: `memfd_add_seals`.
    pub(crate) fn add_seals(&mut self, wanted: SealFlags, by: &OwnedFd) -> SysResult<()> {
        /// Those that are kept here.
        const KEPT: SealFlags = SealFlags::SEAL.union(SealFlags::SHRINK).union(SealFlags::EXEC);
        const KNOWN: SealFlags =
            KEPT.union(SealFlags::GROW).union(SealFlags::WRITE).union(SealFlags::FUTURE_WRITE);
        if self.seals.contains(SealFlags::SEAL) {
            // What is wrong with the description or the seals comes first.
            rustix::fs::fcntl_add_seals(by, wanted.difference(KNOWN)).map_err(errno)?;
            return Err(Errno::EPERM.into());
        }
        rustix::fs::fcntl_add_seals(by, wanted.difference(KEPT)).map_err(errno)?;
        self.seals |= wanted & KEPT;
        if wanted.contains(SealFlags::EXEC) && self.stat()?.st_mode & EXECUTION != 0 {
            // Nor is what may be executed written to. Who has it mapped for writing may go on.
            let unwritten = SealFlags::GROW | SealFlags::FUTURE_WRITE;
            rustix::fs::fcntl_add_seals(by, unwritten).map_err(errno)?;
            self.seals |= SealFlags::SHRINK | SealFlags::WRITE;
        }
        Ok(())
    }

    pub(crate) fn truncate(&mut self, size: u64, space: &Counter) -> SysResult<()> {
        if self.seals.contains(SealFlags::SHRINK) && size < self.size()? {
            return Err(Errno::EPERM.into());
        }
        rustix::fs::ftruncate(&self.memfd, size).map_err(errno)?;
        self.recount(0, space);
        Ok(())
    }

    /// Allocates, or with PUNCH_HOLE gives back, a range.
    pub(crate) fn allocate(
        &mut self,
        flags: FallocateFlags,
        offset: u64,
        len: u64,
        space: &Counter,
    ) -> SysResult<()> {
        let extra = match flags.contains(FallocateFlags::PUNCH_HOLE) {
            true => 0,
            false => self.missing(offset, len)?,
        };
        space.charge(extra)?;
        let done = rustix::fs::fallocate(&self.memfd, flags, offset, len).map_err(errno);
        self.recount(extra, space);
        done
    }

    /// Pages that are allocated but were never written to: [`HostData::missing`] takes them for missing.
    pub(crate) fn unwritten(&self) -> SysResult<u64> {
        let stat = self.stat()?;
        let size = u64::try_from(stat.st_size).unwrap_or(0);
        let written = size.div_ceil(PAGE).saturating_sub(self.missing(0, size)?);
        Ok((u64::try_from(stat.st_blocks).unwrap_or(0) / (PAGE / 512)).saturating_sub(written))
    }

    /// Pages of the range that hold no data yet.
    pub(crate) fn missing(&self, offset: u64, len: u64) -> SysResult<u64> {
        let end = offset.saturating_add(len).div_ceil(PAGE);
        let mut at = offset / PAGE;
        let mut missing = 0_u64;
        while at < end {
            let data = self.seek(at.saturating_mul(PAGE), false)?.map_or(end, |data| data / PAGE).min(end);
            missing = missing.saturating_add(data.saturating_sub(at));
            if data >= end {
                break;
            }
            at = self.seek(data.saturating_mul(PAGE), true)?.map_or(end, |hole| hole.div_ceil(PAGE));
        }
        Ok(missing)
    }

    /// Where data (or a hole) begins, from `offset` on. The memfd's own offset is used for nothing else.
    pub(crate) fn seek(&self, offset: u64, hole: bool) -> SysResult<Option<u64>> {
        let to = if hole { SeekFrom::Hole(offset) } else { SeekFrom::Data(offset) };
        match rustix::fs::seek(&self.memfd, to) {
            Ok(at) => Ok(Some(at)),
            Err(HostErrno::NXIO) => Ok(None),
            Err(error) => Err(errno(error)),
        }
    }

    /// Gives its space back.
    pub(crate) fn release(&mut self, space: &Counter) {
        space.give_back(self.charged);
        if !self.memfd.is_lent() {
            space.note_host(self.charged, 0);
        }
        self.charged = 0;
    }
}

fn ctime_of(stat: &Stat) -> Timespec {
    Timespec { sec: stat.st_ctime, nsec: i64::try_from(stat.st_ctime_nsec).unwrap_or(0) }
}

fn atime_of(stat: &Stat) -> Timespec {
    Timespec { sec: stat.st_atime, nsec: i64::try_from(stat.st_atime_nsec).unwrap_or(0) }
}
