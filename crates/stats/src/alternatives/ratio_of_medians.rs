//! Ratios of medians with intervals that are narrower than the ends of both exact ones.

use crate::binomial::lower_tail;
use crate::describe::median_of_sorted;
use crate::interval::{Interval, is_confidence, median_interval_of_sorted};
use crate::normal;
use crate::ratio::{Ratio, sorted_positive};

/// The ratio of the medians, with the distribution-free interval of Price and Bonett.
///
/// `ln(m2 / m1) ± z sqrt(v1 + v2)`, where `v = ((ln x_(n-c+1) - ln x_(c)) / (2 z_c))^2` is the
/// variance of the logarithm of a median, from the order statistics of rank
/// `c = max(1, round(n/2 - sqrt(n)))` and the normal quantile `z_c` of `1 - P(B <= c-1)`,
/// `B ~ Bin(n, 1/2)`. It assumes independent values of continuous distributions of any shape.
/// Source: Price and Bonett, "Distribution-free confidence intervals for difference and ratio of
/// medians", J. Statist. Comput. Simul. 72 (2002); rank `c` as in Bonett and Price,
/// "Confidence intervals for ratios of means and medians", J. Educ. Behav. Stat. 45 (2020).
///
/// Between two groups of values it fails: it covers 50 to 75 % (docs/VALIDATION.md, "Intervals").
///
/// There is an interval from six values in each sample. Simulated coverage of the nominal 95 %
/// (100,000 pairs of samples of equal size; tests/all/coverage_ratio.py):
///
/// | n | normal, sd 10 % | lognormal, sd 0.5 | lognormal, sd 0.1 and 0.5 | exponential |
/// |---|---|---|---|---|
/// | 6 | 97.9 | 97.8 | 96.3 | 98.1 |
/// | 8 | 98.4 | 98.3 | 97.3 | 98.6 |
/// | 10 | 97.1 | 97.1 | 95.8 | 97.4 |
/// | 20 | 95.6 | 95.7 | 94.3 | 95.9 |
/// | 50 | 95.0 | 95.0 | 94.0 | 95.1 |
///
/// `None` when a sample is empty, when a value is not finite and positive, when the ratio
/// overflows, or when `confidence` is not between 0 and 1.
pub fn ratio_of_medians(base: &[f64], new: &[f64], confidence: f64) -> Option<Ratio> {
    if !is_confidence(confidence) {
        return None;
    }
    let (base, new) = (sorted_positive(base)?, sorted_positive(new)?);
    let ratio = median_of_sorted(&new) / median_of_sorted(&base);
    let reach = log_median_error(&base)
        .zip(log_median_error(&new))
        .map(|(e1, e2)| normal::quantile(f64::midpoint(1.0, confidence)) * e1.hypot(e2));
    Ratio::new(ratio, reach, confidence)
}

/// The ratio of the medians, with an interval made of the exact ones of both: MOVER, the method of variance estimates
/// recovery.
///
/// With `m`, `l`, `u` the logarithms of a sample's median and of the ends of its [`median_interval`](crate::median_interval):
/// from `m2 - m1 - sqrt((m2 - l2)^2 + (u1 - m1)^2)` to `m2 - m1 + sqrt((u2 - m2)^2 + (m1 - l1)^2)`. It assumes independent
/// values of continuous distributions of any shape; the example `intervals` of `iolab-synthetic` simulates its coverage. Source: Zou and Donner,
/// "Construction of confidence limits about effect measures: a general approach", Statist. Med. 27 (2008) 1693-1702.
///
/// There is an interval where both samples have one. `None` as for [`ratio_of_medians`].
pub fn ratio_of_medians_recovered(base: &[f64], new: &[f64], confidence: f64) -> Option<Ratio> {
    if !is_confidence(confidence) {
        return None;
    }
    let (base, new) = (sorted_positive(base)?, sorted_positive(new)?);
    let (m1, m2) = (median_of_sorted(&base), median_of_sorted(&new));
    let ends = median_interval_of_sorted(&base, confidence)
        .zip(median_interval_of_sorted(&new, confidence));
    let interval = ends.and_then(|(one, two)| {
        // By ratios, not differences of logarithms: ends that are the median reach exactly nowhere.
        let down = (m2 / two.low).ln().hypot((one.high / m1).ln());
        let up = (two.high / m2).ln().hypot((m1 / one.low).ln());
        let ratio = m2 / m1;
        Interval::between(ratio * (-down).exp(), ratio * up.exp(), confidence)
    });
    let ratio = m2 / m1;
    (ratio > 0.0 && ratio.is_finite()).then_some(Ratio { ratio, interval })
}

/// The standard error of the logarithm of the median; `None` below six values.
fn log_median_error(x: &[f64]) -> Option<f64> {
    const FEWEST: usize = 6;
    if x.len() < FEWEST {
        return None;
    }
    let n = x.len() as f64;
    let rank = (n / 2.0 - n.sqrt()).round().max(1.0) as usize;
    let tail = lower_tail(n, 0.5, (rank - 1) as f64);
    let width = x[x.len() - rank].ln() - x[rank - 1].ln();
    Some(width / (-2.0 * normal::quantile(tail)))
}
