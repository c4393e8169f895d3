//! The ratio of two samples.

use crate::describe::{mean_of_sorted, sorted};
use crate::interval::{Interval, is_confidence, margin};
use crate::t_test::{Sample, welch_error};

/// A ratio of two samples, new over base.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ratio {
    /// The ratio, without unit.
    pub ratio: f64,
    /// Interval of the ratio; `None` when a sample is too small for one, or when it overflows.
    pub interval: Option<Interval>,
}

/// The ratio of the means, with a t interval on the log scale.
///
/// `ln(m2 / m1) ± t_df sqrt(w1 + w2)`, `w = v / (n m^2)`, with Satterthwaite's
/// `df = (w1 + w2)^2 / (w1^2 / (n1-1) + w2^2 / (n2-1))`. It assumes independent values whose means
/// are about normal. Source: Bonett and Price, "Confidence intervals for ratios of means and
/// medians", J. Educ. Behav. Stat. 45 (2020).
///
/// There is an interval from two values in each sample. `None` when a sample is empty, when a
/// value is not finite and positive, when a sum or the ratio overflows, or when `confidence`
/// is not between 0 and 1.
pub fn ratio_of_means(base: &[f64], new: &[f64], confidence: f64) -> Option<Ratio> {
    if !is_confidence(confidence) {
        return None;
    }
    let (base, new) = (sorted_positive(base)?, sorted_positive(new)?);
    let ratio = mean_of_sorted(&new)? / mean_of_sorted(&base)?;
    let reach = Sample::new(&base)
        .zip(Sample::new(&new))
        .and_then(|(base, new)| {
            let relative = |sample: &Sample| sample.error() / sample.mean;
            let (error, df) = welch_error(relative(&base), base.n, relative(&new), new.n);
            margin(error, df, confidence)
        });
    Ratio::new(ratio, reach, confidence)
}

impl Ratio {
    /// A ratio with an interval from its half-width on the log scale.
    pub(crate) fn new(ratio: f64, reach: Option<f64>, confidence: f64) -> Option<Self> {
        if !(ratio > 0.0 && ratio.is_finite()) {
            return None;
        }
        let interval = reach.and_then(|reach| around(ratio, reach, confidence));
        Some(Self { ratio, interval })
    }
}

/// The interval around `ratio` with half-width `reach` on the log scale.
pub(crate) fn around(ratio: f64, reach: f64, confidence: f64) -> Option<Interval> {
    // Multiplies instead of using the logarithm of the ratio, since rounding would move an interval of zero width off it.
    Interval::between(ratio * (-reach).exp(), ratio * reach.exp(), confidence)
}

pub(crate) fn sorted_positive(data: &[f64]) -> Option<Vec<f64>> {
    sorted(data).filter(|x| x[0] > 0.0)
}
