//! Values of the trials of a cell: taken together, as latencies, and tested as a series.

use std::collections::BTreeMap;

use crate::refusal;
use iolab_record::{LatencyOf, RunRecord, Sample, SampleLatency};
use iolab_stats::{
    Modality, Steadiness, SteadyLimits, Trend, TwoLevels, ljung_box, mann_kendall, median,
    steady_state, two_levels, two_modes,
};
use iolab_workload::Result;
use iolab_workload::histogram::{self, LatencyHistogram, new_latency_histogram};

/// The values of the trials that have one.
pub(crate) fn values(trials: &[&Sample], value: impl Fn(&Sample) -> Option<f64>) -> Vec<f64> {
    trials.iter().filter_map(|s| value(s)).collect()
}

pub(crate) fn median_of(trials: &[&Sample], value: impl Fn(&Sample) -> Option<f64>) -> Option<f64> {
    median(&values(trials, value))
}

/// The values, each where it occurs first.
pub fn distinct<T: PartialEq>(values: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut all = Vec::new();
    for value in values {
        if !all.contains(&value) {
            all.push(value);
        }
    }
    all
}

/// Latencies by cell and [`SampleLatency::of`], in ns; sums over all parts.
pub type CellLatencies = BTreeMap<(i64, LatencyOf), LatencyHistogram>;

/// Latencies by cell, group and operation, summed over the ranks and targets of a group. The group is 0 in cells
/// without groups.
pub type GroupLatencies = BTreeMap<(i64, u32, LatencyOf), LatencyHistogram>;

/// A run with the latencies of its cells.
pub type RunWithLatencies = (RunRecord, GroupLatencies);

/// Sums the latencies of a run's measured trials. Reads them one by one, since all at once would fill the memory.
///
/// # Errors
///
/// The first error of `latencies`; of kind [`Failed`](iolab_workload::Kind::Failed) when there are too many to count.
pub fn of_cells(
    record: &RunRecord,
    latencies: impl IntoIterator<Item = Result<SampleLatency>>,
) -> Result<CellLatencies> {
    sums(record, latencies, |cell, latency| (cell, latency.of))
}

/// Sums the latencies of a run's measured trials for each group.
///
/// # Errors
///
/// As for [`of_cells`].
pub fn of_groups(
    record: &RunRecord,
    latencies: impl IntoIterator<Item = Result<SampleLatency>>,
) -> Result<GroupLatencies> {
    sums(record, latencies, |cell, latency| {
        (cell, latency.part.group, latency.of)
    })
}

fn sums<K: Ord>(
    record: &RunRecord,
    latencies: impl IntoIterator<Item = Result<SampleLatency>>,
    key: impl Fn(i64, &SampleLatency) -> K,
) -> Result<BTreeMap<K, LatencyHistogram>> {
    let measured = record.samples.iter().filter(|s| s.is_measured());
    let cells: BTreeMap<i64, i64> = measured.map(|s| (s.id, s.cell)).collect();
    let mut together = BTreeMap::new();
    for latency in latencies {
        let latency = latency?;
        let Some(cell) = cells.get(&latency.sample) else {
            continue;
        };
        let sum = together.entry(key(*cell, &latency));
        let sum = sum.or_insert_with(new_latency_histogram);
        histogram::add(sum, &latency.histogram);
        // The library saturates the total, after which iterating would overflow.
        if sum.len() > i64::MAX as u64 {
            return Err(refusal::too_many_latencies(*cell));
        }
    }
    Ok(together)
}

/// Results of the tests; each `None` where the values do not allow it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SeriesTests {
    /// p-value of the Ljung-Box test for dependence.
    pub dependence_p: Option<f64>,
    /// Mann-Kendall test for a drift, with the slope of Theil and Sen.
    pub trend: Option<Trend>,
    /// Two groups of values, where the distribution is bimodal.
    pub modes: Option<Modality>,
    /// Whether the series ends in a steady state; each value is a round.
    pub steady: Option<Steadiness>,
}

/// Tests values that are in the order of time.
pub fn series_tests(values: &[f64]) -> SeriesTests {
    // Hyndman and Athanasopoulos, Forecasting: principles and practice, 3rd ed. (2021), 5.4.
    let lags = (values.len() / 5).clamp(1, 10);
    SeriesTests {
        dependence_p: ljung_box(values, lags),
        trend: mann_kendall(values),
        modes: two_modes(values),
        steady: steady_state(values, SteadyLimits::SNIA),
    }
}

/// Two groups of values: by their shape, else by the gap between them alone.
pub(crate) fn two_groups(values: &[f64]) -> Option<TwoLevels> {
    let by_shape = two_modes(values).map(|modes| modes.levels);
    by_shape.or_else(|| two_levels(values))
}
