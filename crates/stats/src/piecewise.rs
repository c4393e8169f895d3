//! Piecewise linear curves with breakpoints, on logarithmic axes.
//!
//! Medians of a curve on logarithmic axes, with their weights.
//!
//! A model of the time of a request: a fixed cost plus a cost per byte.

mod breakpoint_search;

use std::f64::consts::PI;

use schemars::JsonSchema;
use serde::Serialize;

use crate::describe::{mad, median};
use crate::distributions::Resampler;
use crate::interval::{CONFIDENCE, Interval};
use breakpoint_search::{Breakpoints, Spline, best_places, improve};

/// The fewest resamples for an interval at [`CONFIDENCE`].
const RESAMPLES_MIN: usize = 40;

/// A bend of the curve.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Breakpoint {
    /// Position, in the unit of `x`.
    pub x: f64,
    /// Percentile bootstrap interval of the place at [`CONFIDENCE`], in the unit of `x`. `None`
    /// without repeated trials or with less than 40 resamples.
    pub interval: Option<Interval>,
    /// The slope below it: octaves of the value per octave of `x`, the exponent of a power law.
    pub slope_before: f64,
    /// The slope above it, likewise.
    pub slope_after: f64,
}

fn slope(from: (f64, f64), to: (f64, f64)) -> f64 {
    (to.1 - from.1) / (to.0 - from.0)
}

/// Bends of straight pieces fitted to the medians of the trials at each `x`, in log2-log2 space, in ascending order; none
/// for a straight line.
///
/// `curve` holds each `x` once, in any order, with the trials' values there. For each `k =
/// 0..=breakpoints_max`, the weighted sum of squares `RSS = sum w_i (log2 median_i - f(log2 x_i))^2` is
/// minimised. What varies are the places of the `k` breakpoints and the values at them. Each breakpoint in turn
/// moves over candidate places a quarter of a point apart until none moves, from several starts; golden
/// sections follow. Breakpoints lie at least one point apart from the ends and from each other.
///
/// The weights are `1 / v_i`, scaled to a mean of 1. `v_i = (pi/2) s_i^2 / m_i` is the variance of the median
/// of `m_i` trials. `s_i^2` is the square of 1.4826 MAD of the trials' logarithms. It is pulled towards the
/// typical one (the median over the points) as if that came from ten trials more, so that no weight is
/// infinite. Weights are equal when no spread is known.
///
/// The number of breakpoints is that with the least `n ln(max(RSS / n, v)) + n p ln n / (n - p - 2)`,
/// `p = 2k + 2`: the BIC with the correction for few points of McQuarrie, "A small-sample correction
/// for the Schwarz SIC model selection criterion", Statistics and Probability Letters 44 (1999)
/// 79-86. `v` is the harmonic mean of the `v_i`: what the spread of the trials explains needs no
/// breakpoint (a millionth of an octave, squared, when that is more). It must stay defined, so `n` points
/// allow `(n - 5) / 2` breakpoints. It assumes that the points scatter independently about the
/// pieces; a smooth curve is given as many breakpoints as its bend is clear.
///
/// The intervals are percentiles over `resamples` curves, whose trials are drawn with replacement
/// within each `x`, with the number of breakpoints and the weights kept; an interval always holds the
/// breakpoint itself. They tell what the spread of the trials does to the place of a bend, not whether
/// the true curve has corners. Equal seeds give equal intervals. Sources: Muggeo, "Estimating
/// regression models with unknown break-points", Statistics in Medicine 22 (2003) 3055-3071;
/// Efron and Tibshirani, An Introduction to the Bootstrap (1993), chapter 13.
///
/// `None` below 2 points, when an `x` or a value is not positive and finite, when a point has
/// no value, or when an `x` comes twice.
pub fn fit_piecewise(
    curve: &[(f64, Vec<f64>)],
    breakpoints_max: usize,
    resamples: usize,
    seed: u64,
) -> Option<Vec<Breakpoint>> {
    let (points, trials) = Points::of(curve)?;
    let fits = fits_by_knots(&points, breakpoints_max);
    let rated = fits.into_iter().map(|fit| (criterion(&points, &fit), fit));
    let (_, best) = rated.min_by(|(a, _), (b, _)| a.total_cmp(b))?;
    let spline = Spline::fit(&points, &points.places_to_x(&best));
    let intervals = intervals(&points, &trials, &best, resamples, seed);
    let bends = spline
        .nodes
        .windows(3)
        .zip(intervals)
        .map(|(nodes, interval)| Breakpoint {
            x: nodes[1].0.exp2(),
            interval,
            slope_before: slope(nodes[0], nodes[1]),
            slope_after: slope(nodes[1], nodes[2]),
        });
    Some(bends.collect())
}

/// The best breakpoints for none, one, and so on, as far as the points allow.
fn fits_by_knots(points: &Points, breakpoints_max: usize) -> Vec<Breakpoints> {
    let allowed = breakpoints_max.min(points.len().saturating_sub(5) / 2);
    let mut fits = vec![Breakpoints::new()];
    while fits.len() <= allowed {
        match best_places(points, &fits[fits.len() - 1]) {
            Some(places) => fits.push(places),
            None => break,
        }
    }
    fits
}

fn criterion(points: &Points, places: &Breakpoints) -> f64 {
    /// Octaves; far below the resolution of any measurement.
    const RESIDUAL_MIN: f64 = 1e-6;
    let n = points.len() as f64;
    let rss = Spline::fit(points, &points.places_to_x(places)).rss;
    let least = points.noise.max(RESIDUAL_MIN * RESIDUAL_MIN);
    let parameters = 2.0 * places.len() as f64 + 2.0;
    // Below five points there is only one fit.
    let freedom = (n - parameters - 2.0).max(1.0);
    n * (rss / n).max(least).ln() + n * n.ln() * parameters / freedom
}

/// The interval of each breakpoint, by resampling the trials of each point.
fn intervals(
    points: &Points,
    trials: &[&[f64]],
    places: &Breakpoints,
    resamples: usize,
    seed: u64,
) -> Vec<Option<Interval>> {
    let repeated = trials.iter().any(|values| values.len() > 1);
    if !repeated || resamples < RESAMPLES_MIN || places.is_empty() {
        return vec![None; places.len()];
    }
    let mut draws = Resampler::new(seed);
    let mut found: Vec<Vec<f64>> = points
        .places_to_x(places)
        .into_iter()
        .map(|x| vec![x])
        .collect();
    for _ in 0..resamples {
        let resampled = points.resampled(trials, &mut draws);
        let moved = improve(&resampled, places.clone());
        for (all, x) in found.iter_mut().zip(points.places_to_x(&moved)) {
            all.push(x);
        }
    }
    found
        .into_iter()
        .map(|all| Some(percentiles(all)))
        .collect()
}

/// The central share [`CONFIDENCE`] of the positions, widened to contain the first.
fn percentiles(mut places: Vec<f64>) -> Interval {
    let own = places[0];
    places.sort_by(f64::total_cmp);
    let cut = ((1.0 - CONFIDENCE) / 2.0 * places.len() as f64) as usize;
    let (low, high) = (places[cut], places[places.len() - 1 - cut]);
    Interval {
        low: low.min(own).exp2(),
        high: high.max(own).exp2(),
        confidence: CONFIDENCE,
        ranks: None,
    }
}

/// Points in ascending order of x.
struct Points {
    /// Base-2 logarithms.
    x: Vec<f64>,
    /// Base-2 logarithms of the medians.
    y: Vec<f64>,
    /// Positive, with a mean of 1.
    weights: Vec<f64>,
    /// The mean square that the spread of the trials alone leaves in the weighted residuals;
    /// 0 when it is not known.
    noise: f64,
}

impl Points {
    /// The points of a curve, and the trials of each.
    ///
    /// `None` below 2 points, when something is not positive and finite, when a point has no
    /// value, or when an `x` comes twice.
    fn of(curve: &[(f64, Vec<f64>)]) -> Option<(Self, Vec<&[f64]>)> {
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

    fn len(&self) -> usize {
        self.x.len()
    }

    /// A place counts points from the first one, 0; between two points it is a share of the way.
    fn places_to_x(&self, places: &[f64]) -> Vec<f64> {
        let to_x = |place: &f64| {
            let before = (*place as usize).min(self.len() - 2);
            let share = place - before as f64;
            self.x[before] + share * (self.x[before + 1] - self.x[before])
        };
        places.iter().map(to_x).collect()
    }

    /// The points with medians of trials that are drawn with replacement.
    fn resampled(&self, trials: &[&[f64]], draws: &mut Resampler) -> Self {
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

/// The model `T(s) = t0 + s / bandwidth`, fitted to times of requests.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct LatencyBandwidth {
    /// Fixed cost of a request, in the unit of the times; at least 0.
    pub t0: f64,
    /// Rate approached by ever larger requests, in units of size per unit of time.
    pub bandwidth: f64,
    /// Size at which half of that rate is reached, `t0 * bandwidth`, in the unit of the sizes.
    pub n_half: f64,
    /// Greatest `|T(s) / T - 1|` of the points.
    pub relative_error_max: f64,
}

/// Fits `T(s) = t0 + s / B` by least squares of the relative error.
///
/// It minimises `sum((t0 u_i + b v_i - 1)^2)` with `u = 1/T`, `v = s/T`, `b = 1/B`. The weights are thus
/// `1/T^2`, and small and large sizes count alike. The solution has a closed form: `b` from the part of `v`
/// that is orthogonal to `u`, then `t0`. When that gives `t0 < 0`, `t0` is set to 0 and `b = sum(v) /
/// sum(v^2)`, the minimum under `t0 >= 0`. The fit assumes a spread proportional to the time, and the same
/// mechanism at all sizes; the relative errors tell when that fails. Source: Hockney, "The communication
/// challenge for MPP: Intel Paragon and Meiko CS-2", Parallel Computing 20 (1994) 389-398, for the model and
/// `n1/2`.
///
/// `None` when the slices differ in length, with fewer than two different sizes, or when a size or a time is
/// not positive and finite. `None` also when the times do not grow with the size (no finite bandwidth), when a
/// result overflows, or when a bandwidth vanishes.
pub fn fit_latency_bandwidth(sizes: &[f64], times: &[f64]) -> Option<LatencyBandwidth> {
    let positive = |x: &f64| *x > 0.0 && x.is_finite();
    if sizes.len() != times.len() || !sizes.iter().chain(times).all(positive) {
        return None;
    }
    if sizes.iter().all(|s| *s == sizes[0]) {
        return None;
    }
    let (s_unit, t_unit) = (greatest(sizes), greatest(times));
    let inverse: Vec<f64> = times.iter().map(|t| t_unit / t).collect();
    let rate: Vec<f64> = sizes
        .iter()
        .zip(&inverse)
        .map(|(s, u)| s / s_unit * u)
        .collect();
    let (t0, b) = least_squares(&inverse, &rate)?;
    let relative: Vec<f64> = inverse
        .iter()
        .zip(&rate)
        .map(|(u, v)| t0 * u + b * v - 1.0)
        .collect();
    let fit = LatencyBandwidth {
        t0: t0 * t_unit,
        bandwidth: s_unit / t_unit / b,
        n_half: t0 / b * s_unit,
        relative_error_max: relative.iter().fold(0.0, |max, e| e.abs().max(max)),
    };
    let all = [fit.t0, fit.bandwidth, fit.n_half, fit.relative_error_max];
    let sound = fit.bandwidth > 0.0 && all.iter().all(|x| x.is_finite());
    sound.then_some(fit)
}

fn greatest(data: &[f64]) -> f64 {
    data.iter().copied().fold(0.0, f64::max)
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// `t0 >= 0` and `b > 0` that minimise `sum((t0 u + b v - 1)^2)`; `None` when `b` is not positive.
fn least_squares(u: &[f64], v: &[f64]) -> Option<(f64, f64)> {
    let along = dot(u, v) / dot(u, u);
    let rest: Vec<f64> = u.iter().zip(v).map(|(u, v)| v - along * u).collect();
    let level = u.iter().sum::<f64>() / dot(u, u);
    // The residual of 1 after `u`; projecting this instead of 1 keeps precision.
    let left: Vec<f64> = u.iter().map(|u| 1.0 - level * u).collect();
    let b = dot(&rest, &left) / dot(&rest, &rest);
    if !(b > 0.0 && b.is_finite()) {
        return None;
    }
    let t0 = level - b * along;
    if t0 >= 0.0 {
        Some((t0, b))
    } else {
        Some((0.0, v.iter().sum::<f64>() / dot(v, v)))
    }
}
