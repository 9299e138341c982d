//! User and group ids.

use abi::Errno;
use sync::SysResult;
use vfs::{Capability, Cred};

use super::fixup;
use crate::syscall::{Id, Out};
use crate::task::CurrentTask;

/// The id that means "as it is".
const SAME: u32 = u32::MAX;

pub fn sys_getuid(task: &mut CurrentTask) -> SysResult<u32> {
    Ok(task.cred.uid)
}

pub fn sys_geteuid(task: &mut CurrentTask) -> SysResult<u32> {
    Ok(task.cred.euid)
}

pub fn sys_getgid(task: &mut CurrentTask) -> SysResult<u32> {
    Ok(task.cred.gid)
}

pub fn sys_getegid(task: &mut CurrentTask) -> SysResult<u32> {
    Ok(task.cred.egid)
}

pub fn sys_getresuid(
    task: &mut CurrentTask,
    ruid: Out<u32>,
    euid: Out<u32>,
    suid: Out<u32>,
) -> SysResult<()> {
    let cred = task.cred.clone();
    task.mm.write(ruid.0, &cred.uid)?;
    task.mm.write(euid.0, &cred.euid)?;
    task.mm.write(suid.0, &cred.suid)
}

pub fn sys_getresgid(
    task: &mut CurrentTask,
    rgid: Out<u32>,
    egid: Out<u32>,
    sgid: Out<u32>,
) -> SysResult<()> {
    let cred = task.cred.clone();
    task.mm.write(rgid.0, &cred.gid)?;
    task.mm.write(egid.0, &cred.egid)?;
    task.mm.write(sgid.0, &cred.sgid)
}

pub fn sys_setuid(task: &mut CurrentTask, uid: Id) -> SysResult<()> {
    let Id(uid) = uid;
    if uid == SAME {
        return Err(Errno::EINVAL.into());
    }
    let old = &*task.cred;
    let mut new = old.clone();
    if old.capable(Capability::SETUID) {
        (new.uid, new.suid) = (uid, uid);
    } else if uid != old.uid && uid != old.suid {
        return Err(Errno::EPERM.into());
    }
    (new.euid, new.fsuid) = (uid, uid);
    fixup::after_setuid(&mut new, old);
    task.change_cred(new);
    Ok(())
}

pub fn sys_setgid(task: &mut CurrentTask, gid: Id) -> SysResult<()> {
    let Id(gid) = gid;
    if gid == SAME {
        return Err(Errno::EINVAL.into());
    }
    let old = &*task.cred;
    let mut new = old.clone();
    if old.capable(Capability::SETGID) {
        (new.gid, new.sgid) = (gid, gid);
    } else if gid != old.gid && gid != old.sgid {
        return Err(Errno::EPERM.into());
    }
    (new.egid, new.fsgid) = (gid, gid);
    task.change_cred(new);
    Ok(())
}

/// The three ids of a kind: real, effective, saved.
type Three = (u32, u32, u32);

/// What `setreuid` and `setregid` make of the three. `EPERM`: not one of those the caller may take.
fn set_real_effective(old: Three, privileged: bool, real: u32, effective: u32) -> Result<Three, Errno> {
    let (mut new, (old_real, old_effective, old_saved)) = (old, old);
    if real != SAME {
        if real != old_real && real != old_effective && !privileged {
            return Err(Errno::EPERM);
        }
        new.0 = real;
    }
    if effective != SAME {
        let own = [old_real, old_effective, old_saved].contains(&effective);
        if !own && !privileged {
            return Err(Errno::EPERM);
        }
        new.1 = effective;
    }
    // The saved one follows when the real one is set, or the effective one to something else than the real one.
    if real != SAME || (effective != SAME && effective != old_real) {
        new.2 = new.1;
    }
    Ok(new)
}

/// What `setresuid` and `setresgid` make of them.
fn set_all(old: Three, privileged: bool, real: u32, effective: u32, saved: u32) -> Result<Three, Errno> {
    let own = [old.0, old.1, old.2];
    let wanted = [real, effective, saved];
    if !privileged && wanted.iter().any(|id| *id != SAME && !own.contains(id)) {
        return Err(Errno::EPERM);
    }
    let choose = |wanted: u32, old: u32| if wanted == SAME { old } else { wanted };
    Ok((choose(real, old.0), choose(effective, old.1), choose(saved, old.2)))
}

fn uids(cred: &Cred) -> Three {
    (cred.uid, cred.euid, cred.suid)
}

fn gids(cred: &Cred) -> Three {
    (cred.gid, cred.egid, cred.sgid)
}

fn change_uids(task: &mut CurrentTask, (uid, euid, suid): Three) {
    let old = &*task.cred;
    let mut new = Cred { uid, euid, suid, fsuid: euid, ..old.clone() };
    fixup::after_setuid(&mut new, old);
    task.change_cred(new);
}

fn change_gids(task: &mut CurrentTask, (gid, egid, sgid): Three) {
    let new = Cred { gid, egid, sgid, fsgid: egid, ..(*task.cred).clone() };
    task.change_cred(new);
}

pub fn sys_setreuid(task: &mut CurrentTask, ruid: Id, euid: Id) -> SysResult<()> {
    let privileged = task.cred.capable(Capability::SETUID);
    let new = set_real_effective(uids(&task.cred), privileged, ruid.0, euid.0)?;
    change_uids(task, new);
    Ok(())
}

pub fn sys_setregid(task: &mut CurrentTask, rgid: Id, egid: Id) -> SysResult<()> {
    let privileged = task.cred.capable(Capability::SETGID);
    let new = set_real_effective(gids(&task.cred), privileged, rgid.0, egid.0)?;
    change_gids(task, new);
    Ok(())
}

pub fn sys_setresuid(task: &mut CurrentTask, ruid: Id, euid: Id, suid: Id) -> SysResult<()> {
    let old = uids(&task.cred);
    let new = set_all(old, task.cred.capable(Capability::SETUID), ruid.0, euid.0, suid.0)?;
    // Linux: nothing to do leaves also the file-system id alone, unless the effective one was named.
    if new == old && (euid.0 == SAME || euid.0 == task.cred.fsuid) {
        return Ok(());
    }
    change_uids(task, new);
    Ok(())
}

pub fn sys_setresgid(task: &mut CurrentTask, rgid: Id, egid: Id, sgid: Id) -> SysResult<()> {
    let old = gids(&task.cred);
    let new = set_all(old, task.cred.capable(Capability::SETGID), rgid.0, egid.0, sgid.0)?;
    if new == old && (egid.0 == SAME || egid.0 == task.cred.fsgid) {
        return Ok(());
    }
    change_gids(task, new);
    Ok(())
}

/// Returns the old one, whether or not it changed.
pub fn sys_setfsuid(task: &mut CurrentTask, uid: Id) -> SysResult<u32> {
    let old = task.cred.clone();
    let own = [old.uid, old.euid, old.suid, old.fsuid].contains(&uid.0);
    if uid.0 != SAME && (own || old.capable(Capability::SETUID)) {
        let mut new = Cred { fsuid: uid.0, ..(*old).clone() };
        fixup::after_setfsuid(&mut new, &old);
        task.change_cred(new);
    }
    Ok(old.fsuid)
}

/// Returns the old one, whether or not it changed.
pub fn sys_setfsgid(task: &mut CurrentTask, gid: Id) -> SysResult<u32> {
    let old = task.cred.clone();
    let own = [old.gid, old.egid, old.sgid, old.fsgid].contains(&gid.0);
    if gid.0 != SAME && (own || old.capable(Capability::SETGID)) {
        task.change_cred(Cred { fsgid: gid.0, ..(*old).clone() });
    }
    Ok(old.fsgid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_saved_id_follows_as_on_linux() {
        assert_eq!(set_real_effective((0, 0, 0), true, 1000, SAME), Ok((1000, 0, 0)));
        assert_eq!(set_real_effective((1000, 0, 0), true, SAME, 1000), Ok((1000, 1000, 0)));
        assert_eq!(set_real_effective((1000, 0, 0), true, SAME, 2000), Ok((1000, 2000, 2000)));
        assert_eq!(set_real_effective((1000, 2000, 2000), false, 2000, 1000), Ok((2000, 1000, 1000)));
        assert_eq!(set_real_effective((2000, 1000, 1000), false, 0, SAME), Err(Errno::EPERM));
        // The saved one may become the effective one, not the real one.
        assert_eq!(set_real_effective((1, 2, 3), false, SAME, 3), Ok((1, 3, 3)));
        assert_eq!(set_real_effective((1, 2, 3), false, 3, SAME), Err(Errno::EPERM));
    }

    #[test]
    fn any_of_the_three_may_become_any_of_the_three() {
        assert_eq!(set_all((1, 2, 3), false, 3, 1, 2), Ok((3, 1, 2)));
        assert_eq!(set_all((1, 2, 3), false, SAME, SAME, 4), Err(Errno::EPERM));
        assert_eq!(set_all((1, 2, 3), true, SAME, 9, SAME), Ok((1, 9, 3)));
    }
}
