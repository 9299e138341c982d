//! epoll.
//!
//! An [`Epoll`] has an [`Item`] for each descriptor that it watches. An item waits on its file's queues and, when woken,
//! enters the list of those that may be ready; `wait.rs` asks these and tells the guest. `ctl.rs` adds, changes and
//! removes items, `nest.rs` keeps epolls within epolls from going round in circles.
//!
//! An item does not keep its file open: it goes with the file (Linux: `eventpoll_release`). It stays on the list while it
//! is asked, so that an epoll that watches this one sees no gap; a wake-up meanwhile is noted and keeps it there.
//!
//! Lock levels: the scan's `SleepLock` (held over copies), `File` (the items), `EpollReady` (the list), wait queues.

mod ctl;
mod nest;
mod wait;

use std::any::Any;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use abi::{EpollCreateFlags, EpollFlags, Errno, OpenFlags};
use smallvec::{SmallVec, smallvec};
use sync::{Mutex, SleepLock, SysResult, WaitQueue, WaitToken, Wake, order};
use vfs::{Attributes, FileDescription, FileOps, Ready, Seek, Watcher};

use crate::syscall::Fd;
use crate::task::CurrentTask;
use crate::users::Held;

pub use ctl::sys_epoll_ctl;
pub use wait::{sys_epoll_pwait, sys_epoll_pwait2, sys_epoll_wait};

/// How an item is told, not what of (Linux: `EP_PRIVATE_BITS`). One without other bits is disarmed.
const PRIVATE: EpollFlags =
    EpollFlags::WAKEUP.union(EpollFlags::ONESHOT).union(EpollFlags::ET).union(EpollFlags::EXCLUSIVE);

/// An epoll.
struct Epoll {
    items: Mutex<order::File, BTreeMap<Key, Arc<Item>>>,
    ready: Mutex<order::EpollReady, ReadyList>,
    /// Those in `epoll_wait`, and those who wait for this epoll's own descriptor.
    waiters: WaitQueue,
    /// Held by who tells the guest of events or changes items.
    scan: SleepLock,
    /// Epolls that watch this one.
    parents: Mutex<order::Leaf, Vec<Weak<Epoll>>>,
}

/// What names an item: the descriptor's number, and the open file (its address).
type Key = (i32, usize);

/// Items that may be ready, in the order in which they became so.
#[derive(Default)]
struct ReadyList {
    items: BTreeMap<u64, Arc<Item>>,
    last: u64,
}

/// A descriptor that an epoll watches.
struct Item {
    own: Weak<Item>,
    epoll: Weak<Epoll>,
    file: Weak<FileDescription>,
    key: Key,
    /// It is an epoll itself.
    nested: bool,
    /// `EpollFlags`; written under the scan's lock.
    interest: AtomicU32,
    data: AtomicU64,
    /// Its place on the list, 0 for none. This and the next two change under the list's lock.
    place: AtomicU64,
    /// Woken since it was asked last.
    woken: AtomicBool,
    removed: AtomicBool,
    registered: Mutex<order::Leaf, SmallVec<[WaitToken; 2]>>,
    /// Counts among its user's watches.
    _watch: Held,
}

impl Epoll {
    fn new() -> Arc<Epoll> {
        Arc::new(Epoll {
            items: Mutex::default(),
            ready: Mutex::default(),
            waiters: WaitQueue::new(),
            scan: SleepLock::new(),
            parents: Mutex::default(),
        })
    }

    fn has_ready(&self) -> bool {
        !self.ready.lock().items.is_empty()
    }

    /// Puts an item on the list, unless it is there, and wakes who waits.
    fn make_ready(&self, item: &Arc<Item>) {
        {
            let mut ready = self.ready.lock();
            if item.removed.load(Ordering::Relaxed) {
                return;
            }
            item.woken.store(true, Ordering::Relaxed);
            if item.place.load(Ordering::Relaxed) == 0 {
                ready.append(item);
            }
        }
        self.waiters.wake(Ready::READABLE.bits());
    }

    /// Takes an item out for good.
    fn remove(&self, item: &Arc<Item>, file: &FileDescription) {
        let known = self.items.lock().remove(&item.key);
        self.ready.lock().retire(item);
        item.unregister(file);
        if item.nested
            && let Some(inner) = file.downcast::<EpollFile>()
        {
            inner.epoll.forget_parent(self);
        }
        drop(known);
    }

    /// Its last descriptor is closed: nothing is watched any more.
    fn close(&self) {
        let items = std::mem::take(&mut *self.items.lock());
        for item in items.values() {
            self.ready.lock().retire(item);
            if let Some(file) = item.file.upgrade() {
                self.remove(item, &file);
            }
        }
    }
}

impl ReadyList {
    fn append(&mut self, item: &Arc<Item>) {
        self.last += 1;
        item.place.store(self.last, Ordering::Relaxed);
        self.items.insert(self.last, item.clone());
    }

    /// Takes an item off the list.
    fn take_off(&mut self, item: &Item) {
        let place = item.place.swap(0, Ordering::Relaxed);
        self.items.remove(&place);
    }

    /// Takes it off and lets it come back no more.
    fn retire(&mut self, item: &Item) {
        item.removed.store(true, Ordering::Relaxed);
        self.take_off(item);
    }
}

impl Item {
    fn interest(&self) -> EpollFlags {
        EpollFlags::from_bits_retain(self.interest.load(Ordering::Relaxed))
    }

    /// What of its interest is there now.
    fn look(&self, file: &FileDescription) -> EpollFlags {
        EpollFlags::from_bits_retain(file.ops.poll(file).bits()) & self.interest().difference(PRIVATE)
    }

    fn register(self: &Arc<Self>, file: &FileDescription) {
        let queues = file.ops.wait_queues();
        *self.registered.lock() = queues.iter().map(|queue| queue.register(self.clone())).collect();
    }

    fn unregister(&self, file: &FileDescription) {
        let tokens = std::mem::take(&mut *self.registered.lock());
        for queue in file.ops.wait_queues() {
            for token in &tokens {
                queue.unregister(*token);
            }
        }
    }
}

impl Wake for Item {
    fn wake(&self, events: u32) {
        let interest = self.interest().difference(PRIVATE);
        let concerns = events == 0 || interest.bits() & events != 0;
        if interest.is_empty() || !concerns {
            return;
        }
        if let (Some(epoll), Some(own)) = (self.epoll.upgrade(), self.own.upgrade()) {
            epoll.make_ready(&own);
        }
    }
}

impl Watcher for Item {
    fn file_closed(&self, file: &FileDescription) {
        if let (Some(epoll), Some(own)) = (self.epoll.upgrade(), self.own.upgrade()) {
            epoll.remove(&own, file);
        }
    }
}

/// An epoll's open file.
struct EpollFile {
    epoll: Arc<Epoll>,
    attributes: Attributes,
}

impl FileOps for EpollFile {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn attributes(&self) -> Option<SysResult<Attributes>> {
        Some(Ok(self.attributes))
    }

    /// Linux: `noop_llseek`.
    fn seek(&self, _: &FileDescription, _: Seek) -> SysResult<u64> {
        Ok(0)
    }

    /// Readable when one of its files really is ready.
    fn poll(&self, _: &FileDescription) -> Ready {
        let candidates: Vec<_> = self.epoll.ready.lock().items.values().cloned().collect();
        let is_ready = candidates
            .iter()
            .any(|item| item.file.upgrade().is_some_and(|file| !item.look(&file).is_empty()));
        if is_ready { Ready::READABLE } else { Ready::empty() }
    }

    fn wait_queues(&self) -> SmallVec<[&WaitQueue; 2]> {
        smallvec![&self.epoll.waiters]
    }

    fn link_name(&self) -> Option<String> {
        Some("anon_inode:[eventpoll]".into())
    }
}

impl Drop for EpollFile {
    fn drop(&mut self) {
        self.epoll.close();
    }
}

pub fn sys_epoll_create(task: &mut CurrentTask, size: i32) -> SysResult<Fd> {
    if size <= 0 {
        return Err(Errno::EINVAL.into());
    }
    sys_epoll_create1(task, EpollCreateFlags::empty())
}

pub fn sys_epoll_create1(task: &mut CurrentTask, flags: EpollCreateFlags) -> SysResult<Fd> {
    if flags.has_unknown() {
        return Err(Errno::EINVAL.into());
    }
    let file = EpollFile { epoll: Epoll::new(), attributes: task.kernel().anon.anonymous() };
    let file = FileDescription::new(Box::new(file), None, OpenFlags::RDWR);
    task.install(file, flags.contains(EpollCreateFlags::CLOEXEC))
}
