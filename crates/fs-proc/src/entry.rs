//! What a place of the tree is.

use std::sync::Arc;

use abi::Errno;
use kernel::kernel::Kernel;
use kernel::task::{CurrentTask, Task, ThreadGroup};
use sync::{SysError, SysResult};

/// One name in a directory of fixed names.
pub(crate) struct Entry {
    pub name: &'static str,
    /// Permission bits.
    pub mode: u32,
    pub kind: Kind,
}

/// What is behind a name.
#[derive(Clone, Copy)]
pub(crate) enum Kind {
    /// A text.
    File(Render),
    /// A text that only those can open whom the check lets; whoever has it open asks again at each reading.
    Checked(Render, Check),
    /// A file of its own kind.
    Opened(Open),
    /// A text that can be set.
    Setting(Render, Store),
    /// A link whose text depends on who reads it.
    Link(Render),
    /// A link to an object.
    Object(Follow),
    Directory(&'static [Entry]),
    /// `/proc/PID/fd` and `fdinfo`.
    Descriptors {
        info: bool,
    },
    /// `/proc/PID/task`.
    Threads,
}

pub(crate) type Render = fn(&Cx<'_>) -> SysResult<Vec<u8>>;
pub(crate) type Open = fn(&Cx<'_>) -> SysResult<Box<dyn vfs::FileOps>>;
pub(crate) type Check = fn(&Cx<'_>) -> SysResult<()>;
pub(crate) type Store = fn(&Cx<'_>, &[u8]) -> SysResult<()>;
pub(crate) type Follow = fn(&Cx<'_>) -> SysResult<vfs::MagicTarget>;

/// What a text is made from.
pub(crate) struct Cx<'a> {
    pub kernel: &'a Arc<Kernel>,
    /// Who reads.
    pub reader: &'a CurrentTask,
    /// The process (and thread) of the directory; `None` outside of any.
    pub of: Option<Of>,
}

/// A process, or a thread of it.
#[derive(Clone)]
pub(crate) struct Of {
    pub group: Arc<ThreadGroup>,
    /// The thread, or the leader; `None` for a zombie and for an init without threads.
    pub task: Option<Arc<Task>>,
    /// In `/proc/PID/task/TID`: of that thread alone.
    pub single: bool,
}

impl Cx<'_> {
    /// The process. `ESRCH`: gone, or none meant.
    pub(crate) fn of(&self) -> SysResult<&Of> {
        self.of.as_ref().ok_or(SysError::Errno(Errno::ESRCH))
    }

    /// Its thread, if it has any left.
    pub(crate) fn task(&self) -> SysResult<&Arc<Task>> {
        self.of()?.task.as_ref().ok_or(SysError::Errno(Errno::ESRCH))
    }

    /// `EACCES` unless the reader may look into the process (Linux: `ptrace_may_access`).
    pub(crate) fn check_access(&self) -> SysResult<()> {
        let of = self.of()?;
        let Some(task) = &of.task else {
            // A zombie, or an init of the kernel's own, which is root's.
            let owner = {
                let tasks = self.kernel.tasks.lock();
                let zombie = tasks.groups.get(&of.group.pid).and_then(|entry| entry.zombie);
                zombie.map_or(0, |zombie| zombie.uid)
            };
            let cred = &self.reader.cred;
            let allowed = owner == cred.uid || cred.capable(vfs::Capability::SYS_PTRACE);
            return if allowed { Ok(()) } else { Err(Errno::EACCES.into()) };
        };
        let own = Arc::ptr_eq(&task.group, self.reader.group());
        let is_dumpable = task.group.dumpable.load(std::sync::atomic::Ordering::Relaxed) == 1;
        let allowed = || {
            let is_above = self.reader.cred.capable(vfs::Capability::SYS_PTRACE);
            (is_dumpable || is_above) && kernel::task::pidfd::may_look_into(self.reader, &task.cred())
        };
        if own || allowed() {
            return Ok(());
        }
        Err(Errno::EACCES.into())
    }
}
