//! The host event thread: it sleeps until a host descriptor that somebody watches has something to tell.
//!
//! Above all, the ends of guests' host processes: one that dies unasked (the host's OOM killer, a corrupted stub) while
//! its tasks sleep in the kernel ends its guest process at once, as by SIGKILL (INVARIANTS 1.3).

use std::collections::BTreeMap;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock, Weak};

use abi::Signal;
use platform::AddressSpace;
use rustix::event::epoll;
use sync::{Mutex, order};

use crate::guard::guarded;
use crate::kernel::Kernel;
use crate::task::{GroupExit, ThreadGroup};

/// Stack of the event thread, in bytes.
const STACK: usize = if cfg!(debug_assertions) { 512 << 10 } else { 128 << 10 };
/// Events fetched at once.
const BATCH: usize = 64;

/// Wants to know of one event of a host descriptor.
pub trait HostWatcher: Send + Sync {
    /// It has come. Called on the event thread, without locks; must not block.
    fn host_event(&self);
}

/// The descriptors that are watched.
#[derive(Default)]
pub struct HostEvents {
    inner: Mutex<order::HostEvents, Inner>,
    epoll: OnceLock<Epoll>,
}

/// The host's epoll, and the descriptor in it that tells the thread to end.
struct Epoll {
    events: OwnedFd,
    end: OwnedFd,
}

/// What [`Epoll::end`] is known by; watchers are numbered from 1.
const END: u64 = 0;

#[derive(Default)]
struct Inner {
    watchers: BTreeMap<u64, Arc<dyn HostWatcher>>,
    last: u64,
}

/// A descriptor is watched; dropping this ends it.
pub struct HostWatch {
    events: Weak<HostEvents>,
    id: u64,
}

impl HostEvents {
    /// Has `who` told, once, when `fd` becomes readable. The host forgets the descriptor when it is closed.
    ///
    /// # Errors
    /// Those of the host's `epoll_create1` and `epoll_ctl`: `EPERM` for a file that is always readable, `EEXIST` for one
    /// that is watched already, `ENOMEM`, `ENOSPC`; and `EAGAIN` if there is no thread for it.
    pub fn watch(
        self: &Arc<Self>,
        fd: BorrowedFd<'_>,
        who: Arc<dyn HostWatcher>,
    ) -> std::io::Result<HostWatch> {
        let epoll = self.epoll()?;
        let id = {
            let mut inner = self.inner.lock();
            inner.last += 1;
            let id = inner.last;
            inner.watchers.insert(id, who);
            id
        };
        let watch = HostWatch { events: Arc::downgrade(self), id };
        let flags = epoll::EventFlags::IN | epoll::EventFlags::ONESHOT;
        epoll::add(&epoll.events, fd, epoll::EventData::new_u64(id), flags)?;
        Ok(watch)
    }

    /// The host's epoll; the thread starts with it.
    fn epoll(self: &Arc<Self>) -> std::io::Result<&Epoll> {
        if let Some(epoll) = self.epoll.get() {
            return Ok(epoll);
        }
        let events = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let end = rustix::event::eventfd(0, rustix::event::EventfdFlags::CLOEXEC)?;
        epoll::add(&events, &end, epoll::EventData::new_u64(END), epoll::EventFlags::IN)?;
        let made = Epoll { events, end };
        if self.epoll.set(made).is_ok() {
            let events = self.clone();
            let thread = std::thread::Builder::new().name("host events".into()).stack_size(STACK);
            thread.spawn(move || events.run())?;
        }
        self.epoll.get().ok_or(std::io::ErrorKind::WouldBlock.into())
    }

    /// Ends the thread; nobody is told of anything any more.
    pub(crate) fn close(&self) {
        if let Some(epoll) = self.epoll.get() {
            // A counter that is full tells it too.
            let _ = rustix::io::write(&epoll.end, &1u64.to_ne_bytes());
        }
    }

    fn run(&self) {
        let Some(epoll) = self.epoll.get() else { return };
        let none = epoll::Event { flags: epoll::EventFlags::empty(), data: epoll::EventData::new_u64(0) };
        let mut events = [none; BATCH];
        loop {
            let count = match epoll::wait(&epoll.events, &mut events[..], None) {
                Ok(count) => count,
                Err(rustix::io::Errno::INTR) => continue,
                Err(error) => {
                    tracing::error!(%error, "host events are not seen any more");
                    return;
                }
            };
            for event in events.iter().take(count) {
                let id = event.data.u64();
                if id == END {
                    return;
                }
                let who = self.inner.lock().watchers.remove(&id);
                if let Some(who) = who {
                    guarded("host events", || who.host_event());
                }
            }
        }
    }
}

impl Drop for HostWatch {
    fn drop(&mut self) {
        if let Some(events) = self.events.upgrade() {
            let gone = events.inner.lock().watchers.remove(&self.id);
            drop(gone);
        }
    }
}

/// Ends a guest process whose host process has died.
struct DeathWatcher {
    kernel: Weak<Kernel>,
    group: Weak<ThreadGroup>,
}

impl HostWatcher for DeathWatcher {
    fn host_event(&self) {
        let (Some(kernel), Some(group)) = (self.kernel.upgrade(), self.group.upgrade()) else { return };
        let tasks = kernel.tasks.lock();
        let threads = tasks.threads(group.pid);
        // When all its threads are on their way out, the host process was to end.
        if threads.iter().any(|thread| !thread.leaving.load(Ordering::SeqCst)) {
            tracing::debug!(pid = group.pid, "a guest's host process died");
            group.begin_exit(GroupExit::Signal { signal: Signal::KILL, core: false }, threads);
        }
    }
}

impl ThreadGroup {
    /// From now on the group lives in this host process: if that dies, so does the group. Another one before it may end.
    pub(crate) fn live_in(self: &Arc<Self>, kernel: &Arc<Kernel>, space: &Arc<dyn AddressSpace>) {
        let watcher = DeathWatcher { kernel: Arc::downgrade(kernel), group: Arc::downgrade(self) };
        let watch = space.death().map(|death| kernel.host_events.watch(death, Arc::new(watcher)));
        let watch = match watch.transpose() {
            Ok(watch) => watch,
            Err(error) => {
                tracing::warn!(%error, pid = self.pid, "the end of a host process will show late");
                None
            }
        };
        let before = std::mem::replace(&mut *self.death.lock(), watch);
        drop(before);
    }

    /// The group's host process is to end.
    pub(crate) fn leave_host_process(&self) {
        let watch = self.death.lock().take();
        drop(watch);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;
    use std::sync::mpsc;
    use std::time::Duration;

    struct Tell(mpsc::Sender<&'static str>, &'static str);

    impl HostWatcher for Tell {
        fn host_event(&self) {
            self.0.send(self.1).unwrap();
        }
    }

    #[test]
    fn events_come_once_and_only_while_watched() {
        let events = Arc::new(HostEvents::default());
        let (tell, told) = mpsc::channel();
        let (first_read, first_write) = rustix::pipe::pipe().unwrap();
        let (second_read, second_write) = rustix::pipe::pipe().unwrap();
        let first = events.watch(first_read.as_fd(), Arc::new(Tell(tell.clone(), "first"))).unwrap();
        let second = events.watch(second_read.as_fd(), Arc::new(Tell(tell.clone(), "second"))).unwrap();
        drop(second);
        rustix::io::write(&second_write, b"x").unwrap();
        rustix::io::write(&first_write, b"x").unwrap();
        assert_eq!(told.recv_timeout(Duration::from_secs(10)), Ok("first"));
        rustix::io::write(&first_write, b"x").unwrap();
        assert!(told.recv_timeout(Duration::from_millis(50)).is_err());
        drop(first);
        assert!(events.inner.lock().watchers.is_empty());
    }
}
