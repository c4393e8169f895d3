//! What a level bounds, trial by trial: the curve that a search rests on.

use std::collections::BTreeMap;

use iolab_record::{RunRecord, SampleLatency};
use iolab_workload::Result;
use iolab_workload::service_level::ServiceLevel;

use crate::fitness::Evidence;

/// What a level bounds in the measured trials of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct LevelValues {
    /// The level.
    pub level: ServiceLevel,
    /// Its value in each trial of a cell in the order of time, by the cell's id: ns, requests/s or MB/s. Without the trials that
    /// have fewer requests than [`ServiceLevel::requests_min`].
    pub by_cell: BTreeMap<i64, Vec<f64>>,
    /// Cells of which a trial has fewer requests than [`ServiceLevel::requests_enough`], so that its value is uncertain by itself.
    pub uncertain: usize,
    /// Cells without a trial that has requests enough for a value.
    pub without: usize,
}

/// What a level bounds, in each measured trial.
///
/// # Errors
/// The first of `latencies`.
pub fn level_values(
    level: &ServiceLevel,
    record: &RunRecord,
    latencies: impl IntoIterator<Item = Result<SampleLatency>>,
) -> Result<LevelValues> {
    let mut found = LevelValues {
        level: *level,
        by_cell: BTreeMap::new(),
        uncertain: 0,
        without: 0,
    };
    for (cell, evidence) in Evidence::of_cells(record, latencies)? {
        let trials: Vec<(f64, f64)> = evidence
            .values(level)
            .into_iter()
            .filter(|(_, requests)| *requests >= level.requests_min())
            .collect();
        if trials.is_empty() {
            found.without += usize::from(evidence.samples().next().is_some());
            continue;
        }
        let enough = level.requests_enough();
        found.uncertain += usize::from(trials.iter().any(|(_, requests)| *requests < enough));
        let values = trials.into_iter().map(|(value, _)| value);
        found.by_cell.insert(cell, values.collect());
    }
    Ok(found)
}
