//! Methods that were compared with those in use and decide nothing: docs/VALIDATION.md, "Intervals",
//! says why. For the examples of `iolab-synthetic` that compare them.
//!
//! The t test of a trimmed mean.

use crate::describe::{mean_of_sorted, sd_of_sorted, sorted};
use crate::t_test::{TTest, t_test};
use crate::time_series::effective_sample_size;

/// The t test that the centre of a series in order of time is 0: of its mean with a fifth of the values trimmed away at
/// each end, the series counted as the number of independent values it is worth. With differences within pairs it is
/// the paired test, which single values far out cannot spoil.
///
/// With `g = floor(n / 5)` and `h = n - 2g`, `mean` is over the `h` middle values. `s` is the standard
/// deviation after the `g` values at each end are set to the nearest that is kept. `e` is
/// [`effective_sample_size`]. Then `t = mean / (s sqrt((n-1) / (h (h-1))) sqrt(n/e))`, with `e h / n - 1`
/// degrees of freedom, at least 1. Source: Tukey and McLaughlin, Sankhya A 25 (1963) 331-352; Yuen, Biometrika
/// 61 (1974) 165-170; for `e` as for [`welch_dependent`](crate::welch_dependent).
///
/// Where the values kept do not vary, p is 1 for a centre of 0 and 0 for any other. `None` below two values, when a
/// value is not finite, when the result overflows, or when `confidence` is not between 0 and 1.
pub fn trimmed_test_dependent(data: &[f64], confidence: f64) -> Option<TTest> {
    let centre = Centre::new(data)?;
    t_test(centre.mean, centre.error, centre.df, confidence)
}

/// The trimmed mean of a series in order of time, with its standard error.
struct Centre {
    mean: f64,
    error: f64,
    df: f64,
}

impl Centre {
    fn new(data: &[f64]) -> Option<Self> {
        let mut x = sorted(data)?;
        let n = x.len();
        if n < 2 {
            return None;
        }
        let cut = n / 5;
        let mean = mean_of_sorted(&x[cut..n - cut])?;
        let (least, most) = (x[cut], x[n - cut - 1]);
        x[..cut].fill(least);
        x[n - cut..].fill(most);
        let sd = sd_of_sorted(&x)?;
        let (all, kept) = (n as f64, (n - 2 * cut) as f64);
        // Equal values have no correlation, and no variance that it could raise.
        let share = effective_sample_size(data).map_or(1.0, |worth| worth / all);
        let error = sd * ((all - 1.0) / (kept * (kept - 1.0)) / share).sqrt();
        Some(Self {
            mean,
            error,
            df: (kept * share - 1.0).max(1.0),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::welch;
    use super::*;

    /// Reference values by SciPy 1.10.1, from `tests/all/reference_trimmed.py`.
    #[test]
    fn the_trimmed_mean_is_tested_as_by_yuen() {
        let x = [0.3, -0.1, 0.2, -0.2, 0.1, -0.3, 0.25, -0.05, 0.35, -9.0];
        let test = trimmed_test_dependent(&x, 0.95).unwrap();
        assert!((test.difference - 0.03333333333333333).abs() < 1e-12);
        assert!((test.p - 0.7734669476476519).abs() < 1e-9, "{}", test.p);
    }

    #[test]
    fn single_outlier_does_not_hide_the_centre() {
        let mut x: Vec<f64> = (0..10)
            .map(|i| 1.0 + f64::from(i * 7 % 10) / 50.0)
            .collect();
        x[3] = -40.0;
        assert!(welch(&[0.0, 0.0, 0.0], &x, 0.95).unwrap().p > 0.3);
        assert!(trimmed_test_dependent(&x, 0.95).unwrap().p < 1e-4);
    }
}
