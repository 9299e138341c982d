//! `capget` and `capset`, and the capability operations of `prctl`.

use abi::{CapAmbientOp, CapUserData, CapUserHeader, CapVersion, Errno};
use sync::SysResult;
use vfs::{CapSet, Capability, Cred};
use zerocopy::IntoBytes;

use super::securebits;
use crate::syscall::{InCapData, InOut, OutCapData};
use crate::task::CurrentTask;

/// Reads the header; the words of 32 capabilities that its version has. An unknown version is answered by ours.
fn read_header(task: &CurrentTask, at: InOut<CapUserHeader>) -> SysResult<(usize, i32)> {
    let version: CapVersion = task.mm.read(at.0)?;
    let words = match version {
        CapVersion::V1 => 1,
        CapVersion::V2 | CapVersion::V3 => 2,
        _ => {
            task.mm.write(at.0, &CapVersion::V3)?;
            return Err(Errno::EINVAL.into());
        }
    };
    let header: CapUserHeader = task.mm.read(at.0)?;
    Ok((words, header.pid))
}

pub fn sys_capget(task: &mut CurrentTask, header: InOut<CapUserHeader>, data: OutCapData) -> SysResult<()> {
    let (words, pid) = match read_header(task, header) {
        // A probe for the version.
        Err(error) if data.0.is_null() && error.errno() == Some(Errno::EINVAL) => return Ok(()),
        other if data.0.is_null() => return other.map(drop),
        other => other?,
    };
    if pid < 0 {
        return Err(Errno::EINVAL.into());
    }
    let cred = match pid {
        0 => task.cred.clone(),
        pid if pid == task.tid() => task.cred.clone(),
        pid => task.kernel().tasks.task(pid).ok_or(Errno::ESRCH)?.cred(),
    };
    let words_of = |set: CapSet| abi::CapSet(set.0).words();
    let ([e0, e1], [p0, p1], [i0, i1]) =
        (words_of(cred.effective), words_of(cred.permitted), words_of(cred.inheritable));
    let each = [
        CapUserData { effective: e0, permitted: p0, inheritable: i0 },
        CapUserData { effective: e1, permitted: p1, inheritable: i1 },
    ];
    let bytes = each.as_bytes();
    task.mm.write_bytes(data.0, bytes.get(..words * size_of::<CapUserData>()).unwrap_or(bytes))
}

pub fn sys_capset(task: &mut CurrentTask, header: InOut<CapUserHeader>, data: InCapData) -> SysResult<()> {
    let (words, pid) = read_header(task, header)?;
    if pid != 0 && pid != task.tid() {
        return Err(Errno::EPERM.into());
    }
    let mut each = [CapUserData::default(); 2];
    let bytes = each.as_mut_bytes().get_mut(..words * size_of::<CapUserData>()).unwrap_or(&mut []);
    task.mm.read_bytes(data.0, bytes)?;
    let [low, high] = each;
    let set = |low: u32, high: u32| CapSet(u64::from(low) | u64::from(high) << 32).intersection(CapSet::FULL);
    let new = set_capabilities(
        &task.cred,
        set(low.effective, high.effective),
        set(low.permitted, high.permitted),
        set(low.inheritable, high.inheritable),
    )?;
    task.change_cred(new);
    Ok(())
}

/// Linux: `cap_capset`.
fn set_capabilities(
    old: &Cred,
    effective: CapSet,
    permitted: CapSet,
    inheritable: CapSet,
) -> Result<Cred, Errno> {
    let beyond_own =
        !old.capable(Capability::SETPCAP) && !inheritable.is_subset(old.inheritable.union(old.permitted));
    if beyond_own
        || !inheritable.is_subset(old.inheritable.union(old.bounding))
        || !permitted.is_subset(old.permitted)
        || !effective.is_subset(permitted)
    {
        return Err(Errno::EPERM);
    }
    let ambient = old.ambient.intersection(permitted).intersection(inheritable);
    Ok(Cred { effective, permitted, inheritable, ambient, ..old.clone() })
}

/// The capability that a `prctl` argument names. `EINVAL`: none.
fn capability(number: u64) -> Result<Capability, Errno> {
    u32::try_from(number).ok().map(Capability).filter(|which| which.is_valid()).ok_or(Errno::EINVAL)
}

/// `PR_CAPBSET_READ`.
pub(crate) fn bounding_has(task: &CurrentTask, number: u64) -> SysResult<usize> {
    Ok(usize::from(task.cred.bounding.contains(capability(number)?)))
}

/// `PR_CAPBSET_DROP`.
pub(crate) fn drop_bounding(task: &mut CurrentTask, number: u64) -> SysResult<usize> {
    if !task.cred.capable(Capability::SETPCAP) {
        return Err(Errno::EPERM.into());
    }
    let bounding = task.cred.bounding.without(capability(number)?);
    task.change_cred(Cred { bounding, ..(*task.cred).clone() });
    Ok(0)
}

/// `PR_CAP_AMBIENT`.
pub(crate) fn ambient(task: &mut CurrentTask, op: CapAmbientOp, args: [u64; 3]) -> SysResult<usize> {
    let [number, rest @ ..] = args;
    let old = task.cred.clone();
    if op == CapAmbientOp::CLEAR_ALL {
        if args != [0; 3] {
            return Err(Errno::EINVAL.into());
        }
        task.change_cred(Cred { ambient: CapSet::EMPTY, ..(*old).clone() });
        return Ok(0);
    }
    let which = capability(number)?;
    if rest != [0; 2] {
        return Err(Errno::EINVAL.into());
    }
    let ambient = match op {
        CapAmbientOp::IS_SET => return Ok(usize::from(old.ambient.contains(which))),
        CapAmbientOp::RAISE => {
            let allowed = old.permitted.contains(which)
                && old.inheritable.contains(which)
                && !securebits::has(&old, securebits::NO_CAP_AMBIENT_RAISE);
            if !allowed {
                return Err(Errno::EPERM.into());
            }
            old.ambient.with(which)
        }
        CapAmbientOp::LOWER => old.ambient.without(which),
        _ => return Err(Errno::EINVAL.into()),
    };
    task.change_cred(Cred { ambient, ..(*old).clone() });
    Ok(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capset_only_takes_away() {
        let root = Cred::root();
        let few = CapSet::EMPTY.with(Capability::CHOWN);
        assert!(set_capabilities(&root, few, CapSet::EMPTY, CapSet::EMPTY).is_err());
        let less = set_capabilities(&root, few, few, few).unwrap();
        assert!(set_capabilities(&less, few, CapSet::FULL, few).is_err());
        // Without CAP_SETPCAP only what one has may be passed on.
        let more = few.with(Capability::KILL);
        assert_eq!(set_capabilities(&less, few, few, more), Err(Errno::EPERM));
        let raised = Cred { ambient: few, ..less };
        let lowered = set_capabilities(&raised, few, few, CapSet::EMPTY).unwrap();
        assert_eq!(lowered.ambient, CapSet::EMPTY);
    }
}
