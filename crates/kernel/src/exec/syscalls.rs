//! `execve` and `execveat`.

use abi::{AtFlags, Errno, UserAddr};
use sync::SysResult;

use crate::exec::ExecArguments;
use crate::syscall::{Environment, Fd, Outcome, StringArray, UserCStr};
use crate::task::CurrentTask;

/// Bytes of one argument at most (`MAX_ARG_STRLEN`).
const MAX_ARGUMENT: usize = 32 * 4096;
/// Bytes of all arguments and the environment at most, whatever the stack's limit.
const MAX_TOTAL: usize = 6 << 20;

pub fn sys_execve(
    task: &mut CurrentTask,
    path: UserCStr,
    arguments: StringArray,
    environment: Environment,
) -> SysResult<Outcome> {
    sys_execveat(task, Fd::CWD, path, arguments, environment, AtFlags::empty())
}

pub fn sys_execveat(
    task: &mut CurrentTask,
    dirfd: Fd,
    path: UserCStr,
    arguments: StringArray,
    environment: Environment,
    flags: AtFlags,
) -> SysResult<Outcome> {
    if !(AtFlags::EMPTY_PATH | AtFlags::SYMLINK_NOFOLLOW).contains(flags) {
        return Err(Errno::EINVAL.into());
    }
    let path = task.mm.read_path(path.0)?;
    if path.is_empty() && !flags.contains(AtFlags::EMPTY_PATH) {
        return Err(Errno::ENOENT.into());
    }
    let mut total = 0;
    let exec = ExecArguments {
        dirfd: dirfd.0,
        path,
        empty_path: flags.contains(AtFlags::EMPTY_PATH),
        no_follow: flags.contains(AtFlags::SYMLINK_NOFOLLOW),
        arguments: read_strings(task, arguments.0, &mut total)?,
        environment: read_strings(task, environment.0, &mut total)?,
    };
    task.exec(&exec)?;
    Ok(Outcome::Resumed)
}

/// A list of strings that ends with a null pointer. A null list is an empty one, as on Linux.
fn read_strings(task: &CurrentTask, list: UserAddr, total: &mut usize) -> SysResult<Vec<Vec<u8>>> {
    let mut strings = Vec::new();
    if list.is_null() {
        return Ok(strings);
    }
    loop {
        let at = list.checked_add(strings.len() as u64 * 8).ok_or(Errno::EFAULT)?;
        let pointer = UserAddr(task.mm.read::<u64>(at)?);
        if pointer.is_null() {
            return Ok(strings);
        }
        let string = task.mm.read_string(pointer, MAX_ARGUMENT, Errno::E2BIG)?;
        *total += string.len() + 1 + 8;
        if *total > MAX_TOTAL {
            return Err(Errno::E2BIG.into());
        }
        strings.push(string);
    }
}
