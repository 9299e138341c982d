//! A place that takes long to start: started once, it serves workload after workload over its standard streams.
//!
//! Main types: [`Session`]. Neighbours: `rivals` has the commands; `bench-guest serve` is the other end.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};

use crate::sample::{self, Figure, Sample};

/// A running place. Ends with its value.
pub(crate) struct Session {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    /// How long it took until it could serve.
    pub(crate) boot: Duration,
}

impl Session {
    /// Starts it and waits until it is ready.
    ///
    /// # Errors
    /// If it ends before that; then with the end of what it wrote.
    pub(crate) fn start(command: &mut Command, pinned: Option<usize>) -> anyhow::Result<Session> {
        let start = Instant::now();
        let mut child = sample::spawn(
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()),
            pinned,
        )?;
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().context("its output")?);
        let mut session = Session { child, input, output, boot: Duration::ZERO };
        let mut last = String::new();
        loop {
            let line =
                session.line().with_context(|| format!("before it was ready; last it said: {last}"))?;
            if line.trim().ends_with("@ready") {
                break;
            }
            if !line.trim().is_empty() {
                last = line.trim().to_string();
            }
        }
        session.boot = start.elapsed();
        Ok(session)
    }

    /// Has it run `bench-guest` with these words.
    ///
    /// # Errors
    /// If the workload fails there, or the place is gone.
    pub(crate) fn run(&mut self, words: &[String]) -> anyhow::Result<Sample> {
        let start = Instant::now();
        let input = self.input.as_mut().context("its input")?;
        // A terminal may stand between, which would not pass tabs or quotes on; this character it does.
        writeln!(input, "{}", words.join("\u{1f}"))?;
        input.flush()?;
        let mut figures = Vec::new();
        let mut said = String::new();
        loop {
            let line = self.line()?;
            let line = line.trim();
            if let Some(status) = line.strip_prefix("@end ") {
                if status != "0" {
                    bail!("{}", if said.is_empty() { format!("ended with status {status}") } else { said });
                }
                return Ok(Sample { figures, outside: start.elapsed(), ..Sample::default() });
            }
            match Figure::parse(line) {
                Some(figure) => figures.push(figure),
                None if line.starts_with("bench-guest: ") => said = line.to_string(),
                None => {}
            }
        }
    }

    fn line(&mut self) -> anyhow::Result<String> {
        let mut line = Vec::new();
        if self.output.read_until(b'\n', &mut line)? == 0 {
            bail!("it ended");
        }
        Ok(String::from_utf8_lossy(&line).into_owned())
    }
}

/// How long an end may take.
const PATIENCE: Duration = Duration::from_secs(5);

impl Drop for Session {
    fn drop(&mut self) {
        if let Some(mut input) = self.input.take() {
            // It may be gone already.
            let _ = writeln!(input, "quit");
        }
        let start = Instant::now();
        while start.elapsed() < PATIENCE {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> anyhow::Result<Session> {
        Session::start(Command::new("/bin/sh").args(["-c", script]), None)
    }

    #[test]
    fn a_session_serves_until_it_is_dropped() {
        let script = "echo booting; echo @ready; while read words; do case $words in
            quit) exit;; run*good) echo \"echo of $words\"; echo @ good 1.5 ns 3; echo @end 0;;
            *) echo 'bench-guest: no such thing'; echo @end 2;; esac; done";
        let mut session = shell(script).expect("it starts");
        let sample = session.run(&["run".into(), "good".into()]).expect("it runs");
        assert_eq!(sample.figures.first().map(|figure| figure.value), Some(1.5));
        let error = session.run(&["run".into(), "bad".into()]).expect_err("it fails");
        assert_eq!(error.to_string(), "bench-guest: no such thing");
    }

    #[test]
    fn what_does_not_start_says_what_it_said() {
        let error = shell("echo no memory").err().expect("it does not start");
        assert!(format!("{error:#}").contains("no memory"), "{error:#}");
    }
}
