//! Reading and writing a node's bytes, wherever they lie.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use abi::{Errno, FallocFlags};
use host::lent::Lent;
use rustix::fs::SealFlags;
use sync::SysResult;

use crate::data::Data;
use crate::host_data::errno;
use crate::node::TmpNode;
use crate::usage::PAGE;

impl TmpNode {
    /// The memfd that the bytes lie in, if they do.
    pub(crate) fn memfd(&self) -> SysResult<Option<Arc<Lent>>> {
        Ok(self.lock().data()?.memfd().cloned())
    }

    /// Moves the bytes into a memfd for good.
    pub(crate) fn make_host(&self) -> SysResult<()> {
        let mut state = self.lock();
        let mtime = state.mtime;
        state.data()?.make_host(mtime, &self.fs.space)
    }

    /// Counts again what its memfd holds.
    pub(crate) fn recount(&self) {
        if let Ok(Data::Host(host)) = self.lock().data() {
            host.recount(0, &self.fs.space);
        }
    }

    /// Guest processes may hold its memfd from now on.
    pub(crate) fn lend(&self) {
        if let Ok(Data::Host(host)) = self.lock().data() {
            host.lend(&self.fs.space);
        }
    }

    pub(crate) fn seals(&self) -> SysResult<SealFlags> {
        match self.lock().data()? {
            Data::Host(host) => host.seals(),
            Data::Memory(_) => Ok(SealFlags::SEAL),
        }
    }

    pub(crate) fn add_seals(&self, wanted: SealFlags, by: &OwnedFd) -> SysResult<()> {
        match self.lock().data()? {
            Data::Host(host) => host.add_seals(wanted, by),
            Data::Memory(_) => Err(Errno::EPERM.into()),
        }
    }

    /// From now on the memfd's access time counts too.
    pub(crate) fn keep_host_atime(&self) -> SysResult<()> {
        match self.lock().data()? {
            Data::Host(host) => host.keep_atime(),
            Data::Memory(_) => Ok(()),
        }
    }

    pub(crate) fn size(&self) -> SysResult<u64> {
        self.lock().data()?.size()
    }

    pub(crate) fn read_at(&self, offset: u64, into: &mut [u8]) -> SysResult<usize> {
        let memfd = {
            let mut state = self.lock();
            match state.data()? {
                Data::Memory(pages) => return Ok(pages.read(offset, into)),
                Data::Host(host) => host.memfd.clone(),
            }
        };
        rustix::io::pread(&*memfd, into, offset).map_err(errno)
    }

    /// Writes at `offset`, as far as there is space. The caller holds `writing`.
    pub(crate) fn write_at(&self, offset: u64, bytes: &[u8]) -> SysResult<usize> {
        let memfd = {
            let mut state = self.lock();
            match state.data()? {
                Data::Host(host) => host.memfd.clone(),
                Data::Memory(pages) => {
                    let done = pages.write(offset, bytes, &self.fs.space)?;
                    state.modified();
                    let mtime = state.mtime;
                    state.data()?.grow(mtime, &self.fs.space);
                    return Ok(done);
                }
            }
        };
        self.host_write(&*memfd, Some(offset), offset, bytes)
    }

    /// Writes through a host description, at `at` or at its offset, which is `start`. The caller holds `writing`.
    pub(crate) fn host_write(
        &self,
        host: impl AsFd,
        at: Option<u64>,
        start: u64,
        bytes: &[u8],
    ) -> SysResult<usize> {
        let (extra, bytes) = self.charge(start, bytes)?;
        let wrote = match at {
            Some(at) => rustix::io::pwrite(host, bytes, at),
            None => rustix::io::write(host, bytes),
        };
        if let Data::Host(data) = self.lock().data()? {
            data.recount(extra, &self.fs.space);
        }
        wrote.map_err(errno)
    }

    /// Takes the space that writing `bytes` at `start` needs: the pages charged, and as many of the bytes as they
    /// are enough for. `ENOSPC` for none.
    fn charge<'a>(&self, start: u64, bytes: &'a [u8]) -> SysResult<(u64, &'a [u8])> {
        let space = &self.fs.space;
        if space.limit() == 0 {
            return Ok((0, bytes));
        }
        let mut state = self.lock();
        let Data::Host(host) = state.data()? else { return Ok((0, bytes)) };
        let missing = host.missing(start, bytes.len() as u64)?;
        if space.charge(missing).is_ok() {
            return Ok((missing, bytes));
        }
        // It may be allocated already. If not all of it is, the count is put right behind the write.
        if missing <= host.unwritten()? {
            return Ok((0, bytes));
        }
        // Page by page, up to the one for which there is no space.
        let mut charged = 0_u64;
        let mut len = 0_usize;
        while len < bytes.len() {
            let at = start.saturating_add(len as u64);
            let to_page_end = usize::try_from(PAGE.saturating_sub(at % PAGE)).unwrap_or(1);
            let part = to_page_end.min(bytes.len().saturating_sub(len));
            let extra = host.missing(at, part as u64)?;
            if space.charge(extra).is_err() {
                break;
            }
            charged = charged.saturating_add(extra);
            len = len.saturating_add(part);
        }
        match bytes.get(..len) {
            Some(part) if len > 0 => Ok((charged, part)),
            _ => Err(Errno::ENOSPC.into()),
        }
    }

    pub(crate) fn truncate(&self, size: u64) -> SysResult<()> {
        let mut state = self.lock();
        state.data()?.truncate(size, &self.fs.space)?;
        state.modified();
        Ok(())
    }

    pub(crate) fn allocate(&self, mode: FallocFlags, offset: u64, len: u64) -> SysResult<()> {
        let mut state = self.lock();
        let mtime = state.mtime;
        state.data()?.allocate(mode, offset, len, mtime, &self.fs.space)?;
        state.modified();
        Ok(())
    }

    /// Where data (or a hole) begins. `ENXIO` if nowhere before the end.
    pub(crate) fn seek_data(&self, offset: u64, hole: bool) -> SysResult<u64> {
        self.lock().data()?.seek(offset, hole)?.ok_or(Errno::ENXIO.into())
    }
}
