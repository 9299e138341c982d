//! The arithmetic: what a handful of runs says, and how sure.
//!
//! Main types: [`Summary`] of a figure's runs, [`Spread`] of ratios. The middle is always the median, the spread the
//! quartiles around it: on a shared machine some runs are hit by somebody else, and a mean believes them.

use serde::{Deserialize, Serialize};

/// What some runs gave.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Summary {
    pub(crate) mean: f64,
    /// Of the sample (divided by n - 1); 0 for a single run.
    pub(crate) deviation: f64,
    pub(crate) min: f64,
    pub(crate) max: f64,
    pub(crate) median: f64,
}

impl Summary {
    /// `None` without runs.
    pub(crate) fn of(runs: &[f64]) -> Option<Summary> {
        let (min, max) = (least(runs)?, greatest(runs)?);
        let count = runs.len() as f64;
        let mean = runs.iter().sum::<f64>() / count;
        let squares: f64 = runs.iter().map(|run| (run - mean).powi(2)).sum();
        let deviation = if runs.len() > 1 { (squares / (count - 1.0)).sqrt() } else { 0.0 };
        Some(Summary { mean, deviation, min, max, median: quantile(runs, 0.5)? })
    }
}

/// A median with its quartiles.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Spread {
    pub(crate) low: f64,
    pub(crate) median: f64,
    pub(crate) high: f64,
}

/// A cell whose quartiles lie further apart than this part of the median is too uncertain to be compared.
const WIDE: f64 = 0.25;
/// What two medians must differ by at least to be called different.
const LEAST_CHANGE: f64 = 0.02;

impl Spread {
    /// `None` without values.
    pub(crate) fn of(values: &[f64]) -> Option<Spread> {
        Some(Spread {
            low: quantile(values, 0.25)?,
            median: quantile(values, 0.5)?,
            high: quantile(values, 0.75)?,
        })
    }

    /// The distance of the quartiles as a part of the median.
    pub(crate) fn width(&self) -> f64 {
        if self.median == 0.0 { 0.0 } else { (self.high - self.low) / self.median.abs() }
    }

    pub(crate) fn is_wide(&self) -> bool {
        self.width() > WIDE
    }

    /// How far `newer` lies from this, as a part of this: `Some` only if that is more than noise. That is when the
    /// quartiles do not overlap and the medians are further apart than both half widths together.
    pub(crate) fn change(&self, newer: &Spread) -> Option<f64> {
        let change = newer.median / self.median - 1.0;
        let apart = newer.low > self.high || newer.high < self.low;
        let noise = (self.width() + newer.width()) / 2.0;
        (change.is_finite() && apart && change.abs() > noise.max(LEAST_CHANGE)).then_some(change)
    }
}

/// Each run through native's of the same round. Rounds that lack either are left out.
pub(crate) fn ratios(runs: &[Option<f64>], native: &[Option<f64>]) -> Vec<f64> {
    let pairs = runs.iter().zip(native);
    let both = pairs.filter_map(|(run, native)| Some((*run)? / (*native)?));
    both.filter(|ratio| ratio.is_finite()).collect()
}

/// Linear between the two nearest values.
pub(crate) fn quantile(values: &[f64], part: f64) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let last = sorted.len().checked_sub(1)?;
    let place = part * last as f64;
    let (below, above) = (place.floor(), place.ceil());
    let at =
        |place: f64| sorted.iter().enumerate().find(|(at, _)| *at as f64 >= place).map(|(_, value)| *value);
    let (low, high) = (at(below)?, at(above)?);
    Some(low + (high - low) * (place - below))
}

fn least(values: &[f64]) -> Option<f64> {
    values.iter().copied().min_by(f64::total_cmp)
}

fn greatest(values: &[f64]) -> Option<f64> {
    values.iter().copied().max_by(f64::total_cmp)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_known_sample_has_its_known_summary() {
        let summary = Summary::of(&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]).expect("there are runs");
        assert_eq!((summary.mean, summary.min, summary.max, summary.median), (5.0, 2.0, 9.0, 4.5));
        assert!((summary.deviation - (32.0f64 / 7.0).sqrt()).abs() < 1e-12);
        assert_eq!(Summary::of(&[3.0]).map(|summary| summary.deviation), Some(0.0));
        assert_eq!(Summary::of(&[]), None);
    }

    #[test]
    fn quantiles_lie_between_their_neighbours() {
        let values = [40.0, 10.0, 20.0, 30.0];
        assert_eq!(quantile(&values, 0.0), Some(10.0));
        assert_eq!(quantile(&values, 0.25), Some(17.5));
        assert_eq!(quantile(&values, 0.5), Some(25.0));
        assert_eq!(quantile(&values, 1.0), Some(40.0));
        assert_eq!(quantile(&[], 0.5), None);
    }

    #[test]
    fn one_bad_round_moves_no_median_of_ratios() {
        let native = [Some(1.0), Some(2.0), Some(1.0), None, Some(1.0)];
        let runs = [Some(10.0), Some(20.0), Some(90.0), Some(10.0), Some(10.0)];
        let ratios = ratios(&runs, &native);
        assert_eq!(ratios, [10.0, 10.0, 90.0, 10.0]);
        assert_eq!(Spread::of(&ratios).map(|spread| spread.median), Some(10.0));
    }

    #[test]
    fn only_changes_beyond_the_spreads_are_told() {
        let spread = |low, median, high| Spread { low, median, high };
        let old = spread(9.5, 10.0, 10.5);
        assert_eq!(old.change(&spread(9.9, 10.4, 11.0)), None, "the quartiles overlap");
        assert_eq!(old.change(&spread(8.0, 12.0, 16.0)), None, "as uncertain as that");
        let change = old.change(&spread(11.8, 12.0, 12.2)).expect("20 % slower");
        assert!((change - 0.2).abs() < 1e-12);
        assert!(old.change(&spread(4.9, 5.0, 5.1)).is_some_and(|change| change < 0.0));
        let sharp = spread(10.0, 10.0, 10.0);
        assert_eq!(sharp.change(&spread(10.1, 10.1, 10.1)), None, "1 % is nothing");
    }

    #[test]
    fn a_wide_spread_says_so() {
        assert!(Spread { low: 8.0, median: 10.0, high: 12.0 }.is_wide());
        assert!(!Spread { low: 9.5, median: 10.0, high: 10.5 }.is_wide());
    }
}
