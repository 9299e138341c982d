//! Results for people: a table, Markdown, what changed.
//!
//! Main types: [`Row`], what the forms have in common. Neighbours: `results` is what they show, `plot` draws it.

mod compare;
mod markdown;
mod table;

pub(crate) use compare::compare;
pub(crate) use markdown::markdown;
pub(crate) use table::table;

use crate::results::{Cell, Results};
use crate::workloads::{self, Group};

/// The table of workloads, for `--list`.
pub(crate) fn list() -> String {
    let mut text = String::new();
    for group in Group::ALL {
        text += &format!("{}\n", group.name());
        for workload in workloads::ALL.iter().filter(|workload| workload.group == group) {
            let set = match workload.set {
                workloads::Set::Quick => "quick",
                workloads::Set::Default => "default",
                workloads::Set::Named => "by name",
            };
            text += &format!("  {:<18} {set:<8} {}\n", workload.name, workload.what);
        }
    }
    text
}

/// One figure at every place.
pub(crate) struct Row<'a> {
    pub(crate) group: &'a str,
    pub(crate) title: String,
    /// In the order of the places; `None` where it was not measured.
    pub(crate) cells: Vec<Option<&'a Cell>>,
}

/// Rows in the table's order: figures, and behind each the same on one CPU where that differs.
pub(crate) fn rows(results: &Results, all_placements: bool) -> Vec<Row<'_>> {
    let mut keys: Vec<(&str, Option<usize>)> = Vec::new();
    for cell in &results.cells {
        if !keys.contains(&(&cell.workload, cell.pinned)) {
            keys.push((&cell.workload, cell.pinned));
        }
    }
    // Cells come sorted by workload (in the table's order), then figure, then placement.
    let row = |(name, pinned): (&str, Option<usize>)| {
        let of = |place: &str| {
            results
                .cells
                .iter()
                .find(|cell| cell.workload == name && cell.pinned == pinned && cell.place == place)
        };
        let cells: Vec<_> = results.places.iter().map(|place| of(&place.name)).collect();
        let group = cells.iter().flatten().next().map_or("", |cell| cell.group.as_str());
        let title = if pinned.is_some() { format!("{name}, one CPU") } else { name.to_string() };
        Row { group, title, cells }
    };
    let free = |name: &str| keys.contains(&(name, None)).then(|| row((name, None)));
    let told = |(name, pinned): &(&str, Option<usize>)| {
        all_placements
            || pinned.is_none()
            || free(name).is_none_or(|free| differs(&free, &row((name, *pinned))))
    };
    keys.iter().filter(|key| told(key)).map(|key| row(*key)).collect()
}

/// What the times on one CPU must differ by from the free ones to be told.
const TOLD: f64 = 0.15;

fn differs(free: &Row<'_>, pinned: &Row<'_>) -> bool {
    let pairs =
        free.cells.iter().zip(&pinned.cells).filter_map(|(free, pinned)| Some(((*free)?, (*pinned)?)));
    let mut changes = pairs.filter_map(|(free, pinned)| free.compared()?.change(&pinned.compared()?));
    changes.any(|change| change.abs() > TOLD)
}

/// A figure with a unit that suits it, three digits.
pub(crate) fn amount(value: f64, unit: &str) -> String {
    let (value, unit) = match unit {
        "ns" if value >= 1e9 => (value / 1e9, "s"),
        "ns" if value >= 1e6 => (value / 1e6, "ms"),
        "ns" if value >= 1e3 => (value / 1e3, "µs"),
        "KiB" if value >= 1024.0 => (value / 1024.0, "MiB"),
        unit => (value, unit),
    };
    format!("{} {unit}", digits(value))
}

/// Three digits that count, no more.
pub(crate) fn digits(value: f64) -> String {
    match value.abs() {
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

/// `83.1x`, with a tilde where the spread is too wide for the digits.
pub(crate) fn ratio(cell: &Cell) -> Option<String> {
    let ratio = cell.ratio?;
    Some(format!("{}{}x", if cell.noisy { "~" } else { "" }, digits(ratio.median)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::tests::{cell, results};

    #[test]
    fn amounts_have_suitable_units() {
        assert_eq!(amount(71.23, "ns"), "71.2 ns");
        assert_eq!(amount(12_345.0, "ns"), "12.3 µs");
        assert_eq!(amount(2.5e9, "ns"), "2.50 s");
        assert_eq!(amount(8192.0, "KiB"), "8.00 MiB");
        assert_eq!(amount(-0.2, "%"), "-0.20 %");
    }

    #[test]
    fn one_cpu_is_told_where_it_differs() {
        let pinned = |ratios: &[f64]| Cell { pinned: Some(0), ..cell("getpid", "sysemu", ratios) };
        let free = cell("getpid", "sysemu", &[80.0, 81.0, 82.0]);
        let titles = |results: &Results, all| -> Vec<String> {
            rows(results, all).into_iter().map(|row| row.title).collect()
        };
        let same = results(vec![free.clone(), pinned(&[80.0, 81.0, 82.0])]);
        assert_eq!(titles(&same, false), ["getpid"]);
        assert_eq!(titles(&same, true), ["getpid", "getpid, one CPU"]);
        let other = results(vec![free, pinned(&[40.0, 41.0, 42.0])]);
        assert_eq!(titles(&other, false), ["getpid", "getpid, one CPU"]);
    }

    #[test]
    fn every_workload_is_listed() {
        let list = list();
        for workload in workloads::ALL {
            assert!(list.contains(&format!("  {} ", workload.name)), "{}", workload.name);
        }
    }
}
