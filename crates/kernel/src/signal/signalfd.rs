//! signalfd: signals that are read instead of handled.
//!
//! What can be read depends on who reads: the signals pending for the calling task. So a signalfd has a queue of its
//! own, woken by a [`Forwarder`] on each thread group that has used it.

use std::any::Any;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use abi::{Errno, OpenFlags, SfdFlags, SiLayout, SigSet, Siginfo, SignalfdSiginfo};
use smallvec::{SmallVec, smallvec};
use sync::{Mutex, SysResult, WaitQueue, WaitToken, Wake, order};
use vfs::{Attributes, Caller, FileDescription, FileOps, Ready, Seek, UserWrite};
use zerocopy::IntoBytes;

use super::syscalls::is_pending;
use crate::syscall::{Fd, In};
use crate::task::{CurrentTask, ThreadGroup, current, task_of_this_thread, wait_as};

/// Bytes of one record.
const RECORD: usize = size_of::<SignalfdSiginfo>();

struct SignalFd {
    /// The signals that it reads.
    mask: AtomicU64,
    inner: Arc<Forwarder>,
    /// The groups that it listens to.
    groups: Mutex<order::Leaf, Vec<(Weak<ThreadGroup>, WaitToken)>>,
    attributes: Attributes,
}

/// Passes on that a group may have got a signal.
struct Forwarder {
    queue: WaitQueue,
}

impl Wake for Forwarder {
    fn wake(&self, _events: u32) {
        self.queue.wake(Ready::IN.bits());
    }
}

impl SignalFd {
    fn mask(&self) -> SigSet {
        SigSet(self.mask.load(Ordering::SeqCst))
    }

    /// Listens to this group's signals from now on.
    fn listen(&self, group: &Arc<ThreadGroup>) {
        let mut known = false;
        self.groups.lock().retain(|(other, _)| {
            known |= std::ptr::eq(other.as_ptr(), Arc::as_ptr(group));
            other.strong_count() > 0
        });
        if !known {
            // Another thread of the group may do the same: then it is told twice.
            let token = group.events.register(self.inner.clone());
            self.groups.lock().push((Arc::downgrade(group), token));
        }
    }
}

impl FileOps for SignalFd {
    fn as_any(&self) -> &dyn Any {
        self
    }

    /// As many records as are there and fit; waits for the first.
    fn read(&self, file: &FileDescription, caller: &dyn Caller, to: &mut dyn UserWrite) -> SysResult<usize> {
        let task = current(caller)?;
        if to.room() < RECORD {
            return Err(Errno::EINVAL.into());
        }
        let mut done = 0;
        while to.room() >= RECORD {
            let info = match task.next_signal(self.mask()) {
                Some(info) => info,
                None if done > 0 => break,
                None if file.is_nonblocking() => return Err(Errno::EAGAIN.into()),
                None => wait_as(caller, &[&task.group().events], None, || task.next_signal(self.mask()))?,
            };
            if to.put(to_record(&info).as_bytes()) < RECORD {
                task.put_signal_back(info);
                return if done > 0 { Ok(done) } else { Err(Errno::EFAULT.into()) };
            }
            done += RECORD;
        }
        Ok(done)
    }

    fn attributes(&self) -> Option<SysResult<Attributes>> {
        Some(Ok(self.attributes))
    }

    /// Linux: `noop_llseek`.
    fn seek(&self, _: &FileDescription, _: Seek) -> SysResult<u64> {
        Ok(0)
    }

    fn poll(&self, _: &FileDescription) -> Ready {
        match task_of_this_thread() {
            Some(task) if is_pending(&task, self.mask()) => Ready::IN,
            _ => Ready::empty(),
        }
    }

    fn wait_queues(&self) -> SmallVec<[&WaitQueue; 2]> {
        if let Some(task) = task_of_this_thread() {
            self.listen(&task.group);
        }
        smallvec![&self.inner.queue]
    }

    fn link_name(&self) -> Option<String> {
        Some("anon_inode:[signalfd]".into())
    }
}

impl Drop for SignalFd {
    fn drop(&mut self) {
        for (group, token) in self.groups.get_mut().drain(..) {
            if let Some(group) = group.upgrade() {
                group.events.unregister(token);
            }
        }
    }
}

/// Linux: `signalfd_copyinfo`.
fn to_record(info: &Siginfo) -> SignalfdSiginfo {
    let mut record = SignalfdSiginfo {
        signo: info.signo.0.cast_unsigned(),
        errno: info.errno,
        code: info.code,
        ..SignalfdSiginfo::default()
    };
    let value = info.value();
    // Its lower half, as an `int`.
    let int = u32::try_from(value & 0xffff_ffff).unwrap_or(0).cast_signed();
    match info.layout() {
        SiLayout::Kill => {
            record.pid = info.pid().cast_unsigned();
            record.uid = info.uid();
        }
        SiLayout::Timer => {
            record.tid = info.timer_id().cast_unsigned();
            record.overrun = info.overrun().cast_unsigned();
            (record.ptr, record.int) = (value, int);
        }
        SiLayout::Poll => {
            record.band = u32::try_from(info.band() & 0xffff_ffff).unwrap_or(0);
            record.fd = info.fd();
        }
        SiLayout::Fault | SiLayout::FaultPkey => record.addr = info.addr(),
        SiLayout::FaultMce => {
            record.addr = info.addr();
            record.addr_lsb = u16::try_from(info.word_at(1) & 0xffff).unwrap_or(0);
        }
        SiLayout::Child => {
            record.pid = info.pid().cast_unsigned();
            record.uid = info.uid();
            record.status = info.status();
            record.utime = info.utime().cast_unsigned();
            record.stime = info.stime().cast_unsigned();
        }
        SiLayout::Queue => {
            record.pid = info.pid().cast_unsigned();
            record.uid = info.uid();
            (record.ptr, record.int) = (value, int);
        }
        SiLayout::Sys => {
            record.call_addr = info.addr();
            record.syscall = info.syscall();
            record.arch = info.arch();
        }
    }
    record
}

pub fn sys_signalfd(task: &mut CurrentTask, fd: Fd, mask: In<SigSet>, set_size: usize) -> SysResult<Fd> {
    sys_signalfd4(task, fd, mask, set_size, SfdFlags::empty())
}

pub fn sys_signalfd4(
    task: &mut CurrentTask,
    fd: Fd,
    mask: In<SigSet>,
    set_size: usize,
    flags: SfdFlags,
) -> SysResult<Fd> {
    if set_size != SigSet::SIZE {
        return Err(Errno::EINVAL.into());
    }
    let mask = task.mm.read::<SigSet>(mask.0)?.difference(SigSet::UNBLOCKABLE);
    if flags.has_unknown() {
        return Err(Errno::EINVAL.into());
    }
    if fd.0 != -1 {
        let file = task.files.get(fd)?;
        let known = file.downcast::<SignalFd>().ok_or(Errno::EINVAL)?;
        known.mask.store(mask.0, Ordering::SeqCst);
        // What is pending may be wanted now.
        known.inner.queue.wake(0);
        task.group().events.wake(0);
        return Ok(fd);
    }
    let file = SignalFd {
        mask: AtomicU64::new(mask.0),
        inner: Arc::new(Forwarder { queue: WaitQueue::new() }),
        groups: Mutex::default(),
        attributes: task.kernel().anon.anonymous(),
    };
    let mut status = OpenFlags::RDWR;
    status.set(OpenFlags::NONBLOCK, flags.contains(SfdFlags::NONBLOCK));
    task.install(FileDescription::new(Box::new(file), None, status), flags.contains(SfdFlags::CLOEXEC))
}
