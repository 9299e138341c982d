//! `epoll_wait` and its kin.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use abi::{EpollEvent, EpollFlags, Errno, SigSet, Timespec};
use sync::{Deadline, SysResult, WaitEnd};
use zerocopy::IntoBytes;

use super::{Epoll, EpollFile, Item, PRIVATE};
use crate::mm::Mm;
use crate::syscall::{Fd, In, OutArray};
use crate::task::CurrentTask;

/// How long to wait.
#[derive(Clone, Copy)]
enum Patience {
    None,
    Until(Deadline),
}

impl Patience {
    fn for_span(span: Duration) -> Patience {
        if span.is_zero() { Patience::None } else { Patience::Until(Instant::now().checked_add(span)) }
    }

    fn for_millis(timeout: i32) -> Patience {
        match u64::try_from(timeout) {
            Ok(millis) => Patience::for_span(Duration::from_millis(millis)),
            Err(_) => Patience::Until(None),
        }
    }
}

pub fn sys_epoll_wait(
    task: &mut CurrentTask,
    epfd: Fd,
    events: OutArray<EpollEvent>,
    timeout: i32,
) -> SysResult<usize> {
    wait(task, epfd, events, Patience::for_millis(timeout))
}

pub fn sys_epoll_pwait(
    task: &mut CurrentTask,
    epfd: Fd,
    events: OutArray<EpollEvent>,
    timeout: i32,
    mask: In<SigSet>,
    set_size: usize,
) -> SysResult<usize> {
    masked_wait(task, epfd, events, Patience::for_millis(timeout), mask, set_size)
}

pub fn sys_epoll_pwait2(
    task: &mut CurrentTask,
    epfd: Fd,
    events: OutArray<EpollEvent>,
    timeout: In<Timespec>,
    mask: In<SigSet>,
    set_size: usize,
) -> SysResult<usize> {
    let patience = match timeout.is_null() {
        true => Patience::Until(None),
        false => Patience::for_span(crate::time::duration(task.mm.read(timeout.0)?)?),
    };
    masked_wait(task, epfd, events, patience, mask, set_size)
}

fn masked_wait(
    task: &mut CurrentTask,
    epfd: Fd,
    events: OutArray<EpollEvent>,
    patience: Patience,
    mask: In<SigSet>,
    set_size: usize,
) -> SysResult<usize> {
    task.wait_with_mask(mask, set_size)?;
    let result = wait(task, epfd, events, patience);
    task.end_wait_with_mask(&result);
    result
}

fn wait(task: &CurrentTask, epfd: Fd, events: OutArray<EpollEvent>, patience: Patience) -> SysResult<usize> {
    // The count is an `int` there.
    let most = i32::try_from(events.count & 0xffff_ffff).ok().and_then(|count| usize::try_from(count).ok());
    let most = most.filter(|most| (1..=EpollEvent::MAX).contains(most)).ok_or(Errno::EINVAL)?;
    let size = most as u64 * size_of::<EpollEvent>() as u64;
    if !events.addr.in_guest_range(size) {
        return Err(Errno::EFAULT.into());
    }
    let file = task.files.get(epfd)?;
    let epoll = &file.downcast::<EpollFile>().ok_or(Errno::EINVAL)?.epoll;
    loop {
        if epoll.has_ready() {
            let count = epoll.tell(task, events, most)?;
            if count > 0 {
                return Ok(count);
            }
        }
        let Patience::Until(deadline) = patience else { return Ok(0) };
        match task.wait(&[&epoll.waiters], deadline, |_| epoll.has_ready().then_some(())) {
            Ok(()) => {}
            Err(WaitEnd::TimedOut) => return Ok(0),
            // Linux gives EINTR here whatever the signal did, even for a stop.
            Err(WaitEnd::Interrupted(_)) => return Err(Errno::EINTR.into()),
        }
    }
}

/// An event that is told.
struct Told {
    item: Arc<Item>,
    /// Where the item was on the list.
    place: u64,
    event: EpollEvent,
}

impl Epoll {
    /// Asks the items on the list, stores the events of those that are ready, and only then counts them as told
    /// (INVARIANTS 2.4).
    fn tell(&self, task: &CurrentTask, events: OutArray<EpollEvent>, most: usize) -> SysResult<usize> {
        let _scan = self.scan.lock(&task.waiter)?;
        let told = self.find_ready(most);
        if told.is_empty() {
            return Ok(0);
        }
        let stored = store(&task.mm, events, &told);
        for one in told.iter().take(stored) {
            self.count_as_told(one);
        }
        if stored == 0 { Err(Errno::EFAULT.into()) } else { Ok(stored) }
    }

    fn find_ready(&self, most: usize) -> Vec<Told> {
        let mut told = Vec::new();
        let last = self.ready.lock().last;
        let mut place = 0;
        while told.len() < most {
            let next = {
                let ready = self.ready.lock();
                let next = ready.items.range(place + 1..).next().filter(|(place, _)| **place <= last);
                next.map(|(place, item)| {
                    item.woken.store(false, Ordering::Relaxed);
                    (*place, item.clone())
                })
            };
            let Some((at, item)) = next else { break };
            place = at;
            let found = item.file.upgrade().map_or(EpollFlags::empty(), |file| item.look(&file));
            if found.is_empty() {
                let mut ready = self.ready.lock();
                if !item.woken.load(Ordering::Relaxed) && item.place.load(Ordering::Relaxed) == place {
                    ready.take_off(&item);
                }
                continue;
            }
            let event = EpollEvent { events: found, data: item.data.load(Ordering::Relaxed) };
            told.push(Told { item, place, event });
        }
        told
    }

    /// Level-triggered items stay on the list, behind the others, until they are found not to be ready.
    fn count_as_told(&self, told: &Told) {
        let item = &told.item;
        let interest = item.interest();
        let once = interest.contains(EpollFlags::ONESHOT);
        if once {
            item.interest.store((interest & PRIVATE).bits(), Ordering::SeqCst);
        }
        let mut ready = self.ready.lock();
        if item.place.load(Ordering::Relaxed) != told.place {
            return;
        }
        ready.take_off(item);
        let again = !interest.contains(EpollFlags::ET) || item.woken.load(Ordering::Relaxed);
        if again && !once {
            ready.append(item);
        }
    }
}

/// Stores the events; gives how many were.
fn store(mm: &Mm, events: OutArray<EpollEvent>, told: &[Told]) -> usize {
    let bytes: Vec<u8> = told.iter().flat_map(|one| one.event.as_bytes().to_vec()).collect();
    let range = platform::GuestRange { start: events.addr, len: bytes.len() };
    mm.copy_out(&bytes, &[range]) / size_of::<EpollEvent>()
}
