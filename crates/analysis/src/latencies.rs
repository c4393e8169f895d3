//! The latencies of a cell: the sum over its measured trials.

use std::collections::BTreeMap;

use iolab_workload::histogram::{LatencyHistogram, new_latency_histogram};
use iolab_workload::{Result, histogram};

use iolab_record::SampleLatency;
use iolab_record::{LatencyOf, RunRecord};

use crate::refusal;

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
        let sum = together
            .entry(key(*cell, &latency))
            .or_insert_with(new_latency_histogram);
        histogram::add(sum, &latency.histogram);
        // The library saturates the total, after which iterating would overflow.
        if sum.len() > i64::MAX as u64 {
            return Err(refusal::too_many_latencies(*cell));
        }
    }
    Ok(together)
}
