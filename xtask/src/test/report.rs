//! Counts and reports: progress while the tests run, failures with their output, and the last line.
use std::cell::RefCell;
use std::io::{IsTerminal, Write};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Lines of a failure's output that are shown.
const SHOWN: usize = 30;
/// Characters of such a line that are shown.
const WIDTH: usize = 300;

/// Tests that failed beside others, at most, that are tried again: more are no accident.
pub(crate) const SECOND_TRIES: usize = 8;

#[derive(Default)]
pub(crate) struct Counts {
    passed: usize,
    failed: usize,
    skipped: usize,
    known: usize,
    failures: Vec<(String, String)>,
    skips: Vec<(String, usize, usize)>,
    /// What passed only when it was tried again, and how it had failed.
    unsteady: Vec<(String, String)>,
}

impl Counts {
    fn skip(&mut self, why: String, n: usize, times: usize) {
        self.skipped += n;
        match self.skips.iter_mut().find(|(known, ..)| *known == why) {
            Some((_, known_times, cases)) => {
                *known_times += times;
                *cases += n;
            }
            None => self.skips.push((why, times, n)),
        }
    }

    fn add(&mut self, other: Counts) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.known += other.known;
        self.failures.extend(other.failures);
        other.skips.into_iter().for_each(|(why, times, n)| self.skip(why, n, times));
    }
}

thread_local! {
    /// What the calling thread's test has said so far, if that is kept apart.
    static TRIAL: RefCell<Option<Counts>> = const { RefCell::new(None) };
}

/// Collects results from all threads.
pub(crate) struct Report {
    counts: Mutex<Counts>,
    live: bool,
}

impl Report {
    pub(crate) fn new() -> Self {
        Self { counts: Mutex::default(), live: std::io::stderr().is_terminal() }
    }

    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the counts of the calling thread's trial, or else everybody's.
    fn change(&self, change: impl FnOnce(&mut Counts)) {
        TRIAL.with_borrow_mut(|trial| match trial {
            Some(counts) => change(counts),
            None => change(&mut self.counts()),
        });
    }

    /// Runs a test whose results are kept apart until [`Report::settle`].
    pub(crate) fn trial(&self, test: impl FnOnce()) -> Counts {
        TRIAL.set(Some(Counts::default()));
        test();
        TRIAL.take().unwrap_or_default()
    }

    /// Takes over the results of tests that ran beside each other. What failed is run `again`, alone: then that counts, and a
    /// test that passes only so is named at the end. `strict`: the first try counts.
    pub(crate) fn settle<T>(
        &self,
        strict: bool,
        tests: Vec<(T, Counts)>,
        name: impl Fn(&T) -> String,
        again: impl Fn(&T),
    ) {
        let failed = tests.iter().filter(|(_, counts)| counts.failed > 0).count();
        for (test, first) in tests {
            if first.failed == 0 || strict || failed > SECOND_TRIES {
                self.accept(first);
                continue;
            }
            self.line(&format!("failed beside others, once more alone: {}", name(&test)));
            let second = self.trial(|| again(&test));
            if second.failed == 0 {
                self.unsteady(first.failures);
            }
            self.accept(second);
        }
    }

    /// Names what passed only when it was tried again.
    pub(crate) fn unsteady(&self, failures: Vec<(String, String)>) {
        self.counts().unsteady.extend(failures);
    }

    fn accept(&self, counts: Counts) {
        counts.failures.iter().for_each(|(what, _)| self.line(&format!("FAIL {what}")));
        self.counts().add(counts);
    }

    /// Counts `n` passed cases.
    pub(crate) fn passed(&self, n: usize) {
        self.change(|counts| counts.passed += n);
    }

    /// Counts a failure; the output is shown at the end.
    pub(crate) fn failed(&self, what: impl Into<String>, output: impl Into<String>) {
        self.failed_times(1, what, output);
    }

    /// Counts `n` failures that are told as one.
    pub(crate) fn failed_times(&self, n: usize, what: impl Into<String>, output: impl Into<String>) {
        let what = what.into();
        if TRIAL.with_borrow(Option::is_none) {
            self.line(&format!("FAIL {what}"));
        }
        self.change(|counts| {
            counts.failed += n;
            counts.failures.push((what, output.into()));
        });
    }

    /// Counts `n` cases that did not run, for a reason that is shown with its count at the end.
    pub(crate) fn skipped(&self, why: impl Into<String>, n: usize) {
        self.change(|counts| counts.skip(why.into(), n, 1));
    }

    /// Counts a known failure (it failed, as its expectation file says) among the skipped.
    pub(crate) fn known_failure(&self, reason: &str) {
        self.change(|counts| counts.known += 1);
        self.skipped(format!("known failure: {reason}"), 1);
    }

    /// A stage begins.
    pub(crate) fn stage(&self, what: &str) {
        self.line(&format!("== {what}"));
    }

    /// A line for the reader.
    pub(crate) fn line(&self, text: &str) {
        let clear = if self.live { "\r\x1b[K" } else { "" };
        eprintln!("{clear}{text}");
    }

    /// What is running now; shown only on a terminal.
    pub(crate) fn progress(&self, done: usize, of: usize, what: &str) {
        if self.live {
            let failed = self.counts().failed;
            let what: String = what.chars().take(60).collect();
            let mut out = std::io::stderr().lock();
            let _ = write!(out, "\r\x1b[K[{done}/{of}, {failed} failed] {what}");
            let _ = out.flush();
        }
    }

    /// Prints skips, failures and the counts. True if nothing failed and something passed.
    pub(crate) fn finish(&self) -> bool {
        self.line("");
        let counts = self.counts();
        let mut out = String::new();
        for (why, times, cases) in &counts.skips {
            out += &match (times, cases) {
                (1, 1) => format!("skipped: {why}\n"),
                _ => format!("skipped {cases} times: {why}\n"),
            };
        }
        for (what, output) in &counts.unsteady {
            out += &format!("\n--- UNSTEADY {what}: failed beside others, passed alone\n{}", shorten(output));
        }
        for (what, output) in &counts.failures {
            out += &format!("\n--- FAIL {what}\n{}", shorten(output));
        }
        if !counts.failures.is_empty() {
            out += "\nfailures:\n";
            for (what, _) in &counts.failures {
                out += &format!("    {what}\n");
            }
        }
        if !counts.unsteady.is_empty() {
            out += &format!("unsteady among the passed: {}\n", counts.unsteady.len());
        }
        if counts.known > 0 {
            out += &format!("known failures among the skipped: {}\n", counts.known);
        }
        out += &format!("{} passed, {} failed, {} skipped\n", counts.passed, counts.failed, counts.skipped);
        let _ = std::io::stdout().lock().write_all(out.as_bytes());
        counts.failed == 0 && counts.passed > 0
    }
}

/// The first and last lines of a long output, each cut to a sane width, indented.
fn shorten(output: &str) -> String {
    let lines: Vec<&str> = output.lines().collect();
    let cut = |line: &&str| {
        let mut text: String = line.chars().take(WIDTH).collect();
        if text.len() < line.len() {
            text.push('…');
        }
        let shown: String = text
            .chars()
            .map(|c| if c.is_control() { c.escape_debug().to_string() } else { c.into() })
            .collect();
        format!("    {shown}\n")
    };
    if lines.len() <= SHOWN {
        return lines.iter().map(cut).collect();
    }
    let (head, tail) = (SHOWN / 3, SHOWN - SHOWN / 3);
    let mut text: String = lines.iter().take(head).map(cut).collect();
    text += &format!("    … {} lines …\n", lines.len() - head - tail);
    text.extend(lines.iter().skip(lines.len() - tail).map(cut));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_output_keeps_head_and_tail() {
        let long: String = (0..100).map(|n| format!("line {n}\n")).collect();
        let short = shorten(&long);
        assert!(short.contains("line 9\n") && short.contains("… 70 lines …") && short.contains("line 99\n"));
        assert!(!short.contains("line 10\n") && !short.contains("line 79\n"));
    }

    #[test]
    fn what_passes_only_alone_is_named_and_what_fails_again_counts() {
        let report = Report::new();
        let fails = |what: &str| report.trial(|| report.failed(what, "first"));
        let tests = vec![
            ("steady", report.trial(|| report.passed(2))),
            ("shy", fails("shy")),
            ("broken", fails("broken")),
        ];
        report.settle(
            false,
            tests,
            |name| (*name).to_owned(),
            |name| match *name {
                "shy" => report.passed(1),
                _ => report.failed(*name, "second"),
            },
        );
        report.settle(
            true,
            vec![("strict", fails("strict"))],
            |name| (*name).to_owned(),
            |_| report.passed(1),
        );
        let counts = report.counts();
        assert_eq!((counts.passed, counts.failed), (3, 2));
        assert_eq!(counts.unsteady, [("shy".into(), "first".into())]);
        assert_eq!(counts.failures, [("broken".into(), "second".into()), ("strict".into(), "first".into())]);
    }

    #[test]
    fn control_characters_are_shown_not_sent() {
        assert_eq!(shorten("a\x1b[Kb"), "    a\\u{1b}[Kb\n");
    }
}
