//! Whether a series of rounds has reached a steady state.

use crate::describe::mean;

/// What a window of rounds has to keep to be steady.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SteadyLimits {
    /// Rounds of the window.
    pub window: usize,
    /// Most range of the window, over its mean.
    pub range: f64,
    /// Most change of the fitted line over the window, over its mean.
    pub slope: f64,
}

impl SteadyLimits {
    /// Five rounds within 20 %, whose line rises or falls by at most 10 %: SNIA, Solid State Storage Performance Test Specification,
    /// version 2.0.2 (2020), section 2.1.24.
    pub const SNIA: Self = Self {
        window: 5,
        range: 0.2,
        slope: 0.1,
    };
}

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

/// Whether rounds end in a steady state: their last window. An earlier steady window does not count.
///
/// A window is steady if its range is within its limit, and its least-squares line rises or falls by no more than its own, both over the
/// mean of the window (see [`SteadyLimits::SNIA`]).
///
/// `None` with fewer rounds than the window has (at least two), when a round of the window is not finite, or when its mean is not positive.
pub fn steady_state(rounds: &[f64], limits: SteadyLimits) -> Option<Steadiness> {
    let length = limits.window.max(2);
    let window = rounds.get(rounds.len().checked_sub(length)?..)?;
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
        reached: range <= limits.range && slope <= limits.slope,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn by_snia(rounds: &[f64]) -> Option<Steadiness> {
        steady_state(rounds, SteadyLimits::SNIA)
    }

    #[test]
    fn a_level_is_steady_at_once_and_a_change_ends_it() {
        let rounds = [100.0, 105.0, 95.0, 102.0, 98.0, 400.0];
        let steady = by_snia(&rounds[..5]).unwrap();
        assert!(steady.reached);
        assert!((steady.range - 0.1).abs() < 1e-12);
        assert!(!by_snia(&rounds).unwrap().reached);
    }

    #[test]
    fn a_fall_settles_where_it_ends() {
        let rounds = [
            900.0, 700.0, 520.0, 410.0, 400.0, 402.0, 399.0, 401.0, 400.0,
        ];
        let reached = |n: usize| by_snia(&rounds[..n]).unwrap().reached;
        let first = (5..=rounds.len()).find(|n| reached(*n));
        assert_eq!(first, Some(8));
    }

    /// The range alone would pass: 18 % from end to end. NumPy: `polyfit(range(5), y, 1)[0] * 4 / y.mean()`.
    #[test]
    fn a_slope_within_the_range_is_not_steady() {
        let steady = by_snia(&[100.0, 104.0, 109.0, 114.0, 119.0]).unwrap();
        assert!(steady.range < SteadyLimits::SNIA.range && !steady.reached);
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
            let steady = by_snia(rounds);
            assert!(steady.is_none_or(|s| s.range.is_finite() && s.slope.is_finite()));
            assert!(steady.is_none() || rounds == [f64::MAX; 5], "{rounds:?}");
        }
        assert!(by_snia(&[7.0; 5]).unwrap().reached);
    }

    #[test]
    fn other_limits_judge_another_window() {
        let rounds = [900.0, 100.0, 110.0, 120.0];
        let limits = |window, range, slope| SteadyLimits {
            window,
            range,
            slope,
        };
        let reached = |limits| steady_state(&rounds, limits).map(|steady| steady.reached);
        assert_eq!(reached(limits(3, 0.19, 0.19)), Some(true));
        assert_eq!(reached(limits(3, 0.18, 0.19)), Some(false));
        assert_eq!(reached(limits(3, 0.19, 0.18)), Some(false));
        assert_eq!(reached(limits(4, 1.0, 1.0)), Some(false));
        assert_eq!(reached(limits(5, 1.0, 1.0)), None);
    }
}
