//! `ioctl`: what every file knows; the rest is the file's own.

use abi::{Errno, FileType, Ioctl, OpenFlags, UserAddr};
use sync::SysResult;

use crate::fs::async_io;
use crate::syscall::{Fd, IoctlArg};
use crate::task::CurrentTask;

pub fn sys_ioctl(task: &mut CurrentTask, fd: Fd, command: Ioctl, argument: IoctlArg) -> SysResult<usize> {
    let file = task.files.get(fd)?;
    let at = UserAddr(argument.0);
    match command {
        Ioctl::FIOCLEX => task.files.table.set_cloexec(fd.0, true).map(|()| 0),
        Ioctl::FIONCLEX => task.files.table.set_cloexec(fd.0, false).map(|()| 0),
        Ioctl::FIONBIO => {
            let on = task.mm.read::<i32>(at)? != 0;
            let old = file.flags() & OpenFlags::NONBLOCK;
            let new = if on { OpenFlags::NONBLOCK } else { OpenFlags::empty() };
            file.set_flags(OpenFlags::NONBLOCK, new);
            file.ops.flags_changed(&file, old ^ new)?;
            Ok(0)
        }
        Ioctl::FIOASYNC => {
            let on = task.mm.read::<i32>(at)? != 0;
            async_io::set_async(task, &file, fd.0, on).map(|()| 0)
        }
        Ioctl::FIONREAD if is_regular(&file) => {
            let size = file.attributes()?.size;
            let here = file.ops.seek(&file, vfs::Seek::Current(0))?;
            let left = i32::try_from(size.saturating_sub(here)).unwrap_or(i32::MAX);
            task.mm.write(at, &left)?;
            Ok(0)
        }
        Ioctl::FIGETBSZ if file.inode.is_some() => {
            let size = i32::try_from(file.attributes()?.block_size).map_err(|_| Errno::EINVAL)?;
            task.mm.write(at, &size)?;
            Ok(0)
        }
        _ => file.ops.ioctl(&file, task, command.0, argument.0),
    }
}

fn is_regular(file: &vfs::FileDescription) -> bool {
    file.inode.as_ref().is_some_and(|inode| inode.file_type == FileType::REG)
}
