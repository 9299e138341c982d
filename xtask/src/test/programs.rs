//! Real programs: `tests/programs/FAMILY/NAME.*`, each a script that runs natively and inside, with equal results.
//!
//! The form of a test is described in `tests/programs/README.md`. [`find`] reads the heads, [`run`] runs and compares
//! standard output, standard error and the exit status, byte by byte.
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};

use super::expect::Expectations;
use super::process::{Ended, Job, NOBODY, Outcome, User, copy_program};
use super::{Plan, WHOLE, open_to_all, setup};

/// One test script.
pub(crate) struct Script {
    /// `FAMILY/NAME`.
    pub(crate) name: String,
    path: PathBuf,
    needs: Vec<String>,
    words: Vec<String>,
    timeout: Duration,
}

impl Script {
    fn read(path: PathBuf, name: String) -> Result<Self> {
        let text = std::fs::read_to_string(&path)?;
        let (mut needs, mut words, mut timeout) = (Vec::new(), Vec::new(), Duration::from_secs(60));
        for line in text.lines().map_while(|line| line.strip_prefix('#')).map(str::trim) {
            if let Some(list) = line.strip_prefix("needs:") {
                needs.extend(list.split_whitespace().map(str::to_owned));
            } else if let Some(list) = line.strip_prefix("run:") {
                for word in list.split_whitespace() {
                    match word.split_once('=') {
                        Some(("timeout", seconds)) => timeout = Duration::from_secs(seconds.parse()?),
                        None if WORDS.contains(&word) => words.push(word.to_owned()),
                        _ => bail!("{}: run: {word}?", path.display()),
                    }
                }
            }
        }
        Ok(Self { name, path, needs, words, timeout })
    }

    pub(crate) fn is(&self, word: &str) -> bool {
        self.words.iter().any(|own| own == word)
    }

    /// Why it does not run at all, if so.
    fn unfit(&self, plan: &Plan, user: User) -> Option<String> {
        if let Some(missing) = self.needs.iter().find(|command| !available(plan, command)) {
            return Some(format!("{}: needs {missing}", self.name));
        }
        for only in ["root", "user"] {
            if self.is(&format!("{only}-only")) && user.word() != only {
                return Some(format!("program for {only} only"));
            }
        }
        (self.is("full") && !plan.full).then(|| "only with --full".into())
    }

    /// The fetched or compiled programs that it needs.
    fn extras(&self, plan: &Plan) -> Vec<PathBuf> {
        let extras = self.needs.iter().map(|name| plan.workspace.join("target/extra").join(name));
        extras.filter(|path| path.is_file()).collect()
    }

    /// The platforms that it runs on: most, and those marked `smoke` on the others as well.
    fn platforms<'a>(&'a self, plan: &'a Plan) -> impl Iterator<Item = &'a str> {
        let all = plan.full || plan.platforms.len() == 1 || self.is("smoke");
        plan.platforms.iter().map(String::as_str).filter(move |platform| all || WHOLE.contains(platform))
    }
}

/// The words that a `run:` line may hold, besides `timeout=N`.
const WORDS: [&str; 7] = ["root-only", "user-only", "alone", "full", "smoke", "outside", "check"];

/// A command on the PATH, or a file (`/usr/lib/…`), or something that was fetched (`esbuild`).
fn available(plan: &Plan, what: &str) -> bool {
    if what.starts_with('/') {
        return Path::new(what).exists();
    }
    setup::has(what) || plan.workspace.join("target/extra").join(what).is_file()
}

/// The scripts under `tests/programs/`, sorted; those of one family, or whose name contains the filter.
///
/// # Errors
/// If a head cannot be understood.
pub(crate) fn find(plan: &Plan) -> Result<Vec<Script>> {
    let root = plan.workspace.join("tests/programs");
    let mut scripts = Vec::new();
    for family in super::guest::subdirectories(&root)? {
        if family == "lib" || family == "expect" {
            continue;
        }
        for entry in std::fs::read_dir(root.join(&family))? {
            let path = entry?.path();
            let Some(stem) = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()) else {
                continue;
            };
            let name = format!("{family}/{stem}");
            if path.is_file() && plan.wants(&family, &name) {
                scripts.push(Script::read(path, name)?);
            }
        }
    }
    scripts.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(scripts)
}

/// Runs every script as every user, natively and on every platform.
pub(crate) fn run(plan: &Plan, scripts: &[Script], expectations: &BTreeMap<String, Expectations>) {
    let runs: Vec<(&Script, User)> =
        plan.users.iter().flat_map(|user| scripts.iter().map(|script| (script, *user))).collect();
    let name = |(script, user): &(&Script, User)| format!("{} {}", user.word(), script.name);
    let run = |(script, user): &(&Script, User)| {
        if let Some(why) = script.unfit(plan, *user) {
            plan.report.skipped(why, 1);
        } else if let Err(error) = one(plan, script, *user, expectations) {
            plan.report.failed(format!("{} {}", user.word(), script.name), format!("{error:#}"));
        }
    };
    let trial = |item: &(&Script, User)| plan.report.trial(|| run(item));
    let results = super::in_parallel(plan, "programs", &runs, |(script, _)| script.is("alone"), name, trial);
    plan.report.settle(plan.full, runs.into_iter().zip(results).collect(), name, run);
}

/// One script as one user: natively, then on each platform.
fn one(
    plan: &Plan,
    script: &Script,
    user: User,
    expectations: &BTreeMap<String, Expectations>,
) -> Result<()> {
    let place = plan.fresh_directory(user)?;
    let title = |where_: &str| format!("{where_} {} programs/{}", user.word(), script.name);
    let native = if script.is("check") { None } else { Some(once(plan, script, user, place.path(), None)?) };
    if let Some(native) = &native {
        let gave_up = String::from_utf8_lossy(&native.stdout).lines().any(|line| line.starts_with("FAILED:"));
        if gave_up || matches!(native.ended, Ended::TimedOut(_) | Ended::NotStarted(_) | Ended::Signal(_)) {
            plan.report.failed(title("native"), native.text());
            return Ok(());
        }
        if plan.platforms.is_empty() {
            // Natively only: a test that compares must at least give the same twice.
            match difference(native, &once(plan, script, user, place.path(), None)?) {
                None => plan.report.passed(1),
                Some(what) => plan.report.failed(title("native, twice:"), what),
            }
        }
    }
    for platform in script.platforms(plan) {
        let inside = once(plan, script, user, place.path(), Some(platform))?;
        let difference = match &native {
            Some(native) => difference(native, &inside),
            None if inside.ended == Ended::Exit(0) => None,
            None => Some(inside.text()),
        };
        let left =
            if script.is("outside") { None } else { changed(plan, script, &place.path().join("here"))? };
        let known = expectations.get(platform).and_then(|list| list.reason(&script.name, "*", user));
        match (difference.or(left), known) {
            (None, None) => plan.report.passed(1),
            (Some(_), Some(reason)) => plan.report.known_failure(reason),
            (Some(what), None) => plan.report.failed(title(platform), what),
            (None, Some(reason)) => {
                plan.report
                    .failed(title(platform), format!("passes, but is listed as a known failure: {reason}"));
            }
        }
    }
    Ok(())
}

/// Runs the script once in a directory made anew, of the same name each time.
fn once(plan: &Plan, script: &Script, user: User, place: &Path, platform: Option<&str>) -> Result<Outcome> {
    let work = place.join("here");
    if work.exists() {
        std::fs::remove_dir_all(&work).context("removing the last run's directory")?;
    }
    std::fs::create_dir(&work)?;
    open_to_all(&work)?;
    if user == User::Nobody {
        std::os::unix::fs::chown(&work, Some(NOBODY), Some(NOBODY))?;
    }
    let file = script.path.file_name().context("a script has a name")?;
    copy_program(&script.path, &work.join(file), user)?;
    for extra in script.extras(plan) {
        if let Some(name) = extra.file_name() {
            copy_program(&extra, &work.join(name), user)?;
        }
    }
    let outside = script.is("outside");
    let umlaut = platform.map_or_else(Vec::new, |platform| plan.umlaut(platform, user));
    let run = umlaut.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ");
    let mut argv = if outside { Vec::new() } else { umlaut };
    argv.push(Path::new(".").join(file).into());
    let mut env = Vec::new();
    if outside {
        env.push(("RUN".into(), run.into()));
        env.push(("UMLAUT".into(), plan.scratch.path().join("bin/umlaut").into()));
        env.push(("PLATFORM".into(), platform.unwrap_or("native").into()));
        env.push(("PYTHONPATH".into(), plan.scratch.path().join("lib").into()));
        env.push(("PYTHONDONTWRITEBYTECODE".into(), "1".into()));
        env.push(("PATIENCE".into(), plan.patience.to_string().into()));
        if plan.full {
            env.push(("FULL".into(), "1".into()));
        }
    }
    Ok(Job { argv, dir: work, user, env, stdin: None, timeout: script.timeout * plan.patience }.run())
}

/// How a run inside differs from the native one; `None` if it does not.
fn difference(native: &Outcome, inside: &Outcome) -> Option<String> {
    let mut text = String::new();
    if native.ended != inside.ended {
        text += &format!("native: {}; inside: {}\n", native.ended, inside.ended);
    }
    for (name, ours, theirs) in
        [("stderr", &inside.stderr, &native.stderr), ("stdout", &inside.stdout, &native.stdout)]
    {
        if ours != theirs {
            text += &first_difference(name, theirs, ours);
        }
    }
    (!text.is_empty()).then_some(text)
}

/// The lines around the place where two outputs part.
fn first_difference(name: &str, native: &[u8], inside: &[u8]) -> String {
    let (native, inside) = (String::from_utf8_lossy(native), String::from_utf8_lossy(inside));
    let (left, right): (Vec<&str>, Vec<&str>) = (native.lines().collect(), inside.lines().collect());
    let same = left.iter().zip(&right).take_while(|(a, b)| a == b).count();
    let mut text =
        format!("{name} differs from line {} on ({} lines, {} inside)\n", same + 1, left.len(), right.len());
    for (mark, lines) in
        [(" ", &left[same.saturating_sub(2)..same]), ("-", &left[same..]), ("+", &right[same..])]
    {
        lines.iter().take(8).for_each(|line| text += &format!("{mark} {line}\n"));
    }
    text
}

/// What a run inside left in its directory on the host: nothing, by default.
fn changed(plan: &Plan, script: &Script, work: &Path) -> Result<Option<String>> {
    let mut given = script.extras(plan);
    given.push(script.path.clone());
    for entry in std::fs::read_dir(work)? {
        let entry = entry?;
        let Some(original) = given.iter().find(|path| path.file_name() == Some(&entry.file_name())) else {
            return Ok(Some(format!("appeared on the host: {}", entry.path().display())));
        };
        if std::fs::read(entry.path())? != std::fs::read(original)? {
            return Ok(Some(format!("changed on the host: {}", entry.path().display())));
        }
    }
    let gone = given.iter().filter_map(|path| path.file_name()).find(|name| !work.join(name).exists());
    Ok(gone.map(|name| format!("gone from the host: {}", name.display())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(stdout: &str, status: i32) -> Outcome {
        Outcome { ended: Ended::Exit(status), stdout: stdout.into(), stderr: Vec::new() }
    }

    #[test]
    fn outputs_are_compared_to_the_byte() {
        assert_eq!(difference(&outcome("a\nb\n", 0), &outcome("a\nb\n", 0)), None);
        assert!(difference(&outcome("a\nb\n", 0), &outcome("a\nb", 0)).is_some());
        let text = difference(&outcome("a\nb\n", 0), &outcome("a\nc\n", 2)).unwrap();
        assert!(text.contains("native: exit status 0; inside: exit status 2"));
        assert!(text.contains("line 2") && text.contains("\n  a\n- b\n+ c\n"), "{text}");
    }
}
