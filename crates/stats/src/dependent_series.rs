//! Comparison of two series whose values depend on their neighbours, for example from drifting machines or busy hosts.

use crate::autocorrelation::effective_sample_size;
use crate::describe::{mean_of_sorted, sd_of_sorted, sorted};
use crate::t_test::{Sample, TTest, t_test, welch_of};

/// Welch's t test of two series in order of time, each counted as the number of independent values it is worth.
///
/// As [`welch`](crate::welch) with `n` replaced by [`effective_sample_size`], at least 2. For independent values that
/// is about the same test, a little more cautious; for a series that drifts it is much more so. What changes
/// between the two series but not within them is not seen. Source: Zwiers and von Storch, "Taking serial correlation
/// into account in tests of the mean", J. Climate 8 (1995) 336-351.
///
/// No variance and `None` as for [`welch`](crate::welch).
pub fn welch_dependent(base: &[f64], new: &[f64], confidence: f64) -> Option<TTest> {
    welch_of(&worth(base)?, &worth(new)?, confidence)
}

/// The t test that the centre of a series in order of time is 0: of its mean with a fifth of the values trimmed away at
/// each end, the series counted as the number of independent values it is worth. With differences within pairs it is
/// the paired test, which single values far out cannot spoil.
///
/// With `g = floor(n / 5)`, `h = n - 2g`, the mean of the `h` middle values and `s` the standard deviation after the
/// `g` values at each end are set to the nearest that is kept: `t = mean / (s sqrt((n-1) / (h (h-1))) sqrt(n/e))` with
/// `e h / n - 1` degrees of freedom, at least 1, `e` being [`effective_sample_size`]. Source: Tukey and McLaughlin,
/// Sankhya A 25 (1963) 331-352; Yuen, Biometrika 61 (1974) 165-170; for `e` as for [`welch_dependent`].
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
        // Where all values are equal there is no correlation, and no variance that it could raise.
        let share = effective_sample_size(data).map_or(1.0, |worth| worth / all);
        let error = sd * ((all - 1.0) / (kept * (kept - 1.0)) / share).sqrt();
        Some(Self {
            mean,
            error,
            df: (kept * share - 1.0).max(1.0),
        })
    }
}

fn worth(data: &[f64]) -> Option<Sample> {
    let sample = Sample::new(data)?;
    // Where all values are equal there is no correlation, and no variance that it could raise.
    let n = effective_sample_size(data).map_or(sample.n, |n| n.max(2.0));
    Some(Sample { n, ..sample })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::welch;

    fn drifting(from: f64) -> Vec<f64> {
        (0..20)
            .map(|i| from + f64::from(i) + f64::from(i % 3))
            .collect()
    }

    #[test]
    fn a_drift_makes_it_cautious() {
        let (base, new) = (drifting(100.0), drifting(105.0));
        let plain = welch(&base, &new, 0.95).unwrap();
        let cautious = welch_dependent(&base, &new, 0.95).unwrap();
        assert_eq!(plain.difference, cautious.difference);
        assert!(plain.p < 0.05, "{}", plain.p);
        assert!(cautious.p > 0.2, "{}", cautious.p);
    }

    #[test]
    fn without_correlation_it_is_the_plain_test() {
        // Alternating values are not taken for more than they are.
        let series = |from: f64| -> Vec<f64> { (0..20).map(|i| from + f64::from(i % 2)).collect() };
        let (base, new) = (series(10.0), series(10.5));
        assert_eq!(welch(&base, &new, 0.95), welch_dependent(&base, &new, 0.95));
    }

    /// Made with SciPy 1.10.1 by `tests/all/reference_trimmed.py`.
    #[test]
    fn the_trimmed_mean_is_tested_as_by_yuen() {
        let x = [0.3, -0.1, 0.2, -0.2, 0.1, -0.3, 0.25, -0.05, 0.35, -9.0];
        let test = trimmed_test_dependent(&x, 0.95).unwrap();
        assert!((test.difference - 0.03333333333333333).abs() < 1e-12);
        assert!((test.p - 0.7734669476476519).abs() < 1e-9, "{}", test.p);
    }

    #[test]
    fn one_value_far_out_does_not_hide_the_centre() {
        let mut x: Vec<f64> = (0..10)
            .map(|i| 1.0 + f64::from(i * 7 % 10) / 50.0)
            .collect();
        x[3] = -40.0;
        assert!(welch(&[0.0, 0.0, 0.0], &x, 0.95).unwrap().p > 0.3);
        assert!(trimmed_test_dependent(&x, 0.95).unwrap().p < 1e-4);
    }

    #[test]
    fn degenerate_series_are_as_for_the_plain_tests() {
        let equal = [5.0; 8];
        assert_eq!(welch_dependent(&equal, &equal, 0.95).unwrap().p, 1.0);
        assert_eq!(trimmed_test_dependent(&[0.0; 8], 0.95).unwrap().p, 1.0);
        for bad in [&[][..], &[1.0], &[1.0, f64::NAN], &[1.0, f64::INFINITY]] {
            assert!(welch_dependent(bad, &equal, 0.95).is_none());
            assert!(trimmed_test_dependent(bad, 0.95).is_none());
        }
    }
}
