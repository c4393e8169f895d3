//! The time of writing out what trials leave in caches.

use iolab_plan::experiment::Experiment;
use iolab_record::{EndedBy, RunRecord, Sample};

/// Share of the budget from which the time is reported.
const SHARE: f64 = 0.1;

/// Time that a run spent on writing out what trials had left in caches without a sync. Present only if it
/// exceeds a tenth of the budget and of the trials themselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WriteOut {
    /// Between the trials, ns.
    pub took_ns: u64,
    /// Time of the trials themselves, ns.
    pub trials_ns: u64,
    /// Whether the budget ended the repetition of a cell.
    pub cut_short: bool,
    /// Whether the number of trials ended the run, so that no budget accounts for the time.
    pub is_unpaid: bool,
}

impl WriteOut {
    /// Write-out time of a run with this definition.
    pub(super) fn of(record: &RunRecord, experiment: &Experiment) -> Option<Self> {
        let total = |ns: &dyn Fn(&Sample) -> u64| {
            record.samples.iter().map(ns).fold(0, u64::saturating_add)
        };
        let took_ns = total(&|sample| sample.region.owed_sync_ns.unwrap_or(0));
        let trials_ns = total(&|sample| sample.elapsed_ns);
        let is_unpaid = experiment.design.is_counted();
        let budget = match is_unpaid {
            true => 0.0,
            false => experiment.design.budget.as_nanos() as f64,
        };
        // The trials that each cell gets anyway may take longer than the budget.
        let paid = budget.max(trials_ns as f64);
        let most = paid * SHARE;
        let mut cells = record.cells.iter();
        (took_ns as f64 > most).then(|| Self {
            took_ns,
            trials_ns,
            cut_short: cells.any(|cell| cell.ended_by == Some(EndedBy::Budget)),
            is_unpaid,
        })
    }
}
