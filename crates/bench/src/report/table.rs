//! The table on the terminal.

use super::{Row, amount, ratio, rows};
use crate::results::{Cell, Results};

/// Bands of ratios, each with its colour: what nobody notices, what a program that calls much notices, what it
/// suffers from, and beyond.
const BANDS: [(f64, &str); 3] = [(1.25, "32"), (5.0, "36"), (20.0, "33")];
const WORST: &str = "31";

/// All of it, with colours for a terminal, with every cell in full for `details`.
pub(crate) fn table(results: &Results, details: bool, colours: bool) -> String {
    let rows = rows(results, details);
    let width = rows.iter().map(|row| row.title.chars().count()).max().unwrap_or(0).max(12);
    let mut text = format!("{}\n", results.machine.line());
    if results.machine.debug_build {
        text += "umlaut was built without optimisation: its figures say nothing\n";
    }
    for place in &results.places {
        text += &format!("  {}: {}\n", place.name, place.what);
    }
    text += &format!("{:width$}", "");
    for place in &results.places {
        text += &format!("  {:>18}", place.name);
    }
    text.push('\n');
    let mut group = "";
    for row in &rows {
        if row.group != group {
            group = row.group;
            text += &format!("{group}\n");
        }
        text += &format!("{:width$}", row.title);
        for cell in &row.cells {
            text += "  ";
            text += &cell.map_or_else(|| format!("{:>18}", "-"), |cell| short(cell, colours));
        }
        text.push('\n');
        if details {
            text += &in_full(row);
        }
    }
    let uncertain = rows.iter().flat_map(|row| &row.cells).flatten().any(|cell| cell.noisy);
    if uncertain {
        text += "~: the runs are too few or differ so much that the figure says little; more --runs on an idle machine help\n";
    }
    if !details && rows.len() < super::rows(results, true).len() {
        text += "On one CPU the rest is the same within its spread (--details shows it).\n";
    }
    for missing in &results.missing {
        text += &format!("missing: {missing}\n");
    }
    text
}

/// The median, and the ratio where there is one.
fn short(cell: &Cell, colours: bool) -> String {
    let value = amount(cell.summary.median, &cell.unit);
    let Some(ratio) = ratio(cell) else {
        let tilde = if cell.noisy { "~" } else { "" };
        return format!("{:>18}", format!("{tilde}{value}"));
    };
    let padded = format!("{ratio:>8}");
    let padded = match cell.ratio.filter(|_| colours) {
        Some(ratio) => format!("\x1b[{}m{padded}\x1b[0m", colour(ratio.median)),
        None => padded,
    };
    format!("{value:>10}{padded}")
}

fn colour(ratio: f64) -> &'static str {
    BANDS.iter().find(|(limit, _)| ratio <= *limit).map_or(WORST, |(_, colour)| colour)
}

fn in_full(row: &Row<'_>) -> String {
    let mut text = String::new();
    for cell in row.cells.iter().flatten() {
        let (summary, show) = (&cell.summary, |value| amount(value, &cell.unit));
        text += &format!(
            "    {:<12} {} ± {}, {} … {}, median {}, {} runs",
            cell.place,
            show(summary.mean),
            show(summary.deviation),
            show(summary.min),
            show(summary.max),
            show(summary.median),
            cell.runs.len()
        );
        if let Some(ratio) = cell.ratio {
            let digits = super::digits;
            let (low, median, high) = (digits(ratio.low), digits(ratio.median), digits(ratio.high));
            text += &format!("; {median}x ({low} … {high})");
        }
        if let Some(host) = &cell.host {
            text += &format!(
                "; for each: user {}, system {}, {} switches, {} faults",
                amount(host.user_ns, "ns"),
                amount(host.system_ns, "ns"),
                super::digits(host.switches),
                super::digits(host.faults)
            );
            if let Some(calls) = host.calls {
                text += &format!(", {} host calls", super::digits(calls));
            }
        }
        // What the host counts for kernel and guests is in the numbers above.
        let own = |name: &str| !name.starts_with("kernel_") && !name.starts_with("guests_");
        let counts = cell.kernel.iter().filter(|(name, count)| own(name) && **count >= 0.01);
        let counts: Vec<_> =
            counts.map(|(name, count)| format!("{} {name}", super::digits(*count))).collect();
        if !counts.is_empty() {
            text += &format!("; in the kernel: {}", counts.join(", "));
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::tests::{cell, results};

    #[test]
    fn the_table_has_times_ratios_and_what_is_missing() {
        let results = results(vec![
            cell("getpid", "native", &[1.0, 1.0]),
            cell("getpid", "sysemu", &[80.0, 81.0, 82.0]),
            cell("stat", "sysemu", &[10.0, 30.0, 90.0]),
        ]);
        let text = table(&results, false, false);
        assert!(text.contains("getpid                    100 ns     8.10 µs   81.0x\n"), "{text}");
        assert!(text.contains("~30.0x"), "{text}");
        assert!(text.contains("missing: proot"), "{text}");
        assert!(!text.contains('\x1b'), "{text}");
        assert!(table(&results, false, true).contains("\x1b[31m   81.0x\x1b[0m"));
        let full = table(&results, true, false);
        assert!(full.contains("sysemu       8.10 µs ± 100 ns, 8.00 µs … 8.20 µs"), "{full}");
        assert!(full.contains("system 2.50 ns, 0.25 switches"), "{full}");
    }
}
