//! Whether a sample is bimodal.
//!
//! Likelihood of a sample under each of several shapes with one mode.

use std::f64::consts::{E, TAU};

use schemars::JsonSchema;
use serde::Serialize;

use crate::describe::{median_of_sorted, sorted};

/// The fewest values in which groups can be distinguished.
const N_MIN: usize = 8;

/// The fewest values of a group; fewer are outliers.
const GROUP_MIN: usize = 3;

/// Reciprocal of the least share of the values in each group.
const GROUP_SHARE: usize = 10;

/// Least Ashman's D of two groups. Cutting one group in two gives at most 2.4 for a uniform shape, 2.9 for a
/// normal and 3.1 for an exponential one, for many values.
const SEPARATION_MIN: f64 = 3.5;

/// Least ratio of the gap between two groups to the width of the wider one, where values are too few for a
/// shape.
const GAP_MIN: f64 = 8.0;

/// Fewest values that can be two groups by the gap between them.
const GAP_N_MIN: usize = 6;

/// Two groups that are far apart relative to their widths.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct TwoLevels {
    /// The share of the values in the lower group.
    pub low_share: f64,
    /// Median of the lower group, in the unit of the data.
    pub low_median: f64,
    /// Median of the upper group, in the unit of the data.
    pub high_median: f64,
}

impl TwoLevels {
    fn of_sorted(low: &[f64], high: &[f64]) -> Self {
        Self {
            low_share: low.len() as f64 / (low.len() + high.len()) as f64,
            low_median: median_of_sorted(low),
            high_median: median_of_sorted(high),
        }
    }
}

/// Two groups by the gap between them alone, for samples too small for [`two_modes`] and for values that repeat: each group has at
/// least 3 values and a tenth of all, and the gap is at least 8 times as wide as the wider group.
///
/// By simulation (60,000 samples each of 6, 7, 8 and 10 values) two groups are found in at most 0.1 % of
/// samples of one distribution: normal, uniform, exponential, Laplace, and t with 3 degrees of freedom. Equal
/// values are a group of no width, so that two distinct values are two groups, too. Whether these are further
/// apart than a clock's step is up to the caller.
///
/// `None` below 6 values, when one is not finite, and when all are equal.
pub fn two_levels(data: &[f64]) -> Option<TwoLevels> {
    two_levels_among(data, 1)
}

/// As [`two_levels`] for one of `samples` samples, any of which would be shown. The gap has to be wider by the
/// `(n - 2)`-th root of their number. The reason: the chance that both groups of one shape are within a share
/// `w` of the gap falls with the power `n - 2` of `w`.
pub fn two_levels_among(data: &[f64], samples: usize) -> Option<TwoLevels> {
    let x = sorted(data)?;
    let n = x.len();
    if n < GAP_N_MIN {
        return None;
    }
    let fewest = GROUP_MIN.max(n.div_ceil(GROUP_SHARE));
    let gap = |low: usize| x[low] - x[low - 1];
    let low = (fewest..=n - fewest).max_by(|a, b| gap(*a).total_cmp(&gap(*b)))?;
    let (below, above) = x.split_at(low);
    let width = |group: &[f64]| group[group.len() - 1] - group[0];
    let gap_min = GAP_MIN * (samples.max(1) as f64).powf(1.0 / (n as f64 - 2.0));
    let is_apart = gap(low) > 0.0 && gap(low) >= gap_min * width(below).max(width(above));
    is_apart.then(|| TwoLevels::of_sorted(below, above))
}

/// A sample that looks like two groups.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Modality {
    /// The groups; each has at least a tenth of the values.
    pub levels: TwoLevels,
    /// Excess of the evidence over the margin for this number of values. The evidence is the advantage of two groups
    /// over the best single shape: the difference of the log-likelihoods, in natural units.
    pub excess: f64,
}

impl Modality {
    /// Whether the finding is valid as one of `samples` samples, any of which would be shown. The chance that
    /// one group is flagged falls at least as fast as the exponential of the excess, so the logarithm of their
    /// number is Bonferroni's correction.
    pub fn stands_among(&self, samples: usize) -> bool {
        self.excess > (samples.max(1) as f64).ln()
    }
}

/// Flags a sample that looks like two groups; a cautious screen, not a test with a p-value.
///
/// The sorted values are cut where two normal groups of one standard deviation are most likely. That is the cut
/// with the greatest `-(n/2) ln(2 pi e W / n) + n1 ln(n1 / n) + n2 ln(n2 / n)`. `W` is the sum of squares
/// within the groups. Source: Symons, "Clustering criteria and multivariate normal mixtures", Biometrics 37
/// (1981) 35-43. Each group holds at least 3 values and a tenth of all. The sample is flagged when both
/// conditions hold:
///
/// - The log-likelihood of the cut exceeds the one of the best single shape by more than `3.4 + 14 / n`. The shapes
///   are normal, uniform, Laplace, exponential and shifted lognormal (five shifts). The skewed ones are taken both ways
///   round, because a long tail is not a second group.
/// - The groups are clearly apart: `D = sqrt(2) |m1 - m2| / sqrt(s1^2 + s2^2) > 3.5` (Ashman, Bird and Zepf,
///   Astronomical Journal 108 (1994) 2348-2361).
///
/// The margin was set by simulation: for `n` from 8 to 200, less than 1 % of normal, lognormal, exponential,
/// gamma, Laplace and t samples are flagged. That caution costs power. Groups in shares 30/70 are found nearly
/// always only when they are far apart: 8 standard deviations with `n = 20`, 6 with `n = 40`, 5 with `n = 60`,
/// 4 with `n = 150`.
///
/// Equal values are taken as rounded: they are spread over the smallest difference that the
/// data show, so that a coarse clock makes no groups, and neither do two distinct values.
/// `None` when not flagged, below 8 values, when a value is not finite, when all are equal, or
/// when their range overflows.
pub fn two_modes(data: &[f64]) -> Option<Modality> {
    let ascending = sorted(data)?;
    let n = ascending.len();
    let range = ascending[n - 1] - ascending[0];
    if n < N_MIN || !(range > 0.0 && range.is_finite()) {
        return None;
    }
    let unit: Vec<f64> = ascending
        .iter()
        .map(|x| (x - ascending[0]) / range)
        .collect();
    let unit = spread_ties(&unit);
    let cut = best_cut(&unit);
    let evidence = cut.log_likelihood - best_log_likelihood(&unit)?;
    let excess = evidence - (3.4 + 14.0 / n as f64);
    let flagged = excess > 0.0 && cut.separation > SEPARATION_MIN;
    let (low, high) = ascending.split_at(cut.low);
    flagged.then(|| Modality {
        levels: TwoLevels::of_sorted(low, high),
        excess,
    })
}

/// Spreads equal values evenly over the smallest difference between unequal ones.
///
/// The values run from 0 to 1; differences below their rounding count as zero.
fn spread_ties(x: &[f64]) -> Vec<f64> {
    let resolution = x
        .windows(2)
        .map(|pair| pair[1] - pair[0])
        .filter(|gap| *gap > 0.0)
        .fold(1.0, f64::min)
        .max(f64::EPSILON);
    let spread = |group: &[f64]| {
        let (first, size) = (group[0], group.len() as f64);
        let place = move |i: usize| (i as f64 + 0.5) / size - 0.5;
        (0..group.len())
            .map(move |i| first + resolution * place(i))
            .collect::<Vec<f64>>()
    };
    x.chunk_by(|a, b| a == b).flat_map(spread).collect()
}

/// A cut into the `low` least values and the rest.
struct Cut {
    low: usize,
    log_likelihood: f64,
    separation: f64,
}

/// The most likely cut for two normal groups.
fn best_cut(x: &[f64]) -> Cut {
    let n = x.len();
    let fewest = GROUP_MIN.max(n.div_ceil(GROUP_SHARE));
    let from_start = moments(x.iter());
    let from_end = moments(x.iter().rev());
    let mut best = Cut {
        low: fewest,
        log_likelihood: f64::NEG_INFINITY,
        separation: 0.0,
    };
    for low in fewest..=n - fewest {
        let cut = judge(low, n - low, &from_start[low - 1], &from_end[n - low - 1]);
        if cut.log_likelihood > best.log_likelihood {
            best = cut;
        }
    }
    best
}

fn judge(low: usize, high: usize, below: &Moments, above: &Moments) -> Cut {
    let (a, b) = (low as f64, high as f64);
    let n = a + b;
    let within = (below.squares + above.squares) / n;
    let shares = a * (a / n).ln() + b * (b / n).ln();
    let variances = below.squares / (a - 1.0) + above.squares / (b - 1.0);
    Cut {
        low,
        log_likelihood: normal_log_likelihood(n, within) + shares,
        separation: 2.0_f64.sqrt() * (above.mean - below.mean) / variances.sqrt(),
    }
}

/// Mean and sum of squared deviations.
struct Moments {
    mean: f64,
    squares: f64,
}

/// The moments of the first value, the first two, and so on.
///
/// Source: Welford, "Note on a method for calculating corrected sums of squares and products", Technometrics 4 (1962) 419-420.
fn moments<'a>(values: impl Iterator<Item = &'a f64>) -> Vec<Moments> {
    let (mut mean, mut squares) = (0.0, 0.0);
    let mut all = Vec::new();
    for (x, count) in values.zip(1_u64..) {
        let deviation = x - mean;
        mean += deviation / count as f64;
        squares += deviation * (x - mean);
        all.push(Moments { mean, squares });
    }
    all
}

/// Whether the widest gap between adjacent sorted values is more than half of their range, so that they may belong to two groups
/// even where there are few. False for a single value and for equal ones.
pub fn has_gap(data: &[f64]) -> bool {
    let Some(x) = sorted(data) else {
        return false;
    };
    let gaps = x.windows(2).map(|pair| pair[1] - pair[0]);
    gaps.fold(0.0, f64::max) > (x[x.len() - 1] - x[0]) / 2.0
}

/// Starts of a shifted lognormal below the least value, as shares of the range.
const SHIFTS: [f64; 5] = [0.05, 0.1, 0.2, 0.4, 1.0];

/// The log-likelihood of `n` values under the normal distribution fitted to them, by their variance.
fn normal_log_likelihood(n: f64, variance: f64) -> f64 {
    -n / 2.0 * (TAU * E * variance).ln()
}

/// The greatest log-likelihood of any single shape; `x` is ascending with at least two values.
///
/// `None` when it is not finite, as when more than half of the values are equal to rounding.
fn best_log_likelihood(x: &[f64]) -> Option<f64> {
    let mirrored: Vec<f64> = x.iter().rev().map(|x| -x).collect();
    let symmetric = [normal(x), uniform(x), laplace(x)];
    let skewed = [x, &mirrored].map(|x| exponential(x).max(lognormal(x)));
    let best = symmetric
        .into_iter()
        .chain(skewed)
        .fold(f64::NEG_INFINITY, f64::max);
    best.is_finite().then_some(best)
}

fn mean(x: impl ExactSizeIterator<Item = f64>) -> f64 {
    let n = x.len() as f64;
    x.sum::<f64>() / n
}

fn normal(x: &[f64]) -> f64 {
    let centre = mean(x.iter().copied());
    let variance = mean(x.iter().map(|x| (x - centre).powi(2)));
    normal_log_likelihood(x.len() as f64, variance)
}

/// Log-likelihood under a uniform shape, with the width that is right on average rather than the most likely
/// one, as below.
fn uniform(x: &[f64]) -> f64 {
    let n = x.len() as f64;
    let width = (x[x.len() - 1] - x[0]) * (n + 1.0) / (n - 1.0);
    -n * width.ln()
}

fn laplace(x: &[f64]) -> f64 {
    let centre = x[x.len() / 2];
    let scale = mean(x.iter().map(|x| (x - centre).abs()));
    -(x.len() as f64) * (2.0 * E * scale).ln()
}

/// Log-likelihood under an exponential that begins at the least value.
fn exponential(x: &[f64]) -> f64 {
    let n = x.len() as f64;
    let scale = mean(x.iter().map(|value| value - x[0])) * n / (n - 1.0);
    -n * (E * scale).ln()
}

/// Log-likelihood under a lognormal that begins at the best of [`SHIFTS`].
fn lognormal(x: &[f64]) -> f64 {
    let range = x[x.len() - 1] - x[0];
    let shifted = |shift: f64| {
        let start = x[0] - shift * range;
        let logarithms: Vec<f64> = x.iter().map(|x| (x - start).ln()).collect();
        normal(&logarithms) - logarithms.iter().sum::<f64>()
    };
    SHIFTS
        .into_iter()
        .map(shifted)
        .fold(f64::NEG_INFINITY, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::distributions;

    /// Expected positions of `n` values of a normal distribution.
    fn normal_scores(n: u32) -> Vec<f64> {
        let share = |i: u32| (f64::from(i) + 0.5) / f64::from(n);
        (0..n).map(|i| distributions::quantile(share(i))).collect()
    }

    #[test]
    fn few_values_need_a_very_wide_gap() {
        let levels =
            |data: &[f64]| two_levels(data).map(|l| (l.low_share, l.low_median, l.high_median));
        let apart = [24.0, 287.0, 25.0, 286.0, 24.5, 287.0];
        assert_eq!(levels(&apart), Some((0.5, 24.5, 287.0)));
        assert_eq!(
            levels(&[1.0, 1.0, 1.0, 2.0, 2.0, 2.0]),
            Some((0.5, 1.0, 2.0))
        );
        for one in [
            // Two values are outliers, not a group.
            &[1.0, 1.0, 1.0, 1.0, 9.0, 9.0][..],
            &[1.0, 1.5, 2.0, 5.9, 6.0, 6.1],
            &[1.0; 6],
            &[1.0, 1.0, 9.0, 9.0, 9.0],
            &[1.0, 1.0, 1.0, 9.0, 9.0, f64::NAN],
        ] {
            assert_eq!(levels(one), None, "{one:?}");
        }
    }

    #[test]
    fn an_outlier_is_no_group() {
        let mut data = normal_scores(18);
        data.extend([50.0, 51.0]);
        assert_eq!(two_modes(&data), None);
    }

    #[test]
    fn a_coarse_clock_makes_no_groups() {
        let rounded: Vec<f64> = normal_scores(40).iter().map(|x| x.round()).collect();
        assert_eq!(two_modes(&rounded), None);
        let two_values: Vec<f64> = (0..40).map(|i| f64::from(i % 2)).collect();
        assert_eq!(two_modes(&two_values), None);
    }

    #[test]
    fn groups_with_ties_are_told_apart() {
        let data: Vec<f64> = (0..40).map(|i| f64::from(i % 4 + 100 * (i % 2))).collect();
        assert_eq!(two_modes(&data).unwrap().levels.low_share, 0.5);
    }
}
