//! What all guest processes of one platform share.

use std::collections::HashSet;
use std::sync::OnceLock;

use parking_lot::Mutex;
use platform::Vdso;

use crate::deadline::{Deadlines, PATIENCE};
use crate::passage::Passage;
use crate::placement::Placement;

/// What all guest processes of one platform share.
pub struct Guests {
    /// The kernel's pid: what guest processes' `getppid` gives.
    pub kernel: u32,
    /// Copy guest memory vectored, not word by word.
    pub batch: bool,
    /// Asked before memory is copied.
    pub passage: Option<Box<dyn Passage>>,
    /// Where the host's vDSO lies in them: set once the first stands.
    pub vdso: OnceLock<Option<Vdso>>,
    pub placement: Placement,
    pub deadlines: Deadlines,
    /// The tgids of all guest processes that are not reaped yet.
    pub(crate) processes: Mutex<HashSet<i32>>,
    /// The first processes of their pid namespaces, which hold no guests.
    pub(crate) inits: Mutex<HashSet<i32>>,
}

impl Guests {
    /// None yet. `batch`: copy guest memory vectored; `placement`: keep guest threads on their kernel
    /// threads' CPUs.
    pub fn new(batch: bool, placement: bool) -> Guests {
        Guests {
            kernel: std::process::id(),
            batch,
            passage: None,
            vdso: OnceLock::new(),
            placement: Placement::new(placement),
            deadlines: Deadlines::new(PATIENCE),
            processes: Mutex::default(),
            inits: Mutex::default(),
        }
    }

    /// Whether a child of ours is a guest process, or was made for them.
    pub fn knows(&self, pid: i32) -> bool {
        self.processes.lock().contains(&pid) || self.inits.lock().contains(&pid)
    }
}
