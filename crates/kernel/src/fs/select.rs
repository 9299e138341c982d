//! `select` and `pselect6`.

use std::sync::Arc;
use std::time::Duration;

use abi::{Errno, SigSet, SigsetArg, Timespec, Timeval, UserAddr};
use sync::{Deadline, SysResult, WaitEnd};
use vfs::{FileDescription, Ready};

use crate::fs::poll::{TimeLimit, wait_on_files};
use crate::syscall::{FdSet, In, InOut};
use crate::task::CurrentTask;

/// What counts as readable, writable, exceptional (Linux: `POLLIN_SET` and its kin).
const SETS: [Ready; 3] = [
    Ready::READABLE.union(Ready::RDBAND).union(Ready::HUP).union(Ready::ERR).union(Ready::NVAL),
    Ready::WRITABLE.union(Ready::WRBAND).union(Ready::ERR).union(Ready::NVAL),
    Ready::PRI.union(Ready::NVAL),
];

pub fn sys_select(
    task: &mut CurrentTask,
    count: i32,
    read: FdSet,
    write: FdSet,
    except: FdSet,
    timeout: InOut<Timeval>,
) -> SysResult<usize> {
    let limit = match timeout.is_null() {
        true => None,
        false => Some(TimeLimit::new(span(task.mm.read(timeout.0)?)?)),
    };
    let deadline = limit.as_ref().and_then(|limit| limit.deadline);
    let result = do_select(task, count, [read.0, write.0, except.0], deadline)
        .map_err(|error| error.map_restart(|restart| restart.no_handler()));
    let Some(limit) = limit else { return result };
    limit.write_back(result, |left| {
        let sec = i64::try_from(left.as_secs()).unwrap_or(i64::MAX);
        task.mm.write(timeout.0, &Timeval { sec, usec: i64::from(left.subsec_micros()) })
    })
}

/// Whole seconds in the microseconds are carried over; then both must be in range.
fn span(time: Timeval) -> SysResult<Duration> {
    let sec = time.sec.wrapping_add(time.usec / 1_000_000);
    crate::time::duration(Timespec { sec, nsec: time.usec % 1_000_000 * 1000 })
}

pub fn sys_pselect6(
    task: &mut CurrentTask,
    count: i32,
    read: FdSet,
    write: FdSet,
    except: FdSet,
    timeout: InOut<Timespec>,
    mask: In<SigsetArg>,
) -> SysResult<usize> {
    let mask = match mask.is_null() {
        true => SigsetArg::default(),
        false => task.mm.read(mask.0)?,
    };
    let limit = match timeout.is_null() {
        true => None,
        false => Some(TimeLimit::new(crate::time::duration(task.mm.read(timeout.0)?)?)),
    };
    let size = usize::try_from(mask.size).unwrap_or(usize::MAX);
    task.wait_with_mask(In::<SigSet>::new(UserAddr(mask.sigset)), size)?;
    let deadline = limit.as_ref().and_then(|limit| limit.deadline);
    let result = do_select(task, count, [read.0, write.0, except.0], deadline)
        .map_err(|error| error.map_restart(|restart| restart.no_handler()));
    task.end_wait_with_mask(&result);
    let Some(limit) = limit else { return result };
    limit.write_back(result, |left| task.mm.write(timeout.0, &crate::time::timespec(left)))
}

/// A descriptor that is in one of the sets at least.
struct Selected {
    fd: usize,
    asked: [bool; 3],
    /// `None`: opened with O_PATH, which is ready for everything (Linux: NVAL).
    file: Option<Arc<FileDescription>>,
}

fn do_select(task: &CurrentTask, count: i32, sets: [UserAddr; 3], deadline: Deadline) -> SysResult<usize> {
    let count = usize::try_from(count).map_err(|_| Errno::EINVAL)?.min(task.files.table.size());
    let words = count.div_ceil(64);
    let mut asked = [vec![0u64; words], vec![0; words], vec![0; words]];
    for (words, at) in asked.iter_mut().zip(sets).filter(|(_, at)| !at.is_null()) {
        task.mm.read_bytes(at, zerocopy::IntoBytes::as_mut_bytes(words.as_mut_slice()))?;
    }
    let selected = find_files(task, count, &asked)?;
    let mut found = [vec![0u64; words], vec![0; words], vec![0; words]];
    let mut look = || {
        let mut bits = 0_usize;
        for entry in &selected {
            let ready = entry.file.as_ref().map_or(Ready::NVAL, |file| file.ops.poll(file));
            for ((set, asked), found) in SETS.iter().zip(entry.asked).zip(&mut found) {
                if asked
                    && ready.intersects(*set)
                    && let Some(word) = found.get_mut(entry.fd / 64)
                {
                    *word |= 1 << (entry.fd % 64);
                    bits += 1;
                }
            }
        }
        (bits > 0).then_some(bits)
    };
    let mut ready = look();
    if ready.is_none() {
        let files: Vec<_> = selected.iter().filter_map(|entry| entry.file.clone()).collect();
        ready = match wait_on_files(task, &files, deadline, look) {
            Ok(bits) => Some(bits),
            Err(WaitEnd::TimedOut) => None,
            Err(interrupted) => return Err(interrupted.into()),
        };
    }
    for (words, at) in found.iter().zip(sets).filter(|(_, at)| !at.is_null()) {
        task.mm.write_bytes(at, zerocopy::IntoBytes::as_bytes(words.as_slice()))?;
    }
    Ok(ready.unwrap_or(0))
}

/// The files behind the bits. `EBADF` for one that is not open.
fn find_files(task: &CurrentTask, count: usize, asked: &[Vec<u64>; 3]) -> SysResult<Vec<Selected>> {
    let mut selected = Vec::new();
    for word in 0..count.div_ceil(64) {
        let words = asked.each_ref().map(|set| set.get(word).copied().unwrap_or(0));
        let mut any = words.iter().fold(0, |any, word| any | word);
        while any != 0 {
            let bit = any.trailing_zeros();
            any &= any - 1;
            let fd = word * 64 + usize::try_from(bit).unwrap_or(0);
            if fd >= count {
                break;
            }
            let number = i32::try_from(fd).map_err(|_| Errno::EBADF)?;
            let file = task.files.table.get_any(number)?;
            selected.push(Selected {
                fd,
                asked: words.map(|word| word >> bit & 1 != 0),
                file: Some(file).filter(|file| !file.is_path_only()),
            });
        }
    }
    Ok(selected)
}
