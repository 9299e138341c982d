//! All that a run found, as data: what the JSON file holds.
//!
//! Main types: [`Results`], [`Cell`].

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, bail};
use serde::{Deserialize, Serialize};

use crate::machine::Machine;
use crate::statistics::{Spread, Summary};

/// Changes when a reader of older files would misunderstand newer ones.
pub(crate) const FORMAT: u32 = 1;

/// A run of `umlaut bench`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Results {
    pub(crate) format: u32,
    pub(crate) machine: Machine,
    /// The places, in the order they were run in, each with a description (version and mode of rivals).
    pub(crate) places: Vec<PlaceNote>,
    pub(crate) rounds: u32,
    pub(crate) cells: Vec<Cell>,
    /// What could not be measured, and what would change that.
    pub(crate) missing: Vec<String>,
}

/// A place and what exactly it was.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct PlaceNote {
    pub(crate) name: String,
    pub(crate) what: String,
}

/// One figure of one workload at one place.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Cell {
    pub(crate) workload: String,
    pub(crate) group: String,
    /// `ns`, `KiB`, `%`, `/s`.
    pub(crate) unit: String,
    pub(crate) place: String,
    /// The CPU that everything ran on; none: wherever the host put it.
    pub(crate) pinned: Option<usize>,
    /// One for each round, in their order.
    pub(crate) runs: Vec<f64>,
    pub(crate) summary: Summary,
    /// Through native's of the same rounds.
    pub(crate) ratios: Vec<f64>,
    pub(crate) ratio: Option<Spread>,
    /// The quartiles lie so far apart that the figure says little.
    pub(crate) noisy: bool,
    /// What the host counted, for one operation, medians.
    pub(crate) host: Option<HostCost>,
    /// What umlaut's kernel counted, for one operation, medians: names as in /proc/umlaut/stat.
    pub(crate) kernel: BTreeMap<String, f64>,
}

/// What the host counted for the processes of a run, less those of an empty run, for one operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct HostCost {
    pub(crate) user_ns: f64,
    pub(crate) system_ns: f64,
    pub(crate) switches: f64,
    pub(crate) faults: f64,
    /// System calls, where the host lets us count them.
    pub(crate) calls: Option<f64>,
}

impl Cell {
    /// Whether this is the same figure.
    pub(crate) fn is_same(&self, other: &Cell) -> bool {
        self.workload == other.workload
            && self.place == other.place
            && self.pinned.is_some() == other.pinned.is_some()
    }

    /// What it is compared by: the ratio, or the figure itself where there is none (native, and what only exists
    /// inside).
    pub(crate) fn compared(&self) -> Option<Spread> {
        self.ratio.or_else(|| Spread::of(&self.runs))
    }
}

impl Results {
    /// # Errors
    /// If there is no such file, or it is no result of ours.
    pub(crate) fn read(file: &Path) -> anyhow::Result<Results> {
        let text = std::fs::read_to_string(file).with_context(|| format!("reading {}", file.display()))?;
        let results: Results = serde_json::from_str(&text)
            .with_context(|| format!("{} is not written by umlaut bench --json", file.display()))?;
        if results.format != FORMAT {
            bail!("{} has format {}, not {FORMAT}: measure again", file.display(), results.format);
        }
        Ok(results)
    }

    /// # Errors
    /// If the file cannot be written.
    pub(crate) fn write(&self, file: &Path) -> anyhow::Result<()> {
        let text = serde_json::to_string_pretty(self)?;
        std::fs::write(file, text + "\n").with_context(|| format!("writing {}", file.display()))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A cell whose ratios are these.
    pub(crate) fn cell(workload: &str, place: &str, ratios: &[f64]) -> Cell {
        let runs: Vec<f64> = ratios.iter().map(|ratio| ratio * 100.0).collect();
        Cell {
            workload: workload.into(),
            group: "calls".into(),
            unit: "ns".into(),
            place: place.into(),
            pinned: None,
            summary: Summary::of(&runs).expect("there are runs"),
            runs,
            ratios: if place == "native" { vec![] } else { ratios.to_vec() },
            ratio: if place == "native" { None } else { Spread::of(ratios) },
            noisy: Spread::of(ratios).is_some_and(|spread| spread.is_wide()),
            kernel: BTreeMap::from([("hand_overs".to_string(), 1.0)]),
            host: Some(HostCost { user_ns: 1.0, system_ns: 2.5, switches: 0.25, faults: 0.0, calls: None }),
        }
    }

    pub(crate) fn results(cells: Vec<Cell>) -> Results {
        let place = |name: &str| PlaceNote { name: name.into(), what: format!("{name} & <co>") };
        Results {
            format: FORMAT,
            machine: Machine::this(),
            places: vec![place("native"), place("sysemu")],
            rounds: 3,
            cells,
            missing: vec!["proot: not installed; the package proot brings it".into()],
        }
    }

    #[test]
    fn json_comes_back_as_it_was() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("results.json");
        let before =
            results(vec![cell("getpid", "native", &[1.0]), cell("getpid", "sysemu", &[80.0, 81.5, 90.25])]);
        before.write(&file).expect("writable");
        assert_eq!(Results::read(&file).expect("readable"), before);
    }

    /// What other programs read: a change here is a change of [`FORMAT`], unless something is only added.
    #[test]
    fn the_names_in_the_file_are_these() {
        let names = |value: &serde_json::Value| -> Vec<String> {
            value.as_object().expect("an object").keys().cloned().collect()
        };
        let value = serde_json::to_value(results(vec![cell("getpid", "sysemu", &[80.0])])).expect("JSON");
        assert_eq!(names(&value), ["cells", "format", "machine", "missing", "places", "rounds"]);
        let machine = "cpu cpus debug_build distribution governor kernel load memory_kib mitigations umlaut \
                       virtual_machine";
        assert_eq!(names(&value["machine"]).join(" "), machine);
        assert_eq!(names(&value["places"][0]), ["name", "what"]);
        let cell = &value["cells"][0];
        let own = "group host kernel noisy pinned place ratio ratios runs summary unit workload";
        assert_eq!(names(cell).join(" "), own);
        assert_eq!(names(&cell["summary"]).join(" "), "deviation max mean median min");
        assert_eq!(names(&cell["ratio"]), ["high", "low", "median"]);
        assert_eq!(names(&cell["host"]).join(" "), "calls faults switches system_ns user_ns");
        assert_eq!((&cell["runs"][0], &cell["unit"]), (&8000.0.into(), &"ns".into()));
    }

    #[test]
    fn files_of_others_are_refused_with_a_reason() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("results.json");
        std::fs::write(&file, "{}").expect("writable");
        let error = Results::read(&file).expect_err("no results");
        assert!(format!("{error:#}").contains("not written by umlaut bench"), "{error:#}");
        let newer = Results { format: FORMAT + 1, ..results(vec![]) };
        newer.write(&file).expect("writable");
        assert!(Results::read(&file).is_err());
    }
}
