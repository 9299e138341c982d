//! Reading and writing open files: the checks before the file's own operations, and copies between files.
//!
//! Neighbours: the kernel's read and write families call here with the guest's buffers as sinks and sources;
//! file systems use [`limit_write`] where they know at which offset a write lands.

use std::sync::Arc;

use abi::{Errno, FileType, MAX_RW_COUNT, OpenFlags};
use sync::{Interrupts, SysError, SysResult};

use crate::ops::remove_privileges;
use crate::{Caller, FileDescription, Seek, SliceSink, SliceSource, UserRead, UserWrite};

fn check_readable(file: &FileDescription) -> SysResult<()> {
    if !file.is_readable() {
        return Err(Errno::EBADF.into());
    }
    match &file.inode {
        Some(inode) if inode.is_dir() => Err(Errno::EISDIR.into()),
        _ => Ok(()),
    }
}

/// What comes before a write of `count` bytes: writing nothing leaves set-id bits alone.
fn before_write(file: &FileDescription, caller: &dyn Caller, count: usize) -> SysResult<()> {
    if !file.is_writable() {
        return Err(Errno::EBADF.into());
    }
    match &file.inode {
        Some(inode) if inode.file_type == FileType::REG && count > 0 => remove_privileges(inode, caller),
        _ => Ok(()),
    }
}

/// Linux: `rw_verify_area`. Neither the offset nor the end may be negative.
fn check_offset(offset: i64, count: usize) -> SysResult<u64> {
    let count = i64::try_from(count.min(MAX_RW_COUNT)).unwrap_or(i64::MAX);
    let valid = offset >= 0 && offset.checked_add(count).is_some();
    if valid { Ok(offset.cast_unsigned()) } else { Err(Errno::EINVAL.into()) }
}

/// Reads at the file's offset. `EBADF` unless it is open for reading, `EISDIR`.
pub fn read(file: &FileDescription, caller: &dyn Caller, to: &mut dyn UserWrite) -> SysResult<usize> {
    check_readable(file)?;
    file.ops.read(file, caller, to)
}

/// Reads at `offset`. `EINVAL` for a negative one.
pub fn read_at(
    file: &FileDescription,
    caller: &dyn Caller,
    offset: i64,
    to: &mut dyn UserWrite,
) -> SysResult<usize> {
    let offset = check_offset(offset, to.room())?;
    check_readable(file)?;
    file.ops.read_at(file, caller, offset, to)
}

/// Writes at the file's offset, or at the end with O_APPEND. Set-id bits of a regular file go, unless the caller has
/// CAP_FSETID.
pub fn write(file: &FileDescription, caller: &dyn Caller, from: &mut dyn UserRead) -> SysResult<usize> {
    before_write(file, caller, from.left())?;
    file.ops.write(file, caller, from)
}

/// Writes at `offset` (at the end with O_APPEND, as Linux does).
pub fn write_at(
    file: &FileDescription,
    caller: &dyn Caller,
    offset: i64,
    from: &mut dyn UserRead,
) -> SysResult<usize> {
    let offset = check_offset(offset, from.left())?;
    before_write(file, caller, from.left())?;
    file.ops.write_at(file, caller, offset, from)
}

/// How many of `count` bytes may be written at `offset`: up to the caller's RLIMIT_FSIZE and the largest offset. At
/// or beyond the first: SIGXFSZ and `EFBIG`; beyond the second `EFBIG` (Linux: `generic_write_check_limits`).
pub fn limit_write(caller: &dyn Caller, offset: u64, count: usize) -> SysResult<usize> {
    let limit = caller.file_size_limit();
    if offset >= limit {
        if count == 0 {
            return Ok(0);
        }
        caller.file_too_big();
        return Err(Errno::EFBIG.into());
    }
    let largest = i64::MAX.cast_unsigned();
    if offset >= largest && count != 0 {
        return Err(Errno::EFBIG.into());
    }
    let room = limit.min(largest).saturating_sub(offset);
    Ok(usize::try_from(room).unwrap_or(usize::MAX).min(count))
}

/// Bytes that a copy between files holds at a time.
const COPY_BUFFER: usize = 64 * 1024;

/// Where a copy reads or writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyOffset {
    /// At the file's offset, which moves.
    File,
    /// At an offset of the caller's, which the result moves.
    At(u64),
}

/// `sendfile`: copies up to `count` bytes from a file that can seek; gives the bytes and the offset behind them.
/// `EINVAL` to a file open for appending.
pub fn send_file(
    out: &FileDescription,
    from: &FileDescription,
    offset: CopyOffset,
    count: usize,
    caller: &dyn Caller,
) -> SysResult<(usize, u64)> {
    check_readable(from)?;
    if !out.is_writable() {
        return Err(Errno::EBADF.into());
    }
    if out.flags().contains(OpenFlags::APPEND) {
        return Err(Errno::EINVAL.into());
    }
    let start = match offset {
        CopyOffset::File => from.ops.seek(from, Seek::Current(0)).map_err(|_| Errno::EINVAL)?,
        CopyOffset::At(at) => at,
    };
    let copied = copy(
        count,
        caller,
        |buffer, done| {
            let mut sink = SliceSink { bytes: buffer, filled: 0 };
            from.ops.read_at(from, caller, start.saturating_add(done), &mut sink)
        },
        |bytes, _| write(out, caller, &mut SliceSource { bytes, taken: 0 }),
    )?;
    let end = start.saturating_add(copied as u64);
    if offset == CopyOffset::File {
        from.ops.seek(from, Seek::Set(i64::try_from(end).map_err(|_| Errno::EOVERFLOW)?))?;
    }
    Ok((copied, end))
}

/// `copy_file_range` between regular files of one file system; gives the bytes copied. `EBADF` for wrong access or
/// appending, `EISDIR`, `EINVAL` for other kinds and for overlapping ranges of one file, `EXDEV` between file
/// systems (programs then copy themselves).
pub fn copy_range(
    out: &Arc<FileDescription>,
    out_offset: CopyOffset,
    from: &Arc<FileDescription>,
    from_offset: CopyOffset,
    count: usize,
    caller: &dyn Caller,
) -> SysResult<usize> {
    let (Some(from_inode), Some(out_inode)) = (&from.inode, &out.inode) else {
        return Err(Errno::EINVAL.into());
    };
    if from_inode.is_dir() || out_inode.is_dir() {
        return Err(Errno::EISDIR.into());
    }
    if from_inode.file_type != FileType::REG || out_inode.file_type != FileType::REG {
        return Err(Errno::EINVAL.into());
    }
    if !from.is_readable() || !out.is_writable() || out.flags().contains(OpenFlags::APPEND) {
        return Err(Errno::EBADF.into());
    }
    if !Arc::ptr_eq(&from_inode.fs, &out_inode.fs) {
        return Err(Errno::EXDEV.into());
    }
    let position = |file: &FileDescription, offset| match offset {
        CopyOffset::File => file.ops.seek(file, Seek::Current(0)),
        CopyOffset::At(at) => Ok(at),
    };
    let (from_start, out_start) = (position(from, from_offset)?, position(out, out_offset)?);
    let largest = i64::MAX.cast_unsigned();
    let end =
        |start: u64| start.checked_add(count as u64).filter(|end| *end <= largest).ok_or(Errno::EOVERFLOW);
    let (from_end, out_end) = (end(from_start)?, end(out_start)?);
    let size = from.attributes()?.size;
    let count = count.min(usize::try_from(size.saturating_sub(from_start)).unwrap_or(usize::MAX));
    let count = limit_write(caller, out_start, count)?;
    if Arc::ptr_eq(from_inode, out_inode) && from_start < out_end && out_start < from_end {
        return Err(Errno::EINVAL.into());
    }
    before_write(out, caller, count)?;
    let copied = copy(
        count,
        caller,
        |buffer, done| {
            let mut sink = SliceSink { bytes: buffer, filled: 0 };
            from.ops.read_at(from, caller, from_start.saturating_add(done), &mut sink)
        },
        |bytes, done| {
            let mut source = SliceSource { bytes, taken: 0 };
            out.ops.write_at(out, caller, out_start.saturating_add(done), &mut source)
        },
    )?;
    for (file, offset, start) in [(from, from_offset, from_start), (out, out_offset, out_start)] {
        if offset == CopyOffset::File {
            let to = i64::try_from(start.saturating_add(copied as u64)).map_err(|_| Errno::EOVERFLOW)?;
            file.ops.seek(file, Seek::Set(to))?;
        }
    }
    Ok(copied)
}

/// Moves up to `count` bytes through a bounded buffer. Ends early where a read or a write comes short or fails, or
/// the task is to end; an error counts only if nothing was moved.
fn copy(
    count: usize,
    caller: &dyn Caller,
    mut read: impl FnMut(&mut [u8], u64) -> SysResult<usize>,
    mut write: impl FnMut(&[u8], u64) -> SysResult<usize>,
) -> SysResult<usize> {
    let mut buffer = vec![0; count.min(COPY_BUFFER)];
    let mut copied = 0_usize;
    let after = |copied: usize, error: SysError| if copied > 0 { Ok(copied) } else { Err(error) };
    while copied < count && !caller.waiter().parker().is_interrupted(Interrupts::KILL) {
        let want = buffer.len().min(count.saturating_sub(copied));
        let Some(space) = buffer.get_mut(..want) else { break };
        let got = match read(space, copied as u64) {
            Ok(0) => break,
            Ok(got) => got,
            Err(error) => return after(copied, error),
        };
        let put = match write(buffer.get(..got).unwrap_or(&[]), copied as u64) {
            Ok(put) => put,
            Err(error) => return after(copied, error),
        };
        copied = copied.saturating_add(put);
        if put < got {
            break;
        }
    }
    Ok(copied)
}
