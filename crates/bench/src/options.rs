//! What `umlaut bench` can be asked for.

use std::path::PathBuf;

use clap::Args;

/// The options of `umlaut bench`.
#[derive(Debug, Args)]
#[command(
    long_about = "Runs workloads natively and on each platform in turn, round by round, and shows each figure beside native's of
the same round. Without names the default set runs (under five minutes: what takes long runs less often); --list names all.",
    after_help = "Examples:
  umlaut bench --quick                          the most telling figures, in under a minute
  umlaut bench getpid read-4k --runs 10         two workloads
  umlaut bench calls --platforms native,sysemu  a group
  umlaut bench contention contention-hand-over tracers --runs 15   what processes cost each other
  umlaut bench build --kernel-source linux/     make of a C tree, and of Linux (tinyconfig)
  umlaut bench cp --platforms native,sysemu,sysemu+no-batch
  umlaut bench --json new.json --compare old.json --fail-above 5"
)]
pub struct Options {
    /// Workloads, or groups of them: calls, processes, ancestors, applications, all
    #[arg(value_name = "NAMES")]
    pub names: Vec<String>,
    /// Where to run: native, auto, and platforms, each with switches behind plus signs (sysemu+no-placement). Without
    /// it: native, stub, sysemu. ptrace is sysemu with two stops a call: it would tell nothing more for its third of the
    /// time
    #[arg(long, value_delimiter = ',', value_name = "PLATFORMS")]
    pub platforms: Vec<String>,
    /// Rounds that count; one more comes first and does not
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub runs: Option<u32>,
    /// Few workloads, few rounds: under a minute
    #[arg(long)]
    pub quick: bool,
    /// Run everything on this CPU only (otherwise: free, and again on one CPU where that may differ)
    #[arg(long, value_name = "CPU")]
    pub pin: Option<usize>,
    /// Run what other systems of the kind are installed too; with names, those
    #[arg(long, value_name = "NAMES", num_args = 0..=1, require_equals = true, value_delimiter = ',', default_missing_value = "all")]
    pub rivals: Option<Vec<String>>,
    /// Measure this umlaut, not the one that runs
    #[arg(long, value_name = "FILE")]
    pub binary: Option<PathBuf>,
    /// Where files of the workloads are made, in a directory that is removed again
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
    /// A Linux source tree: `build` then builds its tinyconfig too (the workload kernel-build)
    #[arg(long, value_name = "DIR")]
    pub kernel_source: Option<PathBuf>,
    /// Tell the workloads
    #[arg(long)]
    pub list: bool,
    /// Show what was measured before, from its JSON, in place of measuring
    #[arg(long, value_name = "JSON", conflicts_with_all = ["platforms", "runs", "quick", "pin", "rivals"], help_heading = "Output")]
    pub from: Option<PathBuf>,
    /// Show each cell in full: mean, deviation, range, CPU time, switches
    #[arg(long, help_heading = "Output")]
    pub details: bool,
    /// Write all as JSON
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub json: Option<PathBuf>,
    /// Write the table as Markdown
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub markdown: Option<PathBuf>,
    /// Draw it: bars of ratios, or for a single workload how its runs are distributed
    #[arg(long, value_name = "FILE.svg", help_heading = "Output")]
    pub plot: Option<PathBuf>,
    /// Tell what changed since an earlier run, beyond noise
    #[arg(long, value_name = "OLD.json", help_heading = "Output")]
    pub compare: Option<PathBuf>,
    /// End with status 1 if something got slower than in OLD.json by more than this
    #[arg(long, value_name = "PERCENT", requires = "compare", help_heading = "Output")]
    pub fail_above: Option<f64>,
}
