//! Securebits and `PR_SET_KEEPCAPS`.

use abi::{Errno, SecureBits};
use sync::SysResult;
use vfs::{Capability, Cred};

use crate::task::CurrentTask;

pub(crate) const NO_SETUID_FIXUP: u32 = SecureBits::NO_SETUID_FIXUP.bits();
pub(crate) const KEEP_CAPS: u32 = SecureBits::KEEP_CAPS.bits();
const KEEP_CAPS_LOCKED: u32 = KEEP_CAPS << 1;
pub(crate) const NO_CAP_AMBIENT_RAISE: u32 = SecureBits::NO_CAP_AMBIENT_RAISE.bits();
/// The bits that lock the one below them.
const LOCKS: u32 = 0xaaa;
/// All there are, with their locks.
const ALL: u32 = 0xfff;
/// Those that only tell interpreters what to do, with their locks (`EXEC_RESTRICT_FILE`,
/// `EXEC_DENY_INTERACTIVE`).
const UNPRIVILEGED: u32 = 0xf00;

/// Whether a bit is set.
pub(crate) fn has(cred: &Cred, bit: u32) -> bool {
    cred.securebits & bit != 0
}

/// `PR_SET_SECUREBITS`.
pub(crate) fn set(task: &mut CurrentTask, bits: u64) -> SysResult<usize> {
    let old = task.cred.securebits;
    let bits = u32::try_from(bits).ok().filter(|bits| bits & !ALL == 0).ok_or(Errno::EPERM)?;
    let changed = old ^ bits;
    let touches_locked = ((old & LOCKS) >> 1) & changed != 0 || old & LOCKS & !bits != 0;
    let privileged = task.cred.capable(Capability::SETPCAP);
    if touches_locked || (!privileged && (changed == 0 || changed & !UNPRIVILEGED != 0)) {
        return Err(Errno::EPERM.into());
    }
    task.change_cred(Cred { securebits: bits, ..(*task.cred).clone() });
    Ok(0)
}

/// `PR_SET_KEEPCAPS`.
pub(crate) fn set_keep_caps(task: &mut CurrentTask, on: u64) -> SysResult<usize> {
    if on > 1 {
        return Err(Errno::EINVAL.into());
    }
    if has(&task.cred, KEEP_CAPS_LOCKED) {
        return Err(Errno::EPERM.into());
    }
    let old = task.cred.securebits;
    let securebits = if on == 1 { old | KEEP_CAPS } else { old & !KEEP_CAPS };
    task.change_cred(Cred { securebits, ..(*task.cred).clone() });
    Ok(0)
}
