//! How FIFOs and devices are opened: by the kernel, whose objects they are.

use std::sync::Arc;

use abi::{Errno, FileType, OpenFlags};
use sync::SysResult;
use vfs::{Caller, FileDescription, FileOps, Inode, OpenHow, SpecialFiles};

use crate::fs::devices::Devices;
use crate::fs::host_file::HostFile;
use crate::fs::pipe::{PipeEnd, open_fifo};

/// FIFOs, and the devices that were registered.
pub struct KernelFiles {
    devices: Devices,
}

impl KernelFiles {
    pub fn new(devices: Devices) -> KernelFiles {
        KernelFiles { devices }
    }
}

impl SpecialFiles for KernelFiles {
    fn open(
        &self,
        inode: &Arc<Inode>,
        kind: FileType,
        dev: u64,
        how: OpenHow,
        caller: &dyn Caller,
    ) -> SysResult<Box<dyn FileOps>> {
        match kind {
            FileType::FIFO => open_fifo(inode, how, caller),
            _ => self.devices.open(inode, kind, dev, how, caller),
        }
    }

    fn reopen(
        &self,
        file: &Arc<FileDescription>,
        how: OpenHow,
        _caller: &dyn Caller,
    ) -> SysResult<Arc<FileDescription>> {
        let ops: Box<dyn FileOps> = if let Some(end) = file.downcast::<PipeEnd>() {
            Box::new(PipeEnd::open(end.pipe(), how.flags.access_mode())?)
        } else if let Some(host) = file.downcast::<HostFile>() {
            // Linux would open the file anew. Ours was handed down open as it is, and no more than that is given on.
            let asked = how.flags;
            let reads = !asked.is_writable() || asked.contains(OpenFlags::RDWR);
            if (reads && !file.is_readable()) || (asked.is_writable() && !file.is_writable()) {
                return Err(Errno::EACCES.into());
            }
            Box::new(host.share())
        } else {
            return Err(Errno::ENXIO.into());
        };
        Ok(FileDescription::new(ops, None, how.flags))
    }
}
