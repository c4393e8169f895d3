//! An interval of the median between ranks.

use crate::describe::sorted;
use crate::interval::{Interval, coverage, greatest_rank, is_confidence};

/// The interpolated order-statistic interval of the median: narrower than [`median_interval`](crate::median_interval), and not exact.
///
/// `k` is the rank that [`median_interval`](crate::median_interval) takes, `c_k` the coverage of rank `k`, and
/// `c` the confidence asked for. With `i = (c_k - c) / (c_k - c_(k+1))`, `w = (n - k) i / (k + (n - 2k) i)`.
/// The lower end is `(1 - w) x_(k) + w x_(k+1)`, the upper one `(1 - w) x_(n+1-k) + w x_(n-k)`. The coverage is
/// exact for the Laplace distribution and within 0.6 % for other symmetric distributions of one hump. Between
/// two groups of values it is not (docs/VALIDATION.md, "Intervals"). Source: Hettmansperger and Sheather,
/// "Confidence intervals based on interpolated order statistics", Statistics and Probability Letters 4 (1986)
/// 75-79.
///
/// `None` as for [`median_interval`](crate::median_interval). The ends are at least as far apart as in the
/// interval of the next rank.
pub fn median_interval_interpolated(data: &[f64], confidence: f64) -> Option<Interval> {
    median_interpolated_of_sorted(&sorted(data)?, confidence)
}

/// Interpolated interval of the median of ascending data.
pub(crate) fn median_interpolated_of_sorted(x: &[f64], confidence: f64) -> Option<Interval> {
    if !is_confidence(confidence) {
        return None;
    }
    let (rank, achieved) = greatest_rank(x.len(), confidence)?;
    let (n, k) = (x.len() as f64, rank as f64);
    // Beyond the middle the interval is empty, with coverage 0.
    let next = 2 * rank < x.len();
    let next_achieved = if next {
        coverage(x.len(), rank + 1)
    } else {
        0.0
    };
    let share = ((achieved - confidence) / (achieved - next_achieved)).max(0.0);
    let weight = (n - k) * share / (k + (n - 2.0 * k) * share);
    let between = |from: f64, to: f64| from * (1.0 - weight) + to * weight;
    let inner = if next {
        (x[rank], x[x.len() - rank - 1])
    } else {
        (x[rank - 1], x[x.len() - rank])
    };
    Interval::between(
        between(x[rank - 1], inner.0),
        between(x[x.len() - rank], inner.1),
        confidence.min(achieved),
    )
}
