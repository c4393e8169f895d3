//! Medians of a curve on logarithmic axes, with their weights.

use std::f64::consts::PI;

use crate::describe::{mad, median};
use crate::random::Resampler;

/// Points in ascending order of x.
pub(super) struct Points {
    /// Base-2 logarithms.
    pub(super) x: Vec<f64>,
    /// Base-2 logarithms of the medians.
    pub(super) y: Vec<f64>,
    /// Positive, with a mean of 1.
    pub(super) weights: Vec<f64>,
    /// The mean square that the spread of the trials alone leaves in the weighted residuals;
    /// 0 when it is not known.
    pub(super) noise: f64,
}

impl Points {
    /// The points of a curve, and the trials of each.
    ///
    /// `None` below 2 points, when something is not positive and finite, when a point has no
    /// value, or when an `x` comes twice.
    pub(super) fn of(curve: &[(f64, Vec<f64>)]) -> Option<(Self, Vec<&[f64]>)> {
        let positive = |x: f64| x > 0.0 && x.is_finite();
        let usable = |(x, values): &(f64, Vec<f64>)| {
            positive(*x) && !values.is_empty() && values.iter().all(|v| positive(*v))
        };
        if curve.len() < 2 || !curve.iter().all(usable) {
            return None;
        }
        let mut ascending: Vec<&(f64, Vec<f64>)> = curve.iter().collect();
        ascending.sort_by(|a, b| a.0.total_cmp(&b.0));
        let x: Vec<f64> = ascending.iter().map(|point| point.0.log2()).collect();
        // Compared as logarithms: two numbers may be so close that their logarithms are equal.
        if x.windows(2).any(|pair| pair[0] >= pair[1]) {
            return None;
        }
        let trials: Vec<&[f64]> = ascending.iter().map(|point| &point.1[..]).collect();
        let (weights, noise) = weights(&trials);
        let points = Self {
            x,
            y: trials
                .iter()
                .map(|t| log_median(t))
                .collect::<Option<_>>()?,
            weights,
            noise,
        };
        Some((points, trials))
    }

    pub(super) fn len(&self) -> usize {
        self.x.len()
    }

    /// A place counts points from the first one, 0; between two points it is a share of the way.
    pub(super) fn places_to_x(&self, places: &[f64]) -> Vec<f64> {
        let to_x = |place: &f64| {
            let before = (*place as usize).min(self.len() - 2);
            let share = place - before as f64;
            self.x[before] + share * (self.x[before + 1] - self.x[before])
        };
        places.iter().map(to_x).collect()
    }

    /// The points with medians of trials that are drawn with replacement.
    pub(super) fn resampled(&self, trials: &[&[f64]], draws: &mut Resampler) -> Self {
        let mut drawn = Vec::new();
        let draw = |(values, own): (&&[f64], &f64)| {
            draws.resample(values, &mut drawn);
            log_median(&drawn).unwrap_or(*own)
        };
        Self {
            x: self.x.clone(),
            y: trials.iter().zip(&self.y).map(draw).collect(),
            weights: self.weights.clone(),
            noise: self.noise,
        }
    }
}

fn log_median(values: &[f64]) -> Option<f64> {
    // The midpoint of two subnormal numbers can vanish.
    median(values).map(f64::log2).filter(|y| y.is_finite())
}

/// The weights of the points, and the mean square that the spread of the trials alone leaves
/// in weighted residuals; 0 when no spread is known.
fn weights(trials: &[&[f64]]) -> (Vec<f64>, f64) {
    let spreads: Vec<Option<f64>> = trials.iter().map(|t| square_spread(t)).collect();
    let known: Vec<f64> = spreads
        .iter()
        .flatten()
        .copied()
        .filter(|s| *s > 0.0)
        .collect();
    let Some(typical) = median(&known).filter(|s| *s > 0.0) else {
        return (vec![1.0; trials.len()], 0.0);
    };
    let inverse: Vec<f64> = spreads
        .iter()
        .zip(trials)
        .map(|(own, values)| 1.0 / median_variance(*own, typical, values.len() as f64))
        .collect();
    let mean = inverse.iter().sum::<f64>() / inverse.len() as f64;
    (inverse.iter().map(|w| w / mean).collect(), 1.0 / mean)
}

/// The variance of the median of `n` trials, from their own spread and the typical one.
///
/// A spread of a few trials is itself unsure; weights by it alone would let chance pick the
/// points that count. It is pulled towards the typical one as if that came from ten
/// trials more (the idea of Smyth, Statistical Applications in Genetics and Molecular Biology
/// 3 (2004) article 3).
fn median_variance(own: Option<f64>, typical: f64, n: f64) -> f64 {
    const TYPICAL_TRIALS: f64 = 10.0;
    let own = own.unwrap_or(typical);
    let spread = (own * (n - 1.0) + typical * TYPICAL_TRIALS) / (n - 1.0 + TYPICAL_TRIALS);
    PI / 2.0 * spread / n
}

/// The square of the robust standard deviation of the logarithms; `None` for a single trial.
fn square_spread(values: &[f64]) -> Option<f64> {
    if values.len() < 2 {
        return None;
    }
    let logarithms: Vec<f64> = values.iter().map(|v| v.log2()).collect();
    // 1.4826 MAD estimates the standard deviation of normal values.
    mad(&logarithms).map(|mad| (1.4826 * mad).powi(2))
}
