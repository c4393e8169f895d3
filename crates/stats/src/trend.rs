//! Tests for drift of values in the order of time.

use serde::Serialize;

use crate::describe::{median, sorted};
use crate::normal;

/// Most values without ties for which the distribution of Kendall's S is computed exactly.
const EXACT_MAX: usize = 50;

/// Most values for which the slope is the median over all pairs.
const ALL_PAIRS_MAX: usize = 2000;

/// A monotone trend along the data.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
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
        2.0 * normal::upper_tail(distance / sd)
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
    use super::*;

    #[test]
    fn long_series_has_its_halves_slope() {
        let data: Vec<f64> = (0..5001).map(|i| 0.5 * f64::from(i)).collect();
        let trend = mann_kendall(&data).unwrap();
        assert_eq!((trend.tau, trend.slope_per_trial), (1.0, 0.5));
    }
}
