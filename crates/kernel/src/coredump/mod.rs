//! Core files: what a process that a signal ends leaves for a debugger (core(5)).
//!
//! The thread that takes the signal writes the file ([`CurrentTask::dump_core`]), in the working directory, with its
//! own credentials and limits. The others stop on their way out and hand in their registers first ([`CoreDump`]), and
//! wait, so that memory stays as it was.
//!
//! Modules: `name` (what core_pattern makes of it), `notes` (registers and the like), `image` (the ELF file, and
//! which mappings are in it). Neighbours: `signal::deliver` asks for it, `task::exit` takes part.
//!
//! Linux: a pattern may also name a program or a socket that gets the core; here it is refused when it is set.

mod image;
mod name;
mod notes;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use abi::{AT_FDCWD, Errno, FileMode, FileType, OpenFlags, SigSet, Siginfo};
use platform::Registers;
use sync::{Mutex, SysResult, WaitQueue, Waiter, order};
use vfs::FileDescription;
use vfs::ops::{self, OpenRequest};

use crate::resource::{self, Usage};
use crate::task::{CurrentTask, GroupExit};

/// The settings in `/proc/sys/kernel`.
pub struct CoreSettings {
    pattern: Mutex<order::Leaf, Vec<u8>>,
    /// `core_uses_pid`: the pid follows a name that has none.
    pub uses_pid: AtomicBool,
}

impl Default for CoreSettings {
    fn default() -> Self {
        CoreSettings { pattern: Mutex::new(b"core".to_vec()), uses_pid: AtomicBool::new(false) }
    }
}

impl CoreSettings {
    /// Bytes of a pattern (`CORENAME_MAX_SIZE`), one less for its end.
    const MAX_LEN: usize = 127;

    /// `core_pattern`.
    pub fn pattern(&self) -> Vec<u8> {
        self.pattern.lock().clone()
    }

    /// Sets `core_pattern`. `EINVAL`: it names a program or socket, which are not there for guests.
    pub fn set_pattern(&self, pattern: &[u8]) -> SysResult<()> {
        if matches!(pattern.first(), Some(b'|' | b'@')) {
            return Err(Errno::EINVAL.into());
        }
        *self.pattern.lock() = pattern.iter().copied().take(Self::MAX_LEN).collect();
        Ok(())
    }
}

/// `/proc/PID/coredump_filter` of a new process: private memory, shared memory, and the heads of ELF files.
pub const DEFAULT_FILTER: u32 = 0x33;

/// A core file that is being made: what the threads of its process share.
pub struct CoreDump {
    /// The thread that writes it.
    dumper: i32,
    threads: Mutex<order::Leaf, Vec<ThreadState>>,
    /// Woken when a thread has handed in its state, and when it is done.
    changed: WaitQueue,
    done: AtomicBool,
    /// SIGKILL came: it ends as it is (Linux: `dump_interrupted`).
    given_up: AtomicBool,
}

/// What a core file tells of a thread.
pub(crate) struct ThreadState {
    tid: i32,
    registers: Registers,
    /// As `PTRACE_GETREGSET` gives it for `NT_X86_XSTATE`.
    xstate: Vec<u8>,
    pending: SigSet,
    blocked: SigSet,
    usage: Usage,
}

impl CoreDump {
    /// SIGKILL was sent.
    pub(crate) fn give_up(&self) {
        self.given_up.store(true, Ordering::Relaxed);
    }

    fn is_given_up(&self) -> bool {
        self.given_up.load(Ordering::Relaxed)
    }
}

/// Lets the other threads go on to their end, however the dump went.
struct Finish<'a>(&'a CoreDump);

impl Drop for Finish<'_> {
    fn drop(&mut self) {
        self.0.done.store(true, Ordering::SeqCst);
        self.0.changed.wake(0);
    }
}

/// How long the other threads may take to stop.
const PATIENCE: Duration = Duration::from_secs(10);
/// Smaller limits are none (`min_coredump`).
const SMALLEST: u64 = abi::PAGE_SIZE;

impl CurrentTask {
    /// Writes a core file for the signal that ends the process, if limits and permissions let it. The group is ending
    /// by that signal when this returns with `true`, and its status tells of the file.
    ///
    /// Linux: `vfs_coredump`.
    pub(crate) fn dump_core(&mut self, info: &Siginfo) -> bool {
        let limit = self.limit(resource::CORE);
        if limit < SMALLEST || self.group().dumpable.load(Ordering::Relaxed) != 1 {
            return false;
        }
        let Some(dump) = self.begin_core_dump(info) else { return false };
        let finish = Finish(&dump);
        self.wait_for_other_threads(&dump);
        let written = self.open_core(info, limit).and_then(|file| {
            let mut threads = std::mem::take(&mut *dump.threads.lock());
            threads.sort_by_key(|thread| thread.tid);
            threads.insert(0, self.thread_state()?);
            self.write_core(&file, info, limit, &threads, &dump)
        });
        if let Err(error) = &written {
            tracing::debug!(pid = self.pid(), %error, "no core file");
        }
        drop(finish);
        let core = written.is_ok();
        self.group().signals.lock().exit = Some(GroupExit::Signal { signal: info.signo, core });
        true
    }

    /// Decides that the group ends by this signal, and stops its other threads. `None`: it is ending already.
    fn begin_core_dump(&self, info: &Siginfo) -> Option<Arc<CoreDump>> {
        let dump = Arc::new(CoreDump {
            dumper: self.tid(),
            threads: Mutex::default(),
            changed: WaitQueue::new(),
            done: AtomicBool::new(false),
            given_up: AtomicBool::new(false),
        });
        {
            let tasks = self.kernel().tasks.lock();
            let mut state = self.group().signals.lock();
            if state.exit.is_some() || state.exec_by.is_some() {
                return None;
            }
            state.exit = Some(GroupExit::Signal { signal: info.signo, core: false });
            state.dump = Some(dump.clone());
            state.end_stop();
            self.kick_others_to_end(&tasks);
        }
        self.group().resume.wake(0);
        Some(dump)
    }

    fn wait_for_other_threads(&self, dump: &CoreDump) {
        // Of its own: what else is sent to this thread does not end the wait.
        let waiter = Waiter::new();
        let deadline = Instant::now() + PATIENCE;
        // A late one is left out.
        let _ = waiter.wait(&[&dump.changed, &self.group().events], Some(deadline), || {
            let threads = self.kernel().tasks.threads(self.pid());
            let handed_in = dump.threads.lock();
            let is_here = |tid: i32| tid == dump.dumper || handed_in.iter().any(|state| state.tid == tid);
            let all = threads.iter().all(|thread| is_here(thread.tid()));
            (all || dump.is_given_up()).then_some(())
        });
    }

    /// A thread on its way out takes part in a dump of its process: its state is in the file, and it waits until its
    /// memory has been written.
    pub(crate) fn take_part_in_core_dump(&mut self) {
        let dump = self.group().signals.lock().dump.clone();
        let Some(dump) = dump.filter(|dump| dump.dumper != self.tid()) else { return };
        if let Ok(state) = self.thread_state() {
            dump.threads.lock().push(state);
        }
        dump.changed.wake(0);
        let waiter = Waiter::new();
        // It ends: whoever dumps says so on every way out.
        let _ = waiter.wait(&[&dump.changed], None, || dump.done.load(Ordering::SeqCst).then_some(()));
    }

    fn thread_state(&mut self) -> SysResult<ThreadState> {
        let is_leader = self.tid() == self.pid();
        // One lock after the other.
        let pending = self.task.pending.lock().set();
        // Linux: a leader's times are the whole process's.
        let usage = if is_leader { self.group_usage() } else { self.task.usage() };
        Ok(ThreadState {
            tid: self.tid(),
            registers: *self.context.registers(),
            xstate: self.context.fp_state()?,
            pending,
            blocked: self.task.blocked(),
            usage,
        })
    }

    /// Makes the file anew. What is not an ordinary file of the process's own is left alone.
    fn open_core(&self, info: &Siginfo, limit: u64) -> SysResult<Arc<FileDescription>> {
        let name = self.core_name(info.signo, limit);
        let context = self.fs_context();
        // One of an earlier run; whether that works shows below.
        let _ = ops::unlink(&context, AT_FDCWD, &name);
        let flags = OpenFlags::CREAT | OpenFlags::EXCL | OpenFlags::WRONLY | OpenFlags::NOFOLLOW;
        let file = ops::open(&context, AT_FDCWD, &name, &OpenRequest::open(flags, 0o600)?)?;
        let attributes = file.attributes()?;
        let is_own = attributes.uid == self.cred.fsuid && attributes.nlink <= 1;
        let mode: FileMode = attributes.mode;
        if !is_own || mode.file_type() != FileType::REG || mode.bits() & 0o677 != 0o600 {
            return Err(Errno::EPERM.into());
        }
        Ok(file)
    }
}
