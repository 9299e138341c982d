//! Changing credentials: the set*id family, groups, capabilities, securebits. The checks and their order are those of
//! Linux's `kernel/sys.c`, `kernel/groups.c`, `kernel/capability.c` and `security/commoncap.c`.
//!
//! A credential is a value ([`vfs::Cred`]) that hangs on the task and is replaced as a whole, by
//! [`CurrentTask::change_cred`] only.

pub mod capabilities;
mod fixup;
pub mod groups;
pub mod ids;
pub mod securebits;

use std::sync::atomic::Ordering;

use vfs::Cred;

use crate::task::CurrentTask;

impl CurrentTask {
    /// Takes new credentials (Linux: `commit_creds`). Whoever becomes another, or more, may not be looked into any
    /// more and forgets its parent-death signal; the next image gets a fresh host process (INVARIANTS 3.1).
    pub(crate) fn change_cred(&mut self, new: Cred) {
        let old = &*self.cred;
        if new == *old {
            return;
        }
        self.group().authority_unchanged.store(false, Ordering::Relaxed);
        let same_ids =
            (new.euid, new.egid, new.fsuid, new.fsgid) == (old.euid, old.egid, old.fsuid, old.fsgid);
        if !same_ids || !new.permitted.is_subset(old.permitted) {
            self.group().dumpable.store(0, Ordering::Relaxed);
            self.task.parent_death_signal.store(0, Ordering::Relaxed);
        }
        self.set_cred(new);
    }
}
