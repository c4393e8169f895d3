//! Steady state of a series of rounds.

use crate::describe::mean;
use schemars::JsonSchema;
use serde::Serialize;

/// Criteria for a steady window of rounds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SteadyLimits {
    /// Number of rounds in the window.
    pub window: usize,
    /// Largest range of the window, over its mean.
    pub range: f64,
    /// Largest change of the fitted line over the window, over its mean.
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

/// Steadiness of the last window of rounds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct Steadiness {
    /// Range of the window, over its mean.
    pub range: f64,
    /// Change of the fitted line from the first to the last round of the window, over its mean; never negative.
    pub slope: f64,
    /// Whether both are within their limits.
    pub reached: bool,
}

/// Whether the last window of rounds is steady. An earlier steady window does not count.
///
/// A window is steady if two numbers are within their limits, both over the mean of the window: its range, and
/// the rise or fall of its least-squares line. [`SteadyLimits::SNIA`] explains both.
///
/// `None` with fewer rounds than the window has (at least two), when a round of the window is not finite, or
/// when its mean is not positive.
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

/// Whether the line through the last window of rounds rises or falls by more than its limit, and by more than
/// scatter explains. Scatter alone tilts a line through a few rounds, in 95 % of cases by less than 1.96
/// standard errors.
///
/// The scatter is estimated from all rounds: its variance is half of the mean square of the differences between
/// neighbours, which a change of level hardly inflates. Source: von Neumann, Ann. Math. Statist. 12 (1941)
/// 367-395. `None` as for [`steady_state`], or where a difference is not finite.
pub fn window_slopes(rounds: &[f64], limits: SteadyLimits) -> Option<bool> {
    let slope = steady_state(rounds, limits)?.slope;
    let length = limits.window.max(2);
    let window = mean(rounds.get(rounds.len() - length..)?)?;
    let squares = rounds.windows(2);
    let squares: Vec<f64> = squares
        .map(|pair| ((pair[1] - pair[0]) / window).powi(2))
        .collect();
    let scatter = (mean(&squares)? / 2.0).sqrt();
    let span = (length - 1) as f64;
    // Positions in the window are one apart around their middle.
    let places = span * length as f64 * (length + 1) as f64 / 12.0;
    let error = scatter * span / places.sqrt();
    error
        .is_finite()
        .then_some(slope > limits.slope && slope > NORMAL_95 * error)
}

/// Half of the 95 % interval of a normal distribution, in standard deviations.
const NORMAL_95: f64 = 1.96;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_scatter_tilts_does_not_slope() {
        let slopes = |rounds: &[f64]| window_slopes(rounds, SteadyLimits::SNIA);
        // Falls by 26 % over the window, as earlier rounds did before they rose again.
        let scattered = [
            100.0, 75.0, 120.0, 80.0, 115.0, 78.0, 118.0, 110.0, 90.0, 105.0, 85.0,
        ];
        assert_eq!(slopes(&scattered), Some(false));
        let steady = by_snia(&scattered).unwrap();
        assert!(steady.slope > SteadyLimits::SNIA.slope, "{steady:?}");
        let falls = [100.0, 101.0, 99.0, 100.0, 90.0, 80.0, 70.0, 60.0];
        assert_eq!(slopes(&falls), Some(true));
        let level = [100.0, 101.0, 99.0, 100.0, 101.0, 50.0, 51.0, 49.0];
        assert_eq!(slopes(&level), Some(true));
        assert_eq!(slopes(&[100.0; 5]), Some(false));
        assert_eq!(slopes(&[100.0; 4]), None);
        // The standard error of a line through five values: NumPy, `4 * s / sqrt(((arange(5) - 2) ** 2).sum())`.
        let error = 4.0 / 10.0_f64.sqrt();
        let span = 4.0_f64;
        assert!((span / (span * 5.0 * 6.0 / 12.0).sqrt() - error).abs() < 1e-12);
    }

    fn by_snia(rounds: &[f64]) -> Option<Steadiness> {
        steady_state(rounds, SteadyLimits::SNIA)
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
