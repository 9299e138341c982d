//! `cargo xtask test`: sets the machine up, builds, and runs all tests; ends with `N passed, N failed, N skipped`.
//!
//! [`Options`] are the command line, [`Plan`] is what came of them: platforms, users, where things are. The stages:
//! `setup` (packages), `checks` (format, lints, house rules), `crates` (unit, property and conformance tests of the workspace), `guest` (the matrix of guest
//! programs), `programs` (real programs). Everything that did not run is said and counted. A few tests that fail beside
//! others are run once more alone; what passes only so is named as unsteady. With `--full` the first run counts.
mod checks;
mod crates;
mod expect;
mod extra;
mod guest;
mod process;
mod programs;
mod report;
mod setup;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, RwLock};

use anyhow::{Context, Result};
use clap::Args;

use expect::Expectations;
use process::User;
use report::Report;

/// Programs that run at the same time, at most.
const AT_ONCE: usize = 2;

/// The platforms on which everything runs.
const WHOLE: [&str; 2] = ["stub", "sysemu"];
/// Families and programs of the guest matrix that also run on ptrace without `--full`: its loop is sysemu's.
const SMOKE: [&str; 6] = ["smoke", "process", "signal", "exec", "thread", "ptrace"];

#[derive(Args)]
pub(crate) struct Options {
    /// Everything: the full matrix on every platform, whole trees, large packages
    #[arg(long)]
    full: bool,
    /// Only on these platforms
    #[arg(long, value_delimiter = ',', default_value = "stub,sysemu,ptrace")]
    platform: Vec<String>,
    /// Only this family: a directory under tests/guest or tests/programs
    #[arg(long)]
    family: Option<String>,
    /// Only tests whose FAMILY/NAME contains this
    #[arg(long)]
    filter: Option<String>,
    /// Only these stages
    #[arg(long, value_delimiter = ',', default_value = "crates,guest,programs")]
    stage: Vec<Stage>,
    /// Only as the unprivileged user
    #[arg(long, conflicts_with = "root")]
    unprivileged: bool,
    /// Only as root
    #[arg(long)]
    root: bool,
    /// Only natively: does the test itself hold?
    #[arg(long)]
    native: bool,
    /// Install no packages
    #[arg(long)]
    no_install: bool,
    /// Give every program this many times its time limit
    #[arg(long, default_value_t = 1)]
    patience: u32,
    /// Test this binary instead of building target/release/umlaut
    #[arg(long)]
    binary: Option<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Stage {
    /// Format, clippy, house rules, dependencies
    Checks,
    /// Tests of the workspace's own crates
    Crates,
    /// The guest programs
    Guest,
    /// Real programs
    Programs,
}

/// What is run, where, and as whom.
pub(crate) struct Plan {
    workspace: PathBuf,
    full: bool,
    /// Whether what is missing may be installed.
    installs: bool,
    platforms: Vec<String>,
    family: Option<String>,
    filter: Option<String>,
    users: Vec<User>,
    patience: u32,
    /// Scratch directory that every user can reach; removed at the end.
    scratch: tempfile::TempDir,
    report: Report,
}

impl Plan {
    /// Whether a test of this family and name was asked for.
    fn wants(&self, family: &str, name: &str) -> bool {
        self.family.as_deref().is_none_or(|wanted| wanted == family)
            && self.filter.as_deref().is_none_or(|part| name.contains(part))
    }

    /// The platforms on which a guest program runs: all on most, a smoke part on ptrace, whose loop is sysemu's.
    fn platforms_for(&self, program: &str) -> impl Iterator<Item = &str> {
        let family = program.split('/').next().unwrap_or(program);
        let chosen = self.full || self.platforms.len() == 1 || SMOKE.contains(&family);
        self.platforms.iter().map(String::as_str).filter(move |platform| chosen || WHOLE.contains(platform))
    }

    /// The words that run a program inside umlaut, as the user who would run it natively.
    fn umlaut(&self, platform: &str, user: User) -> Vec<OsString> {
        let binary = self.scratch.path().join("bin/umlaut");
        let (home, login) = (format!("HOME={}", process::HOME), format!("USER={}", user.login()));
        let options =
            ["run", "--platform", platform, "--user", &user.ids(), "--env", &home, "--env", &login, "--"];
        std::iter::once(binary.into()).chain(options.map(OsString::from)).collect()
    }

    /// An empty working directory that belongs to the user.
    fn fresh_directory(&self, user: User) -> Result<tempfile::TempDir> {
        let dir = tempfile::Builder::new().prefix("w").tempdir_in(self.scratch.path().join("run"))?;
        open_to_all(dir.path())?;
        if user == User::Nobody {
            std::os::unix::fs::chown(dir.path(), Some(process::NOBODY), Some(process::NOBODY))?;
        }
        Ok(dir)
    }
}

fn open_to_all(path: &Path) -> Result<()> {
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(path, mode).with_context(|| path.display().to_string())
}

/// Runs `work` on every item, a few at a time, an `alone` item with nothing beside it; the results in order.
fn in_parallel<T: Sync, R: Send>(
    plan: &Plan,
    stage: &str,
    items: &[T],
    alone: impl Fn(&T) -> bool + Sync,
    name: impl Fn(&T) -> String + Sync,
    work: impl Fn(&T) -> R + Sync,
) -> Vec<R> {
    let (next, beside) = (AtomicUsize::new(0), RwLock::new(()));
    let results = Mutex::new(BTreeMap::new());
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE.min(items.len()) {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some(item) = items.get(at) else { break };
                    plan.report.progress(at + 1, items.len(), &format!("{stage} {}", name(item)));
                    let result = if alone(item) {
                        let _nobody = beside.write();
                        work(item)
                    } else {
                        let _others = beside.read();
                        work(item)
                    };
                    if let Ok(mut results) = results.lock() {
                        results.insert(at, result);
                    }
                }
            });
        }
    });
    results.into_inner().map(|results| results.into_values().collect()).unwrap_or_default()
}

/// Runs the tests. True if all that ran passed.
///
/// # Errors
/// If the tests cannot be run at all: no scratch directory, an unreadable expectation file.
pub(crate) fn run(workspace: &Path, options: &Options) -> Result<bool> {
    let scratch = tempfile::Builder::new().prefix("umlaut-test.").tempdir().context("a scratch directory")?;
    open_to_all(scratch.path())?;
    for name in ["bin", "run"] {
        std::fs::create_dir(scratch.path().join(name))?;
        open_to_all(&scratch.path().join(name))?;
    }
    let mut plan = Plan {
        workspace: workspace.to_owned(),
        full: options.full,
        installs: !options.no_install,
        platforms: options.platform.clone(),
        family: options.family.clone(),
        filter: options.filter.clone(),
        users: Vec::new(),
        patience: options.patience,
        scratch,
        report: Report::new(),
    };
    let all = options.family.is_none() && options.filter.is_none();
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))
        .context("becoming the reaper of what tests leave behind")?;
    setup::space(&plan);
    if !options.no_install {
        setup::packages(&plan);
    }
    plan.users = setup::users(&plan, options.root, options.unprivileged);
    if options.native {
        plan.platforms.clear();
    } else if !setup::umlaut(&plan, options.binary.as_deref()) {
        plan.report.line("without umlaut the tests run natively only");
        plan.platforms.clear();
    } else {
        plan.platforms = setup::platforms_of_host(&plan);
        if plan.platforms.is_empty() {
            plan.report.failed("platforms", "this host lets guests run on none of them");
        }
    }
    if options.stage.contains(&Stage::Checks) && all {
        checks::run(&plan);
    }
    if options.stage.contains(&Stage::Crates) && all {
        crates::run(&plan);
    }
    if options.stage.contains(&Stage::Guest) {
        guest_stage(&plan, all)?;
    }
    if options.stage.contains(&Stage::Programs) {
        programs_stage(&plan, all)?;
    }
    setup::left_behind(&plan);
    setup::space(&plan);
    Ok(plan.report.finish())
}

fn guest_stage(plan: &Plan, all: bool) -> Result<()> {
    plan.report.stage("guest programs");
    let expectations = expectations(plan, "tests/guest/expect")?;
    let programs = guest::build(plan, guest::find(plan)?);
    guest::matrix(plan, &programs, &expectations);
    unmet(plan, all, &expectations);
    Ok(())
}

fn programs_stage(plan: &Plan, all: bool) -> Result<()> {
    plan.report.stage("real programs");
    setup::copy_for_all(&plan.workspace.join("tests/programs/lib"), &plan.scratch.path().join("lib"))?;
    extra::prepare(plan);
    let expectations = expectations(plan, "tests/programs/expect")?;
    let scripts = programs::find(plan)?;
    programs::run(plan, &scripts, &expectations);
    unmet(plan, all, &expectations);
    Ok(())
}

fn expectations(plan: &Plan, dir: &str) -> Result<BTreeMap<String, Expectations>> {
    let mut all = BTreeMap::new();
    for platform in &plan.platforms {
        let path = plan.workspace.join(dir).join(format!("{platform}.txt"));
        all.insert(platform.clone(), Expectations::load(&path)?);
    }
    Ok(all)
}

/// After a complete run, each known failure must have been met.
fn unmet(plan: &Plan, all: bool, expectations: &BTreeMap<String, Expectations>) {
    if !(all && plan.full && plan.users.len() == 2) {
        return;
    }
    for (platform, list) in expectations {
        for what in list.unmet() {
            plan.report
                .failed(format!("{platform} {what}"), "listed as a known failure, but no such case ran");
        }
    }
}
