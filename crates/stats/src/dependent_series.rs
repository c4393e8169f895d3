//! Comparison of two series whose values depend on their neighbours, for example from drifting machines or busy hosts.

use crate::autocorrelation::effective_sample_size;
use crate::t_test::{Sample, TTest, welch_of};

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

fn worth(data: &[f64]) -> Option<Sample> {
    let sample = Sample::new(data)?;
    // Equal values have no correlation, and no variance that it could raise.
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
        // Alternating values do not count as more than they are.
        let series = |from: f64| -> Vec<f64> { (0..20).map(|i| from + f64::from(i % 2)).collect() };
        let (base, new) = (series(10.0), series(10.5));
        assert_eq!(welch(&base, &new, 0.95), welch_dependent(&base, &new, 0.95));
    }
}
