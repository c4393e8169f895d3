//! Dependence between successive values: data in order of time.
//!
//! Intervals and tests assume independent trials. These functions say how far that holds.

use serde::Serialize;

use std::cell::OnceCell;

use statrs::distribution::{ChiSquared, ContinuousCDF};

use crate::correlation::lagged_products;
use crate::describe::mean;

/// The most lags that [`effective_sample_size`] uses, so that its cost stays linear in `n`.
const LAGS_MAX: usize = 2000;
/// Longest series whose lags are computed one by one.
const DIRECT_MAX: usize = 50_000;
/// Number of lags computed one by one in a longer series; most series need no more.
const NEAR_LAGS: usize = 32;

/// The autocorrelation of neighbouring values, [`autocorrelation`] at lag 1.
///
/// Independent values have about `-1/n`, give or take `2 / sqrt(n)`. `None` below 2 values,
/// when a value is not finite, and when all are equal.
pub fn lag1(data: &[f64]) -> Option<f64> {
    autocorrelation(data, 1)
}

/// The autocorrelation at a lag: `sum(d_t d_(t+lag)) / sum(d_t^2)`, `d = x - mean`.
///
/// The biased estimator, whose sums both run over all there is without dividing by `n - lag`;
/// it stays within -1 and 1. It assumes that mean and variance do not change along the
/// data: a trend shows as autocorrelation, too. Source: Box, Jenkins and Reinsel, Time Series
/// Analysis, 4th ed. (2008), section 2.1.4.
///
/// `None` when `lag` is not less than `n`, when a value is not finite, or when their sum or a deviation
/// overflows; also when all values are equal, as there is no variation to correlate.
pub fn autocorrelation(data: &[f64], lag: usize) -> Option<f64> {
    let deviations = Deviations::of(data)?;
    (lag < data.len()).then(|| deviations.autocorrelation(lag))
}

/// The portmanteau test of Ljung and Box.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct LjungBox {
    /// The statistic.
    pub q: f64,
    /// Number of lags in the sum; the degrees of freedom.
    pub lags: usize,
    /// The probability of a greater `q` for independent values.
    pub p: f64,
}

/// Tests that the first `lags` autocorrelations are all zero.
///
/// `q = n (n + 2) sum_(k=1..lags) r_k^2 / (n - k)`, compared with chi-squared on `lags`
/// degrees of freedom. The null hypothesis is independent values; the distribution holds for
/// `n` well above `lags`. Source: Ljung and Box, "On a measure of lack of fit in time series
/// models", Biometrika 65 (1978) 297-303.
///
/// `None` when `lags` is 0 or not less than `n`, and where [`autocorrelation`] is.
pub fn ljung_box(data: &[f64], lags: usize) -> Option<LjungBox> {
    if lags == 0 || lags >= data.len() {
        return None;
    }
    let deviations = Deviations::of(data)?;
    let n = data.len() as f64;
    let sum: f64 = (1..=lags)
        .map(|lag| deviations.autocorrelation(lag).powi(2) / (n - lag as f64))
        .sum();
    let q = n * (n + 2.0) * sum;
    let p = ChiSquared::new(lags as f64).ok()?.sf(q);
    (q.is_finite() && p.is_finite()).then_some(LjungBox { q, lags, p })
}

/// Number of independent values that determine the mean as precisely as these dependent ones do.
///
/// `n / t` with `t = -1 + 2 sum_m (r_2m + r_(2m+1))`, summed from `m = 0` for as long as the
/// pairs are positive: the initial positive sequence estimator of Geyer, "Practical Markov
/// chain Monte Carlo", Statistical Science 7 (1992) 473-483. At least 1 and at most `n`:
/// values that alternate are not called better than independent ones. It assumes a stationary
/// series; a drift gives a small value. No more than 2000 lags are looked at, so that for
/// a longer correlation the result is too large.
///
/// `None` below 2 values, when a value is not finite, when all are equal, or when their sum
/// or a deviation overflows.
pub fn effective_sample_size(data: &[f64]) -> Option<f64> {
    let deviations = Deviations::of(data)?;
    let n = data.len();
    let lags = n.min(LAGS_MAX);
    let far = OnceCell::new();
    let at = |lag: usize| match n <= DIRECT_MAX || lag < NEAR_LAGS {
        true => deviations.autocorrelation(lag),
        // A drifting series needs all lags, which one by one take 2000 times its length.
        false => {
            far.get_or_init(|| lagged_products(&deviations.shares, LAGS_MAX))[lag]
                / deviations.square_sum
        }
    };
    let positive: f64 = (0..lags)
        .step_by(2)
        .map(|lag| at(lag) + at(lag + 1))
        .take_while(|pair| *pair > 0.0)
        .sum();
    let time = 2.0 * positive - 1.0;
    Some((n as f64 / time.max(1.0)).max(1.0))
}

/// Deviations from the mean as shares of the greatest, whose squares neither overflow nor vanish.
struct Deviations {
    shares: Vec<f64>,
    square_sum: f64,
}

impl Deviations {
    /// `None` when a value is not finite, all are equal, or their sum overflows.
    fn of(data: &[f64]) -> Option<Self> {
        let first = *data.first()?;
        // Compares the values, since rounding may leave deviations of equal values.
        if data.iter().all(|x| *x == first) {
            return None;
        }
        let mean = mean(data)?;
        let greatest = data.iter().map(|x| (x - mean).abs()).fold(0.0, f64::max);
        let shares: Vec<f64> = data.iter().map(|x| (x - mean) / greatest).collect();
        let square_sum = shares.iter().map(|d| d * d).sum();
        let usable = greatest > 0.0 && greatest.is_finite();
        usable.then_some(Self { shares, square_sum })
    }

    /// Zero for lags from `n` on.
    fn autocorrelation(&self, lag: usize) -> f64 {
        let later = self.shares.iter().skip(lag);
        let sum: f64 = self.shares.iter().zip(later).map(|(a, b)| a * b).sum();
        sum / self.square_sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_series_is_summed_like_a_short_one() {
        let value =
            |i: usize| 10.0 * (i as f64 / 8_000.0).sin() + ((i * 7919) % 1009) as f64 / 500.0;
        let data: Vec<f64> = (0..DIRECT_MAX + 1).map(value).collect();
        let pairs = (0..LAGS_MAX).step_by(2);
        let pair =
            |lag| autocorrelation(&data, lag).unwrap() + autocorrelation(&data, lag + 1).unwrap();
        let positive: f64 = pairs.map(pair).take_while(|pair| *pair > 0.0).sum();
        let expected = data.len() as f64 / (2.0 * positive - 1.0);
        let found = effective_sample_size(&data).unwrap();
        assert!(positive > 100.0, "it goes on for many lags: {positive}");
        assert!((found / expected - 1.0).abs() < 1e-9, "{found} {expected}");
    }
}
