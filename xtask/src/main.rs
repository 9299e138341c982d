//! `cargo xtask`: the chores of the workspace as code.
//!
//! `test` prepares a machine and runs everything that shows umlaut to work (see [`test`]); `tidy` checks the rules of
//! the house (see [`tidy`]); `docs` writes the documents that are generated from code (see [`docs`]); `fuzz` looks for
//! guest input that the kernel does not take (see [`fuzz`]).
mod docs;
mod fuzz;
mod test;
mod tidy;

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
    /// Check the rules of the house: sizes, heads, dependencies, unsafe code, generated documents
    Tidy(tidy::Options),
    /// Feed the kernel what no program would
    Fuzz(fuzz::Options),
    /// Write the generated documents anew
    Docs,
}

/// The directory of the workspace: the parent of this crate.
fn workspace() -> PathBuf {
    let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    here.parent().map_or_else(|| PathBuf::from("."), PathBuf::from)
}

fn main() -> ExitCode {
    let done = match Options::parse().chore {
        Chore::Test(options) => test::run(&workspace(), &options),
        Chore::Tidy(options) => tidy::run(&workspace(), &options),
        Chore::Fuzz(options) => fuzz::run(&workspace(), &options),
        Chore::Docs => docs::write(&workspace()),
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
