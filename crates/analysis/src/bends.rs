//! Where a curve over I/O sizes bends, and which thresholds of the machine lie there.

use iolab_stats::{Interval, LatencyBandwidth, fit_latency_bandwidth, fit_piecewise};

use crate::analysis::{Analysis, Response};
use crate::curve::{Curve, by_size};
use crate::thresholds::Threshold;

/// Fewest sizes that a curve needs for a bend to be distinguished from the spread of its points.
const POINTS_MIN: usize = 8;
/// Most sizes of a curve that bends are looked for in: a fit takes as long as it has points, and is repeated thousands of times.
const POINTS_MAX: usize = 256;
/// Most bends that are looked for in one curve.
const BENDS_MAX: usize = 4;
/// Resamples behind the interval of a bend: its ends move little with more, and the fit is repeated for each.
const RESAMPLES: usize = 200;
/// An interval that reaches over more than this factor holds some threshold on any machine: it tells of none, and of no place.
const INTERVAL_RATIO_MAX: f64 = 4.0;
/// The model of a fixed cost and a rate is reported where no size is further from it than this share of its time.
const MODEL_ERROR_MAX: f64 = 0.25;

/// A size at which a curve changes its slope.
#[derive(Debug, Clone, PartialEq)]
pub struct Bend {
    /// Where, bytes.
    pub size: f64,
    /// Its 95 % interval, bytes, from resampled trials.
    pub interval: Option<Interval>,
    /// Exponent of the power law below it: 1 where the response doubles with the size, 0 where it stays.
    pub slope_before: f64,
    /// The same above it.
    pub slope_after: f64,
    /// Thresholds that lie within the interval. A coincidence, which names a suspect and no cause.
    pub thresholds: Vec<Threshold>,
}

impl Bend {
    /// Whether its place is known to within a factor of 4.
    pub fn is_placed(&self) -> bool {
        let narrow = |interval: Interval| interval.high <= INTERVAL_RATIO_MAX * interval.low;
        self.interval.is_some_and(narrow)
    }
}

/// The curves over `bs` that have enough sizes for bends, in the order of the definition.
pub fn bendable(analysis: &Analysis) -> Vec<Curve<'_>> {
    let mut curves = by_size(analysis, "bs");
    curves.retain(|curve| (POINTS_MIN..=POINTS_MAX).contains(&curve.points.len()));
    curves
}

/// The bends of all [`bendable`] curves of an analysis. Each curve is fitted 200 times over, which takes long: find them
/// once, where they are shown, and pass them on.
#[derive(Debug, Clone, PartialEq)]
pub struct Bends(Vec<OfCurve>);

/// The bends of the curve that holds these levels.
#[derive(Debug, Clone, PartialEq)]
struct OfCurve {
    held: Vec<String>,
    bends: Vec<Bend>,
}

impl Bends {
    /// Finds them: the breakpoints of [`iolab_stats::fit_piecewise`], seeded by the run's seed, so that the same run file always
    /// has the same bends.
    pub fn of(analysis: &Analysis) -> Self {
        let of_curve = |curve: Curve<'_>| OfCurve {
            bends: find(analysis, &curve),
            held: curve.held,
        };
        Self(bendable(analysis).into_iter().map(of_curve).collect())
    }

    /// The bends of one of the [`bendable`] curves, in ascending order; none for any other curve.
    pub fn on(&self, curve: &Curve<'_>) -> &[Bend] {
        let own = self.0.iter().find(|of| of.held == curve.held);
        own.map_or(&[], |of| &of.bends)
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
            thresholds: breakpoint
                .interval
                .map_or_else(Vec::new, |interval| within(&interval, &analysis.thresholds)),
        })
        .collect()
}

fn within(interval: &Interval, thresholds: &[Threshold]) -> Vec<Threshold> {
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

/// The time of a request as `t0 + size / bandwidth`, in ns and bytes, fitted to the medians of a curve of throughput;
/// `None` where more than one request is in flight (their times overlap), and where the model misses a size by more
/// than a quarter of its time.
pub fn fixed_cost(analysis: &Analysis, curve: &Curve<'_>) -> Option<LatencyBandwidth> {
    let one_at_a_time = curve
        .points
        .iter()
        .all(|point| point.cell.cell.trial().threads == 1 && point.cell.cell.trial().depth == 1);
    if analysis.response != Response::Throughput || !one_at_a_time {
        return None;
    }
    let sizes: Vec<f64> = curve.points.iter().map(|point| point.size as f64).collect();
    let times: Vec<f64> = curve
        .points
        .iter()
        .map(|point| point.size as f64 * 1e3 / point.summary.median)
        .collect();
    fit_latency_bandwidth(&sizes, &times).filter(|fit| fit.relative_error_max <= MODEL_ERROR_MAX)
}
