//! The rounds: every workload at every place in turn, A B C A B C, the first round not counted.
//!
//! Main types: [`Task`]. Neighbours: `runner` makes single runs and keeps what they gave, `results` and `statistics` take
//! it from there.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use indicatif::{ProgressBar, ProgressStyle};

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
/// Rounds that are made whatever they take.
const LEAST: u32 = 3;
/// What the default set may take, and `--quick`.
const BUDGET: Duration = Duration::from_secs(270);
const QUICK_BUDGET: Duration = Duration::from_secs(50);

/// None where the user says what to do, or how often.
fn budget(options: &Options) -> Option<Duration> {
    let own = options.names.is_empty() && options.runs.is_none();
    own.then_some(if options.quick { QUICK_BUDGET } else { BUDGET })
}

/// A workload with what it needs.
pub(crate) struct Task {
    pub(crate) workload: &'static Workload,
    pub(crate) prepared: Option<Prepared>,
    /// CPUs to be pinned to; none: free.
    pub(crate) placements: Vec<Option<usize>>,
    pub(crate) rounds: u32,
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
    let mut runner = Runner::new(&setup, &places);
    let rounds = |task: &Task| u64::from(task.rounds + 1) * task.placements.len() as u64;
    progress.set_length(tasks.iter().map(rounds).sum::<u64>() * places.len() as u64);
    let start = Instant::now();
    let mut counted = 0;
    for round in 0..=runs {
        // The first round has been made whatever it took; the default set ends when its time is over.
        let next = start.elapsed() / round.max(1) * (round + 1);
        if counted >= LEAST && budget(options).is_some_and(|budget| next > budget) {
            break;
        }
        if round > 0 {
            runner.count_no_calls();
        }
        counted = round;
        for (number, task) in tasks.iter().enumerate().filter(|(_, task)| round <= task.rounds) {
            for pinned in &task.placements {
                progress.set_message(format!("round {round} of {runs}: {}", task.workload.name));
                for place in 0..places.len() {
                    runner.run_and_record(task, Slot { task: number, pinned: *pinned, place }, round);
                    progress.inc(1);
                }
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
    Ok(Results { format: FORMAT, machine: Machine::this(), places, rounds: counted, cells, missing })
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
    let usual =
        if options.quick { &["native", "sysemu"][..] } else { &["native", "sysemu", "ptrace", "stub"] };
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

fn cells(tasks: &[Task], places: &[Place], all: &AllSeries) -> Vec<Cell> {
    let native = places.iter().position(|place| place.kind == Kind::Native);
    let cell = |((slot, name), own): (&(Slot, String), &crate::runner::Series)| {
        let runs: Vec<f64> = own.runs.iter().flatten().copied().collect();
        let beside = native.filter(|native| *native != slot.place && own.unit == "ns");
        let beside = beside.and_then(|place| all.get(&(Slot { place, ..*slot }, name.clone())));
        let ratios = beside.map_or(Vec::new(), |native| ratios(&own.runs, &native.runs));
        let ratio = Spread::of(&ratios);
        Some(Cell {
            workload: name.clone(),
            group: tasks.get(slot.task)?.workload.group.name().into(),
            unit: own.unit.clone(),
            place: places.get(slot.place)?.name.clone(),
            pinned: slot.pinned,
            summary: Summary::of(&runs)?,
            noisy: ratio.or_else(|| Spread::of(&runs)).is_some_and(|spread| spread.is_wide()),
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
        let workload = workloads::chosen(&["getpid".into()], false).expect("known")[0];
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

    #[test]
    fn only_what_the_user_left_open_has_a_budget() {
        let options = |words: &[&str]| {
            use clap::{Args, FromArgMatches};
            let command = Options::augment_args(clap::Command::new("bench").no_binary_name(true));
            Options::from_arg_matches(&command.get_matches_from(words)).expect("they are right")
        };
        assert_eq!(budget(&options(&[])), Some(BUDGET));
        assert_eq!(budget(&options(&["--quick"])), Some(QUICK_BUDGET));
        assert_eq!(budget(&options(&["getpid"])), None);
        assert_eq!(budget(&options(&["--runs", "9"])), None);
    }
}
