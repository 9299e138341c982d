//! eventfd: a counter that can be waited for.

use std::any::Any;

use abi::{EfdFlags, Errno, OpenFlags};
use smallvec::{SmallVec, smallvec};
use sync::{Mutex, SleepLock, SysResult, WaitQueue, order};
use vfs::{Attributes, Caller, FileDescription, FileOps, Ready, Seek, UserRead, UserWrite};

use crate::syscall::Fd;
use crate::task::{CurrentTask, wait_as};

/// Bytes of a read or write.
const SIZE: usize = 8;

struct EventFd {
    count: Mutex<order::Buffer, u64>,
    semaphore: bool,
    /// Held while the counter is copied out, before it is taken.
    reading: SleepLock,
    queue: WaitQueue,
    attributes: Attributes,
}

impl EventFd {
    /// Copies out what a read takes, then takes it. `None`: nothing to take.
    fn take(&self, caller: &dyn Caller, to: &mut dyn UserWrite) -> SysResult<Option<usize>> {
        let _one_at_a_time = self.reading.lock(caller.waiter())?;
        let count = *self.count.lock();
        let taken = match (count, self.semaphore) {
            (0, _) => return Ok(None),
            (_, true) => 1,
            (count, false) => count,
        };
        if to.put(&taken.to_ne_bytes()) < SIZE {
            return Err(Errno::EFAULT.into());
        }
        // Writers may have added meanwhile; what was told is taken.
        *self.count.lock() -= taken;
        self.queue.wake(Ready::OUT.bits());
        Ok(Some(SIZE))
    }

    fn has_room(count: u64, value: u64) -> bool {
        u64::MAX - count > value
    }

    fn add(&self, value: u64) -> Option<()> {
        {
            let mut count = self.count.lock();
            if !EventFd::has_room(*count, value) {
                return None;
            }
            *count += value;
        }
        self.queue.wake(Ready::IN.bits());
        Some(())
    }
}

impl FileOps for EventFd {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn details(&self) -> String {
        let count = *self.count.lock();
        format!("eventfd-count: {count:16x}\neventfd-semaphore: {}\n", i32::from(self.semaphore))
    }

    fn read(&self, file: &FileDescription, caller: &dyn Caller, to: &mut dyn UserWrite) -> SysResult<usize> {
        if to.room() < SIZE {
            return Err(Errno::EINVAL.into());
        }
        loop {
            if let Some(count) = self.take(caller, to)? {
                return Ok(count);
            }
            if file.is_nonblocking() {
                return Err(Errno::EAGAIN.into());
            }
            wait_as(caller, &[&self.queue], None, || (*self.count.lock() > 0).then_some(()))?;
        }
    }

    fn write(
        &self,
        file: &FileDescription,
        caller: &dyn Caller,
        from: &mut dyn UserRead,
    ) -> SysResult<usize> {
        // Linux: exactly eight bytes, since 6.10.
        if from.left() != SIZE {
            return Err(Errno::EINVAL.into());
        }
        let mut bytes = [0; SIZE];
        if from.take(&mut bytes) < SIZE {
            return Err(Errno::EFAULT.into());
        }
        let value = u64::from_ne_bytes(bytes);
        if value == u64::MAX {
            return Err(Errno::EINVAL.into());
        }
        if self.add(value).is_none() {
            if file.is_nonblocking() {
                return Err(Errno::EAGAIN.into());
            }
            wait_as(caller, &[&self.queue], None, || self.add(value))?;
        }
        Ok(SIZE)
    }

    fn attributes(&self) -> Option<SysResult<Attributes>> {
        Some(Ok(self.attributes))
    }

    /// Linux: `noop_llseek`.
    fn seek(&self, _: &FileDescription, _: Seek) -> SysResult<u64> {
        Ok(0)
    }

    fn poll(&self, _: &FileDescription) -> Ready {
        let count = *self.count.lock();
        let mut ready = Ready::empty();
        ready.set(Ready::IN, count > 0);
        ready.set(Ready::ERR, count == u64::MAX);
        ready.set(Ready::OUT, EventFd::has_room(count, 1));
        ready
    }

    fn wait_queues(&self) -> SmallVec<[&WaitQueue; 2]> {
        smallvec![&self.queue]
    }

    fn link_name(&self) -> Option<String> {
        Some("anon_inode:[eventfd]".into())
    }
}

pub fn sys_eventfd(task: &mut CurrentTask, value: u32) -> SysResult<Fd> {
    sys_eventfd2(task, value, EfdFlags::empty())
}

pub fn sys_eventfd2(task: &mut CurrentTask, value: u32, flags: EfdFlags) -> SysResult<Fd> {
    if flags.has_unknown() {
        return Err(Errno::EINVAL.into());
    }
    let file = EventFd {
        count: Mutex::new(u64::from(value)),
        semaphore: flags.contains(EfdFlags::SEMAPHORE),
        reading: SleepLock::new(),
        queue: WaitQueue::new(),
        attributes: task.kernel().anon.anonymous(),
    };
    let mut status = OpenFlags::RDWR;
    status.set(OpenFlags::NONBLOCK, flags.contains(EfdFlags::NONBLOCK));
    task.install(FileDescription::new(Box::new(file), None, status), flags.contains(EfdFlags::CLOEXEC))
}
