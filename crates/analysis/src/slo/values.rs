//! The limited quantity of a level trial by trial: the basis of a search.

use std::collections::{BTreeMap, BTreeSet};

use iolab_record::{RunRecord, SampleLatency};
use iolab_workload::Result;
use iolab_workload::response::ServiceLevel;

use crate::fitness::{Evidence, TrialValue};

/// The limited quantity of a level in the measured trials of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct LevelValues {
    /// The level.
    pub level: ServiceLevel,
    /// Value of the quantity in each trial of a cell in the order of time, by cell id: ns, requests/s or MB/s.
    /// Without trials with fewer requests than [`ServiceLevel::requests_min`].
    pub by_cell: BTreeMap<i64, Vec<f64>>,
    /// Cells whose median is a lower bound, since requests that were due and never issued count as long as their trial.
    pub bounds: BTreeSet<i64>,
    /// Number of cells in which a trial has fewer requests than [`ServiceLevel::requests_enough`], so that its value is
    /// uncertain.
    pub uncertain: usize,
    /// Number of cells without a trial that has enough requests for a value.
    pub without: usize,
}

/// The limited quantity in each measured trial.
///
/// # Errors
///
/// The first error of `latencies`.
pub fn level_values(
    level: &ServiceLevel,
    record: &RunRecord,
    latencies: impl IntoIterator<Item = Result<SampleLatency>>,
) -> Result<LevelValues> {
    let mut found = LevelValues {
        level: *level,
        by_cell: BTreeMap::new(),
        bounds: BTreeSet::new(),
        uncertain: 0,
        without: 0,
    };
    for (cell, evidence) in Evidence::of_cells(record, latencies)? {
        let trials: Vec<TrialValue> = evidence
            .values(level)
            .into_iter()
            .filter(|trial| trial.requests >= level.requests_min())
            .collect();
        if trials.is_empty() {
            found.without += usize::from(evidence.samples().next().is_some());
            continue;
        }
        let enough = level.requests_enough();
        found.uncertain += usize::from(trials.iter().any(|trial| trial.requests < enough));
        // Bounds are longer than all other times of a trial.
        let bounds = trials.iter().filter(|trial| trial.is_bound).count();
        if 2 * bounds >= trials.len() {
            found.bounds.insert(cell);
        }
        let values = trials.into_iter().map(|trial| trial.value);
        found.by_cell.insert(cell, values.collect());
    }
    Ok(found)
}
