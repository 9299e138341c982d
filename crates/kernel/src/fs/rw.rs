//! Reading and writing: plain, at an offset, vectored, between files; seeking, sizes, syncing, locks.

use std::sync::Arc;

use abi::{Errno, Fadvise, FallocFlags, FlockOp, OpenFlags, RwfFlags, SyncFileRangeFlags, UserAddr, Whence};
use platform::GuestRange;
use smallvec::SmallVec;
use sync::SysResult;
use vfs::rw::{self, CopyOffset};
use vfs::{FileDescription, Inode, OpenHow, Seek};

use crate::mm::{UserSink, UserSource};
use crate::syscall::{Fd, InBuf, InOut, IoVec, OutBuf, OutVec};
use crate::task::CurrentTask;

/// Bytes that one call transfers at most (`MAX_RW_COUNT`).
pub const MAX_RW_COUNT: usize = 0x7fff_f000;
/// Buffers of one vector at most (`UIO_MAXIOV`).
pub const MAX_IOVECS: usize = 1024;

impl super::Files {
    /// The open file behind a descriptor. `EBADF`.
    pub fn get(&self, fd: Fd) -> SysResult<Arc<FileDescription>> {
        self.table.get(fd.0)
    }
}

pub(crate) type Ranges = SmallVec<[GuestRange; 8]>;

/// One buffer. `EFAULT` if it leaves the guest's range.
pub(crate) fn one(addr: UserAddr, len: usize) -> SysResult<Ranges> {
    if !addr.in_guest_range(len as u64) {
        return Err(Errno::EFAULT.into());
    }
    Ok(SmallVec::from_slice(&[GuestRange { start: addr, len: len.min(MAX_RW_COUNT) }]))
}

/// The buffers of a vector, cut to what one call transfers (Linux: `import_iovec`).
pub fn read_io_vec(task: &CurrentTask, vec: IoVec) -> SysResult<SmallVec<[GuestRange; 8]>> {
    // The count is an `unsigned int` there.
    let count = vec.count & 0xffff_ffff;
    if count > MAX_IOVECS {
        return Err(Errno::EINVAL.into());
    }
    let mut raw = vec![0; count * 16];
    task.mm.read_bytes(vec.addr, &mut raw)?;
    let mut ranges = SmallVec::new();
    let mut total = 0usize;
    for pair in raw.chunks_exact(16) {
        let word =
            |at: usize| pair.get(at..at + 8).and_then(|b| b.try_into().ok()).map_or(0, u64::from_le_bytes);
        let (start, len) = (UserAddr(word(0)), word(8));
        if len > i64::MAX.cast_unsigned() {
            return Err(Errno::EINVAL.into());
        }
        if !start.in_guest_range(len) {
            return Err(Errno::EFAULT.into());
        }
        let len = usize::try_from(len).unwrap_or(usize::MAX).min(MAX_RW_COUNT - total);
        total += len;
        ranges.push(GuestRange { start, len });
    }
    Ok(ranges)
}

/// Where a transfer happens.
#[derive(Clone, Copy)]
enum At {
    /// At the file's offset.
    File,
    Offset(i64),
}

fn do_read(task: &mut CurrentTask, fd: Fd, ranges: SysResult<Ranges>, at: At) -> SysResult<usize> {
    let file = task.files.get(fd)?;
    if !file.is_readable() {
        return Err(Errno::EBADF.into());
    }
    let mut sink = UserSink::new(&task.mm, &ranges?);
    let result = match at {
        At::File => rw::read(&file, task, &mut sink),
        At::Offset(offset) => rw::read_at(&file, task, offset, &mut sink),
    };
    task.task.io.count_read(result.unwrap_or(0));
    task.used_through_kernel(fd, &file);
    result
}

fn do_write(task: &mut CurrentTask, fd: Fd, ranges: SysResult<Ranges>, at: At) -> SysResult<usize> {
    let file = task.files.get(fd)?;
    if !file.is_writable() {
        return Err(Errno::EBADF.into());
    }
    let mut source = UserSource::new(&task.mm, &ranges?);
    let result = match at {
        At::File => rw::write(&file, task, &mut source),
        At::Offset(offset) => rw::write_at(&file, task, offset, &mut source),
    };
    task.task.io.count_write(result.unwrap_or(0));
    task.used_through_kernel(fd, &file);
    result
}

/// An offset of `pread` and its kin; a negative one is `EINVAL` before the descriptor is looked at.
fn offset(at: i64) -> SysResult<At> {
    if at < 0 { Err(Errno::EINVAL.into()) } else { Ok(At::Offset(at)) }
}

pub fn sys_read(task: &mut CurrentTask, fd: Fd, buf: OutBuf) -> SysResult<usize> {
    do_read(task, fd, one(buf.addr, buf.len), At::File)
}

pub fn sys_write(task: &mut CurrentTask, fd: Fd, buf: InBuf) -> SysResult<usize> {
    do_write(task, fd, one(buf.addr, buf.len), At::File)
}

pub fn sys_pread64(task: &mut CurrentTask, fd: Fd, buf: OutBuf, at: i64) -> SysResult<usize> {
    do_read(task, fd, one(buf.addr, buf.len), offset(at)?)
}

pub fn sys_pwrite64(task: &mut CurrentTask, fd: Fd, buf: InBuf, at: i64) -> SysResult<usize> {
    do_write(task, fd, one(buf.addr, buf.len), offset(at)?)
}

pub fn sys_readv(task: &mut CurrentTask, fd: Fd, vec: OutVec) -> SysResult<usize> {
    let ranges = read_io_vec(task, IoVec { addr: vec.addr, count: vec.count });
    do_read(task, fd, ranges, At::File)
}

pub fn sys_writev(task: &mut CurrentTask, fd: Fd, vec: IoVec) -> SysResult<usize> {
    let ranges = read_io_vec(task, vec);
    do_write(task, fd, ranges, At::File)
}

pub fn sys_preadv(task: &mut CurrentTask, fd: Fd, vec: OutVec, at: i64, _high: u64) -> SysResult<usize> {
    let ranges = read_io_vec(task, IoVec { addr: vec.addr, count: vec.count });
    do_read(task, fd, ranges, offset(at)?)
}

pub fn sys_pwritev(task: &mut CurrentTask, fd: Fd, vec: IoVec, at: i64, _high: u64) -> SysResult<usize> {
    let ranges = read_io_vec(task, vec);
    do_write(task, fd, ranges, offset(at)?)
}

/// The offset and flags of `preadv2` and `pwritev2`: -1 means the file's own.
fn offset2(at: i64, flags: RwfFlags) -> SysResult<At> {
    // Those that ask for speed or safety of storage that is given anyway, or that files here always have.
    let how = RwfFlags::APPEND | RwfFlags::NOAPPEND;
    let known = RwfFlags::HIPRI | RwfFlags::DSYNC | RwfFlags::SYNC | RwfFlags::NOWAIT | how;
    if !known.contains(flags) {
        return Err(Errno::EOPNOTSUPP.into());
    }
    if flags.contains(how) {
        return Err(Errno::EINVAL.into());
    }
    if at == -1 { Ok(At::File) } else { offset(at) }
}

pub fn sys_preadv2(
    task: &mut CurrentTask,
    fd: Fd,
    vec: OutVec,
    at: i64,
    _high: u64,
    flags: RwfFlags,
) -> SysResult<usize> {
    let at = offset2(at, flags)?;
    let file = task.files.get(fd)?;
    if flags.contains(RwfFlags::NOWAIT)
        && !file.ops.poll(&file).intersects(vfs::Ready::READABLE | vfs::Ready::HUP)
    {
        return Err(Errno::EAGAIN.into());
    }
    let ranges = read_io_vec(task, IoVec { addr: vec.addr, count: vec.count });
    do_read(task, fd, ranges, at)
}

pub fn sys_pwritev2(
    task: &mut CurrentTask,
    fd: Fd,
    vec: IoVec,
    at: i64,
    _high: u64,
    flags: RwfFlags,
) -> SysResult<usize> {
    let at = offset2(at, flags)?;
    let file = task.files.get(fd)?;
    let appends = flags.contains(RwfFlags::APPEND);
    let overrides = appends || flags.contains(RwfFlags::NOAPPEND);
    let written = match &file.inode {
        Some(inode)
            if overrides && inode.file_type == abi::FileType::REG && appends != is_appending(&file) =>
        {
            write_otherwise(task, &file, inode, appends, at, read_io_vec(task, vec)?)?
        }
        _ => {
            let ranges = read_io_vec(task, vec);
            do_write(task, fd, ranges, at)?
        }
    };
    if flags.intersects(RwfFlags::DSYNC | RwfFlags::SYNC) {
        file.ops.sync(!flags.contains(RwfFlags::SYNC))?;
    }
    Ok(written)
}

fn is_appending(file: &FileDescription) -> bool {
    file.flags().contains(OpenFlags::APPEND)
}

/// `RWF_APPEND` and `RWF_NOAPPEND`: one write as if the file were open the other way. The file's own offset moves only if
/// it was asked for.
fn write_otherwise(
    task: &CurrentTask,
    file: &FileDescription,
    inode: &Arc<Inode>,
    appends: bool,
    at: At,
    ranges: Ranges,
) -> SysResult<usize> {
    if !file.is_writable() {
        return Err(Errno::EBADF.into());
    }
    let flags = if appends { OpenFlags::WRONLY | OpenFlags::APPEND } else { OpenFlags::WRONLY };
    let ops = inode.ops.open(inode, OpenHow { flags }, task)?;
    let other = FileDescription::new(ops, file.path.clone(), flags);
    let mut source = UserSource::new(&task.mm, &ranges);
    let start = match at {
        At::Offset(offset) => offset,
        At::File => i64::try_from(file.ops.seek(file, Seek::Current(0))?).map_err(|_| Errno::EOVERFLOW)?,
    };
    // An appending one takes no notice of where it starts.
    let own_start = if appends { 0 } else { start };
    if matches!(at, At::Offset(_)) {
        let result = rw::write_at(&other, task, own_start, &mut source);
        task.task.io.count_write(result.unwrap_or(0));
        return result;
    }
    other.ops.seek(&other, Seek::Set(own_start))?;
    let result = rw::write(&other, task, &mut source);
    task.task.io.count_write(result.unwrap_or(0));
    let written = result?;
    let end = i64::try_from(other.ops.seek(&other, Seek::Current(0))?).map_err(|_| Errno::EOVERFLOW)?;
    file.ops.seek(file, Seek::Set(end))?;
    Ok(written)
}

pub fn sys_lseek(task: &mut CurrentTask, fd: Fd, at: i64, whence: Whence) -> SysResult<u64> {
    let file = task.files.get(fd)?;
    let seek = match whence {
        Whence::SET => Seek::Set(at),
        Whence::CUR => Seek::Current(at),
        Whence::END => Seek::End(at),
        Whence::DATA => Seek::Data(at),
        Whence::HOLE => Seek::Hole(at),
        _ => return Err(Errno::EINVAL.into()),
    };
    file.ops.seek(&file, seek)
}

pub fn sys_fallocate(task: &mut CurrentTask, fd: Fd, mode: FallocFlags, at: i64, len: i64) -> SysResult<()> {
    let file = task.files.get(fd)?;
    let (Ok(start), Ok(bytes)) = (u64::try_from(at), u64::try_from(len)) else {
        return Err(Errno::EINVAL.into());
    };
    if bytes == 0 {
        return Err(Errno::EINVAL.into());
    }
    if mode.has_unknown() || mode.contains(FallocFlags::PUNCH_HOLE | FallocFlags::ZERO_RANGE) {
        return Err(Errno::EOPNOTSUPP.into());
    }
    if mode.contains(FallocFlags::PUNCH_HOLE) && !mode.contains(FallocFlags::KEEP_SIZE) {
        return Err(Errno::EOPNOTSUPP.into());
    }
    if !file.is_writable() {
        return Err(Errno::EBADF.into());
    }
    let kind = match &file.inode {
        Some(inode) => inode.file_type,
        None => file.attributes()?.mode.file_type(),
    };
    match kind {
        abi::FileType::REG => {}
        abi::FileType::DIR => return Err(Errno::EISDIR.into()),
        abi::FileType::FIFO => return Err(Errno::ESPIPE.into()),
        _ => return Err(Errno::ENODEV.into()),
    }
    let end = start.checked_add(bytes).filter(|end| *end <= i64::MAX.cast_unsigned()).ok_or(Errno::EFBIG)?;
    if !mode.contains(FallocFlags::KEEP_SIZE) && end > vfs::Caller::file_size_limit(task) {
        vfs::Caller::file_too_big(task);
        return Err(Errno::EFBIG.into());
    }
    file.ops.allocate(&file, task, mode.bits(), start, bytes)
}

pub fn sys_fsync(task: &mut CurrentTask, fd: Fd) -> SysResult<()> {
    task.files.get(fd)?.ops.sync(false)
}

pub fn sys_fdatasync(task: &mut CurrentTask, fd: Fd) -> SysResult<()> {
    task.files.get(fd)?.ops.sync(true)
}

pub fn sys_sync_file_range(
    task: &mut CurrentTask,
    fd: Fd,
    at: i64,
    len: i64,
    flags: SyncFileRangeFlags,
) -> SysResult<()> {
    let file = task.files.get(fd)?;
    if flags.has_unknown() || at < 0 || len < 0 || at.checked_add(len).is_none() {
        return Err(Errno::EINVAL.into());
    }
    match file.inode.as_ref().map(|inode| inode.file_type) {
        Some(abi::FileType::REG | abi::FileType::DIR | abi::FileType::BLK | abi::FileType::LNK) => {}
        _ => return Err(Errno::ESPIPE.into()),
    }
    file.ops.sync(true)
}

pub fn sys_sync(task: &mut CurrentTask) -> SysResult<()> {
    for mount in task.kernel().mounts.list() {
        // `sync` tells of no errors.
        let _ = mount.fs.sync();
    }
    Ok(())
}

pub fn sys_syncfs(task: &mut CurrentTask, fd: Fd) -> SysResult<()> {
    let file = task.files.get(fd)?;
    match &file.inode {
        Some(inode) => inode.fs.sync(),
        None => Ok(()),
    }
}

pub fn sys_fadvise64(task: &mut CurrentTask, fd: Fd, _at: i64, len: i64, advice: Fadvise) -> SysResult<()> {
    let file = task.files.get(fd)?;
    if file.inode.as_ref().is_none_or(|inode| inode.file_type == abi::FileType::FIFO) {
        return Err(Errno::ESPIPE.into());
    }
    if len < 0 || advice.name().is_none() {
        return Err(Errno::EINVAL.into());
    }
    Ok(())
}

pub fn sys_readahead(task: &mut CurrentTask, fd: Fd, _at: i64, _count: usize) -> SysResult<()> {
    let file = task.files.get(fd)?;
    if !file.is_readable() {
        return Err(Errno::EBADF.into());
    }
    match file.inode.as_ref().map(|inode| inode.file_type) {
        Some(abi::FileType::REG | abi::FileType::BLK) => Ok(()),
        _ => Err(Errno::EINVAL.into()),
    }
}

pub fn sys_sendfile(
    task: &mut CurrentTask,
    out: Fd,
    from: Fd,
    offset: InOut<i64>,
    count: usize,
) -> SysResult<usize> {
    let given = if offset.is_null() { None } else { Some(task.mm.read::<i64>(offset.0)?) };
    let source = task.files.get(from)?;
    let target = task.files.get(out)?;
    let at = match given {
        None => CopyOffset::File,
        Some(at) => CopyOffset::At(u64::try_from(at).map_err(|_| Errno::EINVAL)?),
    };
    let (copied, end) = rw::send_file(&target, &source, at, count.min(MAX_RW_COUNT), task)?;
    count_copy(task, copied);
    if given.is_some() {
        task.mm.write(offset.0, &i64::try_from(end).unwrap_or(i64::MAX))?;
    }
    Ok(copied)
}

/// A copy between files counts on both sides.
fn count_copy(task: &CurrentTask, copied: usize) {
    task.task.io.count_read(copied);
    task.task.io.count_write(copied);
}

pub fn sys_copy_file_range(
    task: &mut CurrentTask,
    from: Fd,
    from_offset: InOut<i64>,
    out: Fd,
    out_offset: InOut<i64>,
    count: usize,
    flags: u32,
) -> SysResult<usize> {
    let source = task.files.get(from)?;
    let target = task.files.get(out)?;
    let read = |at: InOut<i64>| -> SysResult<Option<u64>> {
        if at.is_null() {
            return Ok(None);
        }
        let offset = task.mm.read::<i64>(at.0)?;
        Ok(Some(u64::try_from(offset).map_err(|_| Errno::EOVERFLOW)?))
    };
    let (from_at, out_at) = (read(from_offset)?, read(out_offset)?);
    if flags != 0 {
        return Err(Errno::EINVAL.into());
    }
    let offset = |at: Option<u64>| at.map_or(CopyOffset::File, CopyOffset::At);
    let copied =
        rw::copy_range(&target, offset(out_at), &source, offset(from_at), count.min(MAX_RW_COUNT), task)?;
    count_copy(task, copied);
    for (at, place) in [(from_at, from_offset), (out_at, out_offset)] {
        if let Some(at) = at {
            task.mm.write(place.0, &i64::try_from(at.saturating_add(copied as u64)).unwrap_or(i64::MAX))?;
        }
    }
    Ok(copied)
}

pub fn sys_flock(task: &mut CurrentTask, fd: Fd, op: FlockOp) -> SysResult<()> {
    vfs::locks::flock(&*task.files.get(fd)?, op, task)
}
