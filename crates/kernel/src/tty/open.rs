//! Terminal devices: `/dev/tty`, `/dev/console`, `/dev/ptmx`, `/dev/pts/N`.

use abi::{Errno, OpenFlags};
use sync::SysResult;
use vfs::{Caller, FileOps, OpenHow};

use crate::task::{CurrentTask, current};
use crate::tty::{Master, Slave, job};

/// `TTYAUX_MAJOR`: tty (minor 0), console (1), ptmx (2).
const AUX_MAJOR: u32 = 5;
/// `UNIX98_PTY_SLAVE_MAJOR`.
pub const PTS_MAJOR: u32 = 136;

/// Opens a terminal device. `ENXIO`: no such device, or no terminal behind it.
pub fn open_device(major: u32, minor: u32, how: OpenHow, caller: &dyn Caller) -> SysResult<Box<dyn FileOps>> {
    let task = current(caller)?;
    match (major, minor) {
        (AUX_MAJOR, 0) => {
            let own = task.group().terminal.lock().clone().ok_or(Errno::ENXIO)?;
            Ok(Box::new(Slave::open(own, task)?))
        }
        (AUX_MAJOR, 1) => open_slave(task, 0, how, false).map_err(|_| Errno::ENXIO.into()),
        (AUX_MAJOR, 2) => {
            let terminal = task.kernel().ptys.create(task.kernel(), task.cred.fsuid, TTY_GROUP)?;
            Ok(Box::new(Master { terminal }))
        }
        (PTS_MAJOR, index) => open_slave(task, index, how, true),
        _ => Err(Errno::ENXIO.into()),
    }
}

/// The group of ptys (Debian: `tty`).
pub const TTY_GROUP: u32 = 5;

fn open_slave(task: &CurrentTask, index: u32, how: OpenHow, takes: bool) -> SysResult<Box<dyn FileOps>> {
    let terminal = task.kernel().ptys.get(index).ok_or(Errno::EIO)?.terminal;
    let slave = Slave::open(terminal.clone(), task)?;
    if takes && !how.flags.contains(OpenFlags::NOCTTY) {
        job::take_by_open(&terminal, task);
    }
    Ok(Box::new(slave))
}
