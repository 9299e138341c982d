//! What changed since an earlier run, beyond noise.

use super::{amount, digits};
use crate::results::{Cell, Results};

/// The changes as text, and the worst as a number.
pub(crate) struct Comparison {
    pub(crate) text: String,
    /// How much slower the cell that lost most got, in per cent; 0 if none did.
    pub(crate) worst_percent: f64,
}

/// Compares ratios to native where there are some, otherwise the figures themselves. Native itself is not compared:
/// it is the measure.
pub(crate) fn compare(old: &Results, new: &Results) -> Comparison {
    let mut text = String::new();
    if old.machine != new.machine {
        text += "The machines differ; ratios to native carry over, times do not.\n";
    }
    let pairs = new.cells.iter().filter(|cell| cell.place != "native").filter_map(|cell| {
        let before = old.cells.iter().find(|old| old.is_same(cell))?;
        Some((before, cell))
    });
    let (mut same, mut worst_percent) = (0, 0.0f64);
    for (before, after) in pairs {
        let (Some(was), Some(is)) = (before.compared(), after.compared()) else { continue };
        let Some(change) = was.change(&is) else {
            same += 1;
            continue;
        };
        let percent = change * 100.0;
        // All figures are costs.
        worst_percent = worst_percent.max(percent);
        let word = if change > 0.0 { "worse" } else { "better" };
        let placement = if after.pinned.is_some() { ", one CPU" } else { "" };
        text += &format!(
            "{}{placement} on {}: {} -> {} ({percent:+.1} %, {word})\n",
            after.workload,
            after.place,
            shown(before, was.median),
            shown(after, is.median),
        );
    }
    text += &format!("{same} figures did not change beyond noise.\n");
    Comparison { text, worst_percent }
}

fn shown(cell: &Cell, value: f64) -> String {
    if cell.ratio.is_some() { format!("{}x", digits(value)) } else { amount(value, &cell.unit) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::tests::{cell, results};

    fn compared(old: &[f64], new: &[f64]) -> Comparison {
        let with = |ratios: &[f64]| {
            results(vec![cell("getpid", "native", &[1.0]), cell("getpid", "sysemu", ratios)])
        };
        compare(&with(old), &with(new))
    }

    #[test]
    fn noise_is_not_a_change() {
        let comparison = compared(&[80.0, 84.0, 88.0], &[82.0, 86.0, 90.0]);
        assert_eq!(comparison.worst_percent, 0.0);
        assert_eq!(comparison.text, "1 figures did not change beyond noise.\n");
    }

    #[test]
    fn what_got_slower_is_told_with_its_measure() {
        let comparison = compared(&[80.0, 80.0, 80.0], &[100.0, 100.0, 100.0]);
        assert_eq!(comparison.worst_percent, 25.0);
        assert!(comparison.text.starts_with("getpid on sysemu: 80.0x -> 100x (+25.0 %, worse)\n"));
        let faster = compared(&[80.0, 80.0], &[40.0, 40.0]);
        assert_eq!(faster.worst_percent, 0.0);
        assert!(faster.text.contains("-50.0 %, better"), "{}", faster.text);
    }
}
