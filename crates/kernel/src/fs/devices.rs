//! Which devices there are: numbers, and who opens them.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::Arc;

use abi::{Errno, FileType};
use sync::SysResult;
use vfs::{Caller, FileOps, Inode, OpenHow};

/// A device node that is being opened.
pub struct DeviceNode<'a> {
    pub inode: &'a Arc<Inode>,
    pub major: u32,
    pub minor: u32,
}

/// Opens the devices of a range of numbers.
pub trait Device: Send + Sync {
    /// Makes the open file. `ENXIO` for a number that has nothing behind it after all. The task is the one that
    /// [`current`](crate::task::current) finds in `caller`.
    fn open(&self, node: &DeviceNode<'_>, how: OpenHow, caller: &dyn Caller) -> SysResult<Box<dyn FileOps>>;
}

/// Ranges of minors by kind, major and last minor.
type Ranges = BTreeMap<(u32, u32, u32), (u32, Arc<dyn Device>)>;

/// The devices of a kernel: registered before it starts, fixed from then on.
#[derive(Default)]
pub struct Devices {
    ranges: Ranges,
}

impl Devices {
    /// Memory devices only: null, zero, full, random, urandom, kmsg.
    pub fn with_memory_devices() -> Devices {
        let mut devices = Devices::default();
        devices.register(FileType::CHR, 1, 0..=255, Arc::new(super::mem_devices::MemoryDevices::default()));
        devices
    }

    /// Has `device` open these minors of a major. A later registration of the same last minor replaces an earlier one.
    pub fn register(
        &mut self,
        kind: FileType,
        major: u32,
        minors: RangeInclusive<u32>,
        device: Arc<dyn Device>,
    ) {
        self.ranges.insert((kind.0, major, *minors.end()), (*minors.start(), device));
    }

    /// Opens a device. `ENXIO`: there is none with this number.
    pub(super) fn open(
        &self,
        inode: &Arc<Inode>,
        kind: FileType,
        dev: u64,
        how: OpenHow,
        caller: &dyn Caller,
    ) -> SysResult<Box<dyn FileOps>> {
        let (major, minor) = (abi::major(dev), abi::minor(dev));
        let from = (kind.0, major, minor);
        let found = self.ranges.range(from..=(kind.0, major, u32::MAX)).next();
        match found {
            Some((_, (first, device))) if *first <= minor => {
                device.open(&DeviceNode { inode, major, minor }, how, caller)
            }
            _ => Err(Errno::ENXIO.into()),
        }
    }
}
