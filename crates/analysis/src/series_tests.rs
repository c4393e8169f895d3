//! Tests of a series of values: dependence, drift, two groups, steady state.

use serde::Serialize;

use iolab_stats::{
    LjungBox, Modality, RunsTest, Steadiness, SteadyLimits, Trend, TwoLevels,
    effective_sample_size, lag1, ljung_box, mann_kendall, runs_test, steady_state, two_levels,
    two_modes,
};

/// Results of the tests; each `None` where the values do not allow it.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct SeriesTests {
    /// Autocorrelation at lag 1.
    pub lag1: Option<f64>,
    /// Ljung-Box test for dependence.
    pub ljung_box: Option<LjungBox>,
    /// Runs test for dependence.
    pub runs: Option<RunsTest>,
    /// Effective number of independent values.
    pub effective_sample_size: Option<f64>,
    /// Mann-Kendall test for a drift, with the slope of Theil and Sen.
    pub trend: Option<Trend>,
    /// Two groups of values, where the distribution is bimodal.
    pub modes: Option<Modality>,
    /// Two groups of values, by their shape or by the gap between them alone.
    pub groups: Option<TwoLevels>,
    /// Whether the series ends in a steady state; each value is a round.
    pub steady: Option<Steadiness>,
}

/// Tests values that are in the order of time.
pub fn series_tests(values: &[f64]) -> SeriesTests {
    let modes = two_modes(values);
    SeriesTests {
        lag1: lag1(values),
        ljung_box: ljung_box(values, lags(values.len())),
        runs: runs_test(values),
        effective_sample_size: effective_sample_size(values),
        trend: mann_kendall(values),
        groups: two_groups(values),
        modes,
        steady: steady_state(values, SteadyLimits::SNIA),
    }
}

/// Two groups of values: by their shape, else by the gap between them alone.
pub(crate) fn two_groups(values: &[f64]) -> Option<TwoLevels> {
    two_modes(values)
        .map(TwoLevels::from)
        .or_else(|| two_levels(values))
}

/// Lags of the Ljung-Box test: `min(10, n/5)`, at least one (Hyndman and Athanasopoulos, Forecasting: principles and
/// practice, 3rd ed. (2021), 5.4).
fn lags(n: usize) -> usize {
    (n / 5).clamp(1, 10)
}
