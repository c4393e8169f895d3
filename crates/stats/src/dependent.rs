//! Comparing two series whose values depend on their neighbours: drifting machines, busy hosts.

use crate::autocorrelation::effective_sample_size;
use crate::equivalence::{Equivalence, logs, one_sided_p, tost_of};
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

/// The equivalence tests of [`tost_log`](crate::tost_log), with the effective sample sizes of the logarithms.
///
/// No variance and `None` as for [`tost_log`](crate::tost_log).
pub fn tost_log_dependent(
    base: &[f64],
    new: &[f64],
    margin: f64,
    alpha: f64,
) -> Option<Equivalence> {
    tost_of(&worth(&logs(base)?)?, &worth(&logs(new)?)?, margin, alpha)
}

/// The t test that the mean of a series in order of time is 0, the series counted as the number of independent
/// values it is worth. With differences within pairs it is the paired test. Sources as for [`welch_dependent`].
///
/// No variance as for [`welch`](crate::welch). `None` below two values, when a value is not finite, when the result
/// overflows, or when `confidence` is not between 0 and 1.
pub fn mean_test_dependent(data: &[f64], confidence: f64) -> Option<TTest> {
    let sample = worth(data)?;
    t_test(sample.mean, sample.error(), sample.n - 1.0, confidence)
}

/// The p-value of the two one-sided tests that the mean of a series in order of time lies within `-limit..limit`, the
/// series counted as the number of independent values it is worth. Sources as for [`tost_log_dependent`].
///
/// `None` as for [`mean_test_dependent`], and when `limit` is not finite and positive.
pub fn mean_within_dependent(data: &[f64], limit: f64) -> Option<f64> {
    let sample = worth(data).filter(|_| limit > 0.0 && limit.is_finite())?;
    let (error, df) = (sample.error(), sample.n - 1.0);
    Some(f64::max(
        one_sided_p(limit + sample.mean, error, df),
        one_sided_p(limit - sample.mean, error, df),
    ))
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
    use crate::{tost_log, welch};

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
        let plain = tost_log(&base, &new, 0.1, 0.05).unwrap();
        let cautious = tost_log_dependent(&base, &new, 0.1, 0.05).unwrap();
        assert!(plain.p < 0.05 && cautious.p > 0.05);
    }

    #[test]
    fn without_correlation_it_is_the_plain_test() {
        // Alternating values are not taken for more than they are.
        let series = |from: f64| -> Vec<f64> { (0..20).map(|i| from + f64::from(i % 2)).collect() };
        let (base, new) = (series(10.0), series(10.5));
        assert_eq!(welch(&base, &new, 0.95), welch_dependent(&base, &new, 0.95));
    }

    /// SciPy 1.10.1: `stats.ttest_1samp(x, 0)`, and `stats.t.sf((0.5 + m) / se, 9)` against `(0.5 - m) / se`.
    #[test]
    fn the_mean_is_tested_as_student_does() {
        let x = [0.3, -0.1, 0.2, -0.2, 0.1, -0.3, 0.25, -0.05, 0.35, -0.15];
        let test = mean_test_dependent(&x, 0.95).unwrap();
        assert!(
            (test.p - 0.594_928_024_986_361_2).abs() < 1e-12,
            "{}",
            test.p
        );
        let p = mean_within_dependent(&x, 0.5).unwrap();
        assert!((p - 6.734_328_869_297_05e-5).abs() < 1e-12, "{p}");
    }

    #[test]
    fn degenerate_series_are_as_for_the_plain_tests() {
        let equal = [5.0; 8];
        assert_eq!(welch_dependent(&equal, &equal, 0.95).unwrap().p, 1.0);
        assert_eq!(mean_test_dependent(&[0.0; 8], 0.95).unwrap().p, 1.0);
        assert_eq!(mean_within_dependent(&[0.0; 8], 0.05), Some(0.0));
        assert_eq!(mean_within_dependent(&[1.0; 8], 0.05), Some(1.0));
        assert_eq!(mean_within_dependent(&[0.0; 8], f64::NAN), None);
        assert_eq!(
            tost_log_dependent(&equal, &equal, 0.05, 0.05).unwrap().p,
            0.0
        );
        for bad in [&[][..], &[1.0], &[1.0, f64::NAN], &[1.0, f64::INFINITY]] {
            assert!(welch_dependent(bad, &equal, 0.95).is_none());
            assert!(tost_log_dependent(&equal, bad, 0.05, 0.05).is_none());
            assert!(mean_test_dependent(bad, 0.95).is_none());
            assert!(mean_within_dependent(bad, 0.05).is_none());
        }
    }
}
