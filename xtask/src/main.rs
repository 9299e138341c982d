//! `cargo xtask`: the chores of the workspace as code.
//!
//! `test` prepares a machine and runs everything that shows umlaut to work (see [`test`]).
mod test;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Chores of the umlaut workspace.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Options {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Subcommand)]
enum Chore {
    /// Set the machine up, build, and run the tests: crates, guest programs, real programs
    Test(test::Options),
}

/// The directory of the workspace: the parent of this crate.
fn workspace() -> PathBuf {
    let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    here.parent().map_or_else(|| PathBuf::from("."), PathBuf::from)
}

fn main() -> ExitCode {
    let done = match Options::parse().chore {
        Chore::Test(options) => test::run(&workspace(), &options),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}
