//! Names of anonymous memory, and the auxiliary vector.

use std::sync::Arc;

use abi::{Errno, PAGE_SIZE, PrctlVma, UserAddr};
use sync::SysResult;

use super::only_zeros;
use crate::mm::Backing;
use crate::task::CurrentTask;

/// `ANON_VMA_NAME_MAX_LEN`, with its zero.
const MAX_NAME: usize = 80;
/// Bytes of the auxiliary vector as `PR_GET_AUXV` counts them (`sizeof mm->saved_auxv`).
const AUXV_SIZE: usize = 448;

/// `PR_SET_VMA`: names anonymous memory, as `[anon:NAME]` in /proc/PID/maps.
pub(super) fn set_vma(task: &mut CurrentTask, [what, start, len, name]: [u64; 4]) -> SysResult<usize> {
    if i32::try_from(what).map(PrctlVma) != Ok(PrctlVma::ANON_NAME) {
        return Err(Errno::EINVAL.into());
    }
    let name = match name {
        0 => None,
        at => Some(read_name(task, UserAddr(at))?),
    };
    if !start.is_multiple_of(PAGE_SIZE) {
        return Err(Errno::EINVAL.into());
    }
    let len = len.checked_next_multiple_of(PAGE_SIZE).ok_or(Errno::EINVAL)?;
    let end = start.checked_add(len).ok_or(Errno::EINVAL)?;
    if start == end {
        return Ok(0);
    }
    let mm = task.mm.clone();
    let _lock = mm.lock(&task.waiter)?;
    let mut record = mm.record();
    let mut files = false;
    let mut at = start;
    let mut hole = false;
    for vma in record.vmas.overlapping(start, end) {
        files |= !matches!(vma.backing, Backing::Anonymous);
        hole |= vma.start > at;
        at = vma.end;
    }
    if files {
        return Err(Errno::EBADF.into());
    }
    record.vmas.update(start, end, |vma| vma.name = name.clone());
    if hole || at < end { Err(Errno::ENOMEM.into()) } else { Ok(0) }
}

/// Printable, and nothing that could be taken for something else in /proc/PID/maps.
fn read_name(task: &CurrentTask, at: UserAddr) -> SysResult<Arc<str>> {
    let name = task.mm.read_string(at, MAX_NAME, Errno::EINVAL)?;
    let allowed = |byte: &u8| (b' '..=b'~').contains(byte) && !b"\\`$[]".contains(byte);
    if !name.iter().all(allowed) {
        return Err(Errno::EINVAL.into());
    }
    // Only ASCII is left.
    Ok(String::from_utf8_lossy(&name).into())
}

/// `PR_GET_AUXV`: as much as fits; the result is how much there is.
pub(super) fn get_auxv(task: &mut CurrentTask, [at, len, rest @ ..]: [u64; 4]) -> SysResult<usize> {
    only_zeros(&rest)?;
    let mut auxv = task.mm.record().auxv.clone();
    auxv.resize(AUXV_SIZE, 0);
    let count = usize::try_from(len).unwrap_or(usize::MAX).min(AUXV_SIZE);
    task.mm.write_bytes(UserAddr(at), auxv.get(..count).unwrap_or(&auxv))?;
    Ok(AUXV_SIZE)
}
