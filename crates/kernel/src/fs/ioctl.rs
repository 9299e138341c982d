//! `ioctl`: a table of its own, one row for each request that any file serves. What every file knows is served here, the
//! rest by the file.

use std::sync::Arc;

use abi::{
    Errno, FileType, FlowAction, FlushQueue, Ioctl, OpenFlags, Termio, Termios, Termios2, UserAddr, Winsize,
};
use sync::SysResult;
use vfs::FileDescription;

use crate::fs::async_io;
use crate::syscall::show::Form;
use crate::syscall::{Fd, IoctlArg};
use crate::task::CurrentTask;

/// One request.
pub struct IoctlRow {
    pub request: Ioctl,
    pub argument: Form,
    /// Which files serve it, in words.
    pub files: &'static str,
    call: fn(&mut CurrentTask, &Target, u64) -> SysResult<usize>,
}

/// What a request is about.
struct Target {
    fd: Fd,
    request: Ioctl,
    file: Arc<FileDescription>,
}

macro_rules! requests {
    ($($files:literal { $($request:ident ($argument:expr) $(= $call:expr)? ;)* })*) => {
        /// The requests that there are.
        pub static ROWS: &[IoctlRow] = &[$($(IoctlRow {
            request: Ioctl::$request,
            argument: $argument,
            files: $files,
            call: requests!(@call $($call)?),
        }),*),*];
    };
    (@call) => { of_the_file };
    (@call $call:expr) => { $call };
}

const NOTHING: Form = Form::Nothing;
const INT: Form = Form::Int;
const INT_IN: Form = Form::In("int *", |printer, at| printer.structure::<i32>(at));
const INT_OUT: Form = Form::Out("int *", |printer, at| printer.structure::<i32>(at));
const BYTE_IN: Form = Form::In("char *", |printer, at| printer.bytes(at, 1));
const TERMIOS_IN: Form = Form::In("struct termios *", |printer, at| printer.structure::<Termios>(at));
const TERMIOS_OUT: Form = Form::Out("struct termios *", |printer, at| printer.structure::<Termios>(at));
const TERMIOS2_IN: Form = Form::In("struct termios2 *", |printer, at| printer.structure::<Termios2>(at));
const TERMIOS2_OUT: Form = Form::Out("struct termios2 *", |printer, at| printer.structure::<Termios2>(at));
const TERMIO_IN: Form = Form::In("struct termio *", |printer, at| printer.bytes(at, size_of::<Termio>()));
const TERMIO_OUT: Form = Form::Out("struct termio *", |printer, at| printer.bytes(at, size_of::<Termio>()));
const WINSIZE_IN: Form = Form::In("struct winsize *", |printer, at| printer.structure::<Winsize>(at));
const WINSIZE_OUT: Form = Form::Out("struct winsize *", |printer, at| printer.structure::<Winsize>(at));
const QUEUE: Form =
    Form::Named("TC*FLUSH", |printer, word| printer.text(format_args!("{}", FlushQueue(word.cast_signed()))));
const FLOW: Form =
    Form::Named("TC*O*", |printer, word| printer.text(format_args!("{}", FlowAction(word.cast_signed()))));

requests! {
    "all" {
        FIOCLEX (NOTHING) = |task, of, _| task.files.table.set_cloexec(of.fd.0, true).map(|()| 0);
        FIONCLEX (NOTHING) = |task, of, _| task.files.table.set_cloexec(of.fd.0, false).map(|()| 0);
        FIONBIO (INT_IN) = set_nonblocking;
    }
    "pipes, sockets, terminals" {
        FIOASYNC (INT_IN) = |task, of, at| {
            let on = task.mm.read::<i32>(UserAddr(at))? != 0;
            async_io::set_async(task, &of.file, of.fd.0, on).map(|()| 0)
        };
    }
    "regular files, pipes, sockets, terminals" {
        FIONREAD (INT_OUT) = bytes_left;
    }
    "files with a path" {
        FIGETBSZ (INT_OUT) = block_size;
    }
    "terminals, sockets" {
        TIOCOUTQ (INT_OUT);
    }
    "terminals" {
        TCGETS (TERMIOS_OUT);
        TCSETS (TERMIOS_IN);
        TCSETSW (TERMIOS_IN);
        TCSETSF (TERMIOS_IN);
        TCGETS2 (TERMIOS2_OUT);
        TCSETS2 (TERMIOS2_IN);
        TCSETSW2 (TERMIOS2_IN);
        TCSETSF2 (TERMIOS2_IN);
        TCGETA (TERMIO_OUT);
        TCSETA (TERMIO_IN);
        TCSETAW (TERMIO_IN);
        TCSETAF (TERMIO_IN);
        TCFLSH (QUEUE);
        TCXONC (FLOW);
        TCSBRK (INT);
        TCSBRKP (INT);
        TIOCSBRK (NOTHING);
        TIOCCBRK (NOTHING);
        TIOCGWINSZ (WINSIZE_OUT);
        TIOCSWINSZ (WINSIZE_IN);
        TIOCGPGRP (INT_OUT);
        TIOCSPGRP (INT_IN);
        TIOCGSID (INT_OUT);
        TIOCSCTTY (INT);
        TIOCNOTTY (NOTHING);
        TIOCSTI (BYTE_IN);
        TIOCEXCL (NOTHING);
        TIOCNXCL (NOTHING);
        TIOCGEXCL (INT_OUT);
        TIOCGSOFTCAR (INT_OUT);
        TIOCSSOFTCAR (INT_IN);
        TIOCGETD (INT_OUT);
        TIOCSETD (INT_IN);
        TIOCGDEV (INT_OUT);
        TIOCVHANGUP (NOTHING);
    }
    "masters of ptys" {
        TIOCGPTN (INT_OUT);
        TIOCSPTLCK (INT_IN);
        TIOCGPTLCK (INT_OUT);
        TIOCPKT (INT_IN);
        TIOCGPKT (INT_OUT);
        TIOCGPTPEER (INT);
        TIOCSIG (INT);
    }
    "/dev/random, /dev/urandom" {
        RNDGETENTCNT (INT_OUT);
    }
}

/// The row of a request; `None`: there is none (yet).
pub fn row(request: Ioctl) -> Option<&'static IoctlRow> {
    ROWS.iter().find(|row| row.request == request)
}

pub fn sys_ioctl(task: &mut CurrentTask, fd: Fd, request: Ioctl, argument: IoctlArg) -> SysResult<usize> {
    let of = Target { fd, request, file: task.files.get(fd)? };
    if let Some(row) = row(request) {
        return (row.call)(task, &of, argument.0);
    }
    // Which error that is depends on the file.
    let result = of_the_file(task, &of, argument.0);
    match (&result, request.name()) {
        (Err(error), Some(name)) => {
            Err(task.not_built("ioctl", name, error.errno().unwrap_or(Errno::ENOTTY)))
        }
        _ => result,
    }
}

fn of_the_file(task: &mut CurrentTask, of: &Target, argument: u64) -> SysResult<usize> {
    of.file.ops.ioctl(&of.file, task, of.request.0, argument)
}

fn set_nonblocking(task: &mut CurrentTask, of: &Target, at: u64) -> SysResult<usize> {
    let on = task.mm.read::<i32>(UserAddr(at))? != 0;
    let old = of.file.flags() & OpenFlags::NONBLOCK;
    let new = if on { OpenFlags::NONBLOCK } else { OpenFlags::empty() };
    of.file.set_flags(OpenFlags::NONBLOCK, new);
    of.file.ops.flags_changed(&of.file, old ^ new)?;
    Ok(0)
}

fn bytes_left(task: &mut CurrentTask, of: &Target, at: u64) -> SysResult<usize> {
    let file = &of.file;
    if file.inode.as_ref().is_none_or(|inode| inode.file_type != FileType::REG) {
        return of_the_file(task, of, at);
    }
    let size = file.attributes()?.size;
    let here = file.ops.seek(file, vfs::Seek::Current(0))?;
    let left = i32::try_from(size.saturating_sub(here)).unwrap_or(i32::MAX);
    task.mm.write(UserAddr(at), &left)?;
    Ok(0)
}

fn block_size(task: &mut CurrentTask, of: &Target, at: u64) -> SysResult<usize> {
    if of.file.inode.is_none() {
        return of_the_file(task, of, at);
    }
    let size = i32::try_from(of.file.attributes()?.block_size).map_err(|_| Errno::EINVAL)?;
    task.mm.write(UserAddr(at), &size)?;
    Ok(0)
}
