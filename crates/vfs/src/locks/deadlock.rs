//! Who waits for whose record lock, to refuse a wait that closes a circle (Linux: `posix_locks_deadlock`).

use std::collections::HashMap;

use sync::Mutex;
use sync::order::Leaf;

use super::records::Owner;

/// How many owners a search looks at: as on Linux, long circles are not found, and then a signal must end them.
const SEARCH_MAX: usize = 64;

/// The waits for POSIX record locks of a whole kernel.
#[derive(Default)]
pub struct Deadlocks {
    /// Waiting owner to those it waits for, one for each of its waiting threads.
    waits: Mutex<Leaf, HashMap<u64, Vec<u64>>>,
}

impl Deadlocks {
    pub fn new() -> Deadlocks {
        Deadlocks::default()
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.waits.lock().is_empty()
    }

    /// A wait of `owner` that begins.
    pub(super) fn waiting(&self, owner: Owner) -> Waiting<'_> {
        Waiting { deadlocks: self, owner, for_whom: None }
    }
}

/// One thread's wait.
pub(super) struct Waiting<'a> {
    deadlocks: &'a Deadlocks,
    owner: Owner,
    for_whom: Option<u64>,
}

impl Waiting<'_> {
    /// Notes that it now waits for `holder`; `false` if that would never end. Open files may be closed by
    /// anybody who has them, so waits of and for them count as ending.
    pub(super) fn waits_for(&mut self, holder: Owner) -> bool {
        self.forget();
        let (Owner::Process(owner), Owner::Process(holder)) = (self.owner, holder) else { return true };
        let mut waits = self.deadlocks.waits.lock();
        if leads_to(&waits, holder, owner) {
            return false;
        }
        waits.entry(owner).or_default().push(holder);
        self.for_whom = Some(holder);
        true
    }

    fn forget(&mut self) {
        let (Owner::Process(owner), Some(holder)) = (self.owner, self.for_whom.take()) else { return };
        let mut waits = self.deadlocks.waits.lock();
        if let Some(list) = waits.get_mut(&owner) {
            if let Some(at) = list.iter().position(|other| *other == holder) {
                list.swap_remove(at);
            }
            if list.is_empty() {
                waits.remove(&owner);
            }
        }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.forget();
    }
}

fn leads_to(waits: &HashMap<u64, Vec<u64>>, from: u64, to: u64) -> bool {
    let mut seen = vec![from];
    let mut next = 0;
    while let Some(at) = seen.get(next).copied() {
        if at == to {
            return true;
        }
        next = next.saturating_add(1);
        if next > SEARCH_MAX {
            return false;
        }
        for other in waits.get(&at).into_iter().flatten() {
            if !seen.contains(other) {
                seen.push(*other);
            }
        }
    }
    false
}
