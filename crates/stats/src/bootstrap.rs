//! Intervals for any statistic, by resampling.

use crate::describe::{quantile_of_sorted, sorted};
use crate::interval::{Interval, is_confidence};
use crate::normal;
use crate::random::Resampler;

/// Efron's bias-corrected and accelerated bootstrap interval of a statistic.
///
/// Of `resamples` samples drawn from the data with replacement the statistic is taken, and the
/// interval runs between two of its quantiles (type 7): at `F(z0 + (z0 + z) / (1 - a (z0 + z)))`
/// for `z` the normal quantiles of `(1 ∓ confidence) / 2`, `F` the normal distribution. The bias
/// `z0` is the normal quantile of the share of resampled values below the estimate, equal ones
/// counting one half; the acceleration is `a = sum(d^3) / (6 sum(d^2)^(3/2))`, `d` being the
/// mean of the jackknife values minus each. It assumes independent values and a statistic that
/// is smooth in them: for a median prefer [`median_interval`](crate::median_interval). With
/// fewer than about 20 values its coverage is below the nominal one. Source: Efron, "Better
/// bootstrap confidence intervals", J. Amer. Statist. Assoc. 82 (1987); Efron and
/// Tibshirani, An Introduction to the Bootstrap (1993), 14.3.
///
/// The result depends on the values, not on their order, and is the same for the same `seed`. The
/// statistic is taken `resamples + n + 1` times. Where it is the same for all resamples as for
/// the data, the interval has no width. `None` below two values, when a value is not finite, when
/// `confidence` is not between 0 and 1, when `resamples` is too small to have one in each tail
/// (below 40 for 0.95), when the statistic is `None` or not finite for any resample or any
/// data with one value left out, and when the resampled values all lie on one side of the estimate.
pub fn bca_interval(
    data: &[f64],
    statistic: impl Fn(&[f64]) -> Option<f64>,
    confidence: f64,
    resamples: usize,
    seed: u64,
) -> Option<Interval> {
    // Rounding must not turn 40 resamples at 0.95 into one too few.
    let enough = |tail: f64| resamples as f64 * tail >= 1.0 - 1e-9;
    if data.len() < 2 || !is_confidence(confidence) || !enough((1.0 - confidence) / 2.0) {
        return None;
    }
    let data = sorted(data)?;
    let statistic = |x: &[f64]| statistic(x).filter(|s| s.is_finite());
    let estimate = statistic(&data)?;
    let values = resampled(&data, &statistic, resamples, seed)?;
    if values.iter().all(|v| *v == estimate) {
        return Interval::between(estimate, estimate, confidence);
    }
    let bias = bias(&values, estimate)?;
    let acceleration = acceleration(&jackknife(&data, &statistic)?);
    let end = |p: f64| -> Option<f64> {
        let share = corrected(normal::quantile(p), bias, acceleration)?;
        Some(quantile_of_sorted(&values, share))
    };
    let low = end((1.0 - confidence) / 2.0)?;
    let high = end(f64::midpoint(1.0, confidence))?;
    Interval::between(low, high, confidence)
}

/// The statistic of each resample, ascending.
fn resampled(
    data: &[f64],
    statistic: &impl Fn(&[f64]) -> Option<f64>,
    resamples: usize,
    seed: u64,
) -> Option<Vec<f64>> {
    let mut draws = Resampler::new(seed);
    let mut drawn = Vec::with_capacity(data.len());
    let values: Option<Vec<f64>> = (0..resamples)
        .map(|_| {
            draws.resample(data, &mut drawn);
            statistic(&drawn)
        })
        .collect();
    sorted(&values?)
}

/// The statistic of the data without each of its values in turn.
fn jackknife(data: &[f64], statistic: &impl Fn(&[f64]) -> Option<f64>) -> Option<Vec<f64>> {
    let mut rest = data[1..].to_vec();
    (0..data.len())
        .map(|left_out| {
            // From the data without value i - 1 to the data without value i.
            if left_out > 0 {
                rest[left_out - 1] = data[left_out - 1];
            }
            statistic(&rest)
        })
        .collect()
}

/// `z0`; `None` when all values lie on one side of the estimate.
fn bias(values: &[f64], estimate: f64) -> Option<f64> {
    let below = values.iter().filter(|v| **v < estimate).count() as f64;
    let equal = values.iter().filter(|v| **v == estimate).count() as f64;
    let share = (below + equal / 2.0) / values.len() as f64;
    Some(normal::quantile(share)).filter(|z| z.is_finite())
}

/// `a`; 0 when leaving a value out never changes the statistic.
fn acceleration(jackknife: &[f64]) -> f64 {
    // Relative to the greatest, so that no power overflows or vanishes.
    let centre = jackknife
        .iter()
        .map(|v| v / jackknife.len() as f64)
        .sum::<f64>();
    let greatest = jackknife
        .iter()
        .fold(0.0, |g: f64, v| g.max((centre - v).abs()));
    if greatest == 0.0 || !greatest.is_finite() {
        return 0.0;
    }
    let deviations = || jackknife.iter().map(|v| (centre - v) / greatest);
    let squares: f64 = deviations().map(|d| d * d).sum();
    let cubes: f64 = deviations().map(|d| d * d * d).sum();
    cubes / (6.0 * squares.powf(1.5))
}

/// Which quantile of the resampled values takes the place of the normal quantile `z`; `None`
/// when the acceleration is too great for the formula.
fn corrected(z: f64, bias: f64, acceleration: f64) -> Option<f64> {
    let shifted = bias + z;
    let scale = 1.0 - acceleration * shifted;
    (scale > 0.0).then(|| normal::cdf(bias + shifted / scale))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outlier() -> Vec<f64> {
        let mut data = vec![
            1015.0, 992.0, 1004.0, 987.0, 2500.0, 1009.0, 999.0, 1001.0, 1023.0, 978.0, 985.0,
            1011.0, 1040.0, 995.0, 1006.0, 972.0,
        ];
        data.sort_by(f64::total_cmp);
        data
    }

    fn mean(x: &[f64]) -> Option<f64> {
        Some(x.iter().sum::<f64>() / x.len() as f64)
    }

    #[track_caller]
    fn close(ours: f64, scipy: f64) {
        assert!((ours - scipy).abs() < 1e-12, "{ours} vs {scipy}");
    }

    /// By SciPy from the same resamples: tests/all/reference_bootstrap.py.
    #[test]
    fn bias_and_acceleration() {
        let data = outlier();
        let values = resampled(&data, &mean, 999, 7).unwrap();
        close(
            bias(&values, mean(&data).unwrap()).unwrap(),
            0.12325913203986175,
        );
        close(
            acceleration(&jackknife(&data, &mean).unwrap()),
            0.15008670354290504,
        );
    }

    #[test]
    fn the_jackknife_leaves_each_value_out_once() {
        let sum = |x: &[f64]| Some(x.iter().sum());
        assert_eq!(jackknife(&[1.0, 2.0, 4.0], &sum), Some(vec![6.0, 5.0, 3.0]));
    }

    #[test]
    fn the_acceleration_of_the_mean_is_a_sixth_of_the_skewness() {
        // Efron 1987: for the mean, skewness / (6 sqrt(n)) with the moments over n.
        let data = outlier();
        let (n, m) = (data.len() as f64, mean(&data).unwrap());
        let moment = |k: i32| data.iter().map(|x| (x - m).powi(k)).sum::<f64>() / n;
        let skewness = moment(3) / moment(2).powf(1.5);
        close(
            acceleration(&jackknife(&data, &mean).unwrap()),
            skewness / (6.0 * n.sqrt()),
        );
    }

    #[test]
    fn without_bias_and_acceleration_the_quantiles_stay() {
        close(corrected(-1.96, 0.0, 0.0).unwrap(), normal::cdf(-1.96));
        assert_eq!(corrected(2.0, 0.0, 0.6), None);
    }

    #[test]
    fn no_change_has_no_acceleration() {
        assert_eq!(acceleration(&[2.0, 2.0, 2.0]), 0.0);
    }
}
