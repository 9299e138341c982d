//! Supplementary groups.

use abi::Errno;
use sync::SysResult;
use vfs::{Capability, Cred};
use zerocopy::IntoBytes;

use crate::syscall::{InGroups, OutGroups};
use crate::task::CurrentTask;

/// `NGROUPS_MAX`.
const MAX_GROUPS: u32 = 65536;

pub fn sys_getgroups(task: &mut CurrentTask, count: i32, groups: OutGroups) -> SysResult<usize> {
    let room = usize::try_from(count).map_err(|_| Errno::EINVAL)?;
    let own = task.cred.groups.clone();
    if room > 0 {
        if own.len() > room {
            return Err(Errno::EINVAL.into());
        }
        task.mm.write_bytes(groups.0, own.as_bytes())?;
    }
    Ok(own.len())
}

pub fn sys_setgroups(task: &mut CurrentTask, count: i32, groups: InGroups) -> SysResult<()> {
    if !task.cred.capable(Capability::SETGID) {
        return Err(Errno::EPERM.into());
    }
    let count = count.cast_unsigned();
    if count > MAX_GROUPS {
        return Err(Errno::EINVAL.into());
    }
    let mut list = vec![0u32; usize::try_from(count).unwrap_or(0)];
    task.mm.read_bytes(groups.0, list.as_mut_bytes())?;
    if list.contains(&u32::MAX) {
        return Err(Errno::EINVAL.into());
    }
    list.sort_unstable();
    task.change_cred(Cred { groups: list.into(), ..(*task.cred).clone() });
    Ok(())
}
