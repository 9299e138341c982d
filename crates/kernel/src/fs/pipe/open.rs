//! How pipes come to be, and the rules of opening FIFOs (Linux: `fifo_open`).

use std::sync::{Arc, Weak};

use abi::{AccessMode, Errno, OpenFlags, PipeFlags};
use sync::{Mutex, SleepLock, SysResult, WaitQueue, order};
use vfs::{Caller, FileDescription, FileOps, Inode, OpenHow};

use super::ring::Ring;
use super::{Pipe, PipeEnd, State, size};
use crate::fs::anon::OwnAttributes;
use crate::resource::NOFILE;
use crate::syscall::Out;
use crate::task::{CurrentTask, current, wait_as};

pub fn sys_pipe(task: &mut CurrentTask, fds: Out<[i32; 2]>) -> SysResult<()> {
    sys_pipe2(task, fds, PipeFlags::empty())
}

pub fn sys_pipe2(task: &mut CurrentTask, fds: Out<[i32; 2]>, flags: PipeFlags) -> SysResult<()> {
    if flags.has_unknown() {
        return Err(Errno::EINVAL.into());
    }
    if flags.contains(PipeFlags::NOTIFICATION_PIPE) {
        // Linux without CONFIG_WATCH_QUEUE.
        return Err(Errno::ENOPKG.into());
    }
    let pipe = Pipe::new(task, Some(task.kernel().anon.pipe(task)));
    let given = OpenFlags::from_bits_retain(flags.bits());
    let status = given & OpenFlags::NONBLOCK;
    let read = PipeEnd::open(&pipe, AccessMode::RDONLY)?;
    let write = PipeEnd::open(&pipe, AccessMode::WRONLY)?;
    let read = FileDescription::new(Box::new(read), None, status);
    let write_flags = OpenFlags::WRONLY | status | (given & OpenFlags::DIRECT);
    let write = FileDescription::new(Box::new(write), None, write_flags);
    let cloexec = flags.contains(PipeFlags::CLOEXEC);
    let (files, limit) = (task.files.clone(), task.limit(NOFILE));
    let first = files.table.reserve(limit, cloexec)?;
    let second = files.table.reserve(limit, cloexec)?;
    task.mm.write(fds.0, &[first.fd(), second.fd()])?;
    first.install(read);
    second.install(write);
    Ok(())
}

/// What hangs on a FIFO's inode: its pipe while it is open.
struct Fifo {
    pipe: Mutex<order::Leaf, Weak<Pipe>>,
}

impl Fifo {
    /// Its pipe, a new and empty one if nobody has it open.
    fn pipe(&self, task: &CurrentTask) -> Arc<Pipe> {
        // Made first: a new pipe counts its owner's pages, under another lock.
        let fresh = Pipe::new(task, None);
        let mut slot = self.pipe.lock();
        match slot.upgrade() {
            Some(pipe) => pipe,
            None => {
                *slot = Arc::downgrade(&fresh);
                fresh.clone()
            }
        }
    }
}

/// Opens a FIFO; waits for the other side where Linux does.
pub fn open_fifo(inode: &Arc<Inode>, how: OpenHow, caller: &dyn Caller) -> SysResult<Box<dyn FileOps>> {
    let fifo = inode.attached.object_or(|| Arc::new(Fifo { pipe: Mutex::default() })).ok_or(Errno::ENXIO)?;
    let pipe = fifo.pipe(current(caller)?);
    let nonblocking = how.flags.contains(OpenFlags::NONBLOCK);
    match how.flags.access_mode() {
        AccessMode::RDONLY => open_reader(&pipe, nonblocking, caller),
        AccessMode::WRONLY => open_writer(&pipe, nonblocking, caller),
        AccessMode::RDWR => PipeEnd::open(&pipe, AccessMode::RDWR),
        _ => Err(Errno::EINVAL.into()),
    }
    .map(|end| -> Box<dyn FileOps> { Box::new(end) })
}

fn open_reader(pipe: &Arc<Pipe>, nonblocking: bool, caller: &dyn Caller) -> SysResult<PipeEnd> {
    let (mut end, found) = PipeEnd::enter(pipe, AccessMode::RDONLY)?;
    if found.writers > 0 {
        return Ok(end);
    }
    let writes = found.write_opens;
    if nonblocking {
        end.opened_before = Some(writes);
        return Ok(end);
    }
    // Whoever came may have gone again: it was there.
    wait_as(caller, &[&pipe.partners], None, || (pipe.state.lock().write_opens != writes).then_some(()))?;
    Ok(end)
}

fn open_writer(pipe: &Arc<Pipe>, nonblocking: bool, caller: &dyn Caller) -> SysResult<PipeEnd> {
    if nonblocking && pipe.state.lock().readers == 0 {
        return Err(Errno::ENXIO.into());
    }
    let (end, found) = PipeEnd::enter(pipe, AccessMode::WRONLY)?;
    if found.readers == 0 && !nonblocking {
        let reads = found.read_opens;
        wait_as(caller, &[&pipe.partners], None, || (pipe.state.lock().read_opens != reads).then_some(()))?;
    }
    Ok(end)
}

/// Who has the pipe open when an end of it has just been opened.
struct Found {
    readers: usize,
    writers: usize,
    read_opens: u64,
    write_opens: u64,
}

impl PipeEnd {
    /// One more open file of the pipe, without waiting for anybody. `EINVAL` for an access mode that is none.
    pub(in crate::fs) fn open(pipe: &Arc<Pipe>, mode: AccessMode) -> SysResult<PipeEnd> {
        PipeEnd::enter(pipe, mode).map(|(end, _)| end)
    }

    fn enter(pipe: &Arc<Pipe>, mode: AccessMode) -> SysResult<(PipeEnd, Found)> {
        let (reads, writes) = match mode {
            AccessMode::RDONLY => (true, false),
            AccessMode::WRONLY => (false, true),
            AccessMode::RDWR => (true, true),
            _ => return Err(Errno::EINVAL.into()),
        };
        let found = {
            let mut state = pipe.state.lock();
            state.readers += usize::from(reads);
            state.writers += usize::from(writes);
            state.read_opens += u64::from(reads);
            state.write_opens += u64::from(writes);
            Found {
                readers: state.readers,
                writers: state.writers,
                read_opens: state.read_opens,
                write_opens: state.write_opens,
            }
        };
        pipe.partners.wake(0);
        Ok((PipeEnd { pipe: pipe.clone(), reads, writes, opened_before: None }, found))
    }
}

impl Pipe {
    fn new(task: &CurrentTask, attributes: Option<OwnAttributes>) -> Arc<Pipe> {
        let (slots, share) = size::new_share(task);
        Arc::new(Pipe {
            state: Mutex::new(State {
                ring: Ring::new(slots),
                readers: 0,
                writers: 0,
                read_opens: 0,
                write_opens: 0,
            }),
            reading: SleepLock::new(),
            readers: WaitQueue::new(),
            writers: WaitQueue::new(),
            partners: WaitQueue::new(),
            async_readers: vfs::AsyncFiles::default(),
            async_writers: vfs::AsyncFiles::default(),
            attributes,
            share: Mutex::new(share),
        })
    }
}
