//! The rounds: every workload at every place in turn, A B C A B C, the first round not counted.
//!
//! Main types: [`Task`]. Neighbours: `runner` makes single runs and keeps what they gave, `results` and `statistics` take
//! it from there.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use indicatif::{ProgressBar, ProgressStyle};

use crate::budget;
use crate::data::{self, Prepared};
use crate::machine::Machine;
use crate::options::Options;
use crate::places::{Kind, Place, Setup};
use crate::results::{Cell, FORMAT, Results};
use crate::rivals;
use crate::runner::{AllSeries, Runner, Slot};
use crate::statistics::{Spread, Summary, ratios};
use crate::workloads::{self, How, Workload};

const RUNS: u32 = 7;
const QUICK_RUNS: u32 = 3;
/// Of fewer ratios nobody knows how far they lie apart.
const FEWEST: usize = 3;

/// A workload with what it needs.
pub(crate) struct Task {
    pub(crate) workload: &'static Workload,
    pub(crate) prepared: Option<Prepared>,
    /// CPUs to be pinned to; none: free.
    pub(crate) placements: Vec<Option<usize>>,
    pub(crate) rounds: u32,
}

impl Task {
    /// Whether it runs in this round; the first, 0, is the one that does not count.
    fn is_in(&self, round: u32) -> bool {
        if round == 0 { self.workload.warm_up } else { round <= self.rounds }
    }
}

fn shorten(tasks: &mut [Task], done: u32, took: &[Duration], left: Duration) {
    let mut rounds: Vec<u32> = tasks.iter().map(|task| task.rounds).collect();
    budget::fit(&mut rounds, done, took, left);
    for (task, rounds) in tasks.iter_mut().zip(rounds) {
        task.rounds = rounds;
    }
}

/// Single runs from this round on.
fn runs_ahead(tasks: &[Task], round: u32, places: usize) -> u64 {
    let rounds = |task: &Task| (round..=task.rounds).filter(|round| task.is_in(*round)).count();
    tasks.iter().map(|task| rounds(task) * task.placements.len() * places).sum::<usize>() as u64
}

/// Measures what the options ask for.
///
/// # Errors
/// If names are not known, or files cannot be made, or nothing at all can be run.
pub(crate) fn measure(options: &Options, umlaut: &Path) -> anyhow::Result<Results> {
    let (start, machine) = (Instant::now(), Machine::this());
    let chosen = workloads::chosen(&options.names, options.quick, options.kernel_source.is_some())?;
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
    let mut tasks = tasks(&chosen, options, &mut setup, runs, &mut missing)?;
    let mut runner = Runner::new(&setup, &places);
    let mut counted = 0;
    let mut took = vec![Duration::ZERO; tasks.len()];
    for round in 0..=runs {
        if round > 0 {
            runner.count_no_calls();
            if let Some(budget) = budget::of(options) {
                shorten(&mut tasks, round - 1, &took, budget.saturating_sub(start.elapsed()));
            }
        }
        progress.set_length(progress.position() + runs_ahead(&tasks, round, places.len()));
        for (number, task) in tasks.iter().enumerate().filter(|(_, task)| task.is_in(round)) {
            let begun = Instant::now();
            for pinned in &task.placements {
                progress.set_message(format!("round {round} of {runs}: {}", task.workload.name));
                for place in 0..places.len() {
                    runner.run_and_record(task, Slot { task: number, pinned: *pinned, place }, round);
                    progress.inc(1);
                }
            }
            counted = round;
            if let Some(took) = took.get_mut(number) {
                *took = begun.elapsed();
            }
        }
    }
    progress.finish_and_clear();
    let failures = runner.failures().map(|(task, place, why)| {
        let name = tasks.get(task).map_or("", |task| task.workload.name);
        let place = places.get(place).map_or("", |place| place.name.as_str());
        format!("{name} at {place}: {why}")
    });
    missing.extend(failures);
    let cells = cells(&tasks, &places, runner.series());
    if cells.is_empty() {
        bail!("nothing could be measured: {}", missing.join("; "));
    }
    let places = places.iter().map(Place::note).collect();
    Ok(Results { format: FORMAT, machine, places, rounds: counted, cells, missing })
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
    // See --platforms.
    let usual = ["native", "stub", "sysemu"];
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
    if let Some(names) = &options.rivals {
        places.extend(rivals::installed(names, setup, missing)?);
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
    let (one_cpu, cpus) = (first_cpu()?, Machine::this().cpus);
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
            How::Guest | How::GuestNatively | How::Start | How::KernelMemory => None,
        };
        let placements = match options.pin {
            Some(cpu) => vec![Some(cpu)],
            // With one CPU there is nothing to compare.
            None if workload.placement && cpus > 1 => vec![None, Some(one_cpu)],
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

fn cells(tasks: &[Task], places: &[Place], all: &AllSeries) -> Vec<Cell> {
    let native = places.iter().position(|place| place.kind == Kind::Native);
    let cell = |((slot, name), own): (&(Slot, String), &crate::runner::Series)| {
        let runs: Vec<f64> = own.runs.iter().flatten().copied().collect();
        let beside = native.filter(|native| *native != slot.place && own.unit == "ns");
        let beside = beside.and_then(|place| all.get(&(Slot { place, ..*slot }, name.clone())));
        let ratios = beside.map_or(Vec::new(), |native| ratios(&own.runs, &native.runs));
        let ratio = Spread::of(&ratios);
        let wide = ratio.or_else(|| Spread::of(&runs)).is_some_and(|spread| spread.is_wide());
        Some(Cell {
            workload: name.clone(),
            group: tasks.get(slot.task)?.workload.group.name().into(),
            unit: own.unit.clone(),
            place: places.get(slot.place)?.name.clone(),
            pinned: slot.pinned,
            summary: Summary::of(&runs)?,
            noisy: wide || (ratio.is_some() && ratios.len() < FEWEST),
            runs,
            ratios,
            ratio,
            host: own.host_cost(),
            kernel: own.kernel_counts(),
        })
    };
    all.iter().filter_map(cell).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::runner::Series;

    #[test]
    fn ratios_pair_the_same_round_and_placement() {
        let places = [Place::native(), Place::named("sysemu").expect("a name")];
        let workload = workloads::chosen(&["getpid".into()], false, false).expect("known")[0];
        let tasks = [Task { workload, prepared: None, placements: vec![None], rounds: 3 }];
        let series = |runs: &[f64]| {
            let mut series = Series::default();
            series.unit = "ns".into();
            series.runs = runs.iter().map(|run| Some(*run)).collect();
            series
        };
        let slot = |pinned, place| (Slot { task: 0, pinned, place }, "getpid".to_string());
        let all = BTreeMap::from([
            (slot(None, 0), series(&[100.0, 200.0, 100.0])),
            (slot(None, 1), series(&[1000.0, 2000.0, 1100.0])),
            (slot(Some(0), 1), series(&[500.0])),
        ]);
        let cells = cells(&tasks, &places, &all);
        assert_eq!(cells.len(), 3);
        assert_eq!(cells[1].ratios, [10.0, 10.0, 11.0]);
        assert_eq!(cells[2].ratio, None, "native was not run on one CPU");
    }
}
