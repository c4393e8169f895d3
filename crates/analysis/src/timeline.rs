//! Throughput over time: within the trials of a cell and over the whole run, and lasting changes of its level.

mod changes_over_run;
mod gradual;
mod recurring_changes;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use schemars::JsonSchema;
use serde::Serialize;

use crate::disturbance::slept_ns;
use iolab_record::{Cell, Interval, RunRecord, Sample};
use iolab_stats::Lasting;

pub use changes_over_run::over_run;
pub use gradual::{Gradual, Unchanged};
pub use recurring_changes::{
    Profile, ThroughputPoint, TrialLevel, TrialShift, in_warm_ups, profile, within_trials,
};

/// Fewest trials or intervals in which a change is searched.
const VALUES_MIN: usize = 8;

/// Smallest change reported: to 4/5, or to 5/4.
pub(crate) const FACTOR_MIN: f64 = 1.25;

/// Level of the tests, over all series of a run of one kind.
const ALPHA: f64 = 0.01;

/// Changes of the level of throughput.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Timeline {
    /// Over the run: for the cells that write, then for those that only read.
    pub over_run: Vec<RunShift>,
    /// Within trials, at most one change for each cell.
    pub within: Vec<TrialShift>,
    /// Within the warm-up of a cell that writes, whose measured trials stay at the later level.
    pub in_warm_ups: Vec<TrialShift>,
    /// Whether the beginning of each cell is measured too: no trial is a warm-up.
    pub is_of_beginning: bool,
    /// The cells whose only trial keeps its level, if nothing changed over the run.
    pub unchanged: Vec<Unchanged>,
    /// The cells whose only trial changes without a step, if nothing changed over the run.
    pub gradual: BTreeMap<i64, Gradual>,
}

impl Timeline {
    /// The change within the only trial of a cell, whose overall throughput then describes neither level.
    pub fn of_only_trial(&self, cell: i64) -> Option<&TrialShift> {
        let mut shifts = self.within.iter();
        shifts.find(|shift| shift.cell == cell && shift.trials == 1)
    }

    /// Timeline of a run.
    pub fn of(record: &RunRecord, is_disturbed: IsDisturbed<'_>) -> Self {
        let over_run = over_run(record, is_disturbed);
        let mut within = within_trials(record);
        // One trial with a change, which the others show to be one of the run.
        let is_of_run = |shift: &RunShift, cell| {
            matches!(shift.levels, Levels::Time { .. }) && shift.cell == cell
        };
        within.retain(|own| !over_run.iter().any(|shift| is_of_run(shift, own.cell)));
        let is_of_beginning = record.samples.iter().all(|sample| !sample.warmup);
        let (unchanged, gradual) = match is_of_beginning && over_run.is_empty() {
            true => gradual::without_step(record, |cell| within.iter().any(|own| own.cell == cell)),
            false => (Vec::new(), BTreeMap::new()),
        };
        Self {
            over_run,
            within,
            in_warm_ups: in_warm_ups(record),
            is_of_beginning,
            unchanged,
            gradual,
        }
    }
}

/// An interval of a run, or a whole trial without recorded intervals.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Moment {
    /// The sample.
    pub sample: i64,
    /// Start, from the start of the run, ns; counts only timed spans of trials.
    pub start_ns: u64,
    /// Bytes that the trials had written at its start.
    pub written_bytes: u64,
    /// Bytes that the trials had read at its start.
    pub read_bytes: u64,
    /// Throughput over all operations, MB/s.
    pub throughput_mb_s: f64,
}

impl Moment {
    /// Bytes of this access that the trials had moved at its start.
    fn moved_bytes(&self, of: Access) -> u64 {
        match of {
            Access::Writes => self.written_bytes,
            Access::Reads => self.read_bytes,
        }
    }
}

/// The whole run in the order of time, including warm-ups and failed trials.
pub fn moments(record: &RunRecord) -> Vec<Moment> {
    let known = courses(record);
    let (mut start_ns, mut written_bytes, mut read_bytes) = (0_u64, 0_u64, 0_u64);
    let mut all = Vec::new();
    for sample in &record.samples {
        let whole = [Interval {
            start_ns: 0,
            length_ns: sample.elapsed_ns,
            done: sample.operations.moved(),
            drive_millidegrees: None,
        }];
        for interval in known.get(&sample.id).copied().unwrap_or(&whole) {
            all.push(Moment {
                sample: sample.id,
                start_ns: start_ns.saturating_add(interval.start_ns),
                written_bytes,
                read_bytes,
                throughput_mb_s: interval.throughput_mb_s(),
            });
            written_bytes = written_bytes.saturating_add(interval.done.write.bytes);
            read_bytes = read_bytes.saturating_add(interval.done.read.bytes);
        }
        start_ns = start_ns.saturating_add(sample.elapsed_ns);
    }
    all
}

/// The intervals of the samples whose course is known, by sample.
fn courses(record: &RunRecord) -> HashMap<i64, &[Interval]> {
    let all = record.series.iter();
    all.map(|one| (one.sample, &*one.series.intervals))
        .collect()
}

/// Whether iolab issues a cell's requests as fast as they complete, in all of its groups at once. Then the
/// course of the throughput shows the storage.
fn is_free(cell: &Cell) -> bool {
    cell.program().is_none() && !cell.trial().has_rate() && !has_own_ends(cell)
}

/// Whether its groups end at different times.
fn has_own_ends(cell: &Cell) -> bool {
    let trials = cell.spec.trials().into_iter();
    let mut times = trials.map(|trial| trial.limit.time);
    let first = times.next();
    times.any(|time| Some(time) != first)
}

/// The criteria for a shift in one of `series` series of `n` values.
fn lasting(n: usize, series: usize) -> Lasting {
    Lasting {
        length: (n / 20).max(VALUES_MIN / 2),
        shift: FACTOR_MIN.ln(),
        alpha: ALPHA / series.max(1) as f64,
    }
}

/// Number of values per group, for at most `most` groups.
fn group_size(values: usize, most: usize) -> usize {
    values.div_ceil(most).max(1)
}

/// Most values that are searched, as the cost grows with their square. Neighbours of more trials are merged.
const VALUES_MAX: usize = 1000;

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
    /// Cells with several measured trials of both levels, and `cell`.
    pub cells: Vec<i64>,
    /// Number of measured trials of `cell`, or time, of each level.
    pub levels: Levels,
    /// Trials before the change that were disturbed from outside, and all of them.
    pub disturbed_before: DisturbedTrials,
    /// Disturbed trials after the change, including the trial that holds it.
    pub disturbed_after: DisturbedTrials,
    /// The cell with the highest throughput: among those with several measured trials of both levels, if there are any.
    pub cell: i64,
    /// Median throughput before the shift, MB/s.
    pub before_mb_s: f64,
    /// Median throughput after the shift, MB/s.
    pub after_mb_s: f64,
}

/// Number of disturbed trials, of all trials on one side of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DisturbedTrials {
    /// Number of disturbed trials.
    pub disturbed: usize,
    /// Disturbed trials during which the machine or iolab was suspended.
    pub suspended: usize,
    /// Number of all trials.
    pub all: usize,
}

impl DisturbedTrials {
    fn of<'a>(trials: impl IntoIterator<Item = &'a Sample>, is_disturbed: IsDisturbed<'_>) -> Self {
        let all: Vec<&Sample> = trials.into_iter().collect();
        let disturbed = all.iter().filter(|sample| is_disturbed(sample));
        Self {
            disturbed: disturbed.clone().count(),
            suspended: disturbed.filter(|sample| slept_ns(sample) > 0).count(),
            all: all.len(),
        }
    }

    /// Share of disturbed trials; 0 without trials.
    pub fn share(self) -> f64 {
        self.disturbed as f64 / self.all.max(1) as f64
    }
}

/// Predicate on trials that were disturbed from outside.
pub type IsDisturbed<'a> = &'a dyn Fn(&Sample) -> bool;

/// Duration of the levels before and after a change over a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Levels {
    /// Number of measured trials of the cell at each level; the change lies between two trials, or within one.
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
    fn cells(self, record: &RunRecord) -> BTreeSet<i64> {
        let is_of = |cell: &Cell| cell.trial().writes() == (self == Self::Writes);
        let own = record.cells.iter();
        let own = own.filter(|cell| is_free(cell) && is_of(cell));
        own.map(|cell| cell.id).collect()
    }
}
