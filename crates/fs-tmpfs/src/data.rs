//! A file's bytes: pages in the kernel while they are few, then a host memfd.

use std::sync::Arc;

use abi::{Errno, FallocFlags, Timespec};
use host::lent::Lent;
use rustix::fs::FallocateFlags;
use sync::SysResult;

use crate::host_data::HostData;
use crate::pages::Pages;
use crate::usage::Counter;

/// Most pages of a file that is kept in the kernel: 64 KiB.
const MEMORY_PAGES: u64 = 16;

/// The bytes of a regular file.
pub(crate) enum Data {
    Memory(Pages),
    Host(HostData),
}

impl Default for Data {
    fn default() -> Data {
        Data::Memory(Pages::default())
    }
}

impl Data {
    /// The memfd, if there is one.
    pub(crate) fn memfd(&self) -> Option<&Arc<Lent>> {
        match self {
            Data::Memory(_) => None,
            Data::Host(host) => Some(&host.memfd),
        }
    }

    pub(crate) fn size(&self) -> SysResult<u64> {
        match self {
            Data::Memory(pages) => Ok(pages.size()),
            Data::Host(host) => host.size(),
        }
    }

    /// Moves the bytes into a memfd; they stay where they are if the host has no descriptor left (`ENFILE`).
    pub(crate) fn make_host(&mut self, mtime: Timespec, space: &Counter) -> SysResult<()> {
        if let Data::Memory(pages) = self {
            *self = Data::Host(HostData::from_pages(pages, mtime, space)?);
        }
        Ok(())
    }

    /// Moves a file that has become large into a memfd, if one is to be had.
    pub(crate) fn grow(&mut self, mtime: Timespec, space: &Counter) {
        if matches!(self, Data::Memory(pages) if pages.count() > MEMORY_PAGES) {
            // Without a memfd the pages do as well; only a mapping needs one.
            let _ = self.make_host(mtime, space);
        }
    }

    pub(crate) fn truncate(&mut self, size: u64, space: &Counter) -> SysResult<()> {
        match self {
            Data::Memory(pages) => {
                pages.truncate(size, space);
                Ok(())
            }
            Data::Host(host) => host.truncate(size, space),
        }
    }

    /// Gives back what was allocated behind the end; no time changes.
    pub(crate) fn trim(&mut self, space: &Counter) -> SysResult<()> {
        let size = self.size()?;
        match self {
            Data::Memory(pages) => pages.truncate(size, space),
            Data::Host(host) => {
                let stat = host.stat()?;
                host.truncate(size, space)?;
                let nsec = i64::try_from(stat.st_mtime_nsec).unwrap_or(0);
                host.set_mtime(Timespec { sec: stat.st_mtime, nsec })?;
            }
        }
        Ok(())
    }

    /// `fallocate`. `EOPNOTSUPP` for what tmpfs has not.
    pub(crate) fn allocate(
        &mut self,
        mode: FallocFlags,
        offset: u64,
        len: u64,
        mtime: Timespec,
        space: &Counter,
    ) -> SysResult<()> {
        if !(mode & !(FallocFlags::KEEP_SIZE | FallocFlags::PUNCH_HOLE)).is_empty() {
            return Err(Errno::EOPNOTSUPP.into());
        }
        let punches = mode.contains(FallocFlags::PUNCH_HOLE);
        if let Data::Memory(pages) = self
            && !punches
            && pages.count().saturating_add(pages.missing(offset, len)) > MEMORY_PAGES
        {
            self.make_host(mtime, space)?;
        }
        match self {
            Data::Memory(pages) if punches => pages.punch(offset, len, space),
            Data::Memory(pages) => {
                pages.allocate(offset, len, space)?;
                let end = offset.saturating_add(len);
                if end > pages.size() && !mode.contains(FallocFlags::KEEP_SIZE) {
                    pages.truncate(end, space);
                }
            }
            Data::Host(host) => {
                let mut flags = FallocateFlags::empty();
                flags.set(FallocateFlags::KEEP_SIZE, mode.contains(FallocFlags::KEEP_SIZE));
                flags.set(FallocateFlags::PUNCH_HOLE, punches);
                host.allocate(flags, offset, len, space)?;
            }
        }
        Ok(())
    }

    /// Where data (or a hole) begins; `None`: nowhere before the end.
    pub(crate) fn seek(&self, offset: u64, hole: bool) -> SysResult<Option<u64>> {
        match self {
            Data::Memory(pages) => Ok(pages.seek(offset, hole)),
            Data::Host(host) => host.seek(offset, hole),
        }
    }

    /// Gives its space back.
    pub(crate) fn release(&mut self, space: &Counter) {
        match self {
            Data::Memory(pages) => pages.release(space),
            Data::Host(host) => host.release(space),
        }
    }
}
