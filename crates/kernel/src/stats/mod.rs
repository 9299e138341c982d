//! Counters: kept for each task on cache lines of its own, added up only when read.
//!
//! [`Stats`] hands each task its [`Counters`] (`platform::counters`) and folds them into a sum when the task has ended,
//! so that sums are exact for what has ended and never miss or double a task. `text.rs` makes the texts that
//! `/proc/umlaut`, `umlaut stat` and `--stats` show. Locks: leaves.

mod host;
mod text;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;

use platform::{Block, CALLS, Counters, Event, Place};
use sync::{Mutex, order};

pub use host::{HostFigures, ProcessFigures};
pub use text::ProcessLine;

/// How tasks are counted. It changes speed only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CountersMode {
    /// Each task in a block of its own, without locked instructions.
    #[default]
    PerThread,
    /// All tasks in one block, by locked instructions on shared cache lines: to measure what `PerThread` brings.
    Shared,
    /// Not at all.
    Off,
}

impl CountersMode {
    /// As `--counters` names it.
    pub fn name(self) -> &'static str {
        match self {
            CountersMode::PerThread => "per-thread",
            CountersMode::Shared => "shared",
            CountersMode::Off => "off",
        }
    }
}

/// The sum over tasks.
#[derive(Clone, Debug)]
pub struct Totals {
    /// Calls served, by place and number.
    calls: [Vec<u64>; Place::ALL.len()],
    events: [u64; Event::ALL.len()],
    /// Tasks that there are, and that there have ever been.
    pub tasks: u64,
    pub tasks_made: u64,
}

impl Totals {
    fn new() -> Totals {
        let calls = std::array::from_fn(|_| vec![0; CALLS]);
        Totals { calls, events: [0; Event::ALL.len()], tasks: 0, tasks_made: 0 }
    }

    fn add(&mut self, block: &Block) {
        for (sum, event) in self.events.iter_mut().zip(Event::ALL) {
            *sum = sum.wrapping_add(block.read(event));
        }
        for (sums, place) in self.calls.iter_mut().zip(Place::ALL) {
            for (sum, count) in sums.iter_mut().zip(block.read_calls(place)) {
                *sum = sum.wrapping_add(count);
            }
        }
    }

    /// How often `event` was counted.
    pub fn event(&self, event: Event) -> u64 {
        self.events.get(event as usize).copied().unwrap_or(0)
    }

    /// Calls with this number that `place` served.
    pub fn calls(&self, place: Place, number: u16) -> u64 {
        let numbers = self.calls.get(place as usize);
        numbers.and_then(|numbers| numbers.get(usize::from(number))).copied().unwrap_or(0)
    }

    /// All calls that `place` served.
    pub fn calls_at(&self, place: Place) -> u64 {
        self.calls
            .get(place as usize)
            .map_or(0, |numbers| numbers.iter().fold(0, |sum, count| sum.wrapping_add(*count)))
    }
}

/// All counters of a kernel.
pub struct Stats {
    mode: CountersMode,
    /// What guests asked for that is not built, and how often.
    not_built: Mutex<order::Leaf, BTreeMap<(&'static str, &'static str), u64>>,
    tasks: Mutex<order::Leaf, TaskBlocks>,
}

struct TaskBlocks {
    /// Of tasks that there are, by the order in which they came.
    live: BTreeMap<u64, Arc<Block>>,
    /// What all count in that have no block of their own.
    shared: Arc<Block>,
    ended: Totals,
}

/// A task's counters, and what they are known by.
pub(crate) struct TaskCounters {
    pub counters: Counters,
    id: u64,
}

impl Stats {
    pub fn new(mode: CountersMode) -> Stats {
        let tasks = TaskBlocks { live: BTreeMap::new(), shared: Arc::default(), ended: Totals::new() };
        Stats { mode, not_built: Mutex::default(), tasks: Mutex::new(tasks) }
    }

    pub fn mode(&self) -> CountersMode {
        self.mode
    }

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

    /// Counters for a new task, which the calling thread serves: [`count_copy`] adds to them from now on.
    pub(crate) fn task_begins(&self) -> TaskCounters {
        let own = (self.mode == CountersMode::PerThread).then(Arc::<Block>::default);
        let mut tasks = self.tasks.lock();
        tasks.ended.tasks += 1;
        tasks.ended.tasks_made += 1;
        let id = tasks.ended.tasks_made;
        let counters = match (self.mode, own) {
            (_, Some(block)) => {
                tasks.live.insert(id, block.clone());
                Counters::PerThread(block)
            }
            (CountersMode::Shared, None) => Counters::Shared(tasks.shared.clone()),
            (_, None) => Counters::Off,
        };
        THIS_THREAD.set(counters.clone());
        TaskCounters { counters, id }
    }

    /// The calling thread's task has ended: nothing is counted for it any more.
    pub(crate) fn task_ended(&self, id: u64) {
        THIS_THREAD.set(Counters::Off);
        let mut tasks = self.tasks.lock();
        tasks.ended.tasks = tasks.ended.tasks.saturating_sub(1);
        if let Some(block) = tasks.live.remove(&id) {
            tasks.ended.add(&block);
        }
    }

    /// Tasks that there have ever been.
    pub fn tasks_made(&self) -> u64 {
        self.tasks.lock().ended.tasks_made
    }

    /// The sum now. Exact for tasks that have ended.
    pub fn totals(&self) -> Totals {
        let tasks = self.tasks.lock();
        let mut totals = tasks.ended.clone();
        tasks.live.values().chain([&tasks.shared]).for_each(|block| totals.add(block));
        totals
    }
}

impl TaskCounters {
    pub(crate) fn id(&self) -> u64 {
        self.id
    }
}

thread_local! {
    /// Those of the task that this kernel thread serves.
    static THIS_THREAD: RefCell<Counters> = const { RefCell::new(Counters::Off) };
}

/// Counts a copy of guest memory for the task that the calling thread serves, where only the memory is at hand; on the
/// kernel's own threads nothing.
pub(crate) fn count_copy(copy: Event, bytes: Event, len: usize) {
    // A thread that is past its end serves no task.
    let _ = THIS_THREAD.try_with(|counters| {
        let counters = counters.borrow();
        counters.add(copy, 1);
        counters.add(bytes, len as u64);
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count_on_threads(stats: &Stats, threads: u16, each: u64) {
        std::thread::scope(|scope| {
            for number in 0..threads {
                scope.spawn(move || {
                    let own = stats.task_begins();
                    for _ in 0..each {
                        own.counters.add_calls(Place::Kernel, number, 1);
                        count_copy(Event::CopyIn, Event::BytesIn, 3);
                    }
                    stats.task_ended(own.id());
                    count_copy(Event::CopyIn, Event::BytesIn, 1);
                });
            }
            // Sums never go back while threads end.
            let mut before = 0;
            for _ in 0..200 {
                let now = stats.totals().event(Event::BytesIn);
                assert!(now >= before);
                before = now;
            }
        });
    }

    #[test]
    fn sums_are_exact_once_tasks_have_ended() {
        for (mode, counted) in
            [(CountersMode::PerThread, true), (CountersMode::Shared, true), (CountersMode::Off, false)]
        {
            let stats = Stats::new(mode);
            count_on_threads(&stats, 8, 1000);
            let totals = stats.totals();
            let times = u64::from(counted);
            assert_eq!(totals.event(Event::CopyIn), 8000 * times, "{mode:?}");
            assert_eq!(totals.event(Event::BytesIn), 24_000 * times, "{mode:?}");
            assert_eq!(totals.calls(Place::Kernel, 7), 1000 * times, "{mode:?}");
            assert_eq!(totals.calls_at(Place::Kernel), 8000 * times, "{mode:?}");
            assert_eq!((totals.tasks, totals.tasks_made), (0, 8), "{mode:?}");
        }
    }

    #[test]
    fn living_tasks_are_in_the_sum() {
        let stats = Stats::new(CountersMode::PerThread);
        let own = stats.task_begins();
        own.counters.add(Event::Fault, 2);
        assert_eq!((stats.totals().event(Event::Fault), stats.totals().tasks), (2, 1));
        stats.task_ended(own.id());
        assert_eq!((stats.totals().event(Event::Fault), stats.totals().tasks), (2, 0));
    }
}
