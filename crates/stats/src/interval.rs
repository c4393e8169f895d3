//! Confidence intervals.
//!
//! An interval of the median between ranks.
//!
//! Intervals of any quantile, from data or from the number of values.
//!
//! Number of trials that intervals of medians need to show a difference.
//!
//! The difference of two medians, from the intervals of both.
//!
//! All summary statistics of one sample.

#[cfg(test)]
mod tests;
use schemars::JsonSchema;
use serde::Serialize;
use statrs::distribution::{Beta, ContinuousCDF};

use crate::describe::{
    mad_of_sorted, mean_of_sorted, median_of_sorted, quartiles_of_sorted, sd_of_sorted, sorted,
};
use crate::distributions::{self, lower_tail};

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

    /// The precision of an estimate: the distance of `centre` to the farther end, over `centre`. `None` when the centre is 0 or the
    /// ratio is not finite.
    pub fn precision(&self, centre: f64) -> Option<f64> {
        let farther = (self.high - centre).max(centre - self.low);
        Some(farther / centre.abs()).filter(|ratio| ratio.is_finite())
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

fn median_interval_of_sorted(x: &[f64], confidence: f64) -> Option<Interval> {
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

/// Upper end of [`median_interval`] for `n` independent normal values: its mean above the median and its
/// standard deviation, both in standard deviations of the values. Approximate: the order statistic `x_(r)` has
/// the mean `F^-1(p)` with `p = (r - 3/8) / (n + 1/4)` (Blom, Statistical Estimates and Transformed Beta-Variables,
/// 1958) and the standard deviation `sqrt(p (1-p) / (n+2)) / f(F^-1(p))`; David and Nagaraja, Order Statistics, 3rd
/// ed. (2003), 4.6. `None` as for [`median_interval`].
fn end_of_median_interval(n: usize, confidence: f64) -> Option<(f64, f64)> {
    if !is_confidence(confidence) {
        return None;
    }
    let (rank, _) = greatest_rank(n, confidence)?;
    let upper = (n + 1 - rank) as f64;
    let n = n as f64;
    let p = (upper - 0.375) / (n + 0.25);
    let mean = distributions::quantile(p);
    let density = (-mean * mean / 2.0).exp() / std::f64::consts::TAU.sqrt();
    Some((mean, (p * (1.0 - p) / (n + 2.0)).sqrt() / density))
}

/// The greatest rank from 1 whose coverage reaches `confidence`, and that coverage.
fn greatest_rank(n: usize, confidence: f64) -> Option<(usize, f64)> {
    // The tail sums are exact only up to rounding; without this tolerance, a confidence that equals an achievable one could fail.
    const ROUNDING: f64 = 1e-12;
    let reaches = |rank: usize| coverage(n, rank) + ROUNDING >= confidence;
    if n < 2 || !reaches(1) {
        return None;
    }
    let rank = last_within(1, n / 2 + 1, reaches);
    Some((rank, coverage(n, rank)))
}

/// The last number before `beyond` for which a condition holds. It holds for `within` and up to some number, by
/// bisection.
pub(crate) fn last_within(
    mut within: usize,
    mut beyond: usize,
    holds: impl Fn(usize) -> bool,
) -> usize {
    while beyond - within > 1 {
        let middle = usize::midpoint(within, beyond);
        match holds(middle) {
            true => within = middle,
            false => beyond = middle,
        }
    }
    within
}

/// The probability that the median lies between the order statistics of ranks `rank` and `n + 1 - rank`.
fn coverage(n: usize, rank: usize) -> f64 {
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

fn mean_interval_of(n: usize, mean: f64, sd: f64, confidence: f64) -> Option<Interval> {
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
    Some(distributions::critical(1.0 - confidence, df)? * error)
}

/// The interpolated order-statistic interval of the median: narrower than [`median_interval`], and not exact.
///
/// `k` is the rank that [`median_interval`] takes, `c_k` the coverage of rank `k`, and
/// `c` the confidence asked for. With `i = (c_k - c) / (c_k - c_(k+1))`, `w = (n - k) i / (k + (n - 2k) i)`.
/// The lower end is `(1 - w) x_(k) + w x_(k+1)`, the upper one `(1 - w) x_(n+1-k) + w x_(n-k)`. The coverage is
/// exact for the Laplace distribution and within 0.6 % for other symmetric distributions of one hump. Between
/// two groups of values it is not (docs/VALIDATION.md, "Intervals"). Source: Hettmansperger and Sheather,
/// "Confidence intervals based on interpolated order statistics", Statistics and Probability Letters 4 (1986)
/// 75-79.
///
/// `None` as for [`median_interval`]. The ends are at least as far apart as in the
/// interval of the next rank.
pub fn median_interval_interpolated(data: &[f64], confidence: f64) -> Option<Interval> {
    median_interpolated_of_sorted(&sorted(data)?, confidence)
}

/// Interpolated interval of the median of ascending data.
fn median_interpolated_of_sorted(x: &[f64], confidence: f64) -> Option<Interval> {
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

/// Larger counts are not exact as `f64`.
const N_MAX: u64 = 1 << 53;

/// Ranks, from 1, of the order statistics around the quantile `q`, and the confidence of the interval between
/// them. Each rank is `None` if there are too few values for that end.
///
/// Let `B ~ Binomial(n, q)`. The lower rank `l` is the greatest with `P(B <= l - 1) <= (1 - confidence) / 2`.
/// The upper rank `u` is the least with `P(B >= u) <= (1 - confidence) / 2`. Each end thus misses with no more
/// than half of what is allowed. The confidence achieved is `1 - P(B <= l - 1) - P(B >= u)`. The cost hardly
/// grows with `n`. Source: Conover, Practical Nonparametric Statistics, 3rd ed. (1999), section 3.2; David and
/// Nagaraja, Order Statistics, 3rd ed. (2003), section 7.1.
///
/// For 0.95 both ends take 6 values at `q = 0.5`, 368 at 0.99, 3688 at 0.999. There is no rank when `q` or `confidence` is not
/// between 0 and 1, or when `n` is above `2^53`.
pub fn quantile_ranks(n: u64, q: f64, confidence: f64) -> (Option<u64>, Option<u64>, f64) {
    let within = |x: f64| x > 0.0 && x < 1.0;
    if n == 0 || n > N_MAX || !within(q) || !within(confidence) || !within(1.0 - q) {
        return (None, None, 1.0);
    }
    let allowed = (1.0 - confidence) / 2.0;
    // The upper rank is the lower one of the mirror image.
    let (low, from_top) = (lower_rank(n, q, allowed), lower_rank(n, 1.0 - q, allowed));
    let miss = |end: Option<(u64, f64)>| end.map_or(0.0, |(_, miss)| miss);
    (
        low.map(|(rank, _)| rank),
        from_top.map(|(rank, _)| n + 1 - rank),
        1.0 - miss(low) - miss(from_top),
    )
}

/// The greatest rank from 1 with `P(B <= rank - 1)` within `allowed`, which is below one half, and that probability.
fn lower_rank(n: u64, q: f64, allowed: f64) -> Option<(u64, f64)> {
    // Tolerance for rounding, so that a confidence that equals an achievable one does not fail.
    const ROUNDING: f64 = 5e-13;
    let count = n as f64;
    let miss = |rank: usize| lower_tail(count, q, rank as f64 - 1.0);
    // Less than half is allowed, so the rank is at most the rank of B's median.
    let beyond = ((count * q).ceil() as usize).clamp(1, n as usize) + 1;
    let rank = last_within(0, beyond, |rank| miss(rank) <= allowed + ROUNDING);
    (rank > 0).then(|| (rank as u64, miss(rank)))
}

/// Clopper and Pearson's bounds for a share after `k` of `n` draws, each wrong with a probability of at most
/// `alpha`; they are quantiles of beta distributions. `k` and `n` need not be whole: dependent draws count as
/// fewer. Source: Clopper and Pearson, Biometrika 26 (1934).
///
/// `None` unless `0 <= k <= n`, `n > 0` and `alpha` is between 0 and 1.
pub fn share_bounds(k: f64, n: f64, alpha: f64) -> Option<(f64, f64)> {
    let possible = n > 0.0 && n.is_finite() && (0.0..=n).contains(&k) && alpha > 0.0 && alpha < 1.0;
    if !possible {
        return None;
    }
    let low = match k {
        0.0 => 0.0,
        _ => Beta::new(k, n - k + 1.0).ok()?.inverse_cdf(alpha),
    };
    let high = match n - k {
        0.0 => 1.0,
        left => Beta::new(k + 1.0, left).ok()?.inverse_cdf(1.0 - alpha),
    };
    Some((low, high))
}

/// Highest number of trials considered.
const MOST: usize = 1_000_000;

/// Fewest trials that show a ratio of medians to differ from 1, with the chance `power`. With two samples by
/// [`median_difference`]; with one (of logarithms of ratios) if its interval excludes
/// 0.
///
/// `shift` is the logarithm of the ratio, `sd` the standard deviation of the logarithms of each sample. The ends of the intervals are
/// order statistics, on average `r` standard deviations from the median with a standard deviation `e` of their own: the power is `F((|shift| - r s) / (e s))` with
/// `s = sqrt(sum(sd^2))`, `F` the normal distribution. It assumes about normal logarithms.
///
/// `None` when 1,000,000 are too few, when a value is not finite, or when `confidence` or `power` is not between 0 and 1.
pub fn trials_for_apart(shift: f64, sd: &[f64], confidence: f64, power: f64) -> Option<usize> {
    let room = shift.abs();
    least_trials(power, |n| ends_within(n, &[room], sd, confidence))
}

/// Fewest trials that show a ratio of medians to lie within a margin, with the chance `power`. `margin_log` is
/// `ln(1 + margin)`, `true_log_ratio` the logarithm of the true ratio, the rest is as for [`trials_for_apart`].
/// `None` as there: a true ratio on the margin or outside is never shown to lie within it.
pub fn trials_for_within(
    margin_log: f64,
    true_log_ratio: f64,
    sd: &[f64],
    confidence: f64,
    power: f64,
) -> Option<usize> {
    let room = [margin_log - true_log_ratio, margin_log + true_log_ratio];
    least_trials(power, |n| ends_within(n, &room, sd, confidence))
}

/// The probability that the end of a median's interval stays within each of these distances. 0 where there are too few trials for
/// an interval.
fn ends_within(n: usize, rooms: &[f64], sd: &[f64], confidence: f64) -> Option<f64> {
    let all = sd.iter().chain(rooms);
    if !all.copied().all(f64::is_finite) {
        return None;
    }
    let Some((reach, error)) = end_of_median_interval(n, confidence) else {
        return Some(0.0);
    };
    let sd = sd.iter().map(|sd| sd * sd).sum::<f64>().sqrt();
    let (reach, error) = (reach * sd, error * sd);
    let beyond = rooms.iter().map(|room| match *room > reach {
        _ if error > 0.0 => distributions::cdf((reach - room) / error),
        true => 0.0,
        false => 1.0,
    });
    Some((1.0 - beyond.sum::<f64>()).max(0.0))
}

/// The lowest `n` from 2 with the wanted power, which must grow with `n`.
fn least_trials(wanted: f64, power: impl Fn(usize) -> Option<f64>) -> Option<usize> {
    if !(wanted > 0.0 && wanted < 1.0) {
        return None;
    }
    let (mut too_few, mut enough) = (1, 2);
    while power(enough)? < wanted {
        if enough == MOST {
            return None;
        }
        too_few = enough;
        enough = (enough * 2).min(MOST);
    }
    let is_short = |n: usize| power(n).is_some_and(|power| power < wanted);
    Some(1 + last_within(too_few, enough, is_short))
}

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

/// The confidence of every interval in a [`Summary`].
pub const CONFIDENCE: f64 = 0.95;

/// Summary statistics of one sample, in the unit of the data unless noted.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Summary {
    /// Number of values.
    pub n: usize,
    /// Least value.
    pub min: f64,
    /// First quartile.
    pub q1: f64,
    /// Median.
    pub median: f64,
    /// Third quartile.
    pub q3: f64,
    /// Greatest value.
    pub max: f64,
    /// Order-statistic interval of the median; `None` below 6 values.
    pub median_interval: Option<Interval>,
    /// Interpolated order-statistic interval of the median; `None` below 6 values.
    pub median_interpolated: Option<Interval>,
    /// Median absolute deviation, not scaled; see [`mad`](crate::mad()).
    pub mad: f64,
    /// Mean; `None` when the sum overflows.
    pub mean: Option<f64>,
    /// Standard deviation with `n - 1`; `None` below 2 values.
    pub sd: Option<f64>,
    /// Student's t interval of the mean; `None` below 2 values.
    pub mean_interval: Option<Interval>,
}

impl Summary {
    /// The first and the third quartile; `None` below 2 values, which have no spread.
    pub fn quartiles(&self) -> Option<(f64, f64)> {
        (self.n > 1).then_some((self.q1, self.q3))
    }

    /// The precision of the median; `None` below 6 values.
    pub fn precision(&self) -> Option<f64> {
        self.median_interval?.precision(self.median)
    }
}

/// Summarises the data, with intervals at [`CONFIDENCE`]. Sorts it only once.
///
/// `None` when the data is empty or contains a value that is not finite.
pub fn summary(data: &[f64]) -> Option<Summary> {
    let x = sorted(data)?;
    let (q1, q3) = quartiles_of_sorted(&x);
    let (mean, sd) = (mean_of_sorted(&x), sd_of_sorted(&x));
    Some(Summary {
        n: x.len(),
        min: x[0],
        q1,
        median: median_of_sorted(&x),
        q3,
        max: x[x.len() - 1],
        median_interval: median_interval_of_sorted(&x, CONFIDENCE),
        median_interpolated: median_interpolated_of_sorted(&x, CONFIDENCE),
        mad: mad_of_sorted(&x),
        mean,
        sd,
        mean_interval: mean
            .zip(sd)
            .and_then(|(mean, sd)| mean_interval_of(x.len(), mean, sd, CONFIDENCE)),
    })
}
