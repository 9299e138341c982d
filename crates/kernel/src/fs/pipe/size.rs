//! How large pipes are, and what each user may have of them.

use std::sync::Arc;

use abi::Errno;
use sync::SysResult;
use vfs::{Caller, Capability};

use super::ring::PAGE;
use super::{Pipe, WRITE_EVENTS};
use crate::task::CurrentTask;
use crate::users::{Counted, Held};

/// Slots of a new pipe (PIPE_DEF_BUFFERS).
const DEFAULT_SLOTS: usize = 16;
/// Slots of a new pipe of a user who has many (PIPE_MIN_DEF_BUFFERS).
const FEW_SLOTS: usize = 2;
/// What a pipe may be made without CAP_SYS_RESOURCE, in bytes (`fs.pipe-max-size`).
const MAX_SIZE: usize = 1 << 20;
/// Pages that a user without privilege may have in pipes (`fs.pipe-user-pages-soft`).
const SOFT_PAGES: usize = 16384;
/// The largest pipe of all, in bytes. Linux goes on to 2 GiB; here it would be the kernel's own memory.
const LARGEST: usize = 64 << 20;

/// Linux: `pipe_is_unprivileged_user`.
fn is_unprivileged(caller: &dyn Caller) -> bool {
    !caller.cred().capable(Capability::SYS_RESOURCE) && !caller.cred().capable(Capability::SYS_ADMIN)
}

/// The slots of a new pipe, counted as its maker's.
pub(super) fn new_share(task: &CurrentTask) -> (usize, Held) {
    let mut share = task.kernel().users.hold(task.cred.uid, Counted::PipePages, DEFAULT_SLOTS);
    if share.total() > SOFT_PAGES && is_unprivileged(task) {
        share.resize(FEW_SLOTS);
        return (FEW_SLOTS, share);
    }
    (DEFAULT_SLOTS, share)
}

impl Pipe {
    /// `F_SETPIPE_SZ`: a power of two of pages, at least as many as are in use (`EBUSY`); gives the new size. `EPERM`
    /// beyond what the caller may have.
    pub(super) fn set_size(self: &Arc<Self>, caller: &dyn Caller, wanted: u64) -> SysResult<usize> {
        if wanted > 1 << 31 {
            return Err(Errno::EINVAL.into());
        }
        let size = usize::try_from(wanted).unwrap_or(usize::MAX).max(PAGE).next_power_of_two();
        let slots = size / PAGE;
        let mut share = self.share.lock();
        let old = self.state.lock().ring.slots();
        let grows = slots > old;
        if grows && size > MAX_SIZE && !caller.cred().capable(Capability::SYS_RESOURCE) {
            return Err(Errno::EPERM.into());
        }
        if size > LARGEST {
            return Err(Errno::ENOMEM.into());
        }
        let total = share.resize(slots);
        let refused = if grows && total > SOFT_PAGES && is_unprivileged(caller) {
            Some(Errno::EPERM)
        } else if !self.state.lock().ring.resize(slots) {
            Some(Errno::EBUSY)
        } else {
            None
        };
        if let Some(errno) = refused {
            share.resize(old);
            return Err(errno.into());
        }
        drop(share);
        self.writers.wake(WRITE_EVENTS.bits());
        Ok(size)
    }
}
