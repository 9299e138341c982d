//! Counts and reports: progress while the tests run, failures with their output, and the last line.
use std::io::{IsTerminal, Write};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Lines of a failure's output that are shown.
const SHOWN: usize = 30;
/// Characters of such a line that are shown.
const WIDTH: usize = 300;

#[derive(Default)]
struct Counts {
    passed: usize,
    failed: usize,
    skipped: usize,
    known: usize,
    failures: Vec<(String, String)>,
    skips: Vec<(String, usize, usize)>,
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

    /// Counts `n` passed cases.
    pub(crate) fn passed(&self, n: usize) {
        self.counts().passed += n;
    }

    /// Counts a failure; the output is shown at the end.
    pub(crate) fn failed(&self, what: impl Into<String>, output: impl Into<String>) {
        self.failed_times(1, what, output);
    }

    /// Counts `n` failures that are told as one.
    pub(crate) fn failed_times(&self, n: usize, what: impl Into<String>, output: impl Into<String>) {
        let what = what.into();
        self.line(&format!("FAIL {what}"));
        let mut counts = self.counts();
        counts.failed += n;
        counts.failures.push((what, output.into()));
    }

    /// Counts `n` cases that did not run, for a reason that is shown with its count at the end.
    pub(crate) fn skipped(&self, why: impl Into<String>, n: usize) {
        let why = why.into();
        let mut counts = self.counts();
        counts.skipped += n;
        match counts.skips.iter_mut().find(|(known, ..)| *known == why) {
            Some((_, times, cases)) => {
                *times += 1;
                *cases += n;
            }
            None => counts.skips.push((why, 1, n)),
        }
    }

    /// Counts a known failure (it failed, as its expectation file says) among the skipped.
    pub(crate) fn known_failure(&self, reason: &str) {
        self.counts().known += 1;
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
        for (what, output) in &counts.failures {
            out += &format!("\n--- FAIL {what}\n{}", shorten(output));
        }
        if !counts.failures.is_empty() {
            out += "\nfailures:\n";
            for (what, _) in &counts.failures {
                out += &format!("    {what}\n");
            }
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
    fn control_characters_are_shown_not_sent() {
        assert_eq!(shorten("a\x1b[Kb"), "    a\\u{1b}[Kb\n");
    }
}
