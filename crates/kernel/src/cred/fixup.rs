//! What capabilities become when user ids change.

use vfs::{CapSet, Capability, Cred};

use super::securebits;

/// The capabilities about files, which follow the file-system user id (`CAP_FS_SET`).
const FILES: CapSet = CapSet(
    1 << Capability::CHOWN.0
        | 1 << Capability::DAC_OVERRIDE.0
        | 1 << Capability::DAC_READ_SEARCH.0
        | 1 << Capability::FOWNER.0
        | 1 << Capability::FSETID.0
        | 1 << Capability::LINUX_IMMUTABLE.0
        | 1 << Capability::MKNOD.0
        | 1 << Capability::MAC_OVERRIDE.0,
);

/// After setuid, setreuid, setresuid (Linux: `cap_emulate_setxuid`).
pub(super) fn after_setuid(new: &mut Cred, old: &Cred) {
    if securebits::has(old, securebits::NO_SETUID_FIXUP) {
        return;
    }
    let is_root = |cred: &Cred| cred.uid == 0 || cred.euid == 0 || cred.suid == 0;
    if is_root(old) && !is_root(new) {
        if !securebits::has(old, securebits::KEEP_CAPS) {
            new.permitted = CapSet::EMPTY;
            new.effective = CapSet::EMPTY;
        }
        new.ambient = CapSet::EMPTY;
    }
    if old.euid == 0 && new.euid != 0 {
        new.effective = CapSet::EMPTY;
    }
    if old.euid != 0 && new.euid == 0 {
        new.effective = new.permitted;
    }
}

/// After setfsuid (Linux: `cap_task_fix_setuid`).
pub(super) fn after_setfsuid(new: &mut Cred, old: &Cred) {
    if securebits::has(old, securebits::NO_SETUID_FIXUP) {
        return;
    }
    if old.fsuid == 0 && new.fsuid != 0 {
        new.effective = CapSet(new.effective.0 & !FILES.0);
    }
    if old.fsuid != 0 && new.fsuid == 0 {
        new.effective = new.effective.union(new.permitted.intersection(FILES));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_uids(mut cred: Cred, uid: u32, euid: u32, suid: u32) -> Cred {
        (cred.uid, cred.euid, cred.suid, cred.fsuid) = (uid, euid, suid, euid);
        cred
    }

    #[test]
    fn capabilities_go_with_the_last_root_id_and_come_back_with_the_effective_one() {
        let root = Cred::root();
        let mut away = with_uids(root.clone(), 0, 1000, 0);
        after_setuid(&mut away, &root);
        assert_eq!((away.effective, away.permitted), (CapSet::EMPTY, CapSet::FULL));
        let mut back = with_uids(away.clone(), 0, 0, 0);
        after_setuid(&mut back, &away);
        assert_eq!(back.effective, CapSet::FULL);
        let mut gone = with_uids(root.clone(), 1000, 1000, 1000);
        after_setuid(&mut gone, &root);
        assert_eq!((gone.effective, gone.permitted), (CapSet::EMPTY, CapSet::EMPTY));
        let keeper = Cred { securebits: securebits::KEEP_CAPS, ..root.clone() };
        let mut kept = with_uids(keeper.clone(), 1000, 1000, 1000);
        after_setuid(&mut kept, &keeper);
        assert_eq!((kept.effective, kept.permitted), (CapSet::EMPTY, CapSet::FULL));
    }

    #[test]
    fn file_capabilities_follow_the_file_system_id() {
        let root = Cred::root();
        let mut other = Cred { fsuid: 1000, ..root.clone() };
        after_setfsuid(&mut other, &root);
        assert!(!other.capable(Capability::DAC_OVERRIDE) && other.capable(Capability::SETUID));
        let mut back = Cred { fsuid: 0, ..other.clone() };
        after_setfsuid(&mut back, &other);
        assert_eq!(back.effective, CapSet::FULL);
    }
}
