//! Credentials: who a task is (Linux: `struct cred`).

use std::sync::Arc;

use crate::{CapSet, Capability};

/// A task's credentials: a value, replaced as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cred {
    pub uid: u32,
    pub gid: u32,
    pub euid: u32,
    pub egid: u32,
    pub suid: u32,
    pub sgid: u32,
    /// What file accesses are checked against; follows `euid`, but for `setfsuid`.
    pub fsuid: u32,
    pub fsgid: u32,
    pub groups: Arc<[u32]>,
    pub permitted: CapSet,
    pub effective: CapSet,
    pub inheritable: CapSet,
    pub bounding: CapSet,
    pub ambient: CapSet,
    /// `SECBIT_*`.
    pub securebits: u32,
    pub no_new_privs: bool,
}

impl Cred {
    /// The superuser with all capabilities.
    pub fn root() -> Cred {
        Cred::user(0, 0, &[])
    }

    /// A user with these ids; all capabilities if `uid` is 0, none else.
    pub fn user(uid: u32, gid: u32, groups: &[u32]) -> Cred {
        let all = CapSet::FULL;
        let held = if uid == 0 { all } else { CapSet::EMPTY };
        Cred {
            uid,
            gid,
            euid: uid,
            egid: gid,
            suid: uid,
            sgid: gid,
            fsuid: uid,
            fsgid: gid,
            groups: groups.into(),
            permitted: held,
            effective: held,
            inheritable: CapSet::EMPTY,
            bounding: all,
            ambient: CapSet::EMPTY,
            securebits: 0,
            no_new_privs: false,
        }
    }

    /// Whether it has this capability in effect.
    pub fn capable(&self, which: Capability) -> bool {
        self.effective.contains(which)
    }

    /// Whether `gid` is its file-system group or one of its supplementary groups.
    pub fn in_group(&self, gid: u32) -> bool {
        self.fsgid == gid || self.groups.contains(&gid)
    }
}
