//! Confidence intervals.

use crate::binomial::lower_tail;
use crate::describe::{mean_of_sorted, sd_of_sorted, sorted};
use crate::normal;
use crate::t_distribution;
use schemars::JsonSchema;
use serde::Serialize;

/// A confidence interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct Interval {
    /// Lower end, in the unit of the data.
    pub low: f64,
    /// Upper end, in the unit of the data.
    pub high: f64,
    /// The confidence achieved, 0 to 1; may exceed the requested one where only discrete values are possible.
    pub confidence: f64,
    /// The ranks, from 1, of the order statistics at its ends, where it has such ends.
    pub ranks: Option<(usize, usize)>,
}

impl Interval {
    /// An interval without ranks; `None` when an end is not finite.
    pub(crate) fn between(low: f64, high: f64, confidence: f64) -> Option<Self> {
        (low.is_finite() && high.is_finite()).then_some(Self {
            low,
            high,
            confidence,
            ranks: None,
        })
    }

    /// Half of its width, in the unit of the data.
    pub fn half_width(&self) -> f64 {
        self.high / 2.0 - self.low / 2.0
    }

    /// Half of its width over `centre`, the precision of an estimate; `None` when the centre
    /// is 0 or the ratio is not finite.
    pub fn relative_half_width(&self, centre: f64) -> Option<f64> {
        Some(self.half_width() / centre.abs()).filter(|ratio| ratio.is_finite())
    }

    /// Whether the two intervals intersect; a common end counts.
    pub fn overlaps(&self, other: &Interval) -> bool {
        self.low <= other.high && other.low <= self.high
    }
}

/// The exact order-statistic interval of the median: `[x_(k), x_(n+1-k)]`.
///
/// `k` is the greatest rank whose coverage `1 - 2 P(B <= k - 1)`, `B ~ Binomial(n, 1/2)`,
/// reaches `confidence`. It assumes independent values of one continuous distribution of any
/// shape; with ties the coverage is at least the stated one. Source: Conover, Practical
/// Nonparametric Statistics, 3rd ed. (1999), section 3.2; David and Nagaraja, Order
/// Statistics, 3rd ed. (2003), section 7.1.
///
/// `None` when `n` is too small for the confidence even from the least to the greatest value (below 6 for
/// 0.95); also when a value is not finite, or `confidence` is not between 0 and 1.
pub fn median_interval(data: &[f64], confidence: f64) -> Option<Interval> {
    median_interval_of_sorted(&sorted(data)?, confidence)
}

pub(crate) fn median_interval_of_sorted(x: &[f64], confidence: f64) -> Option<Interval> {
    if !is_confidence(confidence) {
        return None;
    }
    let n = x.len();
    let (rank, achieved) = greatest_rank(n, confidence)?;
    Some(Interval {
        low: x[rank - 1],
        high: x[n - rank],
        confidence: achieved,
        ranks: Some((rank, n + 1 - rank)),
    })
}

/// Mean half-width of [`median_interval`] for `n` independent normal values, in standard deviations.
///
/// The mean of the order statistic `x_(r)` of `n` is about the normal quantile of `(r - 3/8) / (n + 1/4)`:
/// Blom, Statistical Estimates and Transformed Beta-Variables (1958). `None` as for [`median_interval`].
pub fn median_interval_reach(n: usize, confidence: f64) -> Option<f64> {
    Some(end_of_median_interval(n, confidence)?.0)
}

/// Upper end of [`median_interval`] for `n` independent normal values: its mean above the median and its
/// standard deviation, both in standard deviations of the values. Approximate: the order statistic `x_(r)` has
/// the standard deviation `sqrt(p (1-p) / (n+2)) / f(F^-1(p))` with `p = (r - 3/8) / (n + 1/4)`; David and
/// Nagaraja, Order Statistics, 3rd ed. (2003), 4.6.
pub(crate) fn end_of_median_interval(n: usize, confidence: f64) -> Option<(f64, f64)> {
    if !is_confidence(confidence) {
        return None;
    }
    let (rank, _) = greatest_rank(n, confidence)?;
    let upper = (n + 1 - rank) as f64;
    let n = n as f64;
    let p = (upper - 0.375) / (n + 0.25);
    let mean = normal::quantile(p);
    let density = (-mean * mean / 2.0).exp() / std::f64::consts::TAU.sqrt();
    Some((mean, (p * (1.0 - p) / (n + 2.0)).sqrt() / density))
}

/// The greatest rank from 1 whose coverage reaches `confidence`, and that coverage.
pub(crate) fn greatest_rank(n: usize, confidence: f64) -> Option<(usize, f64)> {
    // The tail sums are exact only up to rounding; without this tolerance, a confidence that equals an achievable one could fail.
    const ROUNDING: f64 = 1e-12;
    let reaches = |rank: usize| coverage(n, rank) + ROUNDING >= confidence;
    // Coverage decreases with the rank: bisects between one that suffices and one that does not.
    let (mut yes, mut no) = (1, n / 2 + 1);
    if n < 2 || !reaches(yes) {
        return None;
    }
    while no - yes > 1 {
        let middle = usize::midpoint(yes, no);
        if reaches(middle) {
            yes = middle;
        } else {
            no = middle;
        }
    }
    Some((yes, coverage(n, yes)))
}

/// The probability that the median lies between the order statistics of ranks `rank` and `n + 1 - rank`.
pub(crate) fn coverage(n: usize, rank: usize) -> f64 {
    1.0 - 2.0 * lower_tail(n as f64, 0.5, (rank - 1) as f64)
}

/// Student's t interval of the mean: `mean ± t sd / sqrt(n)`, where `t` is the
/// `(1 + confidence) / 2` quantile with `n - 1` degrees of freedom.
///
/// It assumes independent, normally distributed values. Source: Student, "The probable error
/// of a mean", Biometrika 6 (1908). `None` below two values, when a value is not finite, when
/// the result overflows, or when `confidence` is not between 0 and 1.
pub fn mean_interval(data: &[f64], confidence: f64) -> Option<Interval> {
    let x = sorted(data)?;
    mean_interval_of(x.len(), mean_of_sorted(&x)?, sd_of_sorted(&x)?, confidence)
}

pub(crate) fn mean_interval_of(n: usize, mean: f64, sd: f64, confidence: f64) -> Option<Interval> {
    let n = n as f64;
    let margin = margin(sd / n.sqrt(), n - 1.0, confidence)?;
    Interval::between(mean - margin, mean + margin, confidence)
}

/// Whether a confidence is between 0 and 1, both excluded.
pub(crate) fn is_confidence(confidence: f64) -> bool {
    confidence > 0.0 && confidence < 1.0
}

/// Half-width of a t interval: the `(1 + confidence) / 2` quantile with `df` degrees of freedom times the standard error. `None`
/// when `confidence` is not between 0 and 1.
pub(crate) fn margin(error: f64, df: f64, confidence: f64) -> Option<f64> {
    if !is_confidence(confidence) {
        return None;
    }
    Some(t_distribution::critical(1.0 - confidence, df)? * error)
}
