//! Piecewise linear curves with breakpoints, on logarithmic axes.

mod breakpoint_search;
mod points;
mod spline;

use crate::interval::Interval;
use crate::random::Resampler;
use crate::summary::CONFIDENCE;
use breakpoint_search::{Breakpoints, best_places, improve};
use points::Points;
use spline::Spline;

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

/// A continuous piecewise linear fit to the medians of a curve in log2-log2 space.
#[derive(Debug, Clone, PartialEq)]
pub struct Piecewise {
    /// The bends in ascending order of `x`; empty for a straight line.
    pub breakpoints: Vec<Breakpoint>,
    /// The information criterion by number of breakpoints, from none; the least one was chosen.
    pub bic: Vec<f64>,
    /// Weighted root mean square of the residuals, in octaves of the value.
    pub rms: f64,
    /// Ends and breakpoints as (log2 of x, log2 of the value).
    nodes: Vec<(f64, f64)>,
}

impl Piecewise {
    /// The value that the fit gives at `x`; beyond the ends the outer pieces go on.
    ///
    /// `None` when `x` is not positive and finite, or when the value overflows.
    pub fn at(&self, x: f64) -> Option<f64> {
        if !(x > 0.0 && x.is_finite()) {
            return None;
        }
        let x = x.log2();
        let inner = &self.nodes[1..self.nodes.len() - 1];
        let piece = inner.partition_point(|node| node.0 <= x);
        let from = self.nodes[piece];
        let value = from.1 + slope(from, self.nodes[piece + 1]) * (x - from.0);
        Some(value.exp2()).filter(|value| value.is_finite())
    }
}

fn slope(from: (f64, f64), to: (f64, f64)) -> f64 {
    (to.1 - from.1) / (to.0 - from.0)
}

/// Fits straight pieces to the medians of the trials at each `x`, in log2-log2 space.
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
) -> Option<Piecewise> {
    let (points, trials) = Points::of(curve)?;
    let fits = fits_by_knots(&points, breakpoints_max);
    let bic: Vec<f64> = fits.iter().map(|fit| criterion(&points, fit)).collect();
    let best = (0..fits.len()).min_by(|a, b| bic[*a].total_cmp(&bic[*b]))?;
    let spline = Spline::fit(&points, &points.places_to_x(&fits[best]));
    let intervals = intervals(&points, &trials, &fits[best], resamples, seed);
    let breakpoints = spline
        .nodes
        .windows(3)
        .zip(intervals)
        .map(|(nodes, interval)| Breakpoint {
            x: nodes[1].0.exp2(),
            interval,
            slope_before: slope(nodes[0], nodes[1]),
            slope_after: slope(nodes[1], nodes[2]),
        })
        .collect();
    Some(Piecewise {
        breakpoints,
        bic,
        rms: (spline.rss / points.len() as f64).sqrt(),
        nodes: spline.nodes,
    })
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
