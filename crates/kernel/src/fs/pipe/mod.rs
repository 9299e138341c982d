//! Pipes and FIFOs.
//!
//! A [`Pipe`] is the object, a [`PipeEnd`] one open file of it; a FIFO's pipe hangs on its inode while anybody has it
//! open. Bytes lie in a [`ring`]; `open.rs` has the rules of opening, `size.rs` those of sizes and users' shares.
//!
//! Readers come one at a time: each looks, copies out, and only then takes away what the guest's memory took
//! (INVARIANTS 2.4). Lock levels: the readers' `SleepLock` (held over copies), `File` (a change of size), `Buffer`.

mod open;
mod ring;
mod size;

use std::any::Any;
use std::sync::Arc;

use abi::{Errno, FcntlCmd, Ioctl, OpenFlags, PollCode, UserAddr};
use smallvec::SmallVec;
use sync::{Mutex, SleepLock, SysError, SysResult, WaitQueue, order};
use vfs::locks::FileLocks;
use vfs::{
    AsyncFiles, AttributeChange, Attributes, Caller, FileDescription, FileOps, Ready, UserRead, UserWrite,
};

use crate::fs::anon::OwnAttributes;
use crate::fs::async_io::tell_all;
use crate::task::{task_of_this_thread, wait_as};
use crate::users::Held;

pub use open::{open_fifo, sys_pipe, sys_pipe2};
use ring::{PAGE, Ring};

/// Bytes moved by one copy from the guest.
const CHUNK: usize = 16 * PAGE;

/// Woken up for: bytes, or the last writer's end.
const READ_EVENTS: Ready = Ready::READABLE;
const WRITE_EVENTS: Ready = Ready::WRITABLE;

/// A pipe.
pub struct Pipe {
    state: Mutex<order::Buffer, State>,
    /// Held while bytes are copied out.
    reading: SleepLock,
    readers: WaitQueue,
    writers: WaitQueue,
    /// Those who wait in `open` for the other side.
    partners: WaitQueue,
    /// Open files whose owners want signals when there is something to read, or room.
    async_readers: AsyncFiles,
    async_writers: AsyncFiles,
    /// Of a pipe without a name.
    attributes: Option<OwnAttributes>,
    /// What of it counts as its maker's. Held while its size changes.
    share: Mutex<order::File, Held>,
}

struct State {
    ring: Ring,
    readers: usize,
    writers: usize,
    /// How often it was opened for reading and for writing.
    read_opens: u64,
    write_opens: u64,
}

/// An open file of a pipe.
pub struct PipeEnd {
    pipe: Arc<Pipe>,
    reads: bool,
    writes: bool,
    /// `write_opens` when it was opened for reading without anybody writing: no hang-up until that has changed.
    opened_before: Option<u64>,
}

/// How a step of a read or write goes on.
enum Step {
    Again,
    Done,
    Wait,
}

impl PipeEnd {
    pub(super) fn pipe(&self) -> &Arc<Pipe> {
        &self.pipe
    }

    /// Copies one piece out, then takes it away. `Wait`: there is nothing, but there are writers.
    fn read_step(&self, waiter: &sync::Waiter, to: &mut dyn UserWrite, done: &mut usize) -> SysResult<Step> {
        let _one_at_a_time = self.pipe.reading.lock(waiter)?;
        let piece = {
            let state = self.pipe.state.lock();
            match state.ring.peek(to.room()) {
                Some(piece) => piece,
                None if state.writers == 0 || *done > 0 => return Ok(Step::Done),
                None => return Ok(Step::Wait),
            }
        };
        let count = piece.bytes().len();
        let copied = piece.whole_pages(to.put(piece.bytes()));
        let packet = piece.packet;
        drop(piece);
        if copied > 0 {
            let made_room = {
                let mut state = self.pipe.state.lock();
                let was_full = state.ring.is_full();
                state.ring.consume(copied);
                was_full && !state.ring.is_full()
            };
            if made_room {
                self.pipe.writers.wake(WRITE_EVENTS.bits());
            }
        }
        *done += copied;
        match copied == count {
            true if packet || to.room() == 0 => Ok(Step::Done),
            true => Ok(Step::Again),
            false if *done > 0 => Ok(Step::Done),
            false => Err(Errno::EFAULT.into()),
        }
    }

    /// Takes bytes from the guest and adds what fits. `first`: nothing of the write has been added yet.
    fn write_step(&self, packet: bool, from: &mut dyn UserRead, first: bool) -> SysResult<(Step, usize)> {
        let left = from.left();
        let room = {
            let state = self.pipe.state.lock();
            if state.readers == 0 {
                return Err(Errno::EPIPE.into());
            }
            let merges = first && !packet && state.ring.can_merge(left);
            state.ring.free_slots() * PAGE + if merges { left % PAGE } else { 0 }
        };
        if room == 0 {
            return Ok((Step::Wait, 0));
        }
        let mut bytes = vec![0; left.min(room).min(CHUNK)];
        let wanted = bytes.len();
        let taken = from.take(&mut bytes);
        bytes.truncate(taken);
        // A fault leaves no page partly filled, as if the write ended with the page before.
        let more = taken < left;
        let (pushed, was_empty) = {
            let mut state = self.pipe.state.lock();
            if state.readers == 0 {
                from.untake(taken);
                return Err(Errno::EPIPE.into());
            }
            let was_empty = state.ring.is_empty();
            (state.ring.push(bytes, first.then_some(left), more, packet), was_empty)
        };
        from.untake(taken - pushed);
        if pushed > 0 && was_empty {
            self.pipe.readers.wake(READ_EVENTS.bits());
        }
        match taken < wanted {
            true if pushed == 0 && first => Err(Errno::EFAULT.into()),
            true => Ok((Step::Done, pushed)),
            false if pushed == left => Ok((Step::Done, pushed)),
            false => Ok((Step::Again, pushed)),
        }
    }
}

impl PipeEnd {
    fn read_all(
        &self,
        file: &FileDescription,
        caller: &dyn Caller,
        to: &mut dyn UserWrite,
    ) -> SysResult<usize> {
        let mut done = 0;
        while to.room() > 0 {
            match self.read_step(caller.waiter(), to, &mut done)? {
                Step::Again => {}
                Step::Done => break,
                Step::Wait if file.is_nonblocking() => return Err(Errno::EAGAIN.into()),
                Step::Wait => {
                    tell(&self.pipe.async_writers, PollCode::OUT);
                    wait_as(caller, &[&self.pipe.readers], None, || {
                        let state = self.pipe.state.lock();
                        (!state.ring.is_empty() || state.writers == 0).then_some(())
                    })?
                }
            }
        }
        Ok(done)
    }

    fn write_all(
        &self,
        file: &FileDescription,
        caller: &dyn Caller,
        from: &mut dyn UserRead,
    ) -> SysResult<usize> {
        let mut done = 0;
        while from.left() > 0 {
            let packet = file.flags().contains(OpenFlags::DIRECT);
            let stopped = match self.write_step(packet, from, done == 0) {
                Ok((Step::Done, pushed)) => {
                    done += pushed;
                    break;
                }
                Ok((Step::Again, pushed)) => {
                    done += pushed;
                    continue;
                }
                Ok((Step::Wait, _)) if file.is_nonblocking() => Errno::EAGAIN.into(),
                Ok((Step::Wait, _)) => {
                    tell(&self.pipe.async_readers, PollCode::IN);
                    let waited = wait_as(caller, &[&self.pipe.writers], None, || {
                        let state = self.pipe.state.lock();
                        (!state.ring.is_full() || state.readers == 0).then_some(())
                    });
                    match waited {
                        Ok(()) => continue,
                        Err(end) => SysError::from(end),
                    }
                }
                Err(error) => error,
            };
            if stopped == SysError::Errno(Errno::EPIPE) {
                caller.broken_pipe();
            }
            if done == 0 {
                return Err(stopped);
            }
            break;
        }
        if done > 0 {
            // Each write is an edge for those who poll, even if there were bytes before.
            self.pipe.readers.wake(READ_EVENTS.bits());
        }
        Ok(done)
    }
}

impl FileOps for PipeEnd {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn read(&self, file: &FileDescription, caller: &dyn Caller, to: &mut dyn UserWrite) -> SysResult<usize> {
        if to.room() == 0 {
            return Ok(0);
        }
        let result = self.read_all(file, caller, to);
        // Whatever came of it (Linux: `pipe_read`).
        tell(&self.pipe.async_writers, PollCode::OUT);
        result
    }

    fn write(
        &self,
        file: &FileDescription,
        caller: &dyn Caller,
        from: &mut dyn UserRead,
    ) -> SysResult<usize> {
        if from.left() == 0 {
            return Ok(0);
        }
        let result = self.write_all(file, caller, from);
        // Whatever came of it (Linux: `pipe_write`).
        tell(&self.pipe.async_readers, PollCode::IN);
        result
    }

    /// Linux: `pipe_fasync`.
    fn fasync(&self, file: &Arc<FileDescription>, _: &dyn Caller, on: bool) -> SysResult<()> {
        if self.reads {
            self.pipe.async_readers.set(file, on);
        }
        if self.writes {
            self.pipe.async_writers.set(file, on);
        }
        Ok(())
    }

    fn attributes(&self) -> Option<SysResult<Attributes>> {
        self.pipe.attributes.as_ref().map(|own| Ok(own.get()))
    }

    fn set_attributes(&self, change: &AttributeChange) -> SysResult<()> {
        self.pipe.attributes.as_ref().ok_or(Errno::EPERM)?.change(change)
    }

    fn ioctl(&self, _: &FileDescription, caller: &dyn Caller, command: u32, at: u64) -> SysResult<usize> {
        if Ioctl(command) != Ioctl::FIONREAD {
            return Err(Errno::ENOTTY.into());
        }
        let bytes = i32::try_from(self.pipe.state.lock().ring.len()).unwrap_or(i32::MAX);
        caller.write_user(UserAddr(at), &bytes.to_le_bytes())?;
        Ok(0)
    }

    fn fcntl(
        &self,
        _: &FileDescription,
        caller: &dyn Caller,
        command: FcntlCmd,
        argument: u64,
    ) -> SysResult<usize> {
        match command {
            FcntlCmd::GETPIPE_SZ => Ok(self.pipe.state.lock().ring.slots() * PAGE),
            FcntlCmd::SETPIPE_SZ => self.pipe.set_size(caller, argument & 0xffff_ffff),
            _ => Err(Errno::EINVAL.into()),
        }
    }

    fn poll(&self, _: &FileDescription) -> Ready {
        let state = self.pipe.state.lock();
        let mut ready = Ready::empty();
        if self.reads {
            ready.set(Ready::READABLE, !state.ring.is_empty());
            ready.set(Ready::HUP, state.writers == 0 && self.opened_before != Some(state.write_opens));
        }
        if self.writes {
            ready.set(Ready::WRITABLE, !state.ring.is_full());
            ready.set(Ready::ERR, state.readers == 0);
        }
        ready
    }

    fn wait_queues(&self) -> SmallVec<[&WaitQueue; 2]> {
        let mut queues = SmallVec::new();
        if self.reads {
            queues.push(&self.pipe.readers);
        }
        if self.writes {
            queues.push(&self.pipe.writers);
        }
        queues
    }

    fn locks(&self) -> Option<&FileLocks> {
        self.pipe.attributes.as_ref().map(OwnAttributes::locks)
    }

    fn link_name(&self) -> Option<String> {
        self.pipe.attributes.as_ref().map(|own| format!("pipe:[{}]", own.get().ino))
    }
}

impl Drop for PipeEnd {
    /// The end's last descriptor is closed (Linux: `pipe_release`).
    fn drop(&mut self) {
        self.pipe.leave(self.reads, self.writes);
    }
}

/// Signals to the owners of open files, as the calling thread's task.
fn tell(files: &AsyncFiles, code: PollCode) {
    if files.is_empty() {
        return;
    }
    // The threads of no task only close pipes when all ends.
    if let Some(task) = task_of_this_thread() {
        tell_all(&task.kernel, files, code);
    }
}

impl Pipe {
    /// One reader, writer or both less; who is left is told if one side has gone.
    fn leave(&self, reads: bool, writes: bool) {
        let one_sided = {
            let mut state = self.state.lock();
            state.readers -= usize::from(reads);
            state.writers -= usize::from(writes);
            (state.readers == 0) != (state.writers == 0)
        };
        if one_sided {
            let gone = Ready::ERR | Ready::HUP;
            self.readers.wake((READ_EVENTS | gone).bits());
            self.writers.wake((WRITE_EVENTS | gone).bits());
            tell(&self.async_readers, PollCode::IN);
            tell(&self.async_writers, PollCode::OUT);
        }
    }
}
