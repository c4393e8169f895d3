//! Throughput that changes its level and stays there: over the run, within each trial, in the warm-up.

use super::effect::CellId;
use crate::analysis::Analysis;
use crate::timeline::{Access, Levels, RunShift, TrialShift};

/// Most changes over a run that are claimed: the greatest.
const OVER_RUN_MAX: usize = 3;

/// A change of the level of throughput.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// The cell whose levels are given.
    pub cell: CellId,
    /// Throughput before it, MB/s.
    pub before_mb_s: f64,
    /// Throughput after it, MB/s.
    pub after_mb_s: f64,
    /// How many times as high throughput is after it; over a run the median over the cells that have trials of both levels.
    pub factor: f64,
    /// The timed time until then, of the run or of a trial, ns.
    pub after_ns: u64,
    /// Bytes until then: written by the run, or read where only reads changed; moved by a trial.
    pub after_bytes: f64,
    /// Where it lies.
    pub place: Place,
}

/// Where a change of level lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// In the course of the run.
    OverRun {
        /// The cells that changed together, whose bytes are counted.
        of: Access,
        /// For how long each level was seen.
        levels: Levels,
    },
    /// In every trial of some cells.
    WithinTrials {
        /// Cells of which that holds; the greatest change is given.
        cells: usize,
        /// Trials of the cell of which the levels are medians.
        trials: usize,
    },
    /// In the warm-up, which no number holds.
    InWarmUp,
}

/// The changes of a run in the order in which a reader needs them: over the run in the order of time, then within trials.
pub(super) fn changes(analysis: &Analysis, run: usize) -> Vec<Change> {
    let timeline = &analysis.timeline;
    let mut shifts: Vec<&RunShift> = timeline.over_run.iter().collect();
    shifts.sort_by(|a, b| b.factor.ln().abs().total_cmp(&a.factor.ln().abs()));
    shifts.truncate(OVER_RUN_MAX);
    shifts.sort_by_key(|shift| shift.after_ns);
    let over_run = shifts.into_iter().map(|shift| Change {
        cell: CellId {
            run,
            cell: shift.cell,
        },
        before_mb_s: shift.before_mb_s,
        after_mb_s: shift.after_mb_s,
        factor: shift.factor,
        after_ns: shift.after_ns,
        after_bytes: shift.moved_bytes as f64,
        place: Place::OverRun {
            of: shift.of,
            levels: shift.levels,
        },
    });
    let within = greatest(&timeline.within).map(|shift| {
        let place = Place::WithinTrials {
            cells: timeline.within.len(),
            trials: shift.trials,
        };
        in_trials(shift, run, place)
    });
    let in_warm_up =
        greatest(&timeline.in_warm_ups).map(|shift| in_trials(shift, run, Place::InWarmUp));
    over_run.chain(within).chain(in_warm_up).collect()
}

fn greatest(shifts: &[TrialShift]) -> Option<&TrialShift> {
    let size = |shift: &TrialShift| shift.factor().ln().abs();
    shifts.iter().max_by(|a, b| size(a).total_cmp(&size(b)))
}

fn in_trials(shift: &TrialShift, run: usize, place: Place) -> Change {
    Change {
        cell: CellId {
            run,
            cell: shift.cell,
        },
        before_mb_s: shift.before_mb_s,
        after_mb_s: shift.after_mb_s,
        factor: shift.factor(),
        after_ns: shift.after_ns,
        after_bytes: shift.moved_bytes,
        place,
    }
}
