//! Lasting changes of the level of throughput: over the run, within each trial, and in the warm-up.

use super::effect::CellId;
use crate::analysis::Analysis;
use crate::timeline::{
    Access, DisturbedTrials, Gradual, Levels, RunShift, TrialLevel, TrialShift, Unchanged,
};
use schemars::JsonSchema;
use serde::Serialize;

/// Most changes over a run that are claimed, the largest ones first.
const OVER_RUN_MAX: usize = 3;

/// A change of the level of throughput.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Change {
    /// The cell whose levels are given.
    pub cell: CellId,
    /// Throughput before the change, MB/s.
    pub before_mb_s: f64,
    /// Throughput after the change, MB/s.
    pub after_mb_s: f64,
    /// Throughput after over throughput before; over a run the median over the cells that have trials of both levels.
    pub factor: f64,
    /// Timed time until the change, since the beginning of the run or of the trial, ns.
    pub after_ns: u64,
    /// Bytes until the change: over a run those written, or read where only reads changed; within a trial likewise.
    pub after_bytes: f64,
    /// When the change happens.
    pub place: ChangePlace,
    /// Disturbed trials at the lower level, if most of them were disturbed, and a lower share of the others:
    /// disturbance may have made the change.
    pub disturbed: Option<DisturbedTrials>,
    /// All levels within the only trial of the cell, of which the change is the greatest; empty elsewhere.
    pub levels: Vec<TrialLevel>,
}

/// When a change of level happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ChangePlace {
    /// In the course of the run.
    OverRun {
        /// Kind of access that the changed cells have in common, whose bytes are counted.
        of: Access,
        /// Number of cells with trials of both levels; the levels shown are from the fastest.
        cells: usize,
        /// Time for which each level was seen.
        levels: Levels,
    },
    /// In every trial of some cells.
    WithinTrials {
        /// Number of such cells; the change shown is the largest.
        cells: usize,
        /// Number of trials of the cell shown, over which the levels are medians.
        trials: usize,
        /// Kind of bytes that are counted.
        of: Access,
        /// Whether the run asks about the beginning of its trials: it leaves none out as a warm-up.
        asked: bool,
    },
    /// In the warm-up, which no summary includes.
    InWarmUp,
}

/// An only trial from its beginning that is not constant, though no step is found in it.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct GradualChange {
    /// The cell in which it is greatest.
    pub cell: CellId,
    /// Number of such cells.
    pub cells: usize,
    /// Throughput of the cell over time.
    pub found: Gradual,
    /// The trial, where it was disturbed from outside, which may have made the change.
    pub disturbed: Option<DisturbedTrials>,
}

/// Trials from their beginning without a change of their level.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct NoChange {
    /// The cells, of which each has one trial.
    pub cells: Vec<CellId>,
    /// The factor by which a rise or a fall that lasts for a quarter of a trial would have been found in each of them; `None` where in some
    /// cell none by 20 would.
    pub factor: Option<f64>,
    /// The factor of a steady rise or fall over a whole trial that would have been found in each of them; `None` where in some cell none by 20
    /// would.
    pub drift: Option<f64>,
}

/// Result for a run whose trials do not change.
pub(super) fn no_change(analysis: &Analysis, run: usize) -> Option<NoChange> {
    let kept = &analysis.timeline.unchanged;
    let cells = kept.iter().map(|one| CellId {
        run,
        cell: one.cell,
    });
    let greatest = |factor: fn(&Unchanged) -> Option<f64>| {
        let factors: Option<Vec<f64>> = kept.iter().map(factor).collect();
        factors.and_then(|all| all.into_iter().reduce(f64::max))
    };
    (!kept.is_empty()).then(|| NoChange {
        cells: cells.collect(),
        factor: greatest(|one| one.factor),
        drift: greatest(|one| one.drift),
    })
}

/// The greatest change of a trial of a run without a step.
pub(super) fn gradual(analysis: &Analysis, run: usize) -> Option<GradualChange> {
    let all = &analysis.timeline.gradual;
    let size = |of: &Gradual| (of.highest_mb_s / of.lowest_mb_s).ln();
    let greatest = all.iter().max_by(|a, b| size(a.1).total_cmp(&size(b.1)));
    greatest.map(|(cell, found)| GradualChange {
        cell: CellId { run, cell: *cell },
        cells: all.len(),
        found: *found,
        disturbed: disturbed_trial(analysis, *cell),
    })
}

/// The only trial of a cell, where it was disturbed from outside.
fn disturbed_trial(analysis: &Analysis, cell: i64) -> Option<DisturbedTrials> {
    let own = analysis.cell(cell)?;
    own.disturbance.is_from_outside().then(|| DisturbedTrials {
        disturbed: 1,
        suspended: usize::from(own.disturbance.suspended_ns > 0),
        all: 1,
    })
}

/// The changes of a run: those over the run in the order of time, then those within trials.
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
        place: ChangePlace::OverRun {
            of: shift.of,
            cells: shift.cells,
            levels: shift.levels,
        },
        disturbed: disturbed(shift),
        levels: Vec::new(),
    });
    let within = greatest(&timeline.within).map(|shift| {
        let place = ChangePlace::WithinTrials {
            cells: timeline.within.len(),
            trials: shift.trials,
            of: shift.of,
            asked: timeline.is_of_beginning,
        };
        // What others do is not at the same place of each of several trials.
        let disturbed = match shift.trials {
            1 => disturbed_trial(analysis, shift.cell),
            _ => None,
        };
        in_trials(shift, run, place, disturbed)
    });
    let in_warm_up = greatest(&timeline.in_warm_ups)
        .map(|shift| in_trials(shift, run, ChangePlace::InWarmUp, None));
    over_run.chain(within).chain(in_warm_up).collect()
}

fn greatest(shifts: &[TrialShift]) -> Option<&TrialShift> {
    let size = |shift: &TrialShift| shift.factor().ln().abs();
    shifts.iter().max_by(|a, b| size(a).total_cmp(&size(b)))
}

/// The disturbed trials at the lower level of a change, where they may have made it.
fn disturbed(shift: &RunShift) -> Option<DisturbedTrials> {
    let both = [shift.disturbed_before, shift.disturbed_after];
    let [lower, upper] = match shift.factor < 1.0 {
        true => [both[1], both[0]],
        false => both,
    };
    (lower.share() > 0.5 && lower.share() > upper.share()).then_some(lower)
}

fn in_trials(
    shift: &TrialShift,
    run: usize,
    place: ChangePlace,
    disturbed: Option<DisturbedTrials>,
) -> Change {
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
        disturbed,
        levels: shift.levels.clone(),
    }
}
