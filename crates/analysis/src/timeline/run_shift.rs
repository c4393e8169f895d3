//! A change of the level of throughput over a run.

use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeSet;

use iolab_record::{Cell, RunRecord, Sample};

use super::is_free;
use crate::disturbance::slept_ns;

/// Most values that are searched, as the cost grows with their square. Neighbours of more trials are merged.
pub(super) const VALUES_MAX: usize = 1000;

/// A change of the level of throughput during a run.
#[derive(Debug, Clone, PartialEq)]
pub struct RunShift {
    /// The cells concerned.
    pub of: Access,
    /// Bytes that the trials had written before the change, or read, for cells that only read.
    pub moved_bytes: u64,
    /// Sum of the timed spans before the change, ns.
    pub after_ns: u64,
    /// Throughput after over throughput before: the median over the cells with trials of both levels.
    pub factor: f64,
    /// Number of cells with trials of both levels.
    pub cells: usize,
    /// Number of trials of `cell`, or time, of each level.
    pub levels: Levels,
    /// Trials before the change that were disturbed from outside, and all of them.
    pub disturbed_before: DisturbedTrials,
    /// Disturbed trials after the change, including the trial that holds it.
    pub disturbed_after: DisturbedTrials,
    /// The cell with the highest throughput among those with trials of both levels.
    pub cell: i64,
    /// Median throughput before the shift, MB/s.
    pub before_mb_s: f64,
    /// Median throughput after the shift, MB/s.
    pub after_mb_s: f64,
}

/// Number of disturbed trials, of all trials on one side of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct DisturbedTrials {
    /// Number of disturbed trials.
    pub disturbed: usize,
    /// Disturbed trials during which the machine or iolab was suspended.
    pub suspended: usize,
    /// Number of all trials.
    pub all: usize,
}

impl DisturbedTrials {
    pub(super) fn of<'a>(
        trials: impl IntoIterator<Item = &'a Sample>,
        is_disturbed: IsDisturbed<'_>,
    ) -> Self {
        let none = Self {
            disturbed: 0,
            suspended: 0,
            all: 0,
        };
        trials.into_iter().fold(none, |sum, sample| {
            let is_disturbed = is_disturbed(sample);
            Self {
                disturbed: sum.disturbed + usize::from(is_disturbed),
                suspended: sum.suspended + usize::from(is_disturbed && slept_ns(sample) > 0),
                all: sum.all + 1,
            }
        })
    }

    /// Share of disturbed trials; 0 without trials.
    pub fn share(self) -> f64 {
        self.disturbed as f64 / self.all.max(1) as f64
    }
}

/// Predicate on trials that were disturbed from outside.
pub type IsDisturbed<'a> = &'a dyn Fn(&Sample) -> bool;

/// Duration of the levels before and after a change over a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Levels {
    /// Number of trials of the cell at each level; the change lies between two trials, or within one.
    Trials {
        /// Before it.
        before: usize,
        /// After it.
        after: usize,
    },
    /// Too few trials to show levels; one of them holds the change.
    Time {
        /// Time before the change, in the trials of the cell, ns.
        before_ns: u64,
        /// Time after the change, in the trials of the cell, ns.
        after_ns: u64,
    },
}

/// Kind of access whose cells change their level together. Writes change a device for good; reads and writes can
/// both use up a credit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Access {
    /// Cells that write.
    Writes,
    /// Cells that only read.
    Reads,
}

impl Access {
    /// Cells of this kind whose throughput the storage decides.
    pub(super) fn cells(self, record: &RunRecord) -> BTreeSet<i64> {
        let is_of = |cell: &Cell| cell.trial().writes() == (self == Self::Writes);
        let own = record.cells.iter();
        own.filter(|cell| is_free(cell) && is_of(cell))
            .map(|cell| cell.id)
            .collect()
    }
}
