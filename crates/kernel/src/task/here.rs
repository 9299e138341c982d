//! Where a task's kernel thread begins: on its parent's CPU.
//!
//! The host sends a new thread to an idle CPU. There, waking the guest's thread (and being woken by its parent) costs ten
//! times what it costs here, and most children of a shell live for less than that brings. One that computes is moved
//! soon enough: by the host, once the platform lets its guest's thread go.
//!
//! Main types: [`Here`]. Neighbours: `fork.rs` makes kernel threads; platforms keep guests' threads beside them.

use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};

/// This thread is confined to the CPU that it is on until this is dropped, and so are threads that it makes.
pub(super) struct Here {
    /// Where it may run otherwise.
    cpus: CpuSet,
    /// The platform had it confined already, and lets it go.
    held: bool,
}

impl Here {
    /// A thread that may run on `cpus`. `None`: that is one CPU only, or the host does not let us.
    pub(super) fn confine(cpus: CpuSet) -> Option<Here> {
        if cpus.count() <= 1 {
            return None;
        }
        let held = sched_getaffinity(None).ok()?.count() == 1;
        if !held {
            let mut here = CpuSet::new();
            here.set(sched_getcpu());
            sched_setaffinity(None, &here).ok()?;
        }
        Some(Here { cpus, held })
    }

    /// Has another thread, which sleeps, go on here. It calls what this gives to run on all of `cpus`. `None`: as above.
    pub(super) fn confine_other(tid: Pid, cpus: CpuSet) -> Option<impl FnOnce() + Send + use<>> {
        if cpus.count() <= 1 {
            return None;
        }
        let mut here = CpuSet::new();
        here.set(sched_getcpu());
        sched_setaffinity(Some(tid), &here).ok()?;
        Some(move || allow(&cpus))
    }

    /// What a thread made meanwhile calls first, to be free again.
    pub(super) fn release(&self) -> impl FnOnce() + Send + use<> {
        let cpus = self.cpus;
        move || allow(&cpus)
    }
}

impl Drop for Here {
    fn drop(&mut self) {
        if !self.held {
            allow(&self.cpus);
        }
    }
}

fn allow(cpus: &CpuSet) {
    // An error means that all of these were taken away meanwhile: then the host has chosen others.
    let _ = sched_setaffinity(None, cpus);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_begins_here_and_both_are_free_again() {
        let all = sched_getaffinity(None).expect("an affinity");
        let Some(here) = Here::confine(all) else {
            return eprintln!("skipped: there is one CPU only");
        };
        let release = here.release();
        let child = std::thread::spawn(move || {
            let first = sched_getaffinity(None).map(|cpus| cpus.count());
            release();
            (first, sched_getaffinity(None))
        });
        drop(here);
        let (first, then) = child.join().expect("it does not panic");
        assert_eq!(first, Ok(1));
        assert!(then.expect("an affinity") == all);
        assert!(sched_getaffinity(None).expect("an affinity") == all);
    }
}
