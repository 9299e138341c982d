//! A process's table of descriptors.
//!
//! [`FdTable`] gives the lowest free number, as POSIX asks. Slots lie in chunks of 64, so that a table with one
//! very high number costs little, and a word of bits finds a free one. What leaves the table is handed to the
//! caller, who flushes and drops it without the table's lock.
//!
//! Neighbours: [`FileDescription`] is what a number leads to; the kernel shares tables between tasks (CLONE_FILES).

use std::sync::Arc;

use abi::Errno;
use sync::order::FdTable as FdTableLevel;
use sync::{Mutex, SysResult};

use crate::holders::Holders;
use crate::{FileDescription, Holder};

const CHUNK: u32 = 64;

/// The most that RLIMIT_NOFILE can be (Linux: `fs.nr_open`).
pub const NR_OPEN: u32 = 1024 * 1024;

/// The descriptors of one process.
#[derive(Default)]
pub struct FdTable {
    table: Mutex<FdTableLevel, Table>,
    /// Threads that use files by these numbers without the kernel.
    holders: Holders,
}

/// What a number leads to.
#[derive(Clone)]
pub struct FdEntry {
    pub fd: i32,
    pub file: Arc<FileDescription>,
    pub cloexec: bool,
}

/// A number that is taken but leads nowhere yet; given back when dropped.
pub struct Reserved<'a> {
    table: &'a FdTable,
    number: u32,
    cloexec: bool,
    installed: bool,
}

impl Reserved<'_> {
    /// The number.
    pub fn fd(&self) -> i32 {
        self.number.cast_signed()
    }

    /// Makes it lead to `file`.
    pub fn install(mut self, file: Arc<FileDescription>) -> i32 {
        self.installed = true;
        self.table.table.lock().put(self.number, file, self.cloexec);
        self.fd()
    }
}

impl Drop for Reserved<'_> {
    fn drop(&mut self) {
        if !self.installed {
            self.table.table.lock().free(self.number);
        }
    }
}

impl FdTable {
    pub fn new() -> FdTable {
        FdTable::default()
    }

    /// The open file; `EBADF` for one that was opened with O_PATH too (Linux: `fdget`).
    pub fn get(&self, fd: i32) -> SysResult<Arc<FileDescription>> {
        self.get_any(fd).and_then(|file| match file.is_path_only() {
            true => Err(Errno::EBADF.into()),
            false => Ok(file),
        })
    }

    /// The open file, O_PATH or not (Linux: `fdget_raw`).
    pub fn get_any(&self, fd: i32) -> SysResult<Arc<FileDescription>> {
        let number = u32::try_from(fd).map_err(|_| Errno::EBADF)?;
        let table = self.table.lock();
        Ok(table.slot(number).ok_or(Errno::EBADF)?.clone())
    }

    /// The entry of a number.
    pub fn entry(&self, fd: i32) -> SysResult<FdEntry> {
        let number = u32::try_from(fd).map_err(|_| Errno::EBADF)?;
        self.table.lock().entry(number).ok_or(Errno::EBADF.into())
    }

    /// Takes the lowest free number that is at least `from` and below `limit` (RLIMIT_NOFILE). `EMFILE`.
    pub fn reserve_from(&self, from: u32, limit: u64, cloexec: bool) -> SysResult<Reserved<'_>> {
        let number = self.table.lock().take(from, limit)?;
        Ok(Reserved { table: self, number, cloexec, installed: false })
    }

    /// Takes the lowest free number, before the file is opened that it is for.
    pub fn reserve(&self, limit: u64, cloexec: bool) -> SysResult<Reserved<'_>> {
        self.reserve_from(0, limit, cloexec)
    }

    /// Makes the lowest free number lead to `file`.
    pub fn install(&self, file: Arc<FileDescription>, limit: u64, cloexec: bool) -> SysResult<i32> {
        Ok(self.reserve(limit, cloexec)?.install(file))
    }

    /// `F_DUPFD`: like [`FdTable::install`], from `from` on; `EINVAL` if that is beyond the limit.
    pub fn install_from(
        &self,
        file: Arc<FileDescription>,
        from: u64,
        limit: u64,
        cloexec: bool,
    ) -> SysResult<i32> {
        if from >= limit.min(NR_OPEN.into()) {
            return Err(Errno::EINVAL.into());
        }
        let from = u32::try_from(from).map_err(|_| Errno::EINVAL)?;
        Ok(self.reserve_from(from, limit, cloexec)?.install(file))
    }

    /// `dup2` and `dup3` for two different numbers: makes `new` lead to what `old` does; gives what `new` led to,
    /// for the caller to close. `EBADF` also for a number beyond the limit, `EBUSY` for one being opened.
    pub fn replace(
        &self,
        old: i32,
        new: i32,
        limit: u64,
        cloexec: bool,
    ) -> SysResult<Option<Arc<FileDescription>>> {
        let old = u32::try_from(old).map_err(|_| Errno::EBADF)?;
        let new = u32::try_from(new).map_err(|_| Errno::EBADF)?;
        if u64::from(new) >= limit.min(NR_OPEN.into()) {
            return Err(Errno::EBADF.into());
        }
        let mut table = self.table.lock();
        let file = table.slot(old).ok_or(Errno::EBADF)?.clone();
        let previous = table.slot(new).cloned();
        if previous.is_none() && table.is_used(new) {
            return Err(Errno::EBUSY.into());
        }
        table.put(new, file, cloexec);
        drop(table);
        self.holders.withdraw(|number| number == new);
        Ok(previous)
    }

    /// Frees a number; gives what it led to, for the caller to close. `EBADF`.
    pub fn remove(&self, fd: i32) -> SysResult<Arc<FileDescription>> {
        let number = u32::try_from(fd).map_err(|_| Errno::EBADF)?;
        let file = self.table.lock().remove(number).ok_or(Errno::EBADF)?;
        self.holders.withdraw(|other| other == number);
        Ok(file)
    }

    /// Frees all numbers from `first` to `last` (inclusive); gives what they led to, in order.
    pub fn remove_range(&self, first: u32, last: u32) -> Vec<Arc<FileDescription>> {
        let mut table = self.table.lock();
        let numbers = table.numbers(first, last);
        let removed = numbers.into_iter().filter_map(|number| table.remove(number)).collect();
        drop(table);
        self.holders.withdraw(|number| (first..=last).contains(&number));
        removed
    }

    /// Marks all from `first` to `last` (inclusive) to be closed by exec.
    pub fn set_cloexec_range(&self, first: u32, last: u32) {
        let mut table = self.table.lock();
        for number in table.numbers(first, last) {
            table.set_cloexec(number, true);
        }
    }

    /// Sets or clears the close-on-exec flag. `EBADF`.
    pub fn set_cloexec(&self, fd: i32, cloexec: bool) -> SysResult<()> {
        let number = u32::try_from(fd).map_err(|_| Errno::EBADF)?;
        let mut table = self.table.lock();
        table.slot(number).ok_or(Errno::EBADF)?;
        table.set_cloexec(number, cloexec);
        Ok(())
    }

    /// Frees all numbers marked close-on-exec; gives what they led to.
    pub fn remove_cloexec(&self) -> Vec<Arc<FileDescription>> {
        let mut table = self.table.lock();
        let marked: Vec<u32> =
            table.numbers(0, u32::MAX).into_iter().filter(|number| table.is_cloexec(*number)).collect();
        let removed = marked.iter().filter_map(|number| table.remove(*number)).collect();
        drop(table);
        self.holders.withdraw(|number| marked.contains(&number));
        removed
    }

    /// `holder` uses `file` by the number from now on, until it is told that this leads elsewhere. `false`: it does so
    /// already, and nobody will tell.
    pub fn hand_out(&self, fd: u32, file: &Arc<FileDescription>, holder: &Arc<dyn Holder>) -> bool {
        self.holders.add(fd, holder);
        self.table.lock().slot(fd).is_some_and(|now| Arc::ptr_eq(now, file))
    }

    /// Frees all numbers (exit).
    pub fn remove_all(&self) -> Vec<Arc<FileDescription>> {
        self.remove_range(0, u32::MAX)
    }

    /// A copy for fork: the same files behind the same numbers. Those being opened are not in it.
    pub fn copy(&self) -> FdTable {
        self.copy_without(1, 0)
    }

    /// A copy without the numbers from `first` to `last` (CLOSE_RANGE_UNSHARE).
    pub fn copy_without(&self, first: u32, last: u32) -> FdTable {
        let table = self.table.lock();
        let mut copy = Table::default();
        for number in table.numbers(0, u32::MAX) {
            if (first..=last).contains(&number) {
                continue;
            }
            if let Some(file) = table.slot(number) {
                copy.put(number, file.clone(), table.is_cloexec(number));
            }
        }
        FdTable { table: Mutex::new(copy), holders: Holders::default() }
    }

    /// The first entry whose number is at least `from`: for listings that go on where they stopped.
    pub fn next(&self, from: u32) -> Option<FdEntry> {
        let table = self.table.lock();
        table.first_open(from).and_then(|number| table.entry(number))
    }

    /// How many numbers lead somewhere.
    pub fn count(&self) -> usize {
        self.table.lock().chunks.iter().flatten().map(|chunk| chunk.files.iter().flatten().count()).sum()
    }

    /// The size that `FDSize` of /proc/PID/status shows: a multiple of 64 that covers the highest number so far.
    pub fn size(&self) -> usize {
        self.table.lock().chunks.len().max(1).next_power_of_two().saturating_mul(CHUNK as usize)
    }
}

#[derive(Default)]
struct Table {
    chunks: Vec<Option<Box<Chunk>>>,
    /// No number below is free.
    free_from: u32,
}

struct Chunk {
    used: u64,
    cloexec: u64,
    files: [Option<Arc<FileDescription>>; CHUNK as usize],
}

impl Default for Chunk {
    fn default() -> Chunk {
        Chunk { used: 0, cloexec: 0, files: [const { None }; CHUNK as usize] }
    }
}

/// A number's chunk and its place there.
fn split(number: u32) -> (usize, u32) {
    ((number / CHUNK) as usize, number % CHUNK)
}

impl Table {
    fn chunk(&self, index: usize) -> Option<&Chunk> {
        self.chunks.get(index)?.as_deref()
    }

    fn slot(&self, number: u32) -> Option<&Arc<FileDescription>> {
        let (chunk, at) = split(number);
        self.chunk(chunk)?.files.get(at as usize)?.as_ref()
    }

    fn is_used(&self, number: u32) -> bool {
        let (chunk, at) = split(number);
        self.chunk(chunk).is_some_and(|chunk| chunk.used & (1 << at) != 0)
    }

    fn is_cloexec(&self, number: u32) -> bool {
        let (chunk, at) = split(number);
        self.chunk(chunk).is_some_and(|chunk| chunk.cloexec & (1 << at) != 0)
    }

    fn entry(&self, number: u32) -> Option<FdEntry> {
        let file = self.slot(number)?.clone();
        Some(FdEntry { fd: number.cast_signed(), file, cloexec: self.is_cloexec(number) })
    }

    /// The chunk of a number, made if need be, and the number's place in it. `None` never happens for numbers
    /// below [`NR_OPEN`], which is all that callers pass.
    fn chunk_mut(&mut self, number: u32) -> Option<(&mut Chunk, u32)> {
        let (index, at) = split(number);
        if self.chunks.len() <= index {
            self.chunks.resize_with(index.saturating_add(1), || None);
        }
        let chunk = self.chunks.get_mut(index)?.get_or_insert_default();
        Some((chunk, at))
    }

    fn put(&mut self, number: u32, file: Arc<FileDescription>, cloexec: bool) {
        if let Some((chunk, at)) = self.chunk_mut(number) {
            chunk.used |= 1 << at;
            chunk.cloexec = chunk.cloexec & !(1 << at) | (u64::from(cloexec) << at);
            if let Some(slot) = chunk.files.get_mut(at as usize) {
                *slot = Some(file);
            }
        }
    }

    fn set_cloexec(&mut self, number: u32, cloexec: bool) {
        if let Some((chunk, at)) = self.chunk_mut(number) {
            chunk.cloexec = chunk.cloexec & !(1 << at) | (u64::from(cloexec) << at);
        }
    }

    fn take(&mut self, from: u32, limit: u64) -> SysResult<u32> {
        let limit = u32::try_from(limit.min(NR_OPEN.into())).unwrap_or(NR_OPEN);
        let start = from.max(self.free_from);
        let number = self.first_free(start);
        if number >= limit {
            return Err(Errno::EMFILE.into());
        }
        if let Some((chunk, at)) = self.chunk_mut(number) {
            chunk.used |= 1 << at;
        }
        if start == self.free_from {
            self.free_from = number.saturating_add(1);
        }
        Ok(number)
    }

    fn first_free(&self, start: u32) -> u32 {
        let (mut index, at) = split(start);
        let mut mask = !0_u64 << at;
        while let Some(chunk) = self.chunk(index) {
            let free = !chunk.used & mask;
            if free != 0 {
                return Table::number(index, free.trailing_zeros());
            }
            (index, mask) = (index.saturating_add(1), !0);
        }
        // A chunk that is not there yet: all of it is free.
        Table::number(index, mask.trailing_zeros())
    }

    fn first_open(&self, start: u32) -> Option<u32> {
        let (first, at) = split(start);
        for (index, chunk) in self.chunks.iter().enumerate().skip(first) {
            let Some(chunk) = chunk else { continue };
            let skip = if index == first { at as usize } else { 0 };
            if let Some(at) = chunk.files.iter().skip(skip).position(Option::is_some) {
                return u32::try_from(at.saturating_add(skip)).ok().map(|at| Table::number(index, at));
            }
        }
        None
    }

    fn number(chunk: usize, at: u32) -> u32 {
        u32::try_from(chunk).unwrap_or(u32::MAX / CHUNK).saturating_mul(CHUNK).saturating_add(at)
    }

    fn free(&mut self, number: u32) {
        if let Some((chunk, at)) = self.chunk_mut(number) {
            chunk.used &= !(1 << at);
            chunk.cloexec &= !(1 << at);
        }
        self.free_from = self.free_from.min(number);
    }

    fn remove(&mut self, number: u32) -> Option<Arc<FileDescription>> {
        let (index, at) = split(number);
        let chunk = self.chunks.get_mut(index)?.as_deref_mut()?;
        let file = chunk.files.get_mut(at as usize)?.take()?;
        self.free(number);
        Some(file)
    }

    /// The open numbers from `first` to `last`.
    fn numbers(&self, first: u32, last: u32) -> Vec<u32> {
        let mut numbers = Vec::new();
        let mut at = first;
        while let Some(number) = self.first_open(at).filter(|number| *number <= last) {
            numbers.push(number);
            at = number.saturating_add(1);
        }
        numbers
    }
}

#[cfg(test)]
mod tests;
