//! `cargo xtask fuzz`: libFuzzer on the targets of crates/fuzzing.
//!
//! No nightly toolchain and no cargo-fuzz are needed: coverage instrumentation is an LLVM pass that the stable compiler
//! runs too, and our code being safe Rust, a memory sanitizer would find little. What fuzzers find lands in
//! `target/fuzz/found`; an input worth keeping goes to `fuzz/corpus/TARGET`, which `cargo test -p fuzzing` runs.
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use clap::Args;

/// The targets: `fuzz/fuzz_targets`.
pub(crate) const TARGETS: [&str; 6] = ["channel", "decode", "dispatch", "elf", "paths", "sigframe"];

/// What instruments code: edges, the table of their places, comparisons.
const FLAGS: &str = "--cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares";
/// Only with `--target` are build scripts left alone by the flags.
const TRIPLE: &str = "x86_64-unknown-linux-gnu";

#[derive(Args)]
pub(crate) struct Options {
    /// What to feed
    #[arg(value_parser = TARGETS)]
    target: String,
    /// Run these inputs only, once
    files: Vec<PathBuf>,
    /// How long
    #[arg(long, default_value_t = 60)]
    seconds: u32,
    /// Afterwards, put what reaches new code into fuzz/corpus/TARGET
    #[arg(long)]
    keep: bool,
}

/// The command. True if nothing was found.
///
/// # Errors
/// If the fuzzer cannot be built or started.
pub(crate) fn run(workspace: &Path, options: &Options) -> Result<bool> {
    build(workspace)?;
    let fuzzer = Fuzzer::new(workspace, &options.target)?;
    if !options.files.is_empty() {
        return fuzzer.start(&options.files, &[]);
    }
    let clean = fuzzer.fuzz(options.seconds)?;
    if options.keep {
        let known = fuzzer.known.clone();
        fuzzer.start(&[known, fuzzer.corpus.clone()], &["-merge=1"])?;
    }
    Ok(clean)
}

/// Builds all targets.
///
/// # Errors
/// If that fails, with what the compiler said.
pub(crate) fn build(workspace: &Path) -> Result<()> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut build = Command::new(cargo);
    build.args(["build", "--quiet", "--release", "--bins", "--target", TRIPLE]);
    build.arg("--manifest-path").arg(workspace.join("fuzz/Cargo.toml"));
    build.arg("--target-dir").arg(workspace.join("target/fuzz")).env("RUSTFLAGS", FLAGS);
    let output = build.output().context("cargo build")?;
    if !output.status.success() {
        bail!("the fuzzers do not build:\n{}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(())
}

/// One built target and its directories.
pub(crate) struct Fuzzer {
    program: PathBuf,
    /// Inputs under version control, and those found on this machine.
    known: PathBuf,
    corpus: PathBuf,
    found: PathBuf,
}

impl Fuzzer {
    /// # Errors
    /// If the directories cannot be made.
    pub(crate) fn new(workspace: &Path, target: &str) -> Result<Fuzzer> {
        let built = workspace.join("target/fuzz");
        let fuzzer = Fuzzer {
            program: built.join(TRIPLE).join("release").join(target),
            known: workspace.join("fuzz/corpus").join(target),
            corpus: built.join("corpus").join(target),
            found: built.join("found"),
        };
        for dir in [&fuzzer.corpus, &fuzzer.found] {
            std::fs::create_dir_all(dir).with_context(|| dir.display().to_string())?;
        }
        Ok(fuzzer)
    }

    /// Looks for input that fails. True if there was none.
    ///
    /// # Errors
    /// If it cannot be started.
    pub(crate) fn fuzz(&self, seconds: u32) -> Result<bool> {
        let time = format!("-max_total_time={seconds}");
        self.start(&[self.corpus.clone(), self.known.clone()], &[&time, "-max_len=4096", "-timeout=60"])
    }

    /// The same without a word; what the fuzzer said if it found something.
    ///
    /// # Errors
    /// As [`Fuzzer::fuzz`].
    pub(crate) fn fuzz_quietly(&self, seconds: u32) -> Result<Option<String>> {
        let time = format!("-max_total_time={seconds}");
        let paths = [self.corpus.clone(), self.known.clone()];
        let mut fuzzer = self.command(&paths, &[&time, "-max_len=4096", "-timeout=60", "-verbosity=0"]);
        let output = fuzzer.output().with_context(|| self.program.display().to_string())?;
        let text = || String::from_utf8_lossy(&output.stderr).into_owned();
        Ok((!output.status.success()).then(text))
    }

    fn start(&self, paths: &[PathBuf], words: &[&str]) -> Result<bool> {
        let status =
            self.command(paths, words).status().with_context(|| self.program.display().to_string())?;
        Ok(status.success())
    }

    fn command(&self, paths: &[PathBuf], words: &[&str]) -> Command {
        let mut fuzzer = Command::new(&self.program);
        fuzzer.args(words).arg(format!("-artifact_prefix={}/", self.found.display())).args(paths);
        fuzzer
    }
}
