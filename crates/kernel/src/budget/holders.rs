//! Which guest process holds which memory file of the kernel's ([`host::lent`]), by what the host says of it: what the kernel
//! had it map, or handed it, and what a guest that has taken over its stub keeps of that.

use std::collections::HashSet;

use host::lent::{self, FileId};

use crate::budget::Process;

/// How many bytes of memory files each process is to be counted for: all of each file that it holds, as Linux counts what is
/// shared for each (`oom_badness`).
pub(super) fn shares(processes: &[Process]) -> Vec<u64> {
    let sizes = lent::all();
    let of = |process: &Process| {
        let held = held_by(process.mm.space.host_pid());
        held.iter().filter_map(|file| sizes.get(file)).sum()
    };
    processes.iter().map(of).collect()
}

/// Nothing of one that is gone.
fn held_by(pid: i32) -> HashSet<FileId> {
    host::user::as_guests(|| lent::held_by(pid)).unwrap_or_default()
}
