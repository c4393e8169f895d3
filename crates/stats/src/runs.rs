//! Runs of values above and below the median: data in order of time.

use serde::Serialize;

use crate::describe::median;
use crate::normal;

/// Most values for which the distribution of the number of runs is computed exactly.
const EXACT_MAX: usize = 200;

/// The test of Wald and Wolfowitz for too few or too many runs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct RunsTest {
    /// Number of consecutive stretches above or below the median.
    pub runs: usize,
    /// Two-sided p-value, for values in random order.
    pub p: f64,
}

/// Tests that values above and below the median come in random order.
///
/// Values equal to the median are dropped. Of the `N` that are left, `n1` lie above and `n2` below. Up to `N =
/// 200` the distribution of the number of runs is exact: `P(2k) = 2 C(n1-1, k-1) C(n2-1, k-1) / C(N, n1)`;
/// `P(2k+1) = [C(n1-1, k) C(n2-1, k-1) + C(n1-1, k-1) C(n2-1, k)] / C(N, n1)`. `p` is twice the smaller tail,
/// at most 1. Above `N = 200` the distribution is taken as normal, with a continuity correction of one half.
/// Its mean is `1 + 2 n1 n2 / N`; its variance is `2 n1 n2 (2 n1 n2 - N) / (N^2 (N - 1))`.
/// Few runs mean drift or levels that last, many mean alternation. Source: Wald and
/// Wolfowitz, "On a test whether two samples are from the same population", Annals of
/// Mathematical Statistics 11 (1940) 147-162.
///
/// `None` when a value is not finite, or when no values lie above or none below the median,
/// as when all are equal.
pub fn runs_test(data: &[f64]) -> Option<RunsTest> {
    let median = median(data)?;
    let sides: Vec<bool> = data
        .iter()
        .filter(|x| **x != median)
        .map(|x| *x > median)
        .collect();
    let above = sides.iter().filter(|side| **side).count();
    let below = sides.len() - above;
    if above == 0 || below == 0 {
        return None;
    }
    let runs = 1 + sides.windows(2).filter(|pair| pair[0] != pair[1]).count();
    let p = if sides.len() <= EXACT_MAX {
        exact_p(runs, above, below)
    } else {
        normal_p(runs as f64, above as f64, below as f64)
    };
    Some(RunsTest { runs, p })
}

/// Twice the smaller tail of the exact distribution.
fn exact_p(runs: usize, above: usize, below: usize) -> f64 {
    let ways = Ways { above, below };
    let all = above + below;
    let fewer: f64 = (2..=runs).map(|r| ways.to_make(r)).sum();
    let more: f64 = (runs..=all).map(|r| ways.to_make(r)).sum();
    let total = fewer + more - ways.to_make(runs);
    (2.0 * fewer.min(more) / total).min(1.0)
}

/// Counts the orders of `above` and `below` values by their number of runs.
struct Ways {
    above: usize,
    below: usize,
}

impl Ways {
    fn to_make(&self, runs: usize) -> f64 {
        // Each side is divided into its runs: there are C(n-1, k-1) ways to divide n values into k runs.
        let (half, odd) = (runs / 2, runs % 2 == 1);
        let cut = |n: usize, pieces: usize| choose(n - 1, pieces - 1);
        if odd {
            cut(self.above, half + 1) * cut(self.below, half)
                + cut(self.above, half) * cut(self.below, half + 1)
        } else {
            2.0 * cut(self.above, half) * cut(self.below, half)
        }
    }
}

/// The binomial coefficient, up to rounding; at most 1e60 for the sizes used here.
fn choose(n: usize, k: usize) -> f64 {
    if k > n {
        return 0.0;
    }
    (0..k.min(n - k)).fold(1.0, |product, i| product * (n - i) as f64 / (i + 1) as f64)
}

fn normal_p(runs: f64, above: f64, below: f64) -> f64 {
    let all = above + below;
    let pairs = 2.0 * above * below;
    let mean = 1.0 + pairs / all;
    let variance = pairs * (pairs - all) / (all * all * (all - 1.0));
    let distance = ((runs - mean).abs() - 0.5).max(0.0);
    2.0 * normal::upper_tail(distance / variance.sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_at_the_median_are_dropped() {
        let test = runs_test(&[1.0, 5.0, 5.0, 9.0, 5.0]).unwrap();
        assert_eq!(test, RunsTest { runs: 2, p: 1.0 });
    }

    #[test]
    fn the_normal_approximation_joins_the_exact_values() {
        for runs in [80, 90, 100, 110] {
            let exact = exact_p(runs, 100, 100);
            let normal = normal_p(runs as f64, 100.0, 100.0);
            assert!((exact - normal).abs() < 0.003, "{runs}: {exact} {normal}");
        }
    }
}
