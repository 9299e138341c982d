//! Counters: kept by each task on cache lines of its own, added up only when read.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use sync::{Mutex, order};

/// Numbers of system calls that are counted one by one.
pub const CALLS: usize = 512;

/// One task's counters. Written by its own thread only.
#[repr(align(128))]
pub struct TaskCounters {
    calls: [AtomicU64; CALLS],
    unknown_calls: AtomicU64,
    exceptions: AtomicU64,
    signals: AtomicU64,
    oopses: AtomicU64,
}

impl Default for TaskCounters {
    fn default() -> Self {
        TaskCounters {
            calls: std::array::from_fn(|_| AtomicU64::new(0)),
            unknown_calls: AtomicU64::new(0),
            exceptions: AtomicU64::new(0),
            signals: AtomicU64::new(0),
            oopses: AtomicU64::new(0),
        }
    }
}

/// Adds one without a locked instruction: nobody else writes.
fn bump(counter: &AtomicU64) {
    counter.store(counter.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
}

impl TaskCounters {
    pub(crate) fn count_call(&self, number: u16) {
        if let Some(counter) = self.calls.get(usize::from(number)) {
            bump(counter);
        }
    }
    pub(crate) fn count_unknown(&self) {
        bump(&self.unknown_calls);
    }
    pub(crate) fn count_exception(&self) {
        bump(&self.exceptions);
    }
    pub(crate) fn count_signal(&self) {
        bump(&self.signals);
    }
    pub(crate) fn count_oops(&self) {
        bump(&self.oopses);
    }
}

/// The sum over tasks.
#[derive(Clone, Debug)]
pub struct Totals {
    pub calls: Vec<u64>,
    pub unknown_calls: u64,
    pub exceptions: u64,
    pub signals: u64,
    pub oopses: u64,
    pub tasks: u64,
}

impl Totals {
    fn new() -> Totals {
        Totals { calls: vec![0; CALLS], unknown_calls: 0, exceptions: 0, signals: 0, oopses: 0, tasks: 0 }
    }

    fn add(&mut self, task: &TaskCounters) {
        for (sum, counter) in self.calls.iter_mut().zip(&task.calls) {
            *sum += counter.load(Ordering::Relaxed);
        }
        self.unknown_calls += task.unknown_calls.load(Ordering::Relaxed);
        self.exceptions += task.exceptions.load(Ordering::Relaxed);
        self.signals += task.signals.load(Ordering::Relaxed);
        self.oopses += task.oopses.load(Ordering::Relaxed);
        self.tasks += 1;
    }
}

/// All counters of a kernel.
pub struct Stats {
    /// What guests asked for that is not built, and how often.
    not_built: Mutex<order::Leaf, BTreeMap<(&'static str, &'static str), u64>>,
    live: Mutex<order::Leaf, Vec<Arc<TaskCounters>>>,
    ended: Mutex<order::Leaf, Totals>,
}

impl Default for Stats {
    fn default() -> Self {
        Stats { not_built: Mutex::default(), live: Mutex::default(), ended: Mutex::new(Totals::new()) }
    }
}

impl Stats {
    /// Counts a use of what is not built: `call`, and what of it. The first is told in the log.
    pub(crate) fn count_not_built(&self, call: &'static str, what: &'static str) {
        let count = {
            let mut not_built = self.not_built.lock();
            let count = not_built.entry((call, what)).or_default();
            *count += 1;
            *count
        };
        if count == 1 {
            tracing::info!(call, what, "not built");
        }
    }

    /// What guests asked for that is not built, with how often.
    pub fn not_built(&self) -> Vec<(String, u64)> {
        self.not_built.lock().iter().map(|((call, what), count)| (format!("{call} {what}"), *count)).collect()
    }

    /// Counters for a new task.
    pub(crate) fn new_task(&self) -> Arc<TaskCounters> {
        let counters = Arc::new(TaskCounters::default());
        self.live.lock().push(counters.clone());
        counters
    }

    /// A task has ended: its counters join the rest.
    pub(crate) fn task_ended(&self, counters: &Arc<TaskCounters>) {
        self.live.lock().retain(|live| !Arc::ptr_eq(live, counters));
        self.ended.lock().add(counters);
    }

    /// The sum now. Exact for tasks that have ended.
    pub fn totals(&self) -> Totals {
        let mut totals = self.ended.lock().clone();
        let live: Vec<_> = self.live.lock().clone();
        live.iter().for_each(|task| totals.add(task));
        totals
    }
}
