//! Tests of the workspace's own crates: unit, property and conformance tests, by nextest where it is installed.
use std::process::{Command, Output};

use super::Plan;
use super::report::SECOND_TRIES;
use crate::fuzz::{self, Fuzzer};

/// How long each fuzzer runs with `--full`.
const FUZZ_SECONDS: u32 = 60;

/// Runs them and adds up what the runner reports.
pub(crate) fn run(plan: &Plan) {
    plan.report.stage("crates");
    let cargo = || {
        let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        cargo.current_dir(&plan.workspace).env("CARGO_TERM_COLOR", "never").env("RUST_BACKTRACE", "0");
        if plan.full {
            // How long races against hostfs go on, and input from seeds is tried; how many kicks are given; all bytes of the
            // stub, and a sixteenth of all calls from there (all of them take an hour).
            cargo
                .env("UMLAUT_RACE_SECONDS", "60")
                .env("UMLAUT_FUZZ_SECONDS", "30")
                .env("UMLAUT_KICKS", "1000000");
            cargo.env("UMLAUT_JUMP_STEP", "1").env("UMLAUT_CALLS_SAMPLE", "16");
        }
        cargo
    };
    let nextest = cargo().args(["nextest", "--version"]).output().is_ok_and(|output| output.status.success());
    if nextest {
        let mut all = cargo();
        all.args(["nextest", "run", "--workspace", "--no-fail-fast", "--test-threads", "2"]);
        all.args(["--retries", if plan.full { "0" } else { "1" }]);
        all.args([
            "--failure-output",
            "final",
            "--status-level",
            "fail",
            "--final-status-level",
            "flaky",
            "--no-tests",
            "pass",
            "--cargo-quiet",
        ]);
        count(plan, "cargo nextest run", all.output(), nextest_counts, None);
        let mut docs = cargo();
        docs.args(["test", "--quiet", "--workspace", "--doc", "--no-fail-fast"]);
        count(plan, "cargo test --doc", docs.output(), libtest_counts, None);
    } else {
        let mut all = cargo();
        all.args(["test", "--quiet", "--workspace", "--no-fail-fast", "--", "--test-threads", "2"]);
        let again = |names: &[&str]| {
            let mut some = cargo();
            some.args(["test", "--quiet", "--workspace", "--", "--test-threads", "1", "--exact"]).args(names);
            some.output().is_ok_and(|output| output.status.success())
        };
        let again: Option<&Again<'_>> = if plan.full { None } else { Some(&again) };
        count(plan, "cargo test", all.output(), libtest_counts, again);
    }
    if plan.full {
        fuzz(plan);
    }
}

/// A short run of each fuzzer: a pass, a failure, or a skip where they do not build.
fn fuzz(plan: &Plan) {
    plan.report.stage("fuzzers");
    if let Err(error) = fuzz::build(&plan.workspace) {
        plan.report.line(&format!("{error:#}"));
        return plan
            .report
            .skipped("the fuzzers do not build (is there a C++ compiler?)", fuzz::TARGETS.len());
    }
    for target in fuzz::TARGETS {
        match Fuzzer::new(&plan.workspace, target).and_then(|fuzzer| fuzzer.fuzz_quietly(FUZZ_SECONDS)) {
            Ok(None) => plan.report.passed(1),
            Ok(Some(text)) => plan.report.failed(format!("fuzzer {target}"), text),
            Err(error) => plan.report.failed(format!("fuzzer {target}"), format!("{error:#}")),
        }
    }
}

type Counts = (usize, usize, usize);
/// Runs the tests of these names; whether all pass.
type Again<'a> = dyn Fn(&[&str]) -> bool + 'a;

/// Counts what a run of tests says. Those that failed are run `again`, by name, with nothing beside them.
fn count(
    plan: &Plan,
    what: &str,
    output: std::io::Result<Output>,
    read: impl Fn(&str) -> Option<Counts>,
    again: Option<&Again<'_>>,
) {
    let output = match output {
        Ok(output) => output,
        Err(error) => return plan.report.failed(what, error.to_string()),
    };
    let text = [&output.stdout[..], &output.stderr[..]].map(String::from_utf8_lossy).concat();
    let (passed, failed, skipped) = read(&text).unwrap_or((0, 0, 0));
    plan.report.passed(passed);
    if skipped > 0 {
        plan.report.skipped(format!("{what}: ignored tests"), skipped);
    }
    let flaky = flaky(&text);
    if !flaky.is_empty() {
        plan.report.unsteady(vec![(format!("{what}: {}", flaky.join(", ")), String::new())]);
    }
    if !output.status.success() || failed > 0 {
        let names = failures(&text);
        let title = format!("{what}: {}", names.join(", "));
        let few = (1..=SECOND_TRIES).contains(&failed) && names.len() == failed;
        if few && again.is_some_and(|again| again(&names)) {
            plan.report.passed(failed);
            plan.report.unsteady(vec![(title, text)]);
        } else {
            plan.report.failed_times(failed.max(1), title, text);
        }
    }
}

/// The names of failed tests: `FAIL [ 0.1s] (1/2) crate test` of nextest, `test NAME ... FAILED` of libtest.
fn failures(text: &str) -> Vec<&str> {
    let nextest = text.contains("Nextest run ID"); // shows libtest's lines too, as output of its tests
    let lines = text.lines().map(str::trim).filter(|line| !nextest || !line.starts_with("test "));
    let mut names: Vec<&str> = lines.filter_map(failed_name).collect();
    names.sort_unstable();
    names.dedup();
    names
}

fn failed_name(line: &str) -> Option<&str> {
    if let Some(rest) = line.strip_prefix("test ") {
        return rest.strip_suffix(" ... FAILED");
    }
    // A second try: `TRY 2 FAIL [ 0.1s] …`.
    let line = line.strip_prefix("TRY ").and_then(|rest| rest.split_once(' ')).map_or(line, |(_, rest)| rest);
    let failed = ["FAIL [", "TIMEOUT [", "SIGABRT [", "SIGSEGV [", "SIGKILL ["]
        .iter()
        .any(|word| line.starts_with(word));
    if failed { name_of(line) } else { None }
}

/// What is behind the time and the count.
fn name_of(line: &str) -> Option<&str> {
    let (_, name) = line.split_once("] ")?;
    Some(name.split_once(") ").map_or(name, |(_, name)| name).trim())
}

/// The names of tests that passed by a second try: `FLAKY 2/2 [ 0.1s] (1/2) crate test` of nextest.
fn flaky(text: &str) -> Vec<&str> {
    let lines = text.lines().map(str::trim).filter(|line| line.starts_with("FLAKY "));
    let mut names: Vec<&str> = lines.filter_map(name_of).collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// `Summary [ 0.1s] 12 tests run: 11 passed, 1 failed, 2 skipped`; a timed-out test counts as failed.
fn nextest_counts(text: &str) -> Option<Counts> {
    let line = text.lines().rev().find(|line| line.trim_start().starts_with("Summary ["))?;
    let (_, counts) = line.split_once(": ")?;
    let words = ["failed", "timed out", "exec failed"];
    Some((
        number(counts, "passed"),
        words.iter().map(|word| number(counts, word)).sum(),
        number(counts, "skipped"),
    ))
}

/// The number before a word, if there is one: 11 in `11 passed (1 slow), 1 failed`.
fn number(counts: &str, word: &str) -> usize {
    let part = counts.split(", ").find_map(|part| {
        let (number, rest) = part.trim().split_once(' ')?;
        (rest == word || rest.starts_with(&format!("{word} "))).then_some(number)
    });
    part.and_then(|number| number.parse().ok()).unwrap_or(0)
}

/// The sum of `test result: ok. 3 passed; 0 failed; 1 ignored; …` over all test binaries.
fn libtest_counts(text: &str) -> Option<Counts> {
    let mut sum = None;
    for line in text.lines().filter_map(|line| line.trim().strip_prefix("test result: ")) {
        let (_, counts) = line.split_once(". ")?;
        let counts = counts.replace("; ", ", ");
        let (passed, failed, ignored) = sum.unwrap_or((0, 0, 0));
        let [p, f, i] = ["passed", "failed", "ignored"].map(|word| number(&counts, word));
        sum = Some((passed + p, failed + f, ignored + i));
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nextest_summaries_are_read() {
        let text =
            "x\n     Summary [   0.043s] 8 tests run: 5 passed (1 slow), 2 failed, 1 timed out, 3 skipped\n";
        assert_eq!(nextest_counts(text), Some((5, 3, 3)));
        assert_eq!(nextest_counts("error: no"), None);
    }

    #[test]
    fn failed_tests_are_named() {
        let text = "  FAIL [   0.1s] (3/9) vfs walk::dots\n FAIL [   0.1s] vfs walk::dots\ntest a::b ... FAILED\ntest c ... ok\n";
        assert_eq!(failures(text), ["a::b", "vfs walk::dots"]);
        let text = "Nextest run ID 1\n TRY 1 FAIL [ 0.6s] ( 74/539) cli::life a\n TRY 2 FAIL [ 0.6s] ( 74/539) cli::life a\n";
        assert_eq!(failures(text), ["cli::life a"]);
        assert_eq!(flaky("  FLAKY 2/2 [   0.6s] (74/539) cli::life b\n"), ["cli::life b"]);
    }

    #[test]
    fn libtest_results_add_up() {
        let text = "test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s\n\
                    test result: FAILED. 1 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out\n";
        assert_eq!(libtest_counts(text), Some((4, 2, 1)));
    }
}
