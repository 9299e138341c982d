//! Single runs, and what they gave, kept by cell.
//!
//! Main types: [`Runner`], [`Slot`] (which cell), [`Series`] (its runs). Neighbours: `rounds` decides what runs when;
//! `sample`, `session` and `memory` run it.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::hash::{DefaultHasher, Hasher};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use host::perf::Counter;
use host::wait::Usage;

use crate::memory;
use crate::places::{Kind, Place, Setup};
use crate::results::HostCost;
use crate::rounds::Task;
use crate::sample::{self, Figure, PATIENCE, Sample};
use crate::session::Session;
use crate::statistics::quantile;
use crate::workloads::{How, Workload};

/// A workload on a CPU (none: free) at a place; workload and place by their numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Slot {
    pub(crate) task: usize,
    pub(crate) pinned: Option<usize>,
    pub(crate) place: usize,
}

/// By slot and figure.
pub(crate) type AllSeries = BTreeMap<(Slot, String), Series>;

/// The runs of one figure at one place.
#[derive(Default)]
pub(crate) struct Series {
    pub(crate) unit: String,
    /// By round; what failed is `None`.
    pub(crate) runs: Vec<Option<f64>>,
    costs: Vec<HostCost>,
    /// Of the first round only: counting them makes it slower.
    host_calls: Option<f64>,
    counters: BTreeMap<String, Vec<f64>>,
}

/// What runs things.
pub(crate) struct Runner<'a> {
    setup: &'a Setup,
    places: &'a [Place],
    /// What an empty run costs, by place and CPU.
    empty: BTreeMap<(usize, Option<usize>), Sample>,
    sessions: BTreeMap<(usize, Option<usize>), Session>,
    /// What failed once is not tried again. By task and place.
    failed: BTreeMap<(usize, usize), String>,
    series: AllSeries,
    calls: Option<Counter>,
    made: Made,
}

/// What runs made that must come out the same everywhere: by task, a digest and the place where it was first made.
#[derive(Default)]
struct Made(BTreeMap<usize, (u64, String)>);

impl Made {
    /// # Errors
    /// If it is not there, or is not what it was at another place.
    fn check(&mut self, task: usize, place: &str, file: &Path) -> anyhow::Result<()> {
        let content = std::fs::read(file).with_context(|| format!("it made no {}", file.display()))?;
        let mut hasher = DefaultHasher::new();
        hasher.write(&content);
        let digest = hasher.finish();
        let (first, at) = self.0.entry(task).or_insert_with(|| (digest, place.to_string()));
        if *first != digest {
            bail!("it made another {} than at {at}", file.display());
        }
        Ok(())
    }
}

impl<'a> Runner<'a> {
    /// Counts host system calls as well, where the host lets us.
    pub(crate) fn new(setup: &'a Setup, places: &'a [Place]) -> Runner<'a> {
        Runner {
            setup,
            places,
            empty: BTreeMap::new(),
            sessions: BTreeMap::new(),
            failed: BTreeMap::new(),
            series: BTreeMap::new(),
            calls: Counter::of_system_calls().ok(),
            made: Made::default(),
        }
    }

    /// From now on time counts, and counting takes time.
    pub(crate) fn count_no_calls(&mut self) {
        self.calls = None;
    }

    pub(crate) fn series(&self) -> &AllSeries {
        &self.series
    }

    /// Task, place, and why it gave nothing.
    pub(crate) fn failures(&self) -> impl Iterator<Item = (usize, usize, &str)> {
        self.failed.iter().map(|((task, place), why)| (*task, *place, why.as_str()))
    }

    /// One run of a task in its slot. Of round 0, which fills caches, only counts are kept.
    pub(crate) fn run_and_record(&mut self, task: &Task, slot: Slot, round: u32) {
        if self.failed.contains_key(&(slot.task, slot.place)) {
            return;
        }
        match self.run(task, slot) {
            Ok(None) => {}
            Ok(Some(sample)) => self.record(task.workload, slot, round, &sample),
            Err(why) => {
                self.failed.insert((slot.task, slot.place), format!("{why:#}"));
            }
        }
    }

    /// `None` where there is nothing to be measured.
    fn run(&mut self, task: &Task, slot: Slot) -> anyhow::Result<Option<Sample>> {
        let Some(place) = self.places.get(slot.place) else { return Ok(None) };
        if let Some(prepared) = &task.prepared {
            prepared.clean();
        }
        let words: Vec<String> = match (task.workload.how, &task.prepared) {
            (How::GuestNatively, _) if place.kind != Kind::Native => return Ok(None),
            (How::Guest | How::GuestNatively, _) => vec!["run".into(), task.workload.name.into()],
            (How::Command, Some(prepared)) => {
                std::iter::once("time".into()).chain(prepared.command.iter().cloned()).collect()
            }
            (How::Command, None) => bail!("it was not prepared"),
            (How::Start, _) => return self.start(place, slot).map(Some),
            (How::KernelMemory, _) => return memory::of_kernel(place, self.setup),
        };
        if matches!(place.kind, Kind::Session(_)) {
            return self.session(place, slot)?.run(&words).map(Some);
        }
        let empty = (slot.place, slot.pinned);
        if !self.empty.contains_key(&empty) {
            let mut command = place.command(self.setup, &self.setup.guest, &["run".into()]);
            let sample = self.counted(&mut command, slot)?;
            self.empty.insert(empty, sample);
        }
        let sample = self.counted(&mut place.command(self.setup, &self.setup.guest, &words), slot)?;
        if let Some(result) = task.prepared.as_ref().and_then(|prepared| prepared.result.as_ref()) {
            self.made.check(slot.task, &place.name, result)?;
        }
        Ok(Some(sample))
    }

    fn counted(&self, command: &mut Command, slot: Slot) -> anyhow::Result<Sample> {
        let count = || self.calls.as_ref().and_then(|calls| calls.read().ok());
        let before = count();
        let sample = sample::run(command, slot.pinned, PATIENCE)?;
        let host_calls = count().zip(before).map(|(after, before)| after.saturating_sub(before));
        Ok(Sample { host_calls, ..sample })
    }

    /// How long it takes from outside to run a program that ends at once.
    fn start(&mut self, place: &Place, slot: Slot) -> anyhow::Result<Sample> {
        let (took, sample) = if matches!(place.kind, Kind::Session(_)) {
            // Its end is not counted, and it is started once only.
            (self.session(place, slot)?.boot, None)
        } else {
            let mut command = place.command(self.setup, Path::new("/bin/true"), &[]);
            let sample = self.counted(&mut command, slot)?;
            (sample.outside, Some(sample))
        };
        let figure = Figure {
            name: "start".into(),
            value: took.as_secs_f64() * 1e9,
            unit: "ns".into(),
            operations: 1.0,
        };
        Ok(Sample { figures: vec![figure], ..sample.unwrap_or_default() })
    }

    fn session(&mut self, place: &Place, slot: Slot) -> anyhow::Result<&mut Session> {
        match self.sessions.entry((slot.place, slot.pinned)) {
            Entry::Occupied(running) => Ok(running.into_mut()),
            Entry::Vacant(vacant) => {
                let mut command = place.command(self.setup, &self.setup.guest, &[]);
                let session = Session::start(&mut command, slot.pinned);
                Ok(vacant.insert(session.map_err(|why| anyhow!("{} did not start: {why:#}", place.name))?))
            }
        }
    }

    fn record(&mut self, workload: &Workload, slot: Slot, round: u32, sample: &Sample) {
        // What starts and ends a program is the figure itself there.
        let empty = self.empty.get(&(slot.place, slot.pinned)).filter(|_| workload.how != How::Start);
        let mut figures = sample.figures.clone();
        figures.extend(workload.switches.then(|| switches_a_second(sample)).flatten());
        for figure in figures {
            // Figures that say more than the workload's name have a slash in theirs.
            let name = if figure.name.contains('/') { figure.name.clone() } else { workload.name.into() };
            let series = self.series.entry((slot, name)).or_default();
            series.unit = figure.unit.clone();
            series.add(&figure, sample, empty, round);
        }
    }
}

/// Host context switches of a whole run.
fn switches_a_second(sample: &Sample) -> Option<Figure> {
    let value = switches(&sample.usage?) / sample.outside.as_secs_f64();
    Some(Figure { name: "switches/host-switches".into(), value, unit: "/s".into(), operations: 1.0 })
}

impl Series {
    fn add(&mut self, figure: &Figure, sample: &Sample, empty: Option<&Sample>, round: u32) {
        let per_operation = figure.unit == "ns" && figure.operations > 0.0;
        if round == 0 {
            let calls = sample.host_calls.filter(|_| per_operation);
            let beyond =
                |calls: u64| count(calls) - empty.and_then(|empty| empty.host_calls).map_or(0.0, count);
            self.host_calls = calls.map(|calls| beyond(calls).max(0.0) / figure.operations);
            return;
        }
        self.runs.resize(round as usize - 1, None);
        self.runs.push(Some(figure.value));
        if !per_operation {
            return;
        }
        if let Some(usage) = &sample.usage {
            let nothing = Usage::default();
            let empty = empty.and_then(|empty| empty.usage.as_ref()).unwrap_or(&nothing);
            self.costs.push(cost(usage, empty, figure.operations));
        }
        for (name, count) in &sample.counters {
            self.counters.entry(name.clone()).or_default().push(count / figure.operations);
        }
    }

    /// Medians over the rounds.
    pub(crate) fn host_cost(&self) -> Option<HostCost> {
        let costs = &self.costs;
        let median =
            |field: fn(&HostCost) -> f64| quantile(&costs.iter().map(field).collect::<Vec<_>>(), 0.5);
        Some(HostCost {
            user_ns: median(|cost| cost.user_ns)?,
            system_ns: median(|cost| cost.system_ns)?,
            switches: median(|cost| cost.switches)?,
            faults: median(|cost| cost.faults)?,
            calls: self.host_calls,
        })
    }

    /// Medians over the rounds of what is not zero.
    pub(crate) fn kernel_counts(&self) -> BTreeMap<String, f64> {
        let medians = self.counters.iter().filter_map(|(name, counts)| {
            let median = quantile(counts, 0.5)?;
            (median > 0.0).then(|| (name.clone(), median))
        });
        medians.collect()
    }
}

fn count(number: u64) -> f64 {
    number as f64
}

fn switches(usage: &Usage) -> f64 {
    count(usage.voluntary_switches + usage.involuntary_switches)
}

/// What one operation made the host do, beyond what an empty run does.
fn cost(usage: &Usage, empty: &Usage, operations: f64) -> HostCost {
    let each = |used: f64, empty: f64| (used - empty).max(0.0) / operations;
    let time = |used: Duration, empty: Duration| each(used.as_secs_f64(), empty.as_secs_f64()) * 1e9;
    let faults = |usage: &Usage| count(usage.minor_faults + usage.major_faults);
    HostCost {
        user_ns: time(usage.user, empty.user),
        system_ns: time(usage.system, empty.system),
        switches: each(switches(usage), switches(empty)),
        faults: each(faults(usage), faults(empty)),
        calls: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(system: u64, voluntary_switches: u64, host_calls: u64) -> Sample {
        let system = Duration::from_micros(system);
        let usage = Usage { system, voluntary_switches, ..Usage::default() };
        let counters = BTreeMap::from([("kicks".to_string(), 50.0), ("oopses".to_string(), 0.0)]);
        Sample { usage: Some(usage), counters, host_calls: Some(host_calls), ..Sample::default() }
    }

    #[test]
    fn an_operation_costs_what_goes_beyond_an_empty_run() {
        let figure = Figure { name: "x".into(), value: 5.0, unit: "ns".into(), operations: 100.0 };
        let mut series = Series::default();
        let empty = sample(100, 10, 30);
        for round in 0..=3 {
            series.add(&figure, &sample(1100, 60, 230), Some(&empty), round);
        }
        assert_eq!(series.runs, [Some(5.0); 3], "the first round does not count");
        let cost = series.host_cost().expect("there are costs");
        assert_eq!((cost.system_ns, cost.user_ns, cost.switches), (10_000.0, 0.0, 0.5));
        assert_eq!(cost.calls, Some(2.0));
        assert_eq!(series.kernel_counts(), BTreeMap::from([("kicks".to_string(), 0.5)]));
        assert_eq!(Series::default().host_cost(), None);
    }

    #[test]
    fn what_comes_out_otherwise_than_natively_is_told() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("result");
        let mut made = Made::default();
        assert!(made.check(7, "native", &file).expect_err("none").to_string().contains("made no"));
        let mut make = |text: &str, place: &str| {
            std::fs::write(&file, text).expect("writable");
            made.check(7, place, &file)
        };
        make("as it should be", "native").expect("the first");
        make("as it should be", "sysemu").expect("the same");
        let error = make("as it should not be", "stub").expect_err("another");
        assert!(error.to_string().ends_with("result than at native"), "{error}");
    }

    #[test]
    fn a_round_that_failed_leaves_a_gap() {
        let figure = Figure { name: "x".into(), value: 5.0, unit: "%".into(), operations: 1.0 };
        let mut series = Series::default();
        series.add(&figure, &Sample::default(), None, 1);
        series.add(&figure, &Sample::default(), None, 3);
        assert_eq!(series.runs, [Some(5.0), None, Some(5.0)]);
    }
}
