//! Whether a series of rounds has reached a steady state.

use crate::describe::mean;

/// Rounds of a window.
pub const STEADY_WINDOW: usize = 5;
/// Limit of the range in the window, over its mean.
pub const STEADY_RANGE_MAX: f64 = 0.2;
/// Limit of the change of the fitted line over the window, over its mean.
pub const STEADY_SLOPE_MAX: f64 = 0.1;

/// The steadiness of the last window of rounds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Steadiness {
    /// Range of the window, over its mean.
    pub range: f64,
    /// Change of the fitted line from the first to the last round of the window, over its mean; never negative.
    pub slope: f64,
    /// Whether both are within their limits.
    pub reached: bool,
}

/// Whether rounds end in a steady state: their last [`STEADY_WINDOW`]. An earlier steady window does not count.
///
/// A window is steady if its range is at most 20 % and its least-squares line rises or falls by at most 10 % of the mean. Source:
/// SNIA, Solid State Storage Performance Test Specification, version 2.0.2 (2020), definition of steady state, with the average
/// value in the window as the reference of both.
///
/// `None` below five rounds, when a round of the window is not finite, or when its mean is not positive.
pub fn steady_state(rounds: &[f64]) -> Option<Steadiness> {
    let window = rounds.get(rounds.len().checked_sub(STEADY_WINDOW)?..)?;
    let mean = mean(window).filter(|mean| *mean > 0.0)?;
    let greatest = window.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let least = window.iter().copied().fold(f64::INFINITY, f64::min);
    let range = (greatest - least) / mean;
    let middle = (window.len() - 1) as f64 / 2.0;
    let places = || (0..window.len()).map(|i| i as f64 - middle);
    let covariance: f64 = places().zip(window).map(|(at, y)| at * (y / mean)).sum();
    let slope = covariance / places().map(|at| at * at).sum::<f64>();
    let slope = slope.abs() * 2.0 * middle;
    (range.is_finite() && slope.is_finite()).then_some(Steadiness {
        range,
        slope,
        reached: range <= STEADY_RANGE_MAX && slope <= STEADY_SLOPE_MAX,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_is_steady_at_once_and_a_change_ends_it() {
        let rounds = [100.0, 105.0, 95.0, 102.0, 98.0, 400.0];
        let steady = steady_state(&rounds[..5]).unwrap();
        assert!(steady.reached);
        assert!((steady.range - 0.1).abs() < 1e-12);
        assert!(!steady_state(&rounds).unwrap().reached);
    }

    #[test]
    fn a_fall_settles_where_it_ends() {
        let rounds = [
            900.0, 700.0, 520.0, 410.0, 400.0, 402.0, 399.0, 401.0, 400.0,
        ];
        let reached = |n: usize| steady_state(&rounds[..n]).unwrap().reached;
        let first = (5..=rounds.len()).find(|n| reached(*n));
        assert_eq!(first, Some(8));
    }

    /// The range alone would pass: 18 % from end to end. NumPy: `polyfit(range(5), y, 1)[0] * 4 / y.mean()`.
    #[test]
    fn a_slope_within_the_range_is_not_steady() {
        let steady = steady_state(&[100.0, 104.0, 109.0, 114.0, 119.0]).unwrap();
        assert!(steady.range < STEADY_RANGE_MAX && !steady.reached);
        assert!(
            (steady.slope - 19.2 / 109.2).abs() < 1e-12,
            "{}",
            steady.slope
        );
    }

    #[test]
    fn too_few_rounds_and_impossible_values_have_none() {
        for rounds in [
            &[][..],
            &[1.0; 4],
            &[1.0, 1.0, f64::NAN, 1.0, 1.0],
            &[1.0, 1.0, f64::INFINITY, 1.0, 1.0],
            &[0.0; 5],
            &[-1.0; 5],
            &[f64::MAX; 5],
        ] {
            let steady = steady_state(rounds);
            assert!(steady.is_none_or(|s| s.range.is_finite() && s.slope.is_finite()));
            assert!(steady.is_none() || rounds == [f64::MAX; 5], "{rounds:?}");
        }
        assert!(steady_state(&[7.0; 5]).unwrap().reached);
    }
}
