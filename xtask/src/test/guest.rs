//! The guest matrix: `tests/guest/FAMILY/PROGRAM.c`, run natively first, then inside umlaut on each platform.
//!
//! The contract with the programs (how to build one, what it prints) stands at the head of `tests/guest/check.h`.
//! [`find`] reads the sources, [`build`] compiles them, [`matrix`] runs and judges. A native failure is a failure of
//! the test itself, and that program is not run inside.
use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use super::Plan;
use super::expect::Expectations;
use super::process::{Ended, Job, Outcome, User, copy_program};

/// One guest test program.
pub(crate) struct Program {
    /// `FAMILY/PROGRAM`.
    pub(crate) name: String,
    source: PathBuf,
    binary: PathBuf,
    flags: Vec<String>,
    users: Option<&'static str>,
    pub(crate) alone: bool,
    timeout: Duration,
}

impl Program {
    fn read(source: PathBuf, name: String, out: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(&source)?;
        let binary = out.join(name.replace('/', "."));
        let (mut link, mut flags) = (Some("-static".to_owned()), Vec::new());
        let (mut users, mut alone, mut timeout) = (None, false, Duration::from_secs(60));
        for line in text.lines().map_while(|line| line.strip_prefix("//")).map(str::trim) {
            if let Some(build) = line.strip_prefix("build:") {
                let mut words = build.split_whitespace().map(str::to_owned).peekable();
                if let Some(word) = words.next_if(|word| word == "static" || word == "dynamic") {
                    link = (word == "static").then(|| "-static".to_owned());
                }
                flags.extend(words);
            } else if let Some(run) = line.strip_prefix("run:") {
                for word in run.split_whitespace() {
                    match word {
                        "root-only" => users = Some("root"),
                        "user-only" => users = Some("user"),
                        "alone" => alone = true,
                        _ => match word.strip_prefix("timeout=").map(str::parse) {
                            Some(Ok(seconds)) => timeout = Duration::from_secs(seconds),
                            _ => bail!("{}: run: {word}?", source.display()),
                        },
                    }
                }
            }
        }
        flags.splice(0..0, link.into_iter().chain(["-o".into(), path(&binary), path(&source)]));
        Ok(Self { name, source, binary, flags, users, alone, timeout })
    }

    /// Compiles unless the binary is newer than all its sources. The error is gcc's output.
    fn build(&self, newest_header: Option<std::time::SystemTime>) -> Result<()> {
        let written = |path: &Path| path.metadata().and_then(|meta| meta.modified()).ok();
        let sources = written(&self.source).max(newest_header);
        if written(&self.binary) > sources {
            return Ok(());
        }
        let mut gcc = Command::new("gcc");
        gcc.args(["-std=gnu11", "-O1", "-g", "-Wall", "-Wextra"]).args(&self.flags);
        let output = gcc.output().context("gcc")?;
        if !output.status.success() {
            let _ = std::fs::remove_file(&self.binary);
            bail!("{gcc:?}\n{}", String::from_utf8_lossy(&output.stderr));
        }
        Ok(())
    }
}

fn path(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// The programs under `tests/guest/`, sorted; those of one family, or whose name contains the filter.
pub(crate) fn find(plan: &Plan) -> Result<Vec<Program>> {
    let root = plan.workspace.join("tests/guest");
    let out = plan.workspace.join("target/guest");
    std::fs::create_dir_all(&out)?;
    let mut programs = Vec::new();
    for family in subdirectories(&root)? {
        for entry in std::fs::read_dir(root.join(&family))? {
            let source = entry?.path();
            let Some(stem) = source.file_stem().map(|stem| stem.to_string_lossy().into_owned()) else {
                continue;
            };
            let name = format!("{family}/{stem}");
            if source.extension().is_some_and(|ext| ext == "c") && plan.wants(&family, &name) {
                programs.push(Program::read(source, name, &out)?);
            }
        }
    }
    programs.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(programs)
}

pub(crate) fn subdirectories(root: &Path) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(root).with_context(|| root.display().to_string())? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            names.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    names.sort();
    Ok(names)
}

/// Compiles the programs, two at a time; those that do not compile are failures and are left out.
pub(crate) fn build(plan: &Plan, programs: Vec<Program>) -> Vec<Program> {
    // Every program may include the harness and its family's header.
    let root = plan.workspace.join("tests/guest");
    let mut headers = Vec::new();
    for dir in std::iter::once(String::new()).chain(subdirectories(&root).unwrap_or_default()) {
        let entries = std::fs::read_dir(root.join(dir)).into_iter().flatten().flatten();
        headers.extend(entries.filter(|entry| entry.path().extension().is_some_and(|ext| ext == "h")));
    }
    let newest = headers.iter().filter_map(|entry| entry.metadata().ok()?.modified().ok()).max();
    let built = super::in_parallel(
        plan,
        "gcc",
        &programs,
        |_| false,
        |program| program.name.clone(),
        |program| match program.build(newest) {
            Ok(()) => true,
            Err(error) => {
                plan.report.failed(format!("build {}", program.name), format!("{error:#}"));
                false
            }
        },
    );
    programs.into_iter().zip(built).filter_map(|(program, built)| built.then_some(program)).collect()
}

/// Runs every program as every user, natively and on every platform.
pub(crate) fn matrix(plan: &Plan, programs: &[Program], expectations: &BTreeMap<String, Expectations>) {
    let runs: Vec<(&Program, User)> =
        plan.users.iter().flat_map(|user| programs.iter().map(|program| (program, *user))).collect();
    let name = |(program, user): &(&Program, User)| format!("{} {}", user.word(), program.name);
    let run = |(program, user): &(&Program, User)| {
        if let Some(only) = program.users.filter(|only| *only != user.word()) {
            plan.report.skipped(format!("guest program for {only} only"), 1);
        } else if let Err(error) = one(plan, program, *user, expectations) {
            plan.report.failed(format!("{} {}", user.word(), program.name), format!("{error:#}"));
        }
    };
    let trial = |item: &(&Program, User)| plan.report.trial(|| run(item));
    let results = super::in_parallel(plan, "guest", &runs, |(program, _)| program.alone, name, trial);
    plan.report.settle(plan.full, runs.into_iter().zip(results).collect(), name, run);
}

/// One program as one user: natively, then on each platform.
fn one(
    plan: &Plan,
    program: &Program,
    user: User,
    expectations: &BTreeMap<String, Expectations>,
) -> Result<()> {
    let run = |platform: Option<&str>| -> Result<Outcome> {
        let dir = plan.fresh_directory(user)?;
        // It is TMPDIR too, and like /tmp for everybody: programs drop root and go on there.
        std::fs::set_permissions(dir.path(), PermissionsExt::from_mode(0o1777))?;
        let binary = dir.path().join(program.source.file_stem().unwrap_or_default());
        copy_program(&program.binary, &binary, user)?;
        let mut argv = platform.map_or_else(Vec::new, |platform| plan.umlaut(platform, user));
        argv.push(binary.into());
        let (dir_path, timeout) = (dir.path().to_owned(), program.timeout * plan.patience);
        let env = vec![("TMPDIR".into(), dir.path().into())];
        Ok(Job { argv, dir: dir_path, user, env, stdin: None, timeout }.run())
    };
    let native = run(None)?;
    let reference = Results::read(&native);
    let title = |platform: &str, case: &str| format!("{platform} {} {} {case}", user.word(), program.name);
    if !reference.failures.is_empty() {
        for (case, text) in &reference.failures {
            plan.report.failed(title("native", case), format!("{text}\n{}", native.text()));
        }
        return Ok(());
    }
    plan.report.passed(reference.passes.len());
    for (_, why) in &reference.skips {
        plan.report.skipped(format!("native: {why}"), 1);
    }
    for platform in plan.platforms_for(&program.name) {
        let outcome = run(Some(platform))?;
        let results = Results::read(&outcome);
        judge(
            plan,
            &reference,
            &results,
            &outcome,
            &Judged { program, user, platform },
            expectations.get(platform),
        );
    }
    Ok(())
}

struct Judged<'a> {
    program: &'a Program,
    user: User,
    platform: &'a str,
}

/// Compares a run inside with the native one, case by case, against the known failures.
fn judge(
    plan: &Plan,
    reference: &Results,
    results: &Results,
    outcome: &Outcome,
    what: &Judged<'_>,
    known: Option<&Expectations>,
) {
    let name = what.program.name.as_str();
    let title = |case: &str| format!("{} {} {name} {case}", what.platform, what.user.word());
    let reason = |case: &str| known.and_then(|known| known.reason(name, case, what.user));
    let mut failures: BTreeMap<String, String> = results.failures.clone(); // an empty text: no result
    for case in &reference.passes {
        if let Some((_, why)) = results.skips.iter().find(|(skipped, _)| skipped == case) {
            failures.insert(case.clone(), format!("skipped inside, though it ran natively: {why}"));
        } else if !results.passes.contains(case) && !failures.contains_key(case) {
            failures.insert(case.clone(), String::new());
        }
    }
    let whole = reason("*");
    if let Some(whole) = whole {
        if failures.is_empty() {
            plan.report.failed(title("*"), format!("passes, but is listed as a known failure: {whole}"));
        }
        failures.keys().for_each(|_| plan.report.known_failure(whole));
    } else {
        let (mut shown, mut silent) = (false, Vec::new());
        for (case, text) in &failures {
            match reason(case) {
                Some(reason) => plan.report.known_failure(reason),
                None if text.is_empty() => silent.push(case.as_str()),
                None if shown => plan.report.failed(title(case), text.clone()),
                None => {
                    shown = true; // the program's whole output goes with its first failure only
                    plan.report.failed(title(case), format!("{text}\n{}", outcome.text()));
                }
            }
        }
        if let [first, ..] = silent[..] {
            let what = format!("{} cases without a result: {}", silent.len(), silent.join(" "));
            plan.report.failed_times(silent.len(), title(&format!("{first} and what follows")), what);
        }
    }
    for case in &results.passes {
        match reason(case).filter(|_| !failures.contains_key(case)) {
            Some(reason) => {
                plan.report
                    .failed(title(case), format!("passes, but is listed as a known failure: {reason}"));
            }
            None => plan.report.passed(1),
        }
    }
    for (_, why) in results.skips.iter().filter(|(case, _)| !failures.contains_key(case)) {
        plan.report.skipped(format!("{}: {why}", what.platform), 1);
    }
}

/// The cases that one run of a program reported.
struct Results {
    passes: Vec<String>,
    skips: Vec<(String, String)>,
    /// Case and what it said; `(program)` stands for a program that did not end as it should.
    failures: BTreeMap<String, String>,
}

impl Results {
    fn read(outcome: &Outcome) -> Self {
        let mut results = Self { passes: Vec::new(), skips: Vec::new(), failures: BTreeMap::new() };
        for line in String::from_utf8_lossy(&outcome.stdout).lines() {
            if let Some(rest) = line.strip_prefix("not ok ") {
                let (case, text) = rest.split_once(": ").unwrap_or((rest, ""));
                results.failures.insert(case.to_owned(), text.to_owned());
            } else if let Some(case) = line.strip_prefix("ok ") {
                results.passes.push(case.to_owned());
            } else if let Some(rest) = line.strip_prefix("skip ") {
                let (case, why) = rest.split_once(": ").unwrap_or((rest, "no reason given"));
                results.skips.push((case.to_owned(), why.to_owned()));
            }
        }
        let expected = Ended::Exit(i32::from(!results.failures.is_empty()));
        if outcome.ended != expected {
            results.failures.insert("(program)".into(), outcome.ended.to_string());
        } else if results.failures.is_empty() && results.passes.is_empty() && results.skips.is_empty() {
            results.failures.insert("(program)".into(), "reported no case".into());
        }
        results
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(stdout: &str, ended: Ended) -> Outcome {
        Outcome { ended, stdout: stdout.into(), stderr: Vec::new() }
    }

    #[test]
    fn lines_are_sorted_into_passes_failures_and_skips() {
        let results =
            Results::read(&outcome("ok a\nnot ok b: b.c:3: x: y\nskip c: no d\nnoise\n", Ended::Exit(1)));
        assert_eq!(results.passes, ["a"]);
        assert_eq!(results.failures["b"], "b.c:3: x: y");
        assert_eq!(results.skips, [("c".to_owned(), "no d".to_owned())]);
        assert!(!results.failures.contains_key("(program)"));
    }

    #[test]
    fn a_program_that_dies_or_says_nothing_fails() {
        assert!(Results::read(&outcome("ok a\n", Ended::Signal(11))).failures.contains_key("(program)"));
        assert!(Results::read(&outcome("ok a\n", Ended::Exit(1))).failures.contains_key("(program)"));
        assert!(Results::read(&outcome("", Ended::Exit(0))).failures.contains_key("(program)"));
    }
}
