//! A pipe or socket of the host's that can block: used without blocking, awaited on a queue.
//!
//! A thread of its own watches each one, edge-triggered: it sleeps until the host says that something changed, and
//! wakes the queue. Who waits looks for itself, after it stands in the queue.

use std::collections::VecDeque;
use std::io::{IoSlice, IoSliceMut};
use std::os::fd::OwnedFd;
use std::sync::Arc;

use abi::Errno;
use rustix::event::epoll;
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::io::ReadWriteFlags;
use sync::{Mutex, SysError, SysResult, WaitQueue, order};
use vfs::{Caller, FileDescription, Ready};

use super::{errno, retry};
use crate::task::wait_as;

/// What the host always takes at once from a pipe that polls as writable (Linux: PIPE_BUF).
const ATOMIC: usize = 4096;

/// "At the description's own offset", for `preadv2` and `pwritev2`.
const OWN_OFFSET: u64 = u64::MAX;

/// A host file that can block.
pub(super) struct Stream {
    fd: Arc<OwnedFd>,
    shared: Arc<Shared>,
    /// Read from the host, but not taken by the guest.
    unread: Mutex<order::Buffer, VecDeque<u8>>,
}

/// What the watching thread has of it.
struct Shared {
    queue: WaitQueue,
    epoll: OwnedFd,
    stop: OwnedFd,
}

impl Drop for Stream {
    fn drop(&mut self) {
        // The host's description lives on elsewhere, and with it the interest, until it is taken out.
        let _ = epoll::delete(&self.shared.epoll, &self.fd);
        let _ = rustix::io::write(&self.shared.stop, &1_u64.to_ne_bytes());
    }
}

impl Stream {
    /// Watches it, if it is one that can block: the host refuses to watch others (`EPERM`).
    pub(super) fn watch(fd: &Arc<OwnedFd>) -> Option<Stream> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).ok()?;
        let events = epoll::EventFlags::IN
            | epoll::EventFlags::OUT
            | epoll::EventFlags::PRI
            | epoll::EventFlags::RDHUP
            | epoll::EventFlags::ET;
        epoll::add(&epoll, fd, epoll::EventData::new_u64(0), events).ok()?;
        let stop = eventfd(0, EventfdFlags::CLOEXEC).ok()?;
        epoll::add(&epoll, &stop, epoll::EventData::new_u64(1), epoll::EventFlags::IN).ok()?;
        let shared = Arc::new(Shared { queue: WaitQueue::default(), epoll, stop });
        let watching = shared.clone();
        let thread = std::thread::Builder::new().name("host stream".into()).stack_size(64 << 10);
        thread.spawn(move || watching.watch()).ok()?;
        Some(Stream { fd: fd.clone(), shared, unread: Mutex::default() })
    }

    pub(super) fn queue(&self) -> &WaitQueue {
        &self.shared.queue
    }

    pub(super) fn ready(&self) -> Ready {
        let all = PollFlags::IN | PollFlags::OUT | PollFlags::PRI | PollFlags::RDHUP;
        let mut fds = [PollFd::new(&self.fd, all)];
        let now = rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 };
        if retry(|| poll(&mut fds, Some(&now))).is_err() {
            return Ready::ERR;
        }
        let bits = Ready::from_bits_retain(u32::from(fds[0].revents().bits()));
        let mut ready = bits;
        if bits.contains(Ready::IN) || !self.unread.lock().is_empty() {
            ready |= Ready::READABLE;
        }
        if bits.contains(Ready::OUT) {
            ready |= Ready::WRITABLE;
        }
        ready
    }

    /// Keeps bytes for the next read.
    pub(super) fn put_back(&self, bytes: &[u8]) {
        let mut unread = self.unread.lock();
        bytes.iter().rev().for_each(|byte| unread.push_front(*byte));
        drop(unread);
        self.shared.queue.wake(Ready::READABLE.bits());
    }

    /// Takes what was put back.
    fn take_unread(&self, into: &mut [u8]) -> usize {
        let mut unread = self.unread.lock();
        let count = unread.len().min(into.len());
        into.iter_mut().zip(unread.drain(..count)).for_each(|(place, byte)| *place = byte);
        count
    }

    /// Reads what there is; waits for the first byte.
    pub(super) fn read(
        &self,
        file: &FileDescription,
        caller: &dyn Caller,
        into: &mut [u8],
    ) -> SysResult<usize> {
        let unread = self.take_unread(into);
        if unread > 0 {
            return Ok(unread);
        }
        self.when_ready(file, caller, Ready::IN, || {
            let mut slices = [IoSliceMut::new(&mut *into)];
            match rustix::io::preadv2(&self.fd, &mut slices, OWN_OFFSET, ReadWriteFlags::NOWAIT) {
                // A host that cannot do it without waiting on this kind of file.
                Err(rustix::io::Errno::OPNOTSUPP)
                    if self.ready().intersects(Ready::IN | Ready::HUP | Ready::ERR) =>
                {
                    rustix::io::read(&self.fd, &mut *into)
                }
                Err(rustix::io::Errno::OPNOTSUPP) => Err(rustix::io::Errno::AGAIN),
                result => result,
            }
        })
    }

    /// Writes all of it, unless it is to be non-blocking, or interrupted when a part is written.
    pub(super) fn write(
        &self,
        file: &FileDescription,
        caller: &dyn Caller,
        bytes: &[u8],
    ) -> SysResult<usize> {
        let mut done = 0;
        while done < bytes.len() {
            let rest = bytes.get(done..).unwrap_or_default();
            let wrote = self.when_ready(file, caller, Ready::OUT, || {
                match rustix::io::pwritev2(
                    &self.fd,
                    &[IoSlice::new(rest)],
                    OWN_OFFSET,
                    ReadWriteFlags::NOWAIT,
                ) {
                    Err(rustix::io::Errno::OPNOTSUPP)
                        if self.ready().intersects(Ready::OUT | Ready::HUP | Ready::ERR) =>
                    {
                        rustix::io::write(&self.fd, rest.get(..rest.len().min(ATOMIC)).unwrap_or_default())
                    }
                    Err(rustix::io::Errno::OPNOTSUPP) => Err(rustix::io::Errno::AGAIN),
                    result => result,
                }
            });
            match wrote {
                Ok(wrote) => done += wrote,
                Err(error) if done > 0 && error != SysError::Errno(Errno::EPIPE) => return Ok(done),
                Err(error) => return Err(error),
            }
        }
        Ok(done)
    }

    /// Tries until it need not wait any more.
    fn when_ready(
        &self,
        file: &FileDescription,
        caller: &dyn Caller,
        wanted: Ready,
        mut attempt: impl FnMut() -> rustix::io::Result<usize>,
    ) -> SysResult<usize> {
        loop {
            match retry(&mut attempt) {
                Err(rustix::io::Errno::AGAIN) if file.is_nonblocking() => return Err(Errno::EAGAIN.into()),
                Err(rustix::io::Errno::AGAIN) => {
                    let wanted = wanted | Ready::HUP | Ready::ERR;
                    wait_as(caller, &[self.queue()], None, || self.ready().intersects(wanted).then_some(()))?;
                }
                result => return Ok(result.map_err(errno)?),
            }
        }
    }
}

impl Shared {
    fn watch(&self) {
        let mut events =
            [epoll::Event { flags: epoll::EventFlags::empty(), data: epoll::EventData::new_u64(0) }; 2];
        loop {
            let count = match epoll::wait(&self.epoll, &mut events[..], None) {
                Ok(count) => count,
                Err(rustix::io::Errno::INTR) => continue,
                Err(_) => return,
            };
            let mut stopped = false;
            for event in events.iter().take(count) {
                stopped |= event.data.u64() == 1;
            }
            if stopped {
                return;
            }
            self.queue.wake(0);
        }
    }
}
