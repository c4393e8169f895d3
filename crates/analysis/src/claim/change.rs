//! Levels of throughput over time: lasting changes over the run, within each trial, and in the warm-up, and trials
//! without a step.

use super::effect::CellId;
use super::kind::{self, Kind};
use super::{Claim, Point, Quantity, Since, Standing};
use crate::analysis::{Analysis, Response};
use crate::timeline::{DisturbedTrials, Gradual, Levels, RunShift, TrialShift, Unchanged};

/// Most changes over a run that are claimed, the largest ones first.
const OVER_RUN_MAX: usize = 3;

/// A lasting change between two levels, as a claim states it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LevelChange {
    /// The cell whose levels are given.
    pub cell: CellId,
    /// Throughput before the change, MB/s.
    pub before_mb_s: f64,
    /// Throughput after the change, MB/s.
    pub after_mb_s: f64,
    /// Time and bytes until the change.
    pub since: Since,
    /// Whether disturbance may have made the change.
    pub is_disturbed: bool,
    /// Whether it holds for the rest of the run, and does not recur in each trial.
    pub is_of_run: bool,
}

impl LevelChange {
    /// Throughput after over throughput before.
    pub fn factor(&self) -> f64 {
        self.after_mb_s / self.before_mb_s
    }
}

impl Claim {
    /// The lasting change of level that it states; `None` for other claims.
    pub fn level_change(&self) -> Option<LevelChange> {
        let [before, after, rest @ ..] = self.points.as_slice() else {
            return None;
        };
        let disturbed = [Standing::Disturbed, Standing::Suspended];
        Some(LevelChange {
            cell: *self.cells.first()?,
            before_mb_s: before.value,
            after_mb_s: after.value,
            since: after.since.filter(|_| after.standing == Standing::Main)?,
            is_disturbed: rest.iter().any(|point| disturbed.contains(&point.standing)),
            is_of_run: self.kind == &kind::LEVEL_OVER_RUN,
        })
    }
}

/// The claim of a change of a cell of a run between two levels, MB/s.
fn level_change(
    kind: &'static Kind,
    (run, cell): (usize, i64),
    [before, after]: [f64; 2],
    since: Since,
) -> Claim {
    let levels = [
        level(Standing::Main, before, None),
        level(Standing::Main, after, Some(since)),
    ];
    let claim = Claim::new(kind, vec![CellId { run, cell }]).with_points(levels);
    claim.with_ratio(after / before, None)
}

fn level(standing: Standing, mb_s: f64, since: Option<Since>) -> Point {
    let throughput = Quantity::Of(Response::Throughput);
    Point {
        since,
        ..Point::new(standing, throughput, mb_s)
    }
}

/// The cells beyond the first in which the same is found.
fn others(cells: usize) -> Option<Point> {
    (cells > 1).then(|| Point::count(Standing::Alike, "more cell", cells - 1))
}

/// Disturbed trials at the lower level.
fn disturbed_point(disturbed: DisturbedTrials) -> Point {
    let standing = match disturbed.suspended {
        0 => Standing::Disturbed,
        _ => Standing::Suspended,
    };
    Point::count(standing, "trial", disturbed.disturbed).of(disturbed.all as f64)
}

/// All claims about levels over time: changes over the run in the order of time, changes within trials, then
/// trials without a step.
pub(super) fn changes(analysis: &Analysis, run: usize) -> Vec<Claim> {
    let timeline = &analysis.timeline;
    let mut shifts: Vec<&RunShift> = timeline.over_run.iter().collect();
    shifts.sort_by(|a, b| b.factor.ln().abs().total_cmp(&a.factor.ln().abs()));
    shifts.truncate(OVER_RUN_MAX);
    shifts.sort_by_key(|shift| shift.after_ns);
    let over_run = shifts.into_iter().map(|shift| over_run(shift, run));
    let within = greatest(&timeline.within).map(|shift| {
        let kind = match timeline.is_of_beginning {
            true => &kind::LEVEL_OF_SOAK,
            false => &kind::LEVEL_WITHIN_TRIALS,
        };
        // What others do is not at the same place of each of several trials.
        let disturbed = (shift.trials == 1).then(|| disturbed_trial(analysis, shift.cell));
        let mut claim = in_trials(shift, run, disturbed.flatten(), kind);
        claim.points.extend(others(timeline.within.len()));
        claim
    });
    let in_warm_up = greatest(&timeline.in_warm_ups)
        .map(|shift| in_trials(shift, run, None, &kind::LEVEL_IN_WARM_UP));
    let of_steps = over_run.chain(within).chain(in_warm_up);
    let without = gradual(analysis, run).into_iter();
    let without = without.chain(no_change(analysis, run));
    of_steps.chain(without).collect()
}

fn greatest(shifts: &[TrialShift]) -> Option<&TrialShift> {
    let size = |shift: &TrialShift| shift.factor().ln().abs();
    shifts.iter().max_by(|a, b| size(a).total_cmp(&size(b)))
}

fn over_run(shift: &RunShift, run: usize) -> Claim {
    let since = Since {
        ns: shift.after_ns,
        bytes: shift.moved_bytes as f64,
        access: shift.of,
    };
    let seen = match shift.levels {
        Levels::Trials { before, after } => {
            [before, after].map(|trials| Point::count(Standing::Seen, "trial", trials))
        }
        Levels::Time {
            before_ns,
            after_ns,
        } => [before_ns, after_ns].map(|ns| {
            let elapsed = Quantity::Of(Response::Elapsed);
            Point::new(Standing::Seen, elapsed, ns as f64)
        }),
    };
    let levels = [shift.before_mb_s, shift.after_mb_s];
    let mut claim = level_change(&kind::LEVEL_OVER_RUN, (run, shift.cell), levels, since);
    claim.points.extend(seen);
    claim.points.extend(others(shift.cells.len()));
    claim.points.extend(disturbed(shift).map(disturbed_point));
    claim
}

fn in_trials(
    shift: &TrialShift,
    run: usize,
    disturbed: Option<DisturbedTrials>,
    kind: &'static Kind,
) -> Claim {
    let since = |ns, bytes| Since {
        ns,
        bytes,
        access: shift.of,
    };
    let both = [shift.before_mb_s, shift.after_mb_s];
    let first = since(shift.after_ns, shift.moved_bytes);
    let mut claim = level_change(kind, (run, shift.cell), both, first);
    let levels = shift.levels.iter().filter(|_| shift.levels.len() > 2);
    claim.points.extend(levels.map(|one| {
        let since = (one.from_ns > 0).then(|| since(one.from_ns, one.from_bytes));
        level(Standing::Level, one.throughput_mb_s, since)
    }));
    let trials = Point::count(Standing::MedianOf, "trial", shift.trials);
    claim.points.extend((shift.trials > 1).then_some(trials));
    claim.points.extend(disturbed.map(disturbed_point));
    claim
}

/// Result for a run whose trials do not change.
fn no_change(analysis: &Analysis, run: usize) -> Option<Claim> {
    let kept = &analysis.timeline.unchanged;
    let cells = kept.iter().map(|one| CellId {
        run,
        cell: one.cell,
    });
    let greatest = |standing, factor: fn(&Unchanged) -> Option<f64>| {
        let factors: Option<Vec<f64>> = kept.iter().map(factor).collect();
        let greatest = factors?.into_iter().reduce(f64::max)?;
        Some(Point::new(standing, Quantity::Times, greatest))
    };
    let found = [
        greatest(Standing::Step, |one| one.factor),
        greatest(Standing::Drift, |one| one.drift),
    ];
    let kind = match found.iter().any(Option::is_some) {
        true => &kind::NO_LEVEL_CHANGE,
        false => &kind::UNKNOWN_CHANGE,
    };
    let points = found.into_iter().flatten().chain(others(kept.len()));
    (!kept.is_empty()).then(|| Claim::new(kind, cells.collect()).with_points(points))
}

/// The greatest change of a trial of a run without a step.
fn gradual(analysis: &Analysis, run: usize) -> Option<Claim> {
    let all = &analysis.timeline.gradual;
    let size = |of: &Gradual| (of.highest_mb_s / of.lowest_mb_s).ln();
    let (cell, found) = all.iter().max_by(|a, b| size(a.1).total_cmp(&size(b.1)))?;
    let first = (Standing::First, found.first_mb_s);
    let last = (Standing::Last, found.last_mb_s);
    let lowest = (Standing::Lowest, found.lowest_mb_s);
    let highest = (Standing::Highest, found.highest_mb_s);
    let (kind, ends) = match found.has_direction {
        true => (&kind::GRADUAL_CHANGE, [first, last]),
        false => (&kind::UNEVEN, [lowest, highest]),
    };
    let ratio = ends[1].1 / ends[0].1;
    let ends = ends.map(|(standing, mb_s)| level(standing, mb_s, None));
    let disturbed = disturbed_trial(analysis, *cell).map(disturbed_point);
    let points = ends.into_iter().chain(others(all.len())).chain(disturbed);
    let claim = Claim::new(kind, vec![CellId { run, cell: *cell }]);
    Some(claim.with_ratio(ratio, None).with_points(points))
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

/// The disturbed trials at the lower level of a change, where they may have made it.
fn disturbed(shift: &RunShift) -> Option<DisturbedTrials> {
    let both = [shift.disturbed_before, shift.disturbed_after];
    let [lower, upper] = match shift.factor < 1.0 {
        true => [both[1], both[0]],
        false => both,
    };
    (lower.share() > 0.5 && lower.share() > upper.share()).then_some(lower)
}
