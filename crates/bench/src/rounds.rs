//! The rounds: every workload at every place in turn, A B C A B C, the first round not counted.
//!
//! Main types: [`Task`] (a workload with what it needs), [`Runner`] (what is under way). Neighbours: `places` and
//! `session` run things, `statistics` and `results` take what comes out.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use indicatif::{ProgressBar, ProgressStyle};

use crate::data::{self, Prepared};
use crate::machine::Machine;
use crate::options::Options;
use crate::places::{Kind, Place, Setup};
use crate::results::{Cell, FORMAT, HostCost, Results};
use crate::sample::{self, Figure, Sample};
use crate::session::Session;
use crate::statistics::{Spread, Summary, quantile, ratios};
use crate::workloads::{self, How, Workload};
use crate::{memory, rivals};

const RUNS: u32 = 7;
const QUICK_RUNS: u32 = 3;

struct Task {
    workload: &'static Workload,
    prepared: Option<Prepared>,
    placements: Vec<Option<usize>>,
    rounds: u32,
}

/// Which series a run belongs to: workload (its place among the tasks), figure, CPU, place.
type Key = (usize, String, Option<usize>, usize);

/// The runs of one cell, by round; what failed is `None`.
#[derive(Default)]
struct Series {
    unit: String,
    runs: Vec<Option<f64>>,
    costs: Vec<HostCost>,
}

struct Runner<'a> {
    setup: &'a Setup,
    places: &'a [Place],
    /// What an empty run costs at each place.
    empty: HashMap<(usize, Option<usize>), host::wait::Usage>,
    sessions: HashMap<(usize, Option<usize>), Session>,
    /// What failed once is not tried again.
    failed: BTreeMap<(usize, usize), String>,
    series: BTreeMap<Key, Series>,
}

/// Measures what the options ask for.
///
/// # Errors
/// If names are not known, or files cannot be made, or nothing at all can be run.
pub(crate) fn measure(options: &Options, umlaut: &Path) -> anyhow::Result<Results> {
    let chosen = workloads::chosen(&options.names, options.quick)?;
    let mut work = tempfile::Builder::new();
    work.prefix("umlaut-bench-");
    let work = match &options.dir {
        Some(directory) => work.tempdir_in(directory),
        None => work.tempdir(),
    };
    let work = work.context("making a directory for files (see --dir)")?;
    let mut setup = Setup::new(work.path(), umlaut)?;
    data::for_guest(&setup.work).context("making files (see --dir)")?;
    let mut missing = Vec::new();
    let places = places(options, &setup, &mut missing)?;
    let progress = progress();
    progress.set_message("preparing");
    let runs = options.runs.unwrap_or(if options.quick { QUICK_RUNS } else { RUNS });
    let tasks = tasks(&chosen, options, &mut setup, runs, &mut missing)?;
    let mut runner = Runner {
        setup: &setup,
        places: &places,
        empty: HashMap::new(),
        sessions: HashMap::new(),
        failed: BTreeMap::new(),
        series: BTreeMap::new(),
    };
    let rounds = |task: &Task| u64::from(task.rounds + 1) * task.placements.len() as u64;
    progress.set_length(tasks.iter().map(rounds).sum::<u64>() * places.len() as u64);
    for round in 0..=runs {
        for (number, task) in tasks.iter().enumerate().filter(|(_, task)| round <= task.rounds) {
            for pinned in &task.placements {
                progress.set_message(format!("round {round} of {runs}: {}", task.workload.name));
                runner.round(number, task, *pinned, round, &progress);
            }
        }
    }
    progress.finish_and_clear();
    let failures = runner.failed.iter().map(|((task, place), why)| {
        let name = tasks.get(*task).map_or("", |task| task.workload.name);
        let place = places.get(*place).map_or("", |place| place.name.as_str());
        format!("{name} at {place}: {why}")
    });
    missing.extend(failures);
    let cells = cells(&tasks, &places, &runner.series);
    if cells.is_empty() {
        bail!("nothing could be measured: {}", missing.join("; "));
    }
    let places = places.iter().map(Place::note).collect();
    Ok(Results { format: FORMAT, machine: Machine::this(), places, rounds: runs, cells, missing })
}

/// On a terminal a bar, else nothing.
fn progress() -> ProgressBar {
    let progress = ProgressBar::new(0);
    let style = ProgressStyle::with_template("{bar:30} {percent:>3} % {elapsed} (about {eta} left) {msg}");
    progress.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    progress.enable_steady_tick(Duration::from_secs(1));
    progress
}

fn places(options: &Options, setup: &Setup, missing: &mut Vec<String>) -> anyhow::Result<Vec<Place>> {
    let usual = if options.quick { &["native", "sysemu"][..] } else { &["native", "sysemu", "ptrace"] };
    let named = !options.platforms.is_empty();
    let names: Vec<String> =
        if named { options.platforms.clone() } else { usual.iter().map(ToString::to_string).collect() };
    let mut places = Vec::new();
    for name in names {
        let place = Place::named(&name)?;
        match place.try_out(setup) {
            Ok(()) => places.push(place),
            Err(why) if named => return Err(why.context(format!("nothing runs at {name}"))),
            Err(why) => missing.push(format!("{name}: {why:#}")),
        }
    }
    if options.rivals {
        places.extend(rivals::installed(setup, missing));
    }
    Ok(places)
}

fn tasks(
    chosen: &[&'static Workload],
    options: &Options,
    setup: &mut Setup,
    runs: u32,
    missing: &mut Vec<String>,
) -> anyhow::Result<Vec<Task>> {
    let one_cpu = first_cpu()?;
    let mut tasks = Vec::new();
    for workload in chosen {
        let prepared = match workload.how {
            How::Command => match data::prepare(workload.name, setup, options) {
                Ok(prepared) => Some(prepared),
                Err(why) => {
                    missing.push(format!("{}: {why:#}", workload.name));
                    continue;
                }
            },
            How::Guest | How::Start | How::KernelMemory => None,
        };
        let placements = match options.pin {
            Some(cpu) => vec![Some(cpu)],
            // With one CPU there is nothing to compare.
            None if workload.placement && Machine::this().cpus > 1 => vec![None, Some(one_cpu)],
            None => vec![None],
        };
        tasks.push(Task { workload, prepared, placements, rounds: runs.min(workload.most_rounds) });
    }
    Ok(tasks)
}

/// The first CPU that we may use.
fn first_cpu() -> anyhow::Result<usize> {
    let allowed = rustix::thread::sched_getaffinity(None)?;
    (0..rustix::thread::CpuSet::MAX_CPU).find(|cpu| allowed.is_set(*cpu)).context("no CPU")
}

impl Runner<'_> {
    /// A workload at every place, one after the other.
    fn round(
        &mut self,
        number: usize,
        task: &Task,
        pinned: Option<usize>,
        round: u32,
        progress: &ProgressBar,
    ) {
        for (at, place) in self.places.iter().enumerate() {
            progress.inc(1);
            if self.failed.contains_key(&(number, at)) {
                continue;
            }
            match self.run(task, at, place, pinned) {
                Ok(None) => {}
                // The first round fills caches; it counts for nothing but failures.
                Ok(Some(_)) if round == 0 => {}
                Ok(Some(sample)) => self.record(number, task.workload, pinned, at, round, &sample),
                Err(why) => {
                    self.failed.insert((number, at), format!("{why:#}"));
                }
            }
        }
    }

    /// One run; `None` where there is nothing to be measured.
    fn run(
        &mut self,
        task: &Task,
        at: usize,
        place: &Place,
        pinned: Option<usize>,
    ) -> anyhow::Result<Option<Sample>> {
        if let Some(prepared) = &task.prepared {
            prepared.clean();
        }
        let words: Vec<String> = match (task.workload.how, &task.prepared) {
            (How::Guest, _) => vec!["run".into(), task.workload.name.into()],
            (How::Command, Some(prepared)) => {
                std::iter::once("time".into()).chain(prepared.command.iter().cloned()).collect()
            }
            (How::Command, None) => bail!("it was not prepared"),
            (How::Start, _) => return self.start(at, place, pinned),
            (How::KernelMemory, _) => return memory::of_kernel(place, self.setup),
        };
        if matches!(place.kind, Kind::Session(_)) {
            return self.session(at, place, pinned)?.run(&words).map(Some);
        }
        if let std::collections::hash_map::Entry::Vacant(vacant) = self.empty.entry((at, pinned)) {
            let mut command = place.command(self.setup, &self.setup.guest, &["run".into()]);
            vacant.insert(sample::run(&mut command, pinned)?.usage.unwrap_or_default());
        }
        sample::run(&mut place.command(self.setup, &self.setup.guest, &words), pinned).map(Some)
    }

    /// How long it takes from outside to run a program that ends at once.
    fn start(&mut self, at: usize, place: &Place, pinned: Option<usize>) -> anyhow::Result<Option<Sample>> {
        let (took, usage) = if matches!(place.kind, Kind::Session(_)) {
            // Its end is not counted, and it is started once only.
            (self.session(at, place, pinned)?.boot, None)
        } else {
            let mut command = place.command(self.setup, &self.setup.guest, &["exit".into()]);
            let sample = sample::run(&mut command, pinned)?;
            (sample.outside, sample.usage)
        };
        let value = took.as_secs_f64() * 1e9;
        let figure = Figure { name: "start".into(), value, unit: "ns".into(), operations: 1.0 };
        Ok(Some(Sample { figures: vec![figure], outside: took, usage }))
    }

    fn session(&mut self, at: usize, place: &Place, pinned: Option<usize>) -> anyhow::Result<&mut Session> {
        match self.sessions.entry((at, pinned)) {
            std::collections::hash_map::Entry::Occupied(running) => Ok(running.into_mut()),
            std::collections::hash_map::Entry::Vacant(vacant) => {
                let mut command = place.command(self.setup, &self.setup.guest, &[]);
                let session = Session::start(&mut command, pinned);
                Ok(vacant.insert(session.map_err(|why| anyhow!("{} did not start: {why:#}", place.name))?))
            }
        }
    }

    fn record(
        &mut self,
        number: usize,
        workload: &Workload,
        pinned: Option<usize>,
        at: usize,
        round: u32,
        sample: &Sample,
    ) {
        let empty = self.empty.get(&(at, pinned)).copied().unwrap_or_default();
        let mut figures = sample.figures.clone();
        if let Some(usage) = sample.usage.filter(|_| workload.switches) {
            let switches = count(usage.voluntary_switches + usage.involuntary_switches);
            figures.push(Figure {
                name: "switches/host-switches".into(),
                value: switches / sample.outside.as_secs_f64(),
                unit: "/s".into(),
                operations: 1.0,
            });
        }
        for figure in figures {
            // Figures that say more than the workload's name have a slash in theirs.
            let name = if figure.name.contains('/') { figure.name.clone() } else { workload.name.into() };
            let series = self.series.entry((number, name, pinned, at)).or_default();
            series.unit = figure.unit.clone();
            series.runs.resize(round as usize - 1, None);
            series.runs.push(Some(figure.value));
            if let Some(usage) = sample.usage.filter(|_| figure.operations > 0.0 && figure.unit == "ns") {
                series.costs.push(cost(&usage, &empty, figure.operations));
            }
        }
    }
}

fn count(number: u64) -> f64 {
    number as f64
}

/// What one operation made the host do, beyond what an empty run does.
fn cost(usage: &host::wait::Usage, empty: &host::wait::Usage, operations: f64) -> HostCost {
    let each = |used: f64, empty: f64| (used - empty).max(0.0) / operations;
    let time = |used: Duration, empty: Duration| each(used.as_secs_f64(), empty.as_secs_f64()) * 1e9;
    let switches = |usage: &host::wait::Usage| count(usage.voluntary_switches + usage.involuntary_switches);
    let faults = |usage: &host::wait::Usage| count(usage.minor_faults + usage.major_faults);
    HostCost {
        user_ns: time(usage.user, empty.user),
        system_ns: time(usage.system, empty.system),
        switches: each(switches(usage), switches(empty)),
        faults: each(faults(usage), faults(empty)),
        calls: None,
    }
}

fn median_cost(costs: &[HostCost]) -> Option<HostCost> {
    let median = |field: fn(&HostCost) -> f64| quantile(&costs.iter().map(field).collect::<Vec<_>>(), 0.5);
    Some(HostCost {
        user_ns: median(|cost| cost.user_ns)?,
        system_ns: median(|cost| cost.system_ns)?,
        switches: median(|cost| cost.switches)?,
        faults: median(|cost| cost.faults)?,
        calls: None,
    })
}

fn cells(tasks: &[Task], places: &[Place], series: &BTreeMap<Key, Series>) -> Vec<Cell> {
    let native = places.iter().position(|place| place.kind == Kind::Native);
    let cell = |((number, name, pinned, at), own): (&Key, &Series)| {
        let runs: Vec<f64> = own.runs.iter().flatten().copied().collect();
        let beside = native.filter(|native| native != at && own.unit == "ns");
        let beside = beside.and_then(|native| series.get(&(*number, name.clone(), *pinned, native)));
        let ratios = beside.map_or(Vec::new(), |native| ratios(&own.runs, &native.runs));
        let ratio = Spread::of(&ratios);
        Some(Cell {
            workload: name.clone(),
            group: tasks.get(*number)?.workload.group.name().into(),
            unit: own.unit.clone(),
            place: places.get(*at)?.name.clone(),
            pinned: *pinned,
            summary: Summary::of(&runs)?,
            noisy: ratio.or_else(|| Spread::of(&runs)).is_some_and(|spread| spread.is_wide()),
            runs,
            ratios,
            ratio,
            host: median_cost(&own.costs),
        })
    };
    series.iter().filter_map(cell).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operation_costs_what_goes_beyond_an_empty_run() {
        let usage = |system, switches| host::wait::Usage {
            system: Duration::from_micros(system),
            voluntary_switches: switches,
            ..host::wait::Usage::default()
        };
        let cost = cost(&usage(1100, 60), &usage(100, 10), 100.0);
        assert_eq!((cost.system_ns, cost.user_ns, cost.switches), (10_000.0, 0.0, 0.5));
        let median = median_cost(&[cost, HostCost { switches: 9.0, ..cost }, cost]).expect("there are some");
        assert_eq!(median, cost);
        assert_eq!(median_cost(&[]), None);
    }

    #[test]
    fn ratios_pair_the_same_round_and_placement() {
        let places = [Place::native(), Place::named("sysemu").expect("a name")];
        let workload = workloads::chosen(&["getpid".into()], false).expect("known")[0];
        let tasks = [Task { workload, prepared: None, placements: vec![None], rounds: 3 }];
        let series = |runs: &[f64]| Series {
            unit: "ns".into(),
            runs: runs.iter().map(|run| Some(*run)).collect(),
            costs: vec![],
        };
        let all = BTreeMap::from([
            ((0, "getpid".to_string(), None, 0), series(&[100.0, 200.0, 100.0])),
            ((0, "getpid".to_string(), None, 1), series(&[1000.0, 2000.0, 1100.0])),
            ((0, "getpid".to_string(), Some(0), 1), series(&[500.0])),
        ]);
        let cells = cells(&tasks, &places, &all);
        assert_eq!(cells.len(), 3);
        assert_eq!(cells[1].ratios, [10.0, 10.0, 11.0]);
        assert_eq!(cells[2].ratio, None, "native was not run on one CPU");
    }
}
