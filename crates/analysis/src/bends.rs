//! Bends of curves over I/O sizes, and the thresholds of the machine at these sizes.

use iolab_stats::{Interval, LatencyBandwidth, fit_latency_bandwidth, fit_piecewise};
use schemars::JsonSchema;
use serde::Serialize;

use crate::analysis::{Analysis, Response};
use crate::claim::effect::{confidence, median_within};
use crate::curve::{Curve, Point, by_size};
use crate::in_threads;
use crate::io_limit::MachineThreshold;

/// Fewest sizes of a curve for which a bend can be distinguished from scatter.
const POINTS_MIN: usize = 8;
/// Most sizes of a curve in which bends are searched. The cost of a fit grows with them, and the fit is repeated
/// many times.
const POINTS_MAX: usize = 256;
/// Most bends of one curve.
const BENDS_MAX: usize = 4;
/// Resamples for the interval of a bend: more hardly change it, and the fit is repeated for each.
const RESAMPLES: usize = 200;
/// An interval with a higher ratio of its ends does not locate a bend, and contains thresholds of any machine.
const INTERVAL_RATIO_MAX: f64 = 4.0;
/// Largest error at any size, as a share of the time, with which the model of a fixed cost and a bandwidth is
/// reported.
const MODEL_ERROR_MAX: f64 = 0.25;

/// A size at which a curve changes its slope.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Bend {
    /// Position of the bend, bytes.
    pub size: f64,
    /// 95 % interval of the position, bytes, from resampled trials.
    pub interval: Option<Interval>,
    /// Exponent of the power law below it: 1 if the response doubles with the size, 0 if it stays constant.
    pub slope_before: f64,
    /// Exponent of the power law above it.
    pub slope_after: f64,
    /// Thresholds within the interval: a coincidence, not a proven cause.
    pub thresholds: Vec<MachineThreshold>,
}

impl Bend {
    /// Whether the ends of its interval are within a factor of 4.
    fn is_placed(&self) -> bool {
        let narrow = |interval: Interval| interval.high <= INTERVAL_RATIO_MAX * interval.low;
        self.interval.is_some_and(narrow)
    }
}

/// The curves over `bs` with enough sizes for bends, in the order of the definition.
pub fn bendable(analysis: &Analysis) -> Vec<Curve<'_>> {
    let mut curves = by_size(analysis, "bs");
    curves.retain(|curve| (POINTS_MIN..=POINTS_MAX).contains(&curve.points.len()));
    curves
}

/// The bends of all [`bendable`] curves of an analysis. Slow to compute, since each curve is fitted 200 times:
/// compute it once and pass it on.
#[derive(Debug, Clone, PartialEq)]
pub struct Bends(Vec<OfCurve>);

/// The bends of one curve, identified by its fixed levels.
#[derive(Debug, Clone, PartialEq)]
struct OfCurve {
    held: Vec<String>,
    bends: Vec<Bend>,
}

impl Bends {
    /// Finds the bends with [`iolab_stats::fit_piecewise`], seeded by the run's seed so that the result is deterministic.
    pub fn of(analysis: &Analysis) -> Self {
        let of_curve = |curve: &Curve<'_>| OfCurve {
            bends: find(analysis, curve),
            held: curve.held.clone(),
        };
        let curves = bendable(analysis);
        let points = curves.iter().map(|curve| curve.points.len());
        let fitted = points.sum::<usize>() * RESAMPLES;
        Self(in_threads::map(&curves, fitted, of_curve))
    }

    /// The bends of one of the [`bendable`] curves that are shown, in ascending order: those whose interval
    /// spans at most a factor of 4. Empty for other curves.
    pub fn placed_on(&self, curve: &Curve<'_>) -> impl Iterator<Item = &Bend> {
        let own = self.0.iter().find(|of| of.held == curve.held);
        let bends = own.into_iter().flat_map(|of| &of.bends);
        bends.filter(|bend| bend.is_placed())
    }

    /// The bends of all curves, curve by curve.
    pub fn iter(&self) -> impl Iterator<Item = &Bend> {
        self.0.iter().flat_map(|of| &of.bends)
    }
}

fn find(analysis: &Analysis, curve: &Curve<'_>) -> Vec<Bend> {
    let trials: Vec<(f64, Vec<f64>)> = curve
        .points
        .iter()
        .map(|point| (point.size as f64, point.cell.values.clone()))
        .collect();
    let Some(fit) = fit_piecewise(&trials, BENDS_MAX, RESAMPLES, analysis.seed) else {
        return Vec::new();
    };
    fit.breakpoints
        .into_iter()
        .map(|breakpoint| Bend {
            size: breakpoint.x,
            interval: breakpoint.interval,
            slope_before: breakpoint.slope_before,
            slope_after: breakpoint.slope_after,
            thresholds: breakpoint.interval.map_or_else(Vec::new, |interval| {
                within(&interval, &analysis.machine_thresholds)
            }),
        })
        .collect()
}

fn within(interval: &Interval, thresholds: &[MachineThreshold]) -> Vec<MachineThreshold> {
    if interval.high > INTERVAL_RATIO_MAX * interval.low {
        return Vec::new();
    }
    let holds = |bytes: u64| (interval.low..=interval.high).contains(&(bytes as f64));
    thresholds
        .iter()
        .filter(|threshold| holds(threshold.bytes))
        .copied()
        .collect()
}

/// Time of a request as `t0 + size / bandwidth`, in ns and bytes, fitted to the medians of a curve of
/// throughput. The error is the greatest distance from either end of the medians' simultaneous 95 % intervals.
///
/// `None` with more than one request in flight (times overlap), with too few trials for an interval, or if the
/// error at any size exceeds a quarter of the time.
pub fn fixed_cost(analysis: &Analysis, curve: &Curve<'_>) -> Option<LatencyBandwidth> {
    let one_at_a_time = curve
        .points
        .iter()
        .all(|point| point.cell.cell.trial().in_flight_of_all() == 1);
    if analysis.response != Response::Throughput || !one_at_a_time {
        return None;
    }
    let sizes: Vec<f64> = curve.points.iter().map(|point| point.size as f64).collect();
    let times: Vec<f64> = curve
        .points
        .iter()
        .map(|point| point.size as f64 * 1e3 / point.summary.median)
        .collect();
    let fit = fit_latency_bandwidth(&sizes, &times)?;
    let confidence = confidence(curve.points.len());
    let error = |point: &Point<'_>| {
        let (low, high) = median_within(&point.cell.values, confidence)?;
        let size = point.size as f64;
        let modelled = fit.t0 + size / fit.bandwidth;
        let off = |mb_s: f64| (modelled * mb_s / (size * 1e3) - 1.0).abs();
        Some(off(low).max(off(high)))
    };
    let errors: Option<Vec<f64>> = curve.points.iter().map(error).collect();
    let relative_error_max = errors?.into_iter().fold(0.0, f64::max);
    (relative_error_max <= MODEL_ERROR_MAX).then_some(LatencyBandwidth {
        relative_error_max,
        ..fit
    })
}
