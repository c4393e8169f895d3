//! Likelihood of a sample under each of several shapes with one mode.

use std::f64::consts::{E, TAU};

/// Starts of a shifted lognormal below the least value, as shares of the range.
const SHIFTS: [f64; 5] = [0.05, 0.1, 0.2, 0.4, 1.0];

/// The log-likelihood of `n` values under the normal distribution fitted to them, by their variance.
pub(super) fn normal_log_likelihood(n: f64, variance: f64) -> f64 {
    -n / 2.0 * (TAU * E * variance).ln()
}

/// The greatest log-likelihood of any single shape; `x` is ascending with at least two values.
///
/// `None` when it is not finite, as when more than half of the values are equal to rounding.
pub(super) fn best_log_likelihood(x: &[f64]) -> Option<f64> {
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
