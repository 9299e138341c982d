//! `execve` and `execveat`.

use abi::{AtFlags, Errno, PAGE_SIZE, UserAddr};
use platform::GuestRange;
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

/// Pointers looked at together: what one host copy takes.
const BATCH: usize = 64;
/// Bytes guessed for a string that no other seems to follow.
const GUESS: u64 = 128;

/// A list of strings that ends with a null pointer. A null list is an empty one, as on Linux.
fn read_strings(task: &CurrentTask, list: UserAddr, total: &mut usize) -> SysResult<Vec<Vec<u8>>> {
    let mut strings = Vec::new();
    if list.is_null() {
        return Ok(strings);
    }
    loop {
        let at = list.checked_add(strings.len() as u64 * 8).ok_or(Errno::EFAULT)?;
        let (pointers, ended) = read_pointers(task, at)?;
        for string in read_batch(task, &pointers) {
            let string = string?;
            *total += string.len() + 1 + 8;
            if *total > MAX_TOTAL {
                return Err(Errno::E2BIG.into());
            }
            strings.push(string);
        }
        if ended {
            return Ok(strings);
        }
    }
}

/// Some pointers from `at` on, up to the null pointer, and whether that was found.
fn read_pointers(task: &CurrentTask, at: UserAddr) -> SysResult<(Vec<u64>, bool)> {
    let to_page_end = usize::try_from((PAGE_SIZE - at.0 % PAGE_SIZE) / 8).unwrap_or(1);
    let mut bytes = vec![0; to_page_end.clamp(1, BATCH) * 8];
    task.mm.read_bytes(at, &mut bytes)?;
    let words = bytes.chunks_exact(8).map(|word| word.try_into().map_or(0, u64::from_le_bytes));
    let pointers: Vec<u64> = words.take_while(|word| *word != 0).collect();
    let ended = pointers.len() * 8 < bytes.len();
    Ok((pointers, ended))
}

/// The strings at these places. Strings mostly lie one behind the other, so the next one's place tells a length; one
/// copy brings all that were guessed right.
fn read_batch(task: &CurrentTask, pointers: &[u64]) -> Vec<SysResult<Vec<u8>>> {
    let guess = |index: usize, at: u64| {
        let next = pointers.get(index + 1).and_then(|next| next.checked_sub(at));
        let len = next.filter(|len| (1..=PAGE_SIZE).contains(len)).unwrap_or(GUESS);
        // Not beyond the page where it is only a guess: what lies there may not be mapped.
        let to_page_end = PAGE_SIZE - at % PAGE_SIZE;
        usize::try_from(if next == Some(len) { len } else { len.min(to_page_end) }).unwrap_or(0)
    };
    let ranges: Vec<GuestRange> = pointers
        .iter()
        .enumerate()
        .map(|(index, at)| GuestRange { start: UserAddr(*at), len: guess(index, *at) })
        .collect();
    let mut bytes = vec![0; ranges.iter().map(|range| range.len).sum()];
    let copied = task.mm.copy_in(&ranges, &mut bytes);
    let mut from = 0;
    let mut take = |range: &GuestRange| {
        let part = bytes.get(from..from + range.len).filter(|_| from + range.len <= copied).unwrap_or(&[]);
        from += range.len;
        match part.iter().position(|byte| *byte == 0) {
            Some(end) => Ok(part.get(..end).unwrap_or(&[]).to_vec()),
            None => task.mm.read_string(range.start, MAX_ARGUMENT, Errno::E2BIG),
        }
    };
    ranges.iter().map(&mut take).collect()
}
