//! The standard normal distribution.

use std::f64::consts::SQRT_2;

use statrs::distribution::{ContinuousCDF, Normal};

/// `P(Z > z)` with full relative accuracy down to the smallest positive number.
///
/// Uses `libm`, because the `erfc` of `statrs` has ten digits.
pub(crate) fn upper_tail(z: f64) -> f64 {
    libm::erfc(z / SQRT_2) / 2.0
}

/// `P(Z <= z)`.
pub(crate) fn cdf(z: f64) -> f64 {
    upper_tail(-z)
}

/// The `z` with `P(Z <= z) = p`; infinite for 0 and 1, NaN outside.
pub(crate) fn quantile(p: f64) -> f64 {
    if !(0.0..=1.0).contains(&p) {
        return f64::NAN;
    }
    Normal::standard().inverse_cdf(p)
}
