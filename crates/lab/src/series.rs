//! One series of values in numbers, with what may be wrong with it.

use iolab_stats::{
    LjungBox, Modality, RunsTest, Summary, Trend, effective_sample_size, lag1, ljung_box,
    mann_kendall, runs_test, summary, two_modes,
};

/// Lags of the Ljung-Box test: the usual `min(10, n/5)`, at least one (Hyndman and Athanasopoulos, Forecasting).
fn lags(n: usize) -> usize {
    (n / 5).clamp(1, 10)
}

/// One series, described.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// Location, spread, intervals.
    pub summary: Summary,
    /// Correlation of neighbours.
    pub lag1: Option<f64>,
    /// Ljung-Box test for dependence.
    pub ljung_box: Option<LjungBox>,
    /// Runs test for dependence.
    pub runs: Option<RunsTest>,
    /// Number of independent values that would tell as much.
    pub effective_sample_size: Option<f64>,
    /// Mann-Kendall test for a drift, with Theil and Sen's slope.
    pub trend: Option<Trend>,
    /// Two groups of values, if it looks like them.
    pub modes: Option<Modality>,
}

/// Describes values in the order of time; `None` when there is none, or one is not finite.
pub fn describe(values: &[f64]) -> Option<Series> {
    Some(Series {
        summary: summary(values)?,
        lag1: lag1(values),
        ljung_box: ljung_box(values, lags(values.len())),
        runs: runs_test(values),
        effective_sample_size: effective_sample_size(values),
        trend: mann_kendall(values),
        modes: two_modes(values),
    })
}
