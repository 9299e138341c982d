//! `fcntl`: a table of its own.

use std::sync::Arc;

use abi::{Errno, FOwnerEx, FOwnerType, FcntlCmd, FdFlags, Flock, OpenFlags, UserAddr};
use sync::SysResult;
use vfs::FileDescription;
use vfs::locks::{self, LockKind, LockOwner, LockWait};

use crate::fs::async_io;
use crate::fs::host_file::HostFile;
use crate::fs::pipe::PipeEnd;
use crate::resource::NOFILE;
use crate::syscall::{FcntlArg, Fd, Outcome, SyscallReturn};
use crate::task::CurrentTask;

/// The status flags that `F_SETFL` may change, beside `O_ASYNC`.
const SETTABLE: OpenFlags =
    OpenFlags::APPEND.union(OpenFlags::NONBLOCK).union(OpenFlags::DIRECT).union(OpenFlags::NOATIME);

pub fn sys_fcntl(task: &mut CurrentTask, fd: Fd, cmd: FcntlCmd, argument: FcntlArg) -> SysResult<Outcome> {
    let argument = argument.0;
    let entry = task.files.table.entry(fd.0)?;
    let file = entry.file;
    let allowed_with_path = matches!(
        cmd,
        FcntlCmd::DUPFD
            | FcntlCmd::DUPFD_CLOEXEC
            | FcntlCmd::GETFD
            | FcntlCmd::SETFD
            | FcntlCmd::GETFL
            | FcntlCmd::DUPFD_QUERY
            | FcntlCmd::CREATED_QUERY
    );
    if file.is_path_only() && !allowed_with_path {
        return Err(Errno::EBADF.into());
    }
    let done = Ok(Outcome::Value(0));
    match cmd {
        FcntlCmd::DUPFD | FcntlCmd::DUPFD_CLOEXEC => {
            let cloexec = cmd == FcntlCmd::DUPFD_CLOEXEC;
            // The argument is an `unsigned int`, compared with the limit.
            let from = argument & 0xffff_ffff;
            let new = task.files.table.install_from(file, from, task.limit(NOFILE), cloexec)?;
            Ok(new.outcome())
        }
        FcntlCmd::GETFD => Ok(u32::from(entry.cloexec).outcome()),
        FcntlCmd::SETFD => {
            task.files.table.set_cloexec(fd.0, argument & u64::from(FdFlags::CLOEXEC.bits()) != 0)?;
            done
        }
        FcntlCmd::GETFL => Ok(file.flags().bits().outcome()),
        FcntlCmd::SETFL => set_flags(task, &file, fd, argument).and(done),
        FcntlCmd::GETLK | FcntlCmd::OFD_GETLK => get_lock(task, &file, cmd, UserAddr(argument)).and(done),
        FcntlCmd::SETLK | FcntlCmd::SETLKW | FcntlCmd::OFD_SETLK | FcntlCmd::OFD_SETLKW => {
            set_lock(task, &file, cmd, UserAddr(argument)).and(done)
        }
        FcntlCmd::GETOWN => Ok(get_owner(task, &file).outcome()),
        FcntlCmd::SETOWN => set_owner(task, &file, argument).and(done),
        FcntlCmd::GETOWN_EX => get_owner_ex(task, &file, UserAddr(argument)).and(done),
        FcntlCmd::SETOWN_EX => set_owner_ex(task, &file, UserAddr(argument)).and(done),
        FcntlCmd::GETSIG => Ok(file.state.signal().outcome()),
        FcntlCmd::SETSIG => {
            let signal = i32::try_from(argument).ok().filter(|signal| (0..=64).contains(signal));
            file.state.set_signal(signal.ok_or(Errno::EINVAL)?);
            done
        }
        FcntlCmd::DUPFD_QUERY => {
            let number = i32::try_from(argument & 0xffff_ffff).unwrap_or(-1);
            let other = task.files.table.get_any(number)?;
            Ok(u32::from(Arc::ptr_eq(&file, &other)).outcome())
        }
        // Leases are refused as where others have the file open.
        FcntlCmd::SETLEASE if argument > 2 => Err(Errno::EINVAL.into()),
        FcntlCmd::SETLEASE => Err(Errno::EAGAIN.into()),
        FcntlCmd::GETLEASE => Ok(i32::from(abi::LockType::UNLCK.0).outcome()),
        FcntlCmd::SETPIPE_SZ | FcntlCmd::GETPIPE_SZ if !is_pipe(&file) => Err(Errno::EBADF.into()),
        // What only some files have: pipes their size, memory files their seals.
        _ => file.ops.fcntl(&file, task, cmd, argument).map(SyscallReturn::outcome),
    }
}

/// One of ours, or the host's.
fn is_pipe(file: &FileDescription) -> bool {
    file.downcast::<PipeEnd>().is_some() || file.downcast::<HostFile>().is_some_and(HostFile::is_pipe)
}

fn set_flags(task: &CurrentTask, file: &Arc<FileDescription>, fd: Fd, argument: u64) -> SysResult<()> {
    let given = OpenFlags::from_bits_retain(u32::try_from(argument & 0xffff_ffff).unwrap_or(0));
    let new = given & SETTABLE;
    let old = file.flags() & SETTABLE;
    if new.contains(OpenFlags::NOATIME) && !old.contains(OpenFlags::NOATIME) {
        let attributes = file.attributes()?;
        if !vfs::is_owner(&attributes, &task.cred) {
            return Err(Errno::EPERM.into());
        }
    }
    // Files that send no signals just do not get the flag.
    match async_io::set_async(task, file, fd.0, given.contains(OpenFlags::ASYNC)) {
        Err(error) if error.errno() != Some(Errno::ENOTTY) => return Err(error),
        _ => {}
    }
    file.set_flags(SETTABLE, new);
    file.ops.flags_changed(file, old ^ new)
}

fn owner_of(task: &CurrentTask, cmd: FcntlCmd, flock: &Flock) -> SysResult<LockOwner> {
    match cmd {
        FcntlCmd::GETLK | FcntlCmd::SETLK | FcntlCmd::SETLKW => {
            Ok(LockOwner::Process { id: task.files_owner(), pid: task.pid() })
        }
        // Of an open file's own locks `l_pid` must be zero.
        _ if flock.pid != 0 => Err(Errno::EINVAL.into()),
        _ => Ok(LockOwner::Description),
    }
}

fn get_lock(task: &CurrentTask, file: &FileDescription, cmd: FcntlCmd, at: UserAddr) -> SysResult<()> {
    let flock: Flock = task.mm.read(at)?;
    let owner = owner_of(task, cmd, &flock)?;
    let kind = LockKind::decode(flock.lock_type)?.ok_or(Errno::EINVAL)?;
    let range = locks::range_of(file, &flock)?;
    let found = locks::get_record(file, owner, kind, range, flock)?;
    task.mm.write(at, &found)
}

fn set_lock(task: &CurrentTask, file: &FileDescription, cmd: FcntlCmd, at: UserAddr) -> SysResult<()> {
    let flock: Flock = task.mm.read(at)?;
    let owner = owner_of(task, cmd, &flock)?;
    let range = locks::range_of(file, &flock)?;
    let kind = LockKind::decode(flock.lock_type)?;
    match kind {
        Some(LockKind::Shared) if !file.is_readable() => return Err(Errno::EBADF.into()),
        Some(LockKind::Exclusive) if !file.is_writable() => return Err(Errno::EBADF.into()),
        _ => {}
    }
    let wait = match cmd {
        FcntlCmd::SETLKW | FcntlCmd::OFD_SETLKW => LockWait::Yes(&task.kernel().lock_waits),
        _ => LockWait::No,
    };
    locks::set_record(file, owner, kind, range, wait, task)
}

/// `F_GETOWN`: the owner's number, a process group's negated.
fn get_owner(task: &CurrentTask, file: &FileDescription) -> i32 {
    let owner = async_io::owner(task, file);
    if owner.owner_type == FOwnerType::PGRP { -owner.pid } else { owner.pid }
}

fn set_owner(task: &CurrentTask, file: &FileDescription, argument: u64) -> SysResult<()> {
    let number = u32::try_from(argument & 0xffff_ffff).unwrap_or(0).cast_signed();
    let owner = match number {
        i32::MIN => return Err(Errno::EINVAL.into()),
        0.. => FOwnerEx { owner_type: FOwnerType::PID, pid: number },
        group => FOwnerEx { owner_type: FOwnerType::PGRP, pid: -group },
    };
    async_io::set_owner(task, file, owner)
}

fn get_owner_ex(task: &CurrentTask, file: &FileDescription, at: UserAddr) -> SysResult<()> {
    task.mm.write(at, &async_io::owner(task, file))
}

fn set_owner_ex(task: &CurrentTask, file: &FileDescription, at: UserAddr) -> SysResult<()> {
    let given: FOwnerEx = task.mm.read(at)?;
    match given.owner_type {
        FOwnerType::TID | FOwnerType::PID | FOwnerType::PGRP => async_io::set_owner(task, file, given),
        _ => Err(Errno::EINVAL.into()),
    }
}
