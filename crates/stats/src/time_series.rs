//! Dependence between successive values: data in order of time.
//!
//! Intervals and tests assume independent trials. These functions say how far that holds.
//!
//! Comparison of two series whose values depend on their neighbours, for example from drifting machines or busy hosts.
//!
//! Tests for drift of values in the order of time.

use statrs::distribution::{ChiSquared, ContinuousCDF};

use crate::describe::{mean, median, sorted};
use crate::distributions;
use crate::t_test::{Sample, welch_of};

/// The most lags that [`effective_sample_size`] uses, so that its cost stays linear in `n`.
const LAGS_MAX: usize = 2000;

/// Most values whose lags are computed; of a longer series, the means of neighbours are.
const VALUES_MAX: usize = 50_000;

/// The autocorrelation at a lag: `sum(d_t d_(t+lag)) / sum(d_t^2)`, `d = x - mean`.
///
/// The biased estimator, whose sums both run over all there is without dividing by `n - lag`;
/// it stays within -1 and 1. It assumes that mean and variance do not change along the
/// data: a trend shows as autocorrelation, too. Independent values have about `-1/n` at lag 1, give or take
/// `2 / sqrt(n)`. Source: Box, Jenkins and Reinsel, Time Series
/// Analysis, 4th ed. (2008), section 2.1.4.
///
/// `None` when `lag` is not less than `n`, when a value is not finite, or when their sum or a deviation
/// overflows; also when all values are equal, as there is no variation to correlate.
pub fn autocorrelation(data: &[f64], lag: usize) -> Option<f64> {
    let deviations = Deviations::of(data)?;
    (lag < data.len()).then(|| deviations.autocorrelation(lag))
}

/// p-value of the portmanteau test of Ljung and Box, that the first `lags` autocorrelations are all zero: the probability of
/// a greater `q` for independent values.
///
/// `q = n (n + 2) sum_(k=1..lags) r_k^2 / (n - k)`, compared with chi-squared on `lags`
/// degrees of freedom. The null hypothesis is independent values; the distribution holds for
/// `n` well above `lags`. Source: Ljung and Box, "On a measure of lack of fit in time series
/// models", Biometrika 65 (1978) 297-303.
///
/// `None` when `lags` is 0 or not less than `n`, and where [`autocorrelation`] is.
pub fn ljung_box(data: &[f64], lags: usize) -> Option<f64> {
    if lags == 0 || lags >= data.len() {
        return None;
    }
    let deviations = Deviations::of(data)?;
    let n = data.len() as f64;
    let sum: f64 = (1..=lags)
        .map(|lag| deviations.autocorrelation(lag).powi(2) / (n - lag as f64))
        .sum();
    let q = n * (n + 2.0) * sum;
    let p = ChiSquared::new(lags as f64).ok()?.sf(q);
    (q.is_finite() && p.is_finite()).then_some(p)
}

/// Number of independent values that determine the mean as precisely as these dependent ones do.
///
/// `n / t` with `t = -1 + 2 sum_m (r_2m + r_(2m+1))`, summed from `m = 0` for as long as the
/// pairs are positive: the initial positive sequence estimator of Geyer, "Practical Markov
/// chain Monte Carlo", Statistical Science 7 (1992) 473-483. At least 1 and at most `n`:
/// values that alternate are not called better than independent ones. It assumes a stationary
/// series; a drift gives a small value. No more than 2000 lags are looked at, so that for
/// a longer correlation the result is too large. A series of more than 50,000 values is first averaged over neighbours, at least two
/// and as many as it takes: the sum is over lags of these means, and the variance of the means stands for that within them.
///
/// `None` below 2 values, when a value is not finite, when all are equal, or when their sum
/// or a deviation overflows.
pub fn effective_sample_size(data: &[f64]) -> Option<f64> {
    let values = Deviations::of(data)?;
    let together = data.len().div_ceil(VALUES_MAX);
    let means = values.shares.chunks_exact(together);
    let means = Deviations::of_shares(means.map(|of| of.iter().sum::<f64>() / together as f64));
    let (n, number) = (data.len() as f64, means.shares.len());
    let positive: f64 = (0..number.min(LAGS_MAX))
        .step_by(2)
        .map(|lag| means.autocorrelation(lag) + means.autocorrelation(lag + 1))
        .take_while(|pair| *pair > 0.0)
        .sum();
    let time = (2.0 * positive - 1.0).max(1.0);
    // How much less the means vary than the values.
    let calmer = (values.square_sum / n) / (means.square_sum / number as f64);
    Some((calmer * number as f64 / time).clamp(1.0, n))
}

/// Deviations from the mean as shares of the greatest, whose squares neither overflow nor vanish.
struct Deviations {
    shares: Vec<f64>,
    square_sum: f64,
}

impl Deviations {
    /// `None` when a value is not finite, all are equal, or their sum overflows.
    fn of(data: &[f64]) -> Option<Self> {
        let first = *data.first()?;
        // Compares the values, since rounding may leave deviations of equal values.
        if data.iter().all(|x| *x == first) {
            return None;
        }
        let mean = mean(data)?;
        let greatest = data.iter().map(|x| (x - mean).abs()).fold(0.0, f64::max);
        let usable = greatest > 0.0 && greatest.is_finite();
        usable.then(|| Self::of_shares(data.iter().map(|x| (x - mean) / greatest)))
    }

    fn of_shares(shares: impl Iterator<Item = f64>) -> Self {
        let shares: Vec<f64> = shares.collect();
        let square_sum = shares.iter().map(|d| d * d).sum();
        Self { shares, square_sum }
    }

    /// Zero for lags from `n` on.
    fn autocorrelation(&self, lag: usize) -> f64 {
        let later = self.shares.iter().skip(lag);
        let sum: f64 = self.shares.iter().zip(later).map(|(a, b)| a * b).sum();
        sum / self.square_sum
    }
}

/// p-value of Welch's t test of two series in order of time, each counted as the number of independent values it is worth.
///
/// As [`welch`](crate::welch) with `n` replaced by [`effective_sample_size`], at least 2. For independent values that
/// is about the same test, a little more cautious; for a series that drifts it is much more so. What changes
/// between the two series but not within them is not seen. Source: Zwiers and von Storch, "Taking serial correlation
/// into account in tests of the mean", J. Climate 8 (1995) 336-351.
///
/// No variance and `None` as for [`welch`](crate::welch).
pub fn welch_dependent(base: &[f64], new: &[f64]) -> Option<f64> {
    welch_of(&worth(base)?, &worth(new)?)
}

fn worth(data: &[f64]) -> Option<Sample> {
    let sample = Sample::new(data)?;
    // Equal values have no correlation, and no variance that it could raise.
    let n = effective_sample_size(data).map_or(sample.n, |n| n.max(2.0));
    Some(Sample { n, ..sample })
}

/// Most values without ties for which the distribution of Kendall's S is computed exactly.
const EXACT_MAX: usize = 50;

/// Most values for which the slope is the median over all pairs.
const ALL_PAIRS_MAX: usize = 2000;

/// A monotone trend along the data.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Trend {
    /// Kendall's tau-b between the values and their order, -1 to 1.
    pub tau: f64,
    /// Two-sided p-value, for values in random order.
    pub p: f64,
    /// The slope of Theil and Sen, in units of the data per value.
    pub slope_per_trial: f64,
}

/// The test of Mann and Kendall for a monotone trend, with the slope of Theil and Sen.
///
/// `S` is the number of rising pairs less the number of falling ones. `tau = S / sqrt(P (P - T))`, where `P = n
/// (n - 1) / 2` and `T` counts the tied pairs. Without ties and up to `n = 50`, `p` is exact (twice the tail of
/// the distribution of inversions). Otherwise `(|S| - 1) / sqrt(V)` is taken as normal. Over the groups of `t`
/// ties, `V = [n (n - 1)(2n + 5) - sum t (t - 1)(2t + 5)] / 18`. The null hypothesis is independent values of
/// one distribution of any shape: autocorrelation alone can make `p` small. Source: Mann, "Nonparametric tests
/// against trend", Econometrica 13 (1945) 245-259; Kendall, Rank Correlation Methods, 4th ed. (1970).
///
/// The slope is the median of `(x_j - x_i) / (j - i)` over all pairs. Source: Sen,
/// "Estimates of the regression coefficient based on Kendall's tau", JASA 63 (1968)
/// 1379-1389. Above 2000 values the pairs are those half the data apart, `(i, i + n/2)`:
/// Theil's incomplete method, Indagationes Mathematicae 12 (1950) 85-91.
///
/// `None` below 3 values, when a value is not finite, when all are equal, or when a slope
/// overflows.
pub fn mann_kendall(data: &[f64]) -> Option<Trend> {
    let ascending = sorted(data)?;
    let n = data.len();
    if n < 3 || ascending[0] == ascending[n - 1] {
        return None;
    }
    let ties = Ties::of(&ascending);
    let pairs = pair_count(n);
    let falling = inversions(data);
    let s = pairs - ties.pairs - 2.0 * falling;
    let sd = ((variance_term(n as f64) - ties.variance) / 18.0).sqrt();
    let p = if n <= EXACT_MAX && ties.pairs == 0.0 {
        exact_p(n, s)
    } else {
        let distance = (s.abs() - 1.0).max(0.0);
        2.0 * distributions::normal_upper_tail(distance / sd)
    };
    Some(Trend {
        tau: s / (pairs * (pairs - ties.pairs)).sqrt(),
        p: p.min(1.0),
        slope_per_trial: slope(data)?,
    })
}

fn pair_count(n: usize) -> f64 {
    n as f64 * (n as f64 - 1.0) / 2.0
}

fn variance_term(n: f64) -> f64 {
    n * (n - 1.0) * (2.0 * n + 5.0)
}

/// Reduction of the pairs and of the variance of S by groups of equal values.
struct Ties {
    pairs: f64,
    variance: f64,
}

impl Ties {
    fn of(ascending: &[f64]) -> Self {
        let groups = ascending.chunk_by(|a, b| a == b).map(<[f64]>::len);
        let nothing = Self {
            pairs: 0.0,
            variance: 0.0,
        };
        groups.fold(nothing, |sum, size| Self {
            pairs: sum.pairs + pair_count(size),
            variance: sum.variance + variance_term(size as f64),
        })
    }
}

/// Number of falling pairs, by merging: `n log n`.
fn inversions(data: &[f64]) -> f64 {
    let mut values = data.to_vec();
    let mut merged = vec![0.0; data.len()];
    let mut count = 0.0;
    let mut width = 1;
    while width < values.len() {
        for start in (0..values.len()).step_by(2 * width) {
            let middle = (start + width).min(values.len());
            let end = (start + 2 * width).min(values.len());
            let (left, right) = (&values[start..middle], &values[middle..end]);
            count += merge(left, right, &mut merged[start..end]);
        }
        std::mem::swap(&mut values, &mut merged);
        width *= 2;
    }
    count
}

/// Merges two ascending runs, and counts the pairs of which the left one is greater.
fn merge(left: &[f64], right: &[f64], into: &mut [f64]) -> f64 {
    let (mut l, mut r, mut count) = (0, 0, 0.0);
    for slot in into {
        let take_right = l == left.len() || (r < right.len() && right[r] < left[l]);
        if take_right {
            *slot = right[r];
            r += 1;
            count += (left.len() - l) as f64;
        } else {
            *slot = left[l];
            l += 1;
        }
    }
    count
}

/// Twice the tail of the number of inversions of `n` values in random order.
fn exact_p(n: usize, s: f64) -> f64 {
    // By symmetry, the tail up to the number of inversions that `|S|` leaves.
    let fewest = ((pair_count(n) - s.abs()) / 2.0) as usize;
    let mut share = vec![0.0; fewest + 1];
    share[0] = 1.0;
    for size in 2..=n {
        // Inserting one more value adds 0 to size - 1 inversions, equally likely.
        let before = share.clone();
        let mut window = 0.0;
        for (k, slot) in share.iter_mut().enumerate() {
            window += before[k];
            if k >= size {
                window -= before[k - size];
            }
            *slot = window / size as f64;
        }
    }
    (2.0 * share.iter().sum::<f64>()).min(1.0)
}

fn slope(data: &[f64]) -> Option<f64> {
    let n = data.len();
    if n > ALL_PAIRS_MAX {
        let half = n / 2;
        let slopes: Vec<f64> = (0..n - half)
            .map(|i| (data[i + half] - data[i]) / half as f64)
            .collect();
        return median(&slopes);
    }
    let mut slopes = Vec::with_capacity(n * (n - 1) / 2);
    for (i, from) in data.iter().enumerate() {
        let after = data[i + 1..].iter().zip(1..);
        slopes.extend(after.map(|(to, steps)| (to - from) / f64::from(steps)));
    }
    median(&slopes)
}

#[cfg(test)]
mod tests {
    use super::super::welch;
    use super::*;

    #[test]
    fn long_series_is_summed_like_a_short_one() {
        let value = |i: usize| 10.0 * (i as f64 / 800.0).sin() + ((i * 7919) % 1009) as f64 / 500.0;
        let data: Vec<f64> = (0..VALUES_MAX + 1).map(value).collect();
        let pairs = (0..LAGS_MAX).step_by(2);
        let pair =
            |lag| autocorrelation(&data, lag).unwrap() + autocorrelation(&data, lag + 1).unwrap();
        let positive: f64 = pairs.map(pair).take_while(|pair| *pair > 0.0).sum();
        let expected = data.len() as f64 / (2.0 * positive - 1.0);
        let found = effective_sample_size(&data).unwrap();
        assert!(positive > 100.0, "it goes on for many lags: {positive}");
        assert!((found / expected - 1.0).abs() < 0.01, "{found} {expected}");
        let alternates: Vec<f64> = (0..VALUES_MAX * 2).map(|i| (i % 2) as f64).collect();
        assert_eq!(effective_sample_size(&alternates), Some(100_000.0));
    }

    fn drifting(from: f64) -> Vec<f64> {
        (0..20)
            .map(|i| from + f64::from(i) + f64::from(i % 3))
            .collect()
    }

    #[test]
    fn a_drift_makes_it_cautious() {
        let (base, new) = (drifting(100.0), drifting(105.0));
        let plain = welch(&base, &new).unwrap();
        let cautious = welch_dependent(&base, &new).unwrap();
        assert!(plain < 0.05 && cautious > 0.2, "{plain} {cautious}");
    }

    #[test]
    fn without_correlation_it_is_the_plain_test() {
        // Alternating values do not count as more than they are.
        let series = |from: f64| -> Vec<f64> { (0..20).map(|i| from + f64::from(i % 2)).collect() };
        let (base, new) = (series(10.0), series(10.5));
        assert_eq!(welch(&base, &new), welch_dependent(&base, &new));
    }

    #[test]
    fn long_series_has_its_halves_slope() {
        let data: Vec<f64> = (0..5001).map(|i| 0.5 * f64::from(i)).collect();
        let trend = mann_kendall(&data).unwrap();
        assert_eq!((trend.tau, trend.slope_per_trial), (1.0, 0.5));
    }
}
