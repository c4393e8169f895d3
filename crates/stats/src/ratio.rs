//! The ratio of two samples.

use crate::describe::sorted;
use crate::interval::Interval;

/// A ratio of two samples, new over base.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ratio {
    /// The ratio, without unit.
    pub ratio: f64,
    /// Interval of the ratio; `None` when a sample is too small for one, or when it overflows.
    pub interval: Option<Interval>,
}

/// The interval around `ratio` with half-width `reach` on the log scale.
pub(crate) fn around(ratio: f64, reach: f64, confidence: f64) -> Option<Interval> {
    // Multiplies instead of using the logarithm of the ratio, since rounding would move an interval of zero width off it.
    Interval::between(ratio * (-reach).exp(), ratio * reach.exp(), confidence)
}

pub(crate) fn sorted_positive(data: &[f64]) -> Option<Vec<f64>> {
    sorted(data).filter(|x| x[0] > 0.0)
}
