//! The ratio of two medians, from the intervals of both.

use crate::describe::{median_of_sorted, sorted};
use crate::interpolated::median_interpolated_of_sorted;
use crate::interval::{Interval, is_confidence, median_interval_of_sorted};
use crate::ratio::{Ratio, sorted_positive};

/// Widest gap of six values that still count as one group, over their range.
const GAP_OF_SIX: f64 = 0.6;

/// The median of a sample with the ends of its interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MedianEnds {
    /// The median.
    pub median: f64,
    /// Lower end of its interval.
    pub low: f64,
    /// Upper end of its interval.
    pub high: f64,
}

/// The interval of the difference of two medians, `new` minus `base`, from the intervals of both.
///
/// MOVER, the method of variance estimates recovery. `m`, `l`, `u` are a median and the ends of its interval.
/// The difference runs from `m2 - m1 - sqrt((m2 - l2)^2 + (u1 - m1)^2)` to `m2 - m1 + sqrt((u2 - m2)^2 + (m1 -
/// l1)^2)`. If a sample `is_split` by a [wide gap](has_wide_gap), its median jumps from group to group. The
/// interval then runs from `l2 - u1` to `u2 - l1`, and takes exact intervals. Source: Zou and Donner,
/// "Construction of confidence limits about effect measures: a general approach", Statist. Med. 27 (2008)
/// 1693-1702.
pub fn median_difference(base: &MedianEnds, new: &MedianEnds, is_split: bool) -> (f64, f64) {
    let reach = |one: f64, other: f64| match is_split {
        true => one + other,
        false => one.hypot(other),
    };
    let difference = new.median - base.median;
    (
        difference - reach(new.median - new.low, base.high - base.median),
        difference + reach(new.high - new.median, base.median - base.low),
    )
}

/// Whether the widest gap between neighbours of `n` values exceeds `0.6 sqrt(6 / n)` of their range. Values of one group have narrower
/// gaps the more there are.
pub fn has_wide_gap(values: &[f64]) -> bool {
    let Some(x) = sorted(values) else {
        return false;
    };
    let most = GAP_OF_SIX * (6.0 / x.len() as f64).sqrt() * (x[x.len() - 1] - x[0]);
    x.windows(2).any(|pair| pair[1] - pair[0] > most)
}

/// The ratio of the medians, new over base, with the interval of [`median_difference`] between the logarithms: of interpolated
/// intervals, or of exact ones where a sample has a wide gap.
///
/// It assumes independent values of continuous distributions of any shape. The example `ratio_intervals`
/// simulates its coverage and power; docs/METHODS.md has the result.
///
/// There is an interval where both samples have an exact one. `None` when a sample is empty, when a value is not finite and positive,
/// when the ratio overflows, or when `confidence` is not between 0 and 1.
pub fn ratio_of_medians(base: &[f64], new: &[f64], confidence: f64) -> Option<Ratio> {
    if !is_confidence(confidence) {
        return None;
    }
    let sides = [sorted_positive(base)?, sorted_positive(new)?];
    let [base_median, new_median] = sides.each_ref().map(|side| median_of_sorted(side));
    let ratio = new_median / base_median;
    // Relative to the median, so that rounding moves no end off it.
    let [base, new] = sides.map(|side| {
        let median = median_of_sorted(&side);
        side.iter().map(|x| (x / median).ln()).collect::<Vec<f64>>()
    });
    let is_split = has_wide_gap(&base) || has_wide_gap(&new);
    let ends = |logs: &[f64]| {
        let interval = match is_split {
            true => median_interval_of_sorted(logs, confidence)?,
            false => median_interpolated_of_sorted(logs, confidence)?,
        };
        Some(MedianEnds {
            median: 0.0,
            low: interval.low,
            high: interval.high,
        })
    };
    let interval = ends(&base).zip(ends(&new)).and_then(|(base, new)| {
        let (low, high) = median_difference(&base, &new, is_split);
        Interval::between(ratio * low.exp(), ratio * high.exp(), confidence)
    });
    (ratio > 0.0 && ratio.is_finite()).then_some(Ratio { ratio, interval })
}
