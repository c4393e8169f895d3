//! State of a run in progress, between two trials: the results of each cell so far, computed as for the table.

use iolab_record::{Cell, Sample};
use iolab_stats::{Summary, summary};
use iolab_workload::response::Response;

use crate::disturbance::{Accounting, Surroundings};

/// A run in progress, between two trials.
#[derive(Debug, Clone, PartialEq)]
pub struct RunSnapshot {
    /// Names of the factors, in the order of the cells' levels.
    pub factors: Vec<String>,
    /// The response of the experiment.
    pub response: Response,
    /// Condition that ends the repetition of trials.
    pub goal: RepetitionGoal,
    /// The cells in the order of the definition; cells that the run added come last.
    pub cells: Vec<CellSnapshot>,
    /// Index of the cell measured next.
    pub now: usize,
    /// Whether that trial is a warm-up, which does not count.
    pub warms_up: bool,
    /// Use of the machine by the last trial, and by others meanwhile; `None` before the first trial.
    pub last: Option<LastTrial>,
}

/// Condition that ends the repetition of trials, apart from a budget.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum RepetitionGoal {
    /// A precision of each cell: distance of the median to the farther end of its 95 % interval, over the median.
    Precision(f64),
    /// Steady rounds of all cells. As in the table, only the rounds of the last window count for each cell.
    SteadyRounds {
        /// The current round; the first is 1.
        round: usize,
        /// The most rounds.
        most: u32,
    },
    /// The limit of a search for a rate.
    Rate,
    /// Each cell gets one trial, without repetition.
    OneTrial,
}

/// Progress of a run towards its precision goal.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WithinGoal {
    /// Number of cells within the goal.
    pub cells: usize,
    /// All cells.
    pub of: usize,
    /// The goal.
    pub goal: f64,
}

/// The results of a cell so far.
#[derive(Debug, Clone, PartialEq)]
pub struct CellSnapshot {
    /// The factor levels.
    pub levels: Vec<String>,
    /// Number of measured trials: successful ones other than warm-ups.
    pub n: usize,
    /// The response over these trials.
    pub response: Option<Summary>,
}

/// Resource use and disturbances of a trial.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LastTrial {
    /// Share of the device's bytes that were not iolab's; `None` where not counted.
    pub others: Option<f64>,
    /// CPU time of iolab over the time of the trial: 1 is one CPU.
    pub cpu: Option<f64>,
}

impl CellSnapshot {
    /// Snapshot from the measured trials of a cell; `None` for a trial with too few requests for its response, with which the cell has
    /// no value: such a trial was slow.
    pub fn new(levels: Vec<String>, trials: &[Option<f64>]) -> Self {
        let values: Option<Vec<f64>> = trials.iter().copied().collect();
        Self {
            levels,
            n: trials.len(),
            response: summary(&values.unwrap_or_default()),
        }
    }

    /// Distance of the median to the farther end of its interval, over the median.
    pub fn precision(&self) -> Option<f64> {
        self.response.as_ref().and_then(Summary::precision)
    }

    /// Whether it has reached this precision goal.
    pub fn is_within(&self, goal: f64) -> bool {
        self.precision().is_some_and(|precision| precision <= goal)
    }
}

impl RunSnapshot {
    /// Progress of the run towards this precision goal.
    pub fn within(&self, goal: f64) -> WithinGoal {
        let reached = self.cells.iter().filter(|cell| cell.is_within(goal));
        WithinGoal {
            cells: reached.count(),
            of: self.cells.len(),
            goal,
        }
    }
}

impl LastTrial {
    /// Summary of a trial of this cell.
    pub fn of(cell: &Cell, sample: &Sample, around: Surroundings) -> Self {
        let usage = &sample.counters.usage;
        let cpu_ns = usage.user_ns.saturating_add(usage.system_ns);
        Self {
            others: Accounting::of(cell, around).share_of_others(sample),
            cpu: (sample.elapsed_ns > 0).then(|| cpu_ns as f64 / sample.elapsed_ns as f64),
        }
    }
}
