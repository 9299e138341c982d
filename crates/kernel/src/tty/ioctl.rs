//! The requests of terminals.

use std::sync::Arc;

use abi::{
    ControlFlags, Errno, FlowAction, FlushQueue, Ioctl, OpenFlags, Signal, Termio, Termios, Termios2,
    UserAddr, Winsize,
};
use sync::SysResult;
use vfs::FileDescription;

use crate::task::CurrentTask;
use crate::tty::{Master, Slave, Terminal, job};

/// Requests that change a terminal stop a background group by SIGTTOU.
fn changes(request: Ioctl) -> bool {
    matches!(
        request,
        Ioctl::TCSETS
            | Ioctl::TCSETSW
            | Ioctl::TCSETSF
            | Ioctl::TCSETS2
            | Ioctl::TCSETSW2
            | Ioctl::TCSETSF2
            | Ioctl::TCSETA
            | Ioctl::TCSETAW
            | Ioctl::TCSETAF
            | Ioctl::TCFLSH
            | Ioctl::TCXONC
            | Ioctl::TCSBRK
            | Ioctl::TCSBRKP
            | Ioctl::TIOCSETD
    )
}

pub(super) fn slave(
    slave: &Slave,
    file: &FileDescription,
    task: &CurrentTask,
    command: u32,
    argument: u64,
) -> SysResult<usize> {
    let (terminal, request, at) = (&slave.terminal, Ioctl(command), UserAddr(argument));
    if slave.is_hung_up() {
        return Err(if request == Ioctl::TIOCSPGRP { Errno::ENOTTY } else { Errno::EIO }.into());
    }
    if changes(request) {
        job::check_change(terminal, task, Signal::TTOU)?;
        terminal.claim_host();
    }
    match request {
        Ioctl::TIOCSCTTY => job::take(terminal, task, argument == 1, file.is_readable())?,
        Ioctl::TIOCNOTTY => job::give_up(terminal, task)?,
        Ioctl::TIOCSPGRP => {
            let pgid: i32 = task.mm.read(at)?;
            job::set_foreground(terminal, task, pgid)?;
        }
        Ioctl::TIOCGPGRP | Ioctl::TIOCGSID => {
            let own = task.group().terminal.lock().clone();
            if own.is_none_or(|own| !Arc::ptr_eq(&own, terminal)) {
                return Err(Errno::ENOTTY.into());
            }
            report_group(terminal, task, request, at)?;
        }
        Ioctl::FIONREAD => {
            let count = terminal.state.lock().pair.line().readable_bytes();
            task.mm.write(at, &i32::try_from(count).unwrap_or(i32::MAX))?;
        }
        Ioctl::TCFLSH => {
            let queue = FlushQueue(i32::try_from(argument).unwrap_or(-1));
            terminal.change(|pair, fx| pair.line_mut().flush(queue, fx))?;
        }
        Ioctl::TCXONC => {
            let action = FlowAction(i32::try_from(argument).unwrap_or(-1));
            terminal.change(|pair, fx| pair.line_mut().flow(action, fx))?;
        }
        Ioctl::TIOCSTI => {
            let own = task.group().terminal.lock().clone();
            let is_own = own.is_some_and(|own| Arc::ptr_eq(&own, terminal));
            if !is_own && !task.cred.capable(vfs::Capability::SYS_ADMIN) {
                return Err(Errno::EPERM.into());
            }
            let byte: u8 = task.mm.read(at)?;
            terminal.change(|pair, fx| pair.line_mut().insert(byte, fx));
        }
        _ => return common(terminal, task, request, at),
    }
    Ok(0)
}

pub(super) fn master(master: &Master, task: &CurrentTask, command: u32, argument: u64) -> SysResult<usize> {
    let (terminal, request, at) = (&master.terminal, Ioctl(command), UserAddr(argument));
    match request {
        Ioctl::TIOCGPTN => task.mm.write(at, &terminal.index)?,
        Ioctl::TIOCSPTLCK => {
            let on = task.mm.read::<i32>(at)? != 0;
            terminal.state.lock().pair.set_locked(on);
        }
        Ioctl::TIOCGPTLCK => {
            let locked = i32::from(terminal.state.lock().pair.is_locked());
            task.mm.write(at, &locked)?;
        }
        Ioctl::TIOCPKT => {
            let on = task.mm.read::<i32>(at)? != 0;
            terminal.state.lock().pair.set_packet_mode(on);
        }
        Ioctl::TIOCGPKT => {
            let on = i32::from(terminal.state.lock().pair.packet_mode());
            task.mm.write(at, &on)?;
        }
        Ioctl::TIOCGPTPEER => return open_peer(terminal, task, argument),
        Ioctl::TIOCSIG => {
            let signal = Signal(i32::try_from(argument).unwrap_or(0));
            terminal.change(|pair, fx| pair.signal(signal, fx))?;
        }
        Ioctl::FIONREAD => {
            let count = terminal.state.lock().pair.master_readable_bytes();
            task.mm.write(at, &i32::try_from(count).unwrap_or(i32::MAX))?;
        }
        Ioctl::TCFLSH => {
            let queue = FlushQueue(i32::try_from(argument).unwrap_or(-1));
            terminal.change(|pair, fx| pair.flush_master(queue, fx))?;
        }
        Ioctl::TCXONC => {
            let action = FlowAction(i32::try_from(argument).unwrap_or(-1));
            terminal.change(|pair, fx| pair.flow_master(action, fx))?;
        }
        Ioctl::TIOCGPGRP | Ioctl::TIOCGSID => report_group(terminal, task, request, at)?,
        Ioctl::TIOCSCTTY | Ioctl::TIOCNOTTY | Ioctl::TIOCSPGRP => return Err(Errno::ENOTTY.into()),
        _ => return common(terminal, task, request, at),
    }
    Ok(0)
}

fn report_group(terminal: &Terminal, task: &CurrentTask, request: Ioctl, at: UserAddr) -> SysResult<()> {
    let (session, foreground) = terminal.session();
    let id = if request == Ioctl::TIOCGSID { session } else { foreground };
    if request == Ioctl::TIOCGSID && session == 0 {
        return Err(Errno::ENOTTY.into());
    }
    task.mm.write(at, &id)
}

/// `TIOCGPTPEER`: opens the slave of a master, whatever the name space.
fn open_peer(terminal: &Arc<Terminal>, task: &CurrentTask, flags: u64) -> SysResult<usize> {
    let flags = OpenFlags::from_bits_retain(u32::try_from(flags).map_err(|_| Errno::EINVAL)?);
    let path = format!("/dev/pts/{}", terminal.index);
    let request = vfs::ops::OpenRequest::open(flags, 0)?;
    let file = vfs::ops::open(&task.fs_context(), abi::AT_FDCWD, path.as_bytes(), &request)?;
    let fd = task.install(file, flags.contains(OpenFlags::CLOEXEC))?;
    usize::try_from(fd.0).map_err(|_| Errno::EBADF.into())
}

/// What both ends know.
fn common(terminal: &Arc<Terminal>, task: &CurrentTask, request: Ioctl, at: UserAddr) -> SysResult<usize> {
    match request {
        Ioctl::TCGETS => {
            let Termios2 { iflag, oflag, cflag, lflag, line, cc, .. } = terminal.termios();
            task.mm.write(at, &Termios { iflag, oflag, cflag, lflag, line, cc })?;
        }
        Ioctl::TCGETS2 => task.mm.write(at, &terminal.termios())?,
        Ioctl::TCGETA => task.mm.write(at, &tty::to_termio(&terminal.termios()))?,
        Ioctl::TCSETS | Ioctl::TCSETSW | Ioctl::TCSETSF => {
            let new: Termios = task.mm.read(at)?;
            set_termios(terminal, request == Ioctl::TCSETSF, |now| tty::with_termios(now, &new));
        }
        Ioctl::TCSETS2 | Ioctl::TCSETSW2 | Ioctl::TCSETSF2 => {
            let new: Termios2 = task.mm.read(at)?;
            set_termios(terminal, request == Ioctl::TCSETSF2, |_| new);
        }
        Ioctl::TCSETA | Ioctl::TCSETAW | Ioctl::TCSETAF => {
            let new: Termio = task.mm.read(at)?;
            set_termios(terminal, request == Ioctl::TCSETAF, |now| tty::with_termio(now, &new));
        }
        Ioctl::TIOCGWINSZ => {
            let size = terminal.state.lock().pair.size();
            task.mm.write(at, &size)?;
        }
        Ioctl::TIOCSWINSZ => {
            let size: Winsize = task.mm.read(at)?;
            terminal.set_size(size);
        }
        // Output never waits in a device here, so there is nothing to drain, and no line to break.
        Ioctl::TCSBRK | Ioctl::TCSBRKP | Ioctl::TIOCSBRK | Ioctl::TIOCCBRK => {}
        Ioctl::TIOCOUTQ => task.mm.write(at, &0i32)?,
        Ioctl::TIOCEXCL => terminal.state.lock().exclusive = true,
        Ioctl::TIOCNXCL => terminal.state.lock().exclusive = false,
        Ioctl::TIOCGEXCL => {
            let on = i32::from(terminal.state.lock().exclusive);
            task.mm.write(at, &on)?;
        }
        // A pty has no carrier: CLOCAL is kept, and is all that there is to it.
        Ioctl::TIOCGSOFTCAR => {
            let on = i32::from(terminal.termios().cflag.contains(ControlFlags::CLOCAL));
            task.mm.write(at, &on)?;
        }
        Ioctl::TIOCSSOFTCAR => {
            let on: i32 = task.mm.read(at)?;
            set_termios(terminal, false, |now| {
                let mut new = *now;
                new.cflag.set(ControlFlags::CLOCAL, on != 0);
                new
            });
        }
        Ioctl::TIOCGETD => task.mm.write(at, &0i32)?,
        Ioctl::TIOCSETD => {
            let discipline: i32 = task.mm.read(at)?;
            if discipline != 0 {
                return Err(Errno::EINVAL.into());
            }
        }
        Ioctl::TIOCGDEV => {
            let dev = u32::try_from(terminal.dev()).map_err(|_| Errno::EINVAL)?;
            task.mm.write(at, &dev)?;
        }
        Ioctl::TIOCVHANGUP if task.cred.capable(vfs::Capability::SYS_ADMIN) => {
            terminal.change(tty::PtyPair::hang_up);
        }
        Ioctl::TIOCVHANGUP => return Err(Errno::EPERM.into()),
        _ => return Err(Errno::ENOTTY.into()),
    }
    Ok(0)
}

fn set_termios(terminal: &Terminal, flush: bool, new: impl FnOnce(&Termios2) -> Termios2) {
    terminal.change(|pair, fx| {
        let line = pair.line_mut();
        if flush {
            line.discard_input(fx);
        }
        let settings = new(line.termios());
        line.set_termios(&settings, fx);
    });
}
