//! Terminals: ptys with their line discipline, sessions and job control.
//!
//! A [`Terminal`] is a pty pair (crate `tty`, pure data) with what makes it live: locks, wait queues, its session and
//! foreground group. [`Ptys`] is the table of all; `slave.rs` and `master.rs` are the open files, `job.rs` the
//! rules of job control, `host.rs` what the user's terminal adds to them, `ioctl.rs` the requests, `open.rs` the device nodes.
//!
//! The host's terminal is no special case: its console is a pty whose master the command line pumps.
//!
//! Lock levels: `Tty` (one terminal), below `Tasks`; effects (signals, wakes) happen behind the lock.

mod host;
mod ioctl;
mod job;
mod master;
mod open;
mod slave;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use abi::{Errno, FOwnerEx, FOwnerType, PollCode, SiCode, Siginfo, Signal, Winsize};
use sync::{Mutex, SleepLock, SysResult, WaitQueue, Waiter, order};
use tty::{Effects, PtyPair, Read};
use vfs::{AsyncFiles, FileDescription};

use crate::fs::async_io::{self, tell_all};
use crate::kernel::Kernel;
use crate::task::CurrentTask;

pub use host::HostTerminal;
pub(crate) use job::leader_exits;
pub use master::Master;
pub(crate) use open::use_as_console;
pub use open::{PTS_MAJOR, TTY_GROUP, TerminalDevices};
pub use slave::Slave;

/// Ptys at once, at most (`/proc/sys/kernel/pty/max`).
const MAX_PTYS: u32 = 4096;

/// A terminal.
pub struct Terminal {
    pub index: u32,
    kernel: Weak<Kernel>,
    state: Mutex<order::Tty, State>,
    /// Readers of the slave and of the master take turns.
    read_turn: SleepLock,
    master_turn: SleepLock,
    readers: WaitQueue,
    writers: WaitQueue,
    device_readers: WaitQueue,
    device_writers: WaitQueue,
    /// Open slaves and masters whose owners want signals.
    async_slaves: AsyncFiles,
    async_masters: AsyncFiles,
    /// A slave with such an owner could not write all: the owner hears when there is room (Linux: `TTY_DO_WRITE_WAKEUP`).
    slave_wants_room: AtomicBool,
    /// The host's terminal that it stands for, if it is the console.
    host: OnceLock<Box<dyn HostTerminal>>,
}

struct State {
    pair: PtyPair,
    /// The session that it controls; 0 for none.
    session: i32,
    /// The process group in the foreground; 0 for none.
    foreground: i32,
    /// `TIOCEXCL`.
    exclusive: bool,
}

impl Terminal {
    fn new(index: u32, kernel: &Arc<Kernel>) -> Arc<Terminal> {
        let state = State { pair: PtyPair::new(), session: 0, foreground: 0, exclusive: false };
        Arc::new(Terminal {
            index,
            kernel: Arc::downgrade(kernel),
            state: Mutex::new(state),
            read_turn: SleepLock::new(),
            master_turn: SleepLock::new(),
            readers: WaitQueue::new(),
            writers: WaitQueue::new(),
            device_readers: WaitQueue::new(),
            device_writers: WaitQueue::new(),
            async_slaves: AsyncFiles::default(),
            async_masters: AsyncFiles::default(),
            slave_wants_room: AtomicBool::new(false),
            host: OnceLock::new(),
        })
    }

    /// Its device number.
    pub fn dev(&self) -> u64 {
        abi::makedev(PTS_MAJOR, self.index)
    }

    /// Changes the pair, then does what follows from it.
    fn change<T>(&self, change: impl FnOnce(&mut PtyPair, &mut Effects) -> T) -> T {
        let mut effects = Effects::default();
        let (result, foreground, session) = {
            let mut state = self.state.lock();
            let result = change(&mut state.pair, &mut effects);
            (result, state.foreground, state.session)
        };
        self.carry_out(&effects, foreground, session);
        result
    }

    fn carry_out(&self, effects: &Effects, foreground: i32, session: i32) {
        if effects.is_empty() {
            return;
        }
        if let Some(kernel) = self.kernel.upgrade() {
            if foreground != 0 {
                for signal in &effects.signals {
                    signal_group(&kernel, foreground, *signal);
                }
            }
            if effects.hang_up && session != 0 {
                job::hung_up(&kernel, self, session, foreground);
            }
            self.tell_owners(&kernel, effects);
        }
        for (wanted, queue) in [
            (effects.wake_readers, &self.readers),
            (effects.wake_writers, &self.writers),
            (effects.wake_device_readers, &self.device_readers),
            (effects.wake_device_writers, &self.device_writers),
        ] {
            if wanted {
                queue.wake(0);
            }
        }
    }

    /// Signals to the owners of files with `O_ASYNC`. A hang-up takes the slaves off the list (Linux: `__tty_hangup`).
    fn tell_owners(&self, kernel: &Kernel, effects: &Effects) {
        if effects.wake_readers && !effects.hang_up {
            tell_all(kernel, &self.async_slaves, PollCode::IN);
        }
        if effects.wake_device_readers {
            tell_all(kernel, &self.async_masters, PollCode::IN);
        }
        if effects.wake_writers && self.slave_wants_room.swap(false, Ordering::Relaxed) {
            tell_all(kernel, &self.async_slaves, PollCode::OUT);
        }
    }

    /// `O_ASYNC` of one of its files. Who has no owner gets the foreground group, or the caller (Linux: `__tty_fasync`).
    fn fasync(
        &self,
        list: &AsyncFiles,
        file: &Arc<FileDescription>,
        task: &CurrentTask,
        on: bool,
    ) -> SysResult<()> {
        list.set(file, on);
        if on && file.state.owner().pid == 0 {
            let owner = match self.session() {
                (_, 0) => FOwnerEx { owner_type: FOwnerType::PID, pid: task.pid() },
                (_, foreground) => FOwnerEx { owner_type: FOwnerType::PGRP, pid: foreground },
            };
            async_io::set_owner(task, file, owner)?;
        }
        Ok(())
    }

    /// The session that it controls and its foreground group; 0 for none.
    pub fn session(&self) -> (i32, i32) {
        let state = self.state.lock();
        (state.session, state.foreground)
    }

    // What the console's pump does: the master's side, without a task.

    /// Lets slaves be opened.
    pub fn unlock(&self) {
        self.state.lock().pair.set_locked(false);
    }

    /// Gives input to the terminal, as typed; waits for room. `false`: nobody will read it any more.
    pub fn type_in(&self, waiter: &Waiter, mut bytes: &[u8]) -> bool {
        while !bytes.is_empty() {
            let accept = || match self.change(|pair, fx| pair.write_master(bytes, fx)) {
                0 => None,
                count => Some(count),
            };
            match waiter.wait(&[&self.device_writers], None, accept) {
                Ok(count) => bytes = bytes.get(count..).unwrap_or(&[]),
                Err(_) => return false,
            }
        }
        true
    }

    /// What programs wrote, at most `max` bytes; waits for some. Empty: the waiter was interrupted.
    pub fn take_output(&self, waiter: &Waiter, max: usize) -> Vec<u8> {
        let take = || match self.state.lock().pair.peek_master(max) {
            Read::Ready(chunk) if !chunk.bytes.is_empty() => Some(chunk),
            _ => None,
        };
        match waiter.wait(&[&self.device_readers], None, take) {
            Ok(chunk) => {
                self.change(|pair, fx| pair.commit_master(&chunk, chunk.bytes.len(), fx));
                chunk.bytes
            }
            Err(_) => Vec::new(),
        }
    }

    /// The other end has gone: SIGHUP to its session, end of file for who reads (Linux: `tty_vhangup`).
    pub fn hang_up(&self) {
        self.change(tty::PtyPair::close_master);
    }

    /// A new window size.
    pub fn set_size(&self, size: Winsize) {
        self.change(|pair, fx| pair.set_size(size, fx));
    }

    /// The settings that programs made.
    pub fn termios(&self) -> abi::Termios2 {
        *self.state.lock().pair.line().termios()
    }
}

fn signal_group(kernel: &Arc<Kernel>, pgid: i32, signal: Signal) {
    let info = Siginfo::kill(signal, SiCode::KERNEL, 0, 0);
    // An empty group has nobody to tell.
    let _ = kernel.tasks.lock().send_to_process_group(pgid, info);
}

/// All ptys of a kernel.
#[derive(Default)]
pub struct Ptys {
    by_index: Mutex<order::FileSystem, BTreeMap<u32, Entry>>,
}

/// A pty in the table: there while its master is open, and what its node in devpts shows.
#[derive(Clone)]
pub struct Entry {
    pub terminal: Arc<Terminal>,
    pub uid: u32,
    pub gid: u32,
    pub permissions: u32,
    pub made: abi::Timespec,
}

impl Ptys {
    /// A new pty with the lowest free number, owned as its node in devpts shows. `ENOSPC`: there are too many.
    pub fn create(&self, kernel: &Arc<Kernel>, uid: u32, gid: u32) -> SysResult<Arc<Terminal>> {
        let mut table = self.by_index.lock();
        let index = (0..MAX_PTYS).find(|index| !table.contains_key(index)).ok_or(Errno::ENOSPC)?;
        let terminal = Terminal::new(index, kernel);
        let since = std::time::SystemTime::now().duration_since(std::time::SystemTime::UNIX_EPOCH);
        let made = crate::time::timespec(since.unwrap_or_default());
        // Debian mounts devpts with gid=5 (tty) and mode 620.
        table.insert(index, Entry { terminal: terminal.clone(), uid, gid, permissions: 0o620, made });
        Ok(terminal)
    }

    pub fn get(&self, index: u32) -> Option<Entry> {
        self.by_index.lock().get(&index).cloned()
    }

    /// Changes owner or mode of a node.
    pub fn update(&self, index: u32, change: impl FnOnce(&mut Entry)) {
        if let Some(entry) = self.by_index.lock().get_mut(&index) {
            change(entry);
        }
    }

    /// The numbers in use.
    pub fn indices(&self) -> Vec<u32> {
        self.by_index.lock().keys().copied().collect()
    }

    fn remove(&self, terminal: &Terminal) {
        let mut table = self.by_index.lock();
        if table.get(&terminal.index).is_some_and(|entry| std::ptr::eq(&*entry.terminal, terminal)) {
            table.remove(&terminal.index);
        }
    }
}
