//! The open master: the program that plays the terminal.

use std::any::Any;
use std::sync::Arc;

use abi::Errno;
use smallvec::{SmallVec, smallvec};
use sync::{SysError, SysResult, WaitQueue};
use tty::{PtyPair, Read};
use vfs::{Caller, FileDescription, FileOps, Ready, UserRead, UserWrite};

use crate::task::{CurrentTask, current};
use crate::tty::{Terminal, ioctl};

/// Bytes moved at a time.
const CHUNK: usize = 4096;

/// An open master.
pub struct Master {
    pub(super) terminal: Arc<Terminal>,
}

impl FileOps for Master {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn read(&self, file: &FileDescription, caller: &dyn Caller, to: &mut dyn UserWrite) -> SysResult<usize> {
        let task = current(caller)?;
        let _turn = self.terminal.master_turn.lock_interruptible(&task.waiter)?;
        let max = to.room().min(64 << 10);
        let look = |_: &CurrentTask| match self.terminal.state.lock().pair.peek_master(max) {
            Read::Wait(_) => None,
            other => Some(other),
        };
        let found = match look(task) {
            Some(found) => found,
            None if file.is_nonblocking() => return Err(Errno::EAGAIN.into()),
            None => task.wait(&[&self.terminal.device_readers], None, look)?,
        };
        let Read::Ready(chunk) = found else { return Err(Errno::EIO.into()) };
        let put = to.put(&chunk.bytes);
        self.terminal.change(|pair, fx| pair.commit_master(&chunk, put, fx));
        if put == 0 && !chunk.bytes.is_empty() { Err(Errno::EFAULT.into()) } else { Ok(put) }
    }

    fn write(
        &self,
        file: &FileDescription,
        caller: &dyn Caller,
        from: &mut dyn UserRead,
    ) -> SysResult<usize> {
        let task = current(caller)?;
        let mut done = 0;
        let mut buffer = vec![0; from.left().min(CHUNK)];
        while from.left() > 0 {
            let wanted = from.left().min(CHUNK);
            let taken = from.take(buffer.get_mut(..wanted).unwrap_or(&mut []));
            if taken == 0 {
                return if done > 0 { Ok(done) } else { Err(Errno::EFAULT.into()) };
            }
            let mut bytes = buffer.get(..taken).unwrap_or(&[]);
            while !bytes.is_empty() {
                let accept =
                    |_: &CurrentTask| match self.terminal.change(|pair, fx| pair.write_master(bytes, fx)) {
                        0 => None,
                        count => Some(count),
                    };
                let accepted = match accept(task) {
                    Some(count) => Ok(count),
                    None if file.is_nonblocking() => Err(SysError::Errno(Errno::EAGAIN)),
                    None => task.wait(&[&self.terminal.device_writers], None, accept).map_err(SysError::from),
                };
                match accepted {
                    Ok(count) => {
                        done += count;
                        bytes = bytes.get(count..).unwrap_or(&[]);
                    }
                    Err(error) => {
                        from.untake(bytes.len());
                        return if done > 0 { Ok(done) } else { Err(error) };
                    }
                }
            }
        }
        Ok(done)
    }

    fn fasync(&self, file: &Arc<FileDescription>, caller: &dyn Caller, on: bool) -> SysResult<()> {
        self.terminal.fasync(&self.terminal.async_masters, file, current(caller)?, on)
    }

    fn ioctl(
        &self,
        _: &FileDescription,
        caller: &dyn Caller,
        command: u32,
        argument: u64,
    ) -> SysResult<usize> {
        ioctl::master(self, current(caller)?, command, argument)
    }

    fn poll(&self, _: &FileDescription) -> Ready {
        let events = self.terminal.state.lock().pair.poll_master();
        Ready::from_bits_truncate(u32::from(events.bits()))
    }

    fn wait_queues(&self) -> SmallVec<[&WaitQueue; 2]> {
        smallvec![&self.terminal.device_readers, &self.terminal.device_writers]
    }
}

impl Drop for Master {
    fn drop(&mut self) {
        if let Some(kernel) = self.terminal.kernel.upgrade() {
            kernel.ptys.remove(&self.terminal);
        }
        self.terminal.change(PtyPair::close_master);
    }
}
