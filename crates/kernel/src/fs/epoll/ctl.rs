//! `epoll_ctl`.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use abi::{EpollEvent, EpollFlags, EpollOp, Errno};
use sync::{Mutex, SysResult};
use vfs::{FileDescription, Watcher};

use super::{Epoll, EpollFile, Item, Key};
use crate::syscall::{Fd, In};
use crate::task::CurrentTask;
use crate::users::Counted;

/// Descriptors that a user's epolls may watch (`fs.epoll.max_user_watches`).
const MAX_WATCHES: usize = 1 << 20;
/// What may stand beside EPOLLEXCLUSIVE.
const WITH_EXCLUSIVE: EpollFlags = EpollFlags::IN
    .union(EpollFlags::OUT)
    .union(EpollFlags::ERR)
    .union(EpollFlags::HUP)
    .union(EpollFlags::WAKEUP)
    .union(EpollFlags::ET)
    .union(EpollFlags::EXCLUSIVE);
/// Told whether it was asked for or not.
const ALWAYS: EpollFlags = EpollFlags::ERR.union(EpollFlags::HUP);

pub fn sys_epoll_ctl(
    task: &mut CurrentTask,
    epfd: Fd,
    op: EpollOp,
    fd: Fd,
    event: In<EpollEvent>,
) -> SysResult<()> {
    let event: EpollEvent = match op {
        EpollOp::DEL => EpollEvent::default(),
        _ => task.mm.read(event.0)?,
    };
    let own = task.files.get(epfd)?;
    let file = task.files.get(fd)?;
    if file.ops.wait_queues().is_empty() {
        return Err(Errno::EPERM.into());
    }
    let epoll = match own.downcast::<EpollFile>() {
        Some(own_ops) if !Arc::ptr_eq(&own, &file) => &own_ops.epoll,
        _ => return Err(Errno::EINVAL.into()),
    };
    let inner = file.downcast::<EpollFile>().map(|inner| &inner.epoll);
    let events = event.events;
    if events.contains(EpollFlags::EXCLUSIVE) {
        let possible = op == EpollOp::ADD && inner.is_none() && WITH_EXCLUSIVE.contains(events);
        if !possible {
            return Err(Errno::EINVAL.into());
        }
    }
    // One change of nesting at a time, from the check to the new link.
    let _nesting = match (op, inner) {
        (EpollOp::ADD, Some(inner)) => {
            let lock = task.kernel().epoll_nesting.lock(&task.waiter)?;
            epoll.check_nesting(inner)?;
            Some(lock)
        }
        _ => None,
    };
    let _scan = epoll.scan.lock(&task.waiter)?;
    let key: Key = (fd.0, Arc::as_ptr(&file).addr());
    let known = epoll.items.lock().get(&key).cloned();
    match (op, known) {
        (EpollOp::ADD, None) => epoll.add(task, key, &file, event),
        (EpollOp::ADD, Some(_)) => Err(Errno::EEXIST.into()),
        (EpollOp::DEL, Some(item)) => {
            epoll.remove(&item, &file);
            Ok(())
        }
        (EpollOp::MOD, Some(item)) if item.interest().contains(EpollFlags::EXCLUSIVE) => {
            Err(Errno::EINVAL.into())
        }
        (EpollOp::MOD, Some(item)) => {
            item.data.store(event.data, Ordering::Relaxed);
            item.interest.store((events | ALWAYS).bits(), Ordering::SeqCst);
            epoll.look_at(&item, &file);
            Ok(())
        }
        (EpollOp::MOD | EpollOp::DEL, None) => Err(Errno::ENOENT.into()),
        _ => Err(Errno::EINVAL.into()),
    }
}

impl Epoll {
    fn add(
        self: &Arc<Self>,
        task: &CurrentTask,
        key: Key,
        file: &Arc<FileDescription>,
        event: EpollEvent,
    ) -> SysResult<()> {
        let watch = task.kernel().users.hold(task.cred.uid, Counted::EpollWatches, 1);
        if watch.total() > MAX_WATCHES {
            return Err(Errno::ENOSPC.into());
        }
        let inner = file.downcast::<EpollFile>().map(|inner| &inner.epoll);
        let events = event.events;
        let item = Arc::new_cyclic(|own| Item {
            own: own.clone(),
            epoll: Arc::downgrade(self),
            file: Arc::downgrade(file),
            key,
            nested: inner.is_some(),
            interest: AtomicU32::new((events | ALWAYS).bits()),
            data: AtomicU64::new(event.data),
            place: AtomicU64::new(0),
            woken: AtomicBool::new(false),
            removed: AtomicBool::new(false),
            registered: Mutex::default(),
            _watch: watch,
        });
        self.items.lock().insert(key, item.clone());
        if let Some(inner) = inner {
            inner.parents.lock().push(Arc::downgrade(self));
        }
        let watcher: Weak<dyn Watcher> = item.own.clone();
        file.watchers.add(watcher);
        item.register(file);
        self.look_at(&item, file);
        Ok(())
    }

    /// What is ready already counts as an event.
    fn look_at(&self, item: &Arc<Item>, file: &FileDescription) {
        if !item.look(file).is_empty() {
            self.make_ready(item);
        }
    }

    /// `outer` does not watch this epoll any more.
    pub(super) fn forget_parent(&self, outer: &Epoll) {
        let mut parents = self.parents.lock();
        if let Some(index) = parents.iter().position(|parent| std::ptr::eq(parent.as_ptr(), outer)) {
            parents.swap_remove(index);
        }
    }
}
