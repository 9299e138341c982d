//! The open slave: what programs take for their terminal.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use abi::{Errno, LocalFlags, Signal};
use smallvec::{SmallVec, smallvec};
use sync::{SysError, SysResult, WaitEnd, WaitQueue};
use tty::{Chunk, PtyPair, Read, Timer, Wait};
use vfs::{Caller, FileDescription, FileOps, Ready, UserRead, UserWrite};

use crate::task::{CurrentTask, current};
use crate::tty::{Terminal, ioctl, job};

/// Bytes taken from a writer at a time.
const CHUNK: usize = 4096;

/// An open slave.
pub struct Slave {
    pub(super) terminal: Arc<Terminal>,
    /// When it was opened: a hang-up since makes it dead.
    opened: u64,
}

impl Slave {
    /// Opens it. `EIO`: locked, or its master has gone; `EBUSY`: somebody has it exclusively.
    pub(super) fn open(terminal: Arc<Terminal>, task: &CurrentTask) -> SysResult<Slave> {
        let opened = {
            let mut state = terminal.state.lock();
            if state.exclusive && !task.cred.capable(vfs::Capability::SYS_ADMIN) {
                return Err(Errno::EBUSY.into());
            }
            state.pair.open_slave()?
        };
        Ok(Slave { terminal, opened })
    }

    pub(super) fn is_hung_up(&self) -> bool {
        self.terminal.state.lock().pair.is_hung_up(self.opened)
    }

    fn peek(&self, max: usize) -> Read {
        let state = self.terminal.state.lock();
        if state.pair.is_hung_up(self.opened) { Read::HungUp } else { state.pair.peek_slave(max) }
    }

    fn give(&self, chunk: &Chunk, to: &mut dyn UserWrite) -> SysResult<usize> {
        let put = to.put(&chunk.bytes);
        self.terminal.change(|pair, fx| pair.line_mut().commit(chunk, put, fx));
        if put == 0 && !chunk.bytes.is_empty() { Err(Errno::EFAULT.into()) } else { Ok(put) }
    }

    /// What a read gets that cannot wait any longer; `otherwise` if there is nothing.
    fn give_now(&self, max: usize, to: &mut dyn UserWrite, otherwise: SysResult<usize>) -> SysResult<usize> {
        let chunk = self.terminal.state.lock().pair.line().peek_now(max);
        match chunk {
            Some(chunk) => self.give(&chunk, to),
            None => otherwise,
        }
    }
}

/// When a wait ends by itself.
fn deadline(wait: &Wait, call: Instant, last_byte: Instant) -> Option<Instant> {
    let tenths = |count: u8| Duration::from_millis(u64::from(count) * 100);
    match wait.timer {
        Timer::Forever => None,
        Timer::FromCall(count) => call.checked_add(tenths(count)),
        Timer::FromLastByte(count) => last_byte.checked_add(tenths(count)),
    }
}

impl FileOps for Slave {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn read(&self, file: &FileDescription, caller: &dyn Caller, to: &mut dyn UserWrite) -> SysResult<usize> {
        let task = current(caller)?;
        if self.is_hung_up() {
            return Ok(0);
        }
        job::check_change(&self.terminal, task, Signal::TTIN)?;
        self.terminal.claim_host();
        let _turn = self.terminal.read_turn.lock_interruptible(&task.waiter)?;
        let max = to.room().min(64 << 10);
        let (call, mut last_byte, mut ready, mut waited) = (Instant::now(), Instant::now(), 0, false);
        loop {
            let wait = match self.peek(max) {
                Read::Ready(chunk) => return self.give(&chunk, to),
                Read::HungUp if waited => return Err(Errno::EIO.into()),
                Read::HungUp => return Ok(0),
                Read::PeerClosed => return Err(Errno::EIO.into()),
                Read::Wait(wait) => wait,
            };
            if wait.ready > ready {
                (ready, last_byte) = (wait.ready, Instant::now());
            }
            if file.is_nonblocking() {
                return self.give_now(max, to, Err(Errno::EAGAIN.into()));
            }
            waited = true;
            let changed = |_: &CurrentTask| match self.peek(max) {
                Read::Wait(now) if now == wait => None,
                _ => Some(()),
            };
            match task.wait(&[&self.terminal.readers], deadline(&wait, call, last_byte), changed) {
                Ok(()) => {}
                Err(WaitEnd::TimedOut) => return self.give_now(max, to, Ok(0)),
                Err(WaitEnd::Interrupted(restart)) => {
                    return self.give_now(max, to, Err(SysError::Restart(restart)));
                }
            }
        }
    }

    fn write(
        &self,
        file: &FileDescription,
        caller: &dyn Caller,
        from: &mut dyn UserRead,
    ) -> SysResult<usize> {
        let task = current(caller)?;
        if self.is_hung_up() {
            return Err(Errno::EIO.into());
        }
        let stops = self.terminal.termios().lflag.contains(LocalFlags::TOSTOP);
        if stops {
            job::check_change(&self.terminal, task, Signal::TTOU)?;
        }
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
                let accepted = match self.is_hung_up() {
                    true => Err(Errno::EIO),
                    false => self.terminal.change(|pair, fx| pair.write_slave(bytes, fx)),
                };
                let accepted = match accepted {
                    Ok(count) => count,
                    Err(_) if done > 0 => return Ok(done),
                    Err(error) => return Err(error.into()),
                };
                done += accepted;
                bytes = bytes.get(accepted..).unwrap_or(&[]);
                if bytes.is_empty() {
                    break;
                }
                if !self.terminal.async_slaves.is_empty() {
                    self.terminal.slave_wants_room.store(true, Ordering::Relaxed);
                }
                let end = match file.is_nonblocking() {
                    true => Err(SysError::Errno(Errno::EAGAIN)),
                    false => {
                        let room = |_: &CurrentTask| {
                            let state = self.terminal.state.lock();
                            (state.pair.line().is_writable() || state.pair.is_hung_up(self.opened))
                                .then_some(())
                        };
                        task.wait(&[&self.terminal.writers], None, room).map_err(SysError::from)
                    }
                };
                if let Err(error) = end {
                    from.untake(bytes.len());
                    return if done > 0 { Ok(done) } else { Err(error) };
                }
            }
        }
        Ok(done)
    }

    fn fasync(&self, file: &Arc<FileDescription>, caller: &dyn Caller, on: bool) -> SysResult<()> {
        self.terminal.fasync(&self.terminal.async_slaves, file, current(caller)?, on)
    }

    fn ioctl(
        &self,
        file: &FileDescription,
        caller: &dyn Caller,
        command: u32,
        argument: u64,
    ) -> SysResult<usize> {
        ioctl::slave(self, file, current(caller)?, command, argument)
    }

    fn poll(&self, _: &FileDescription) -> Ready {
        self.terminal.claim_host();
        let state = self.terminal.state.lock();
        let events =
            if state.pair.is_hung_up(self.opened) { PtyPair::HUNG_UP } else { state.pair.poll_slave() };
        Ready::from_bits_truncate(u32::from(events.bits()))
    }

    fn wait_queues(&self) -> SmallVec<[&WaitQueue; 2]> {
        smallvec![&self.terminal.readers, &self.terminal.writers]
    }
}

impl Drop for Slave {
    fn drop(&mut self) {
        if !self.is_hung_up() {
            self.terminal.change(PtyPair::close_slave);
        }
    }
}
