//! Terminal devices: `/dev/tty`, `/dev/console`, `/dev/ptmx`, `/dev/pts/N`.

use abi::{Errno, OpenFlags};
use sync::SysResult;
use vfs::ops::OpenRequest;
use vfs::{Caller, FileOps, OpenHow};

use crate::fs::devices::{Device, DeviceNode};
use crate::task::{CurrentTask, current};
use crate::tty::{Master, Slave, job};

/// `TTYAUX_MAJOR`: tty (minor 0), console (1), ptmx (2).
const AUX_MAJOR: u32 = 5;
/// `UNIX98_PTY_SLAVE_MAJOR`.
pub const PTS_MAJOR: u32 = 136;

/// The devices of terminals.
pub struct TerminalDevices;

impl Device for TerminalDevices {
    fn open(&self, node: &DeviceNode<'_>, how: OpenHow, caller: &dyn Caller) -> SysResult<Box<dyn FileOps>> {
        open_device(node.major, node.minor, how, current(caller)?)
    }
}

/// Makes the console the caller's controlling terminal and these standard streams of it.
pub(crate) fn use_as_console(task: &mut CurrentTask, streams: &[i32]) -> SysResult<()> {
    if streams.is_empty() {
        return Ok(());
    }
    let request = OpenRequest::open(OpenFlags::RDWR, 0)?;
    let file = vfs::ops::open(&task.fs_context(), abi::AT_FDCWD, b"/dev/pts/0", &request)?;
    let limit = task.limit(crate::resource::NOFILE);
    let fd = task.install(file, true)?;
    for stream in streams {
        task.files.table.replace(fd.0, *stream, limit, false)?;
    }
    task.files.table.remove(fd.0)?;
    Ok(())
}

fn open_device(major: u32, minor: u32, how: OpenHow, task: &CurrentTask) -> SysResult<Box<dyn FileOps>> {
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
