//! The host threads of a guest process, as the kernel knows them.
//!
//! What a guest tells of its threads is checked against the host's list: a new one is none that is known already, and one
//! that has ended goes soon. Since an order is good for one clone ([`crate::consent`]), a process has no other threads then.

use std::io;
use std::sync::{Arc, Weak};

use guest_process::Process;
use parking_lot::{Mutex, MutexGuard};
use platform::AddressSpace;

/// Looks ([`Ending::look`]) at which a thread that has ended is still there, at most.
const MOST_LOOKS: u32 = 4;

/// See the module's head.
#[derive(Debug)]
pub(crate) struct Threads {
    tgid: i32,
    process: Weak<Process>,
    known: Mutex<Known>,
    /// Held while one is made, so that only that one is not known.
    making: Mutex<()>,
}

#[derive(Debug)]
struct Known {
    /// The first one stays for as long as its process does.
    live: Vec<i32>,
    /// Those that say so: how often they have been looked at since.
    ended: Vec<(i32, u32)>,
    /// It is on the list of [`Ending`].
    listed: bool,
}

/// Processes of which threads have ended.
#[derive(Debug, Default)]
pub(crate) struct Ending(Mutex<Vec<Weak<Threads>>>);

impl Threads {
    /// Of a process that has its first one.
    pub(crate) fn new(process: &Arc<Process>) -> Arc<Threads> {
        let known = Known { live: vec![process.tgid], ended: Vec::new(), listed: false };
        let (process, tgid) = (Arc::downgrade(process), process.tgid);
        Arc::new(Threads { tgid, process, known: Mutex::new(known), making: Mutex::default() })
    }

    /// Before one is made, until it has been added.
    pub(crate) fn make(&self) -> MutexGuard<'_, ()> {
        let guard = self.making.lock();
        // Their numbers may be given anew.
        self.known.lock().ended.retain(|(tid, _)| self.is_there(*tid));
        guard
    }

    /// A new one. `false`: it is none.
    #[must_use]
    pub(crate) fn add(&self, tid: i32) -> bool {
        let mut known = self.known.lock();
        if known.has(tid) {
            return false;
        }
        known.live.push(tid);
        true
    }

    /// One says that it has ended.
    pub(crate) fn end(self: &Arc<Self>, tid: i32, ending: &Ending) {
        let mut known = self.known.lock();
        known.live.retain(|live| *live != tid);
        known.ended.push((tid, 0));
        if !known.listed {
            known.listed = true;
            drop(known);
            ending.0.lock().push(Arc::downgrade(self));
        }
    }

    /// Whether the host knows no others, while none is made.
    ///
    /// # Errors
    /// What reading its list gives.
    pub(crate) fn are_all(&self) -> io::Result<bool> {
        let list = || -> io::Result<Vec<i32>> {
            let mut tids = Vec::new();
            for entry in std::fs::read_dir(format!("/proc/{}/task", self.tgid))? {
                tids.extend(entry?.file_name().to_str().and_then(|name| name.parse::<i32>().ok()));
            }
            Ok(tids)
        };
        let tids = host::user::perhaps_as_guests(list)?;
        let known = self.known.lock();
        Ok(tids.into_iter().all(|tid| known.has(tid)))
    }

    fn is_there(&self, tid: i32) -> bool {
        host::signal::send_to_thread(self.tgid, tid, 0).is_ok()
    }

    /// Looks after those that have ended. `false`: there are none any more.
    fn look(&self) -> bool {
        let mut known = self.known.lock();
        known.ended.retain_mut(|(tid, looks)| {
            *looks += 1;
            self.is_there(*tid)
        });
        known.listed = !known.ended.is_empty();
        if known.ended.iter().any(|(_, looks)| *looks > MOST_LOOKS)
            && let Some(process) = self.process.upgrade()
        {
            tracing::warn!(tgid = self.tgid, "a guest thread has not ended as it says; killed its process");
            process.kill();
        }
        known.listed
    }
}

impl Known {
    fn has(&self, tid: i32) -> bool {
        self.live.contains(&tid) || self.ended.iter().any(|(ended, _)| *ended == tid)
    }
}

impl Ending {
    /// Every few seconds: ends processes whose threads only say that they have ended.
    pub(crate) fn look(&self) {
        let list = std::mem::take(&mut *self.0.lock());
        let left: Vec<_> = list
            .into_iter()
            .filter(|threads| threads.upgrade().is_some_and(|threads| threads.look()))
            .collect();
        self.0.lock().extend(left);
    }
}
