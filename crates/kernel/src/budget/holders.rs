//! Which guest process holds which memory file of the kernel's ([`host::lent`]), by what the host says of it.
//!
//! A process holds what the kernel had it map, or handed it, and lets go when it is told to: then the kernel drops the
//! file. One whose stub the guest has taken over may keep it, and fill it. So a dropped file counts until no process
//! holds it, and then to those who do.

use std::collections::HashSet;

use host::lent::{self, FileId};

use crate::budget::Process;
use crate::kernel::Kernel;

/// The part of the limit that dropped files may hold before somebody looks who holds them: one in so many.
const PART: u64 = 32;
/// Looks at all processes, until none came meanwhile.
const TRIES: usize = 4;

/// Closes the memory files that the kernel has done with and no process holds any more, if there are many of them.
pub(super) fn forget_dropped(kernel: &Kernel, limit: u64) {
    let dropped = lent::dropped();
    if dropped.len() < lent::MOST_DROPPED && dropped.values().sum::<u64>() <= limit / PART {
        return;
    }
    for _ in 0..TRIES {
        let processes = kernel.host_processes();
        let held: HashSet<FileId> = processes.iter().flat_map(|pid| held_by(*pid)).collect();
        // One that came meanwhile may have them from one that went before it was looked at.
        if kernel.host_processes().is_subset(&processes) {
            lent::forget(|file| held.contains(&file) || !dropped.contains_key(&file));
            return;
        }
    }
}

/// How many bytes of memory files each process is to be counted for: of each file, a part for each that holds it.
pub(super) fn shares(processes: &[Process]) -> Vec<u64> {
    let sizes = lent::all();
    let held: Vec<HashSet<FileId>> =
        processes.iter().map(|process| held_by(process.mm.space.host_pid())).collect();
    let part = |file: &FileId| {
        let holders = held.iter().filter(|held| held.contains(file)).count() as u64;
        sizes.get(file).map_or(0, |size| size / holders.max(1))
    };
    held.iter().map(|held| held.iter().map(part).sum()).collect()
}

/// Nothing of one that is gone.
fn held_by(pid: i32) -> HashSet<FileId> {
    host::user::as_guests(|| lent::held_by(pid)).unwrap_or_default()
}

impl Kernel {
    /// All host processes with a guest process in them, those that share memory too.
    fn host_processes(&self) -> HashSet<i32> {
        let memory = self.leaders().into_iter().filter_map(|leader| leader.shared.lock().mm.clone());
        memory.map(|mm| mm.space.host_pid()).collect()
    }
}
