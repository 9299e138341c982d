//! Where a workload runs: natively, under umlaut with a platform and switches, under a rival.
//!
//! Main types: [`Place`], [`Setup`] (the directory that all of them see under the same name).

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, bail};

use crate::results::PlaceNote;
use crate::sample;

/// The program that is measured, as `build.rs` made it.
const GUEST: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/bench-guest"));

/// How long a first run may take.
const TRIAL: Duration = Duration::from_secs(60);

/// What all places share.
pub(crate) struct Setup {
    /// Where the workloads' files are, and the current directory of every run.
    pub(crate) work: PathBuf,
    /// The program that is measured.
    pub(crate) guest: PathBuf,
    umlaut: PathBuf,
    /// More of the host that must show inside.
    pub(crate) binds: Vec<PathBuf>,
}

impl Setup {
    /// # Errors
    /// If the program cannot be put there.
    pub(crate) fn new(work: &Path, umlaut: &Path) -> anyhow::Result<Setup> {
        let work = work.canonicalize().context("the directory for files")?;
        let guest = work.join("bench-guest");
        std::fs::write(&guest, GUEST).with_context(|| format!("writing {}", guest.display()))?;
        let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(&guest, executable)?;
        Ok(Setup { work, guest, umlaut: umlaut.to_owned(), binds: Vec::new() })
    }
}

/// How a place is entered.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Kind {
    Native,
    /// `umlaut run` with these options.
    Umlaut(Vec<String>),
    /// A command that takes the program and its arguments behind these words.
    Prefix(Vec<String>),
    /// A command that starts `bench-guest serve` and stays.
    Session(Vec<String>),
}

/// A column of the table.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) name: String,
    /// Version and mode.
    pub(crate) what: String,
    pub(crate) kind: Kind,
}

impl Place {
    pub(crate) fn native() -> Place {
        Place { name: "native".into(), what: "this host".into(), kind: Kind::Native }
    }

    /// `native`, or a platform with switches behind plus signs: `sysemu+no-batch`.
    ///
    /// # Errors
    /// If it is empty.
    pub(crate) fn named(name: &str) -> anyhow::Result<Place> {
        if name == "native" {
            return Ok(Place::native());
        }
        let mut words = name.split('+');
        let platform = words.next().filter(|platform| !platform.is_empty()).context("an empty platform")?;
        let mut options = vec![format!("--platform={platform}")];
        options.extend(words.map(|switch| format!("--{switch}")));
        let what = format!("umlaut {} {}", env!("CARGO_PKG_VERSION"), options.join(" "));
        Ok(Place { name: name.into(), what, kind: Kind::Umlaut(options) })
    }

    pub(crate) fn note(&self) -> PlaceNote {
        PlaceNote { name: self.name.clone(), what: self.what.clone() }
    }

    /// What runs a program there. A session's own command for a session.
    pub(crate) fn command(&self, setup: &Setup, program: &Path, arguments: &[String]) -> Command {
        let mut command = match &self.kind {
            Kind::Native => Command::new(program),
            Kind::Umlaut(options) => {
                let mut command = Command::new(&setup.umlaut);
                command.arg("run").args(options).arg("--workdir").arg(&setup.work);
                for bind in std::iter::once(&setup.work).chain(&setup.binds) {
                    command.arg("--bind").arg(format!("{0}:{0}", bind.display()));
                }
                command.arg("--env=LC_ALL=C").arg("--").arg(program);
                command
            }
            Kind::Prefix(words) | Kind::Session(words) => {
                let mut words = words.iter();
                let mut command = Command::new(words.next().map_or("", String::as_str));
                command.args(words);
                if matches!(self.kind, Kind::Prefix(_)) {
                    command.arg(program);
                }
                command
            }
        };
        if !matches!(self.kind, Kind::Session(_)) {
            command.args(arguments);
        }
        command.current_dir(&setup.work).env("LC_ALL", "C");
        command
    }

    /// Whether anything runs there.
    ///
    /// # Errors
    /// What it said.
    pub(crate) fn try_out(&self, setup: &Setup) -> anyhow::Result<()> {
        let mut command = self.command(setup, &setup.guest, &["run".into(), "clock_gettime".into()]);
        let sample = sample::run(&mut command, None, TRIAL)?;
        if sample.figures.is_empty() {
            bail!("the program gave no figure there");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn switches_stand_behind_the_platform() {
        let place = Place::named("sysemu+no-batch+eager-registers").expect("a name");
        let options = ["--platform=sysemu", "--no-batch", "--eager-registers"].map(String::from).to_vec();
        assert_eq!(place.kind, Kind::Umlaut(options));
        assert_eq!(Place::named("native").expect("a name").kind, Kind::Native);
        assert!(Place::named("").is_err());
    }
}
