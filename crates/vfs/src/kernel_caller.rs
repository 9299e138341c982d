//! The kernel itself as a caller: for I/O that is no task's own (copy-up, setting a name space up).

use std::any::Any;

use abi::{Errno, UserAddr};
use sync::{SysResult, Waiter};

use crate::{Caller, Cred};

/// A caller with all rights, no limits and no memory: `read_user` and `write_user` fault.
pub struct KernelCaller {
    waiter: Waiter,
    cred: Cred,
}

impl KernelCaller {
    /// On the calling thread.
    pub fn new() -> KernelCaller {
        KernelCaller { waiter: Waiter::new(), cred: Cred::root() }
    }
}

impl Default for KernelCaller {
    fn default() -> Self {
        KernelCaller::new()
    }
}

impl Caller for KernelCaller {
    fn waiter(&self) -> &Waiter {
        &self.waiter
    }
    fn cred(&self) -> &Cred {
        &self.cred
    }
    fn file_size_limit(&self) -> u64 {
        u64::MAX
    }
    fn file_too_big(&self) {}
    fn broken_pipe(&self) {}
    fn read_user(&self, _: UserAddr, _: &mut [u8]) -> SysResult<()> {
        Err(Errno::EFAULT.into())
    }
    fn write_user(&self, _: UserAddr, _: &[u8]) -> SysResult<()> {
        Err(Errno::EFAULT.into())
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
}
