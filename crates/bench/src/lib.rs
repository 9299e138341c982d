//! `umlaut bench`: every figure beside native, in one run.
//!
//! A workload (`workloads`) is run at every place (`places`: natively, on each platform, under rivals) in turn, round
//! by round (`rounds`); a run is one process with the figures that it printed and what the host says it used
//! (`sample`). What is compared is a figure with native's of the same round (`statistics`). `results` is all of it as
//! data, `report` shows it, `plot` draws it. The program that runs at each place is `crates/bench-guest`.
//!
//! Neighbours: `cli`, whose command this is; nothing of the kernel: `umlaut run` is started as users start it.

mod budget;
mod data;
mod machine;
mod memory;
mod options;
mod places;
mod plot;
mod report;
mod results;
mod rivals;
mod rounds;
mod runner;
mod sample;
mod session;
mod statistics;
mod workloads;

pub use options::Options;

use std::path::Path;

use anyhow::Context;

use crate::results::Results;

/// Measures, shows, writes what was asked for; gives the exit status: 1 if `--fail-above` was exceeded.
///
/// # Errors
/// What keeps it from measuring at all, or from reading or writing a file that was named.
pub fn run(options: &Options, umlaut: &Path) -> anyhow::Result<i32> {
    if options.list {
        print!("{}", report::list());
        return Ok(0);
    }
    let old = options.compare.as_deref().map(Results::read).transpose()?;
    let results = match &options.from {
        Some(file) => Results::read(file)?,
        None => rounds::measure(options, options.binary.as_deref().unwrap_or(umlaut))?,
    };
    print!(
        "{}",
        report::table(&results, options.details, std::io::IsTerminal::is_terminal(&std::io::stdout()))
    );
    if let Some(file) = &options.json {
        results.write(file)?;
    }
    let write = |file: &Path, text: String| {
        std::fs::write(file, text).with_context(|| format!("writing {}", file.display()))
    };
    if let Some(file) = &options.markdown {
        write(file, report::markdown(&results))?;
    }
    if let Some(file) = &options.plot {
        write(file, plot::svg(&results))?;
    }
    let Some(old) = old else { return Ok(0) };
    let comparison = report::compare(&old, &results);
    print!("{}", comparison.text);
    let limit = options.fail_above.unwrap_or(f64::INFINITY);
    Ok(i32::from(comparison.worst_percent > limit))
}
