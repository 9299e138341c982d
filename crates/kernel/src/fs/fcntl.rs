//! `fcntl`: a table of its own, one row for each command that there is.

use std::sync::Arc;

use abi::{Errno, FOwnerEx, FOwnerType, FcntlCmd, FdFlags, Flock, OpenFlags, SealFlags, Signal, UserAddr};
use sync::SysResult;
use vfs::FileDescription;
use vfs::locks::{self, LockKind, LockOwner, LockWait};

use crate::fs::async_io;
use crate::fs::host_file::HostFile;
use crate::fs::pipe::PipeEnd;
use crate::resource::NOFILE;
use crate::syscall::show::Form;
use crate::syscall::{FcntlArg, Fd, Outcome, Support, SyscallReturn};
use crate::task::CurrentTask;

/// The status flags that `F_SETFL` may change, beside `O_ASYNC`.
const SETTABLE: OpenFlags =
    OpenFlags::APPEND.union(OpenFlags::NONBLOCK).union(OpenFlags::DIRECT).union(OpenFlags::NOATIME);

/// One command.
pub struct FcntlRow {
    pub cmd: FcntlCmd,
    pub argument: Form,
    /// The result's flags by name, for the trace.
    pub result: Option<fn(u32) -> String>,
    /// Also for descriptors that were opened with `O_PATH`.
    works_on_path: bool,
    call: fn(&mut CurrentTask, &Target, u64) -> SysResult<Outcome>,
    pub support: Support,
}

/// What a command is about.
struct Target {
    fd: Fd,
    cmd: FcntlCmd,
    file: Arc<FileDescription>,
    cloexec: bool,
}

macro_rules! commands {
    ($($cmd:ident ($argument:expr) $(-> $result:ident)? $(, $path:ident)? = $call:expr $(, partial $note:literal)? ;)*) => {
        /// The commands that there are.
        pub static ROWS: &[FcntlRow] = &[$(FcntlRow {
            cmd: FcntlCmd::$cmd,
            argument: $argument,
            result: commands!(@result $($result)?),
            works_on_path: commands!(@path $($path)?),
            call: $call,
            support: crate::syscall::row::support!($($note)?),
        }),*];
    };
    (@result) => { None };
    (@result $result:ident) => { Some($result) };
    (@path) => { false };
    (@path path) => { true };
}

const FLOCK_IN: Form = Form::In("struct flock *", |printer, at| printer.structure::<Flock>(at));
const FLOCK_OUT: Form = Form::Out("struct flock *", |printer, at| printer.structure::<Flock>(at));
const OWNER_IN: Form = Form::In("struct f_owner_ex *", |printer, at| printer.structure::<FOwnerEx>(at));
const OWNER_OUT: Form = Form::Out("struct f_owner_ex *", |printer, at| printer.structure::<FOwnerEx>(at));
const FD_FLAGS: Form =
    Form::Named("FD_*", |printer, word| printer.text(format_args!("{}", FdFlags::from_bits_retain(word))));
const OPEN_FLAGS: Form =
    Form::Named("O_*", |printer, word| printer.text(format_args!("{}", OpenFlags::from_bits_retain(word))));
const SEALS: Form = Form::Named("F_SEAL_*", |printer, word| {
    printer.text(format_args!("{}", SealFlags::from_bits_retain(word)))
});
const SIGNAL: Form =
    Form::Named("signal", |printer, word| printer.text(format_args!("{}", Signal(word.cast_signed()))));
const LOCK_TYPE: Form = Form::Named("F_*LCK", |printer, word| {
    printer.text(format_args!("{}", abi::LockType(i16::try_from(word).unwrap_or(-1))))
});

fn fd_flag_names(bits: u32) -> String {
    if bits == 0 { String::new() } else { FdFlags::from_bits_retain(bits).to_string() }
}

fn open_flag_names(bits: u32) -> String {
    OpenFlags::from_bits_retain(bits).to_string()
}

fn seal_names(bits: u32) -> String {
    SealFlags::from_bits_retain(bits).to_string()
}

commands! {
    DUPFD (Form::Int), path = |task, of, from| duplicate(task, of, from, false);
    GETFD (Form::Nothing) -> fd_flag_names, path = |_, of, _| Ok(u32::from(of.cloexec).outcome());
    SETFD (FD_FLAGS), path = |task, of, flags| {
        task.files.table.set_cloexec(of.fd.0, flags & u64::from(FdFlags::CLOEXEC.bits()) != 0).and(DONE)
    };
    GETFL (Form::Nothing) -> open_flag_names, path = |_, of, _| Ok(of.file.flags().bits().outcome());
    SETFL (OPEN_FLAGS) = |task, of, flags| set_flags(task, &of.file, of.fd, flags).and(DONE);
    GETLK (FLOCK_OUT) = |task, of, at| get_lock(task, &of.file, of.cmd, UserAddr(at)).and(DONE);
    SETLK (FLOCK_IN) = |task, of, at| set_lock(task, &of.file, of.cmd, UserAddr(at)).and(DONE);
    SETLKW (FLOCK_IN) = |task, of, at| set_lock(task, &of.file, of.cmd, UserAddr(at)).and(DONE);
    SETOWN (Form::Int) = |task, of, owner| set_owner(task, &of.file, owner).and(DONE);
    GETOWN (Form::Nothing) = |task, of, _| Ok(get_owner(task, &of.file).outcome());
    SETSIG (SIGNAL) = |_, of, signal| set_signal(&of.file, signal).and(DONE);
    GETSIG (Form::Nothing) = |_, of, _| Ok(of.file.state.signal().outcome());
    SETOWN_EX (OWNER_IN) = |task, of, at| set_owner_ex(task, &of.file, UserAddr(at)).and(DONE);
    GETOWN_EX (OWNER_OUT) = |task, of, at| get_owner_ex(task, &of.file, UserAddr(at)).and(DONE);
    OFD_GETLK (FLOCK_OUT) = |task, of, at| get_lock(task, &of.file, of.cmd, UserAddr(at)).and(DONE);
    OFD_SETLK (FLOCK_IN) = |task, of, at| set_lock(task, &of.file, of.cmd, UserAddr(at)).and(DONE);
    OFD_SETLKW (FLOCK_IN) = |task, of, at| set_lock(task, &of.file, of.cmd, UserAddr(at)).and(DONE);
    SETLEASE (LOCK_TYPE) = |_, _, kind| Err(if kind > 2 { Errno::EINVAL } else { Errno::EAGAIN }.into()),
        partial "refused, as where others have the file open";
    GETLEASE (Form::Nothing) = |_, _, _| Ok(i32::from(abi::LockType::UNLCK.0).outcome());
    DUPFD_QUERY (Form::Int), path = is_same_file;
    DUPFD_CLOEXEC (Form::Int), path = |task, of, from| duplicate(task, of, from, true);
    SETPIPE_SZ (Form::Int) = of_pipes;
    GETPIPE_SZ (Form::Nothing) = of_pipes;
    ADD_SEALS (SEALS) = of_the_file;
    GET_SEALS (Form::Nothing) -> seal_names = of_the_file;
}

/// What commands that only do something give.
const DONE: SysResult<Outcome> = Ok(Outcome::Value(0));

/// The row of a command; `None`: there is none (yet).
pub fn row(cmd: FcntlCmd) -> Option<&'static FcntlRow> {
    ROWS.iter().find(|row| row.cmd == cmd)
}

pub fn sys_fcntl(task: &mut CurrentTask, fd: Fd, cmd: FcntlCmd, argument: FcntlArg) -> SysResult<Outcome> {
    let entry = task.files.table.entry(fd.0)?;
    let found = row(cmd);
    if entry.file.is_path_only() && !found.is_some_and(|row| row.works_on_path) {
        return Err(Errno::EBADF.into());
    }
    match (found, cmd.name()) {
        (Some(row), _) => {
            let of = Target { fd, cmd, file: entry.file, cloexec: entry.cloexec };
            (row.call)(task, &of, argument.0)
        }
        (None, Some(name)) => Err(task.not_built("fcntl", name, Errno::EINVAL)),
        (None, None) => Err(Errno::EINVAL.into()),
    }
}

fn duplicate(task: &mut CurrentTask, of: &Target, from: u64, cloexec: bool) -> SysResult<Outcome> {
    // The argument is an `unsigned int`, compared with the limit.
    let from = from & 0xffff_ffff;
    let limit = task.limit(NOFILE);
    Ok(task.files.table.install_from(of.file.clone(), from, limit, cloexec)?.outcome())
}

fn is_same_file(task: &mut CurrentTask, of: &Target, number: u64) -> SysResult<Outcome> {
    let number = i32::try_from(number & 0xffff_ffff).unwrap_or(-1);
    let other = task.files.table.get_any(number)?;
    Ok(u32::from(Arc::ptr_eq(&of.file, &other)).outcome())
}

fn set_signal(file: &FileDescription, signal: u64) -> SysResult<()> {
    let signal = i32::try_from(signal).ok().filter(|signal| (0..=64).contains(signal));
    file.state.set_signal(signal.ok_or(Errno::EINVAL)?);
    Ok(())
}

/// What only some files have: memory files their seals.
fn of_the_file(task: &mut CurrentTask, of: &Target, argument: u64) -> SysResult<Outcome> {
    of.file.ops.fcntl(&of.file, task, of.cmd, argument).map(SyscallReturn::outcome)
}

fn of_pipes(task: &mut CurrentTask, of: &Target, argument: u64) -> SysResult<Outcome> {
    if is_pipe(&of.file) { of_the_file(task, of, argument) } else { Err(Errno::EBADF.into()) }
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
