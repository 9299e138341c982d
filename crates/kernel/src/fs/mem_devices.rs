//! The memory devices: null, zero, full, random, urandom, kmsg.

use std::any::Any;
use std::sync::Arc;

use abi::{Errno, Ioctl, UserAddr};
use smallvec::{SmallVec, smallvec};
use sync::{SysResult, WaitQueue};
use vfs::{Caller, FileDescription, FileOps, Mapping, OpenHow, Ready, Seek, UserRead, UserWrite};

use crate::fs::devices::{Device, DeviceNode};
use crate::task::{current, wait_as};

/// Bytes moved at a time.
const CHUNK: usize = 64 << 10;
/// The longest record of `/dev/kmsg`.
const KMSG_RECORD: usize = 992;

/// Which one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Null,
    Zero,
    Full,
    Random,
    Urandom,
    Kmsg,
}

/// All minors of major 1.
#[derive(Default)]
pub(super) struct MemoryDevices {
    /// Never woken: what is polled there never changes.
    queue: Arc<WaitQueue>,
}

impl Device for MemoryDevices {
    fn open(&self, node: &DeviceNode<'_>, _: OpenHow, _: &dyn Caller) -> SysResult<Box<dyn FileOps>> {
        let kind = match node.minor {
            3 => Kind::Null,
            5 => Kind::Zero,
            7 => Kind::Full,
            8 => Kind::Random,
            9 => Kind::Urandom,
            11 => Kind::Kmsg,
            _ => return Err(Errno::ENXIO.into()),
        };
        Ok(Box::new(MemoryDevice { kind, queue: self.queue.clone() }))
    }
}

struct MemoryDevice {
    kind: Kind,
    queue: Arc<WaitQueue>,
}

/// Whether a long transfer should stop where it is.
fn is_interrupted(caller: &dyn Caller) -> bool {
    current(caller).is_ok_and(|task| task.has_signal())
}

fn read_zeros(caller: &dyn Caller, to: &mut dyn UserWrite) -> SysResult<usize> {
    let zeros = vec![0; to.room().min(CHUNK)];
    let mut done = 0;
    while to.room() > 0 {
        let part = zeros.get(..to.room().min(zeros.len())).unwrap_or(&[]);
        let put = to.put(part);
        done += put;
        if put < part.len() {
            return if done > 0 { Ok(done) } else { Err(Errno::EFAULT.into()) };
        }
        if is_interrupted(caller) {
            break;
        }
    }
    Ok(done)
}

/// Reads what is written and forgets it. `EFAULT` where it cannot be read.
fn swallow(caller: &dyn Caller, from: &mut dyn UserRead, mut look: impl FnMut(&[u8])) -> SysResult<usize> {
    let mut buffer = vec![0; from.left().min(CHUNK)];
    let mut done = 0;
    while from.left() > 0 {
        let wanted = from.left().min(buffer.len());
        let taken = from.take(buffer.get_mut(..wanted).unwrap_or(&mut []));
        look(buffer.get(..taken).unwrap_or(&[]));
        done += taken;
        if taken < wanted {
            return if done > 0 { Ok(done) } else { Err(Errno::EFAULT.into()) };
        }
        if is_interrupted(caller) {
            break;
        }
    }
    Ok(done)
}

impl MemoryDevice {
    fn do_read(
        &self,
        file: &FileDescription,
        caller: &dyn Caller,
        to: &mut dyn UserWrite,
    ) -> SysResult<usize> {
        match self.kind {
            Kind::Null => Ok(0),
            Kind::Zero | Kind::Full => read_zeros(caller, to),
            Kind::Random | Kind::Urandom => crate::random::fill_user(to, current(caller)?),
            // There are no records to read.
            Kind::Kmsg if file.is_nonblocking() => Err(Errno::EAGAIN.into()),
            Kind::Kmsg => Ok(wait_as(caller, &[&self.queue], None, || None)?),
        }
    }

    fn do_write(&self, caller: &dyn Caller, from: &mut dyn UserRead) -> SysResult<usize> {
        match self.kind {
            // Linux does not look at the bytes.
            Kind::Null | Kind::Zero => Ok(from.left()),
            Kind::Full => Err(Errno::ENOSPC.into()),
            Kind::Random | Kind::Urandom => swallow(caller, from, |_| {}),
            Kind::Kmsg if from.left() > KMSG_RECORD => Err(Errno::EINVAL.into()),
            Kind::Kmsg => swallow(caller, from, |record| {
                tracing::info!(record = %String::from_utf8_lossy(record).trim_end(), "kmsg");
            }),
        }
    }
}

impl FileOps for MemoryDevice {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn read(&self, file: &FileDescription, caller: &dyn Caller, to: &mut dyn UserWrite) -> SysResult<usize> {
        self.do_read(file, caller, to)
    }

    fn write(&self, _: &FileDescription, caller: &dyn Caller, from: &mut dyn UserRead) -> SysResult<usize> {
        self.do_write(caller, from)
    }

    fn read_at(
        &self,
        file: &FileDescription,
        caller: &dyn Caller,
        _: u64,
        to: &mut dyn UserWrite,
    ) -> SysResult<usize> {
        self.do_read(file, caller, to)
    }

    fn write_at(
        &self,
        _: &FileDescription,
        caller: &dyn Caller,
        _: u64,
        from: &mut dyn UserRead,
    ) -> SysResult<usize> {
        self.do_write(caller, from)
    }

    /// Linux: `null_lseek`, `noop_llseek`: the offset stays 0.
    fn seek(&self, _: &FileDescription, _: Seek) -> SysResult<u64> {
        Ok(0)
    }

    fn mapping(&self, _: &FileDescription, _: bool) -> SysResult<Mapping> {
        match self.kind {
            Kind::Zero => Ok(Mapping::Zero),
            _ => Err(Errno::ENODEV.into()),
        }
    }

    fn ioctl(&self, _: &FileDescription, caller: &dyn Caller, command: u32, at: u64) -> SysResult<usize> {
        match (self.kind, Ioctl(command)) {
            (Kind::Random | Kind::Urandom, Ioctl::RNDGETENTCNT) => {
                caller.write_user(UserAddr(at), &256i32.to_le_bytes())?;
                Ok(0)
            }
            (Kind::Random | Kind::Urandom, _) => Err(Errno::EINVAL.into()),
            _ => Err(Errno::ENOTTY.into()),
        }
    }

    fn poll(&self, _: &FileDescription) -> Ready {
        match self.kind {
            Kind::Random => Ready::READABLE,
            Kind::Kmsg => Ready::empty(),
            _ => Ready::READABLE | Ready::WRITABLE,
        }
    }

    /// Only those that Linux lets one poll can be watched by epoll.
    fn wait_queues(&self) -> SmallVec<[&WaitQueue; 2]> {
        match self.kind {
            Kind::Random | Kind::Kmsg => smallvec![&*self.queue],
            _ => SmallVec::new(),
        }
    }
}
