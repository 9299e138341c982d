//! `memfd_create`: files without a name, made by a file system that the kernel does not know.

use std::sync::Arc;

use abi::{Errno, MfdFlags};
use sync::SysResult;
use vfs::{Caller, FileDescription};

use crate::resource;
use crate::syscall::{Fd, UserCStr};
use crate::task::CurrentTask;

/// Makes the files of `memfd_create`.
pub trait MemoryFiles: Send + Sync {
    /// An open file named `name`; `flags` are `MFD_*`, checked. `ENFILE`.
    fn create(&self, name: &[u8], flags: u32, caller: &dyn Caller) -> SysResult<Arc<FileDescription>>;
}

/// Bytes of a name at most, without the prefix `memfd:` (`MFD_NAME_MAX_LEN`).
const NAME_MAX: usize = 249;

pub fn sys_memfd_create(task: &mut CurrentTask, name: UserCStr, flags: MfdFlags) -> SysResult<Fd> {
    let known = MfdFlags::CLOEXEC
        | MfdFlags::ALLOW_SEALING
        | MfdFlags::HUGETLB
        | MfdFlags::NOEXEC_SEAL
        | MfdFlags::EXEC;
    /// The size of huge pages, which only `MFD_HUGETLB` may have.
    const HUGE_SIZE: u32 = 0x3f << 26;
    let rest = flags.bits() & !known.bits();
    let allowed = if flags.contains(MfdFlags::HUGETLB) { HUGE_SIZE } else { 0 };
    if rest & !allowed != 0 || flags.contains(MfdFlags::NOEXEC_SEAL | MfdFlags::EXEC) {
        return Err(Errno::EINVAL.into());
    }
    let name = task.mm.read_string(name.0, NAME_MAX + 1, Errno::EINVAL)?;
    if flags.contains(MfdFlags::HUGETLB) {
        // Linux without reserved huge pages gives the file, and no memory for it. We give none.
        return Err(Errno::ENOMEM.into());
    }
    let kernel = task.kernel().clone();
    let files = kernel.memory_files.get().ok_or(Errno::ENOSYS)?;
    let file = files.create(&name, flags.bits(), task)?;
    let cloexec = flags.contains(MfdFlags::CLOEXEC);
    task.files.table.install(file, task.limit(resource::NOFILE), cloexec).map(Fd)
}
