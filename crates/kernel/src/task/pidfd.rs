//! Descriptors of processes.

use std::any::Any;
use std::sync::Arc;

use abi::{Errno, OpenFlags, PidfdFlags, SiCode, Siginfo, Signal, UserAddr};
use smallvec::{SmallVec, smallvec};
use sync::{SysResult, WaitQueue};
use vfs::{FdTable, FileDescription, FileOps, Ready, Reserved};

use crate::syscall::{Fd, In, Pid};
use crate::task::{CurrentTask, ThreadGroup};

/// An open pidfd.
pub struct PidFd {
    group: Arc<ThreadGroup>,
    kernel: std::sync::Weak<crate::kernel::Kernel>,
}

impl PidFd {
    /// The process has ended, waited for or not.
    fn has_ended(&self) -> bool {
        let Some(kernel) = self.kernel.upgrade() else { return true };
        let tasks = kernel.tasks.lock();
        match tasks.groups.get(&self.group.pid) {
            Some(entry) => !Arc::ptr_eq(&entry.group, &self.group) || entry.zombie.is_some(),
            None => true,
        }
    }

    fn is_gone(&self) -> bool {
        let Some(kernel) = self.kernel.upgrade() else { return true };
        let tasks = kernel.tasks.lock();
        tasks.groups.get(&self.group.pid).is_none_or(|entry| !Arc::ptr_eq(&entry.group, &self.group))
    }
}

impl FileOps for PidFd {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn poll(&self, _: &FileDescription) -> Ready {
        match (self.has_ended(), self.is_gone()) {
            (false, _) => Ready::empty(),
            (true, false) => Ready::READABLE,
            (true, true) => Ready::READABLE | Ready::HUP,
        }
    }

    fn wait_queues(&self) -> SmallVec<[&WaitQueue; 2]> {
        smallvec![&self.group.events]
    }

    fn link_name(&self) -> Option<String> {
        Some("anon_inode:[pidfd]".into())
    }

    fn details(&self) -> String {
        let pid = if self.is_gone() { -1 } else { self.group.pid };
        format!("Pid:\t{pid}\nNSpid:\t{pid}\n")
    }
}

/// The pid behind an open pidfd. `EBADF`: it is another kind of file.
pub fn pid_of(file: &FileDescription) -> SysResult<i32> {
    Ok(file.downcast::<PidFd>().ok_or(Errno::EBADF)?.group.pid)
}

fn open(task: &CurrentTask, group: &Arc<ThreadGroup>, flags: PidfdFlags) -> SysResult<i32> {
    let file = description(task, group, flags);
    task.files.table.install(file, task.limit(crate::resource::NOFILE), true)
}

fn description(task: &CurrentTask, group: &Arc<ThreadGroup>, flags: PidfdFlags) -> Arc<FileDescription> {
    let ops = PidFd { group: group.clone(), kernel: Arc::downgrade(task.kernel()) };
    let status = OpenFlags::RDWR
        | if flags.contains(PidfdFlags::NONBLOCK) { OpenFlags::NONBLOCK } else { OpenFlags::empty() };
    FileDescription::new(Box::new(ops), None, status)
}

/// `SO_PEERPIDFD`: opens one for the process of a socket's other end. `ESRCH` once it has been waited for.
pub(crate) fn open_for_peer(task: &CurrentTask, group: &Arc<ThreadGroup>) -> SysResult<i32> {
    let known = task.kernel().tasks.group(group.pid).is_some_and(|known| Arc::ptr_eq(&known, group));
    if known { open(task, group, PidfdFlags::empty()) } else { Err(Errno::ESRCH.into()) }
}

/// `CLONE_PIDFD`: a number for a new child's, told to the parent, and what it is to lead to once the child is there
/// (Linux: `pidfd_prepare`).
pub(super) fn prepare<'a>(
    task: &CurrentTask,
    table: &'a FdTable,
    group: &Arc<ThreadGroup>,
    at: UserAddr,
) -> SysResult<(Reserved<'a>, Arc<FileDescription>)> {
    let reserved = table.reserve(task.limit(crate::resource::NOFILE), true)?;
    task.mm.write(at, &reserved.fd())?;
    Ok((reserved, description(task, group, PidfdFlags::empty())))
}

pub fn sys_pidfd_open(task: &mut CurrentTask, pid: Pid, flags: PidfdFlags) -> SysResult<Fd> {
    if !(PidfdFlags::NONBLOCK | PidfdFlags::THREAD).contains(flags) || pid.0 <= 0 {
        return Err(Errno::EINVAL.into());
    }
    let group = match task.kernel().tasks.group(pid.0) {
        Some(group) => group,
        None if flags.contains(PidfdFlags::THREAD) => {
            task.kernel().tasks.task(pid.0).ok_or(Errno::ESRCH)?.group.clone()
        }
        // A thread that is no leader (Linux: ENOENT since 6.9 for a pidfd of such a thread).
        None if task.kernel().tasks.task(pid.0).is_some() => return Err(Errno::ENOENT.into()),
        None => return Err(Errno::ESRCH.into()),
    };
    open(task, &group, flags).map(Fd)
}

pub fn sys_pidfd_send_signal(
    task: &mut CurrentTask,
    pidfd: Fd,
    signal: Signal,
    info: In<Siginfo>,
    flags: u32,
) -> SysResult<()> {
    const THREAD: u32 = 1;
    const THREAD_GROUP: u32 = 2;
    const PROCESS_GROUP: u32 = 4;
    if flags & !(THREAD | THREAD_GROUP | PROCESS_GROUP) != 0 || flags.count_ones() > 1 {
        return Err(Errno::EINVAL.into());
    }
    let file = task.files.table.get(pidfd.0)?;
    let target = file.downcast::<PidFd>().ok_or(Errno::EBADF)?;
    let sent = match info.is_null() {
        true => Siginfo::kill(signal, SiCode::USER, task.pid(), task.cred.uid),
        false => {
            let given = crate::signal::syscalls::read_info(task, info, None)?;
            if given.signo != signal {
                return Err(Errno::EINVAL.into());
            }
            let to_self = target.group.pid == task.pid();
            if !to_self && (given.code >= 0 || given.code == SiCode::TKILL.0) {
                return Err(Errno::EPERM.into());
            }
            given
        }
    };
    if signal.0 != 0 && !signal.is_valid() {
        return Err(Errno::EINVAL.into());
    }
    if target.is_gone() {
        return Err(Errno::ESRCH.into());
    }
    crate::signal::syscalls::kill_group(task, target.group.pid, sent)
}

pub fn sys_pidfd_getfd(task: &mut CurrentTask, pidfd: Fd, number: Fd, flags: u32) -> SysResult<Fd> {
    if flags != 0 {
        return Err(Errno::EINVAL.into());
    }
    let file = task.files.table.get(pidfd.0)?;
    let target = file.downcast::<PidFd>().ok_or(Errno::EBADF)?;
    let leader = task.kernel().tasks.task_or_leader(target.group.pid).ok_or(Errno::ESRCH)?;
    let shared = leader.shared.lock().clone();
    if !Arc::ptr_eq(&leader.group, task.group()) && !may_look_into(task, &shared.cred) {
        return Err(Errno::EPERM.into());
    }
    // A process that ends has no files any more (Linux: `__pidfd_fget`).
    let found = shared.files.ok_or(Errno::ESRCH)?.table.get_any(number.0)?;
    let limit = task.limit(crate::resource::NOFILE);
    task.files.table.install(found, limit, true).map(Fd)
}

/// Whether a task may read another's memory and files (Linux: `ptrace_may_access` with real credentials).
pub fn may_look_into(task: &CurrentTask, target: &vfs::Cred) -> bool {
    let (own, other) = (&*task.cred, target);
    let same_user = [other.uid, other.euid, other.suid].iter().all(|uid| *uid == own.uid)
        && [other.gid, other.egid, other.sgid].iter().all(|gid| *gid == own.gid);
    own.capable(vfs::Capability::SYS_PTRACE) || (same_user && other.permitted.is_subset(own.permitted))
}
