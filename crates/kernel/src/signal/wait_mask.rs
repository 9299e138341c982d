//! Signal masks that hold during one wait only: `ppoll`, `pselect6`, `epoll_pwait`.

use abi::{Errno, SigSet};
use sync::{SysError, SysResult};

use crate::syscall::In;
use crate::task::CurrentTask;

impl CurrentTask {
    /// Puts the guest's mask in force until the wait ends; a null one changes nothing (Linux: `set_user_sigmask`).
    /// `EINVAL`: the size is not that of a signal set.
    pub(crate) fn wait_with_mask(&mut self, mask: In<SigSet>, set_size: usize) -> SysResult<()> {
        if mask.is_null() {
            return Ok(());
        }
        if set_size != SigSet::SIZE {
            return Err(Errno::EINVAL.into());
        }
        let set: SigSet = self.mm.read(mask.0)?;
        self.saved_mask = Some(self.task.blocked());
        self.set_blocked(set.difference(SigSet::UNBLOCKABLE));
        Ok(())
    }

    /// The wait has ended: the old mask is back, unless a signal ended it, which is taken under the new one first
    /// (Linux: `restore_saved_sigmask_unless`).
    pub(crate) fn end_wait_with_mask<T>(&mut self, result: &SysResult<T>) {
        let interrupted = matches!(result, Err(SysError::Restart(_) | SysError::Errno(Errno::EINTR)));
        if !interrupted && let Some(mask) = self.saved_mask.take() {
            self.set_blocked(mask);
        }
    }
}
