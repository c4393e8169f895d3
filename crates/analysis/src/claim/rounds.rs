//! Whether the rounds of a run came to a steady state.

use iolab_stats::Steadiness;

use super::kind::{self, Role};
use super::{Claim, Payload, Point, Quantity, Standing};
use crate::analysis::{
    Analysis, CellAnalysis, DoubtKind, RoundsEnd, StandardFollowed, SteadyAnalysis, TrackedOf,
};
use crate::doubt::Doubt;

/// Doubts whether the last rounds are a steady state, with the tracked cells that each concerns, or the share of the region that
/// was written. None if the rounds are not alike.
pub fn against_steady_state(analysis: &Analysis, steady: &SteadyAnalysis) -> Vec<Point> {
    if !steady.is_reached() {
        return Vec::new();
    }
    let is_tracked = |cell: i64| {
        let mut all = steady.tracked.iter();
        all.any(|one| one.of == TrackedOf::Cell(cell))
    };
    let doubted = |doubt: Doubt, point: Point| Point {
        doubts: vec![doubt],
        ..point
    };
    let count = |cells: usize| Point::count(Standing::Doubtful, "tracked cell", cells);
    let written = steady.overwritten.filter(|times| *times < 1.0);
    let written = written.map(|share| {
        let share = Point::new(Standing::Doubtful, Quantity::Share, share);
        doubted(DoubtKind::NotWrittenOver.into(), share)
    });
    // The mean of a round hides it.
    let shifts = analysis.timeline.within.iter();
    let changing = shifts.filter(|shift| is_tracked(shift.cell)).count();
    let changing =
        (changing > 0).then(|| doubted(DoubtKind::LevelInTrials.into(), count(changing)));
    let cells = || {
        let all = analysis.cells.iter();
        all.filter(|cell| is_tracked(cell.cell.id))
    };
    let around = DoubtKind::ALL.iter().filter_map(|what| {
        let concerned = cells().filter(|cell| cell.flags.contains(what));
        let concerned: Vec<&CellAnalysis> = concerned.collect();
        let extents = concerned.iter();
        let extents = extents.filter_map(|cell| what.extent(&cell.disturbance));
        let doubt = Doubt {
            extent: extents.max_by(f64::total_cmp),
            ..Doubt::from(*what)
        };
        let counts = what.disturbs() || *what == DoubtKind::StorageCache;
        (counts && !concerned.is_empty()).then(|| doubted(doubt, count(concerned.len())))
    });
    written.into_iter().chain(changing).chain(around).collect()
}

/// The rounds of a run.
pub(super) fn rounds(analysis: &Analysis, run: usize) -> Option<Claim> {
    let steady = analysis.steady.clone()?;
    let doubts = against_steady_state(analysis, &steady);
    let standard = analysis.standard.as_ref();
    let [by_standard, by_others] = &kind::STEADY_ROUNDS;
    let [too_few, without_values, unended] = &kind::ROUNDS_NOT_JUDGED;
    let kind = match steady.end {
        RoundsEnd::Steady if !doubts.is_empty() => &kind::ROUNDS_ALIKE,
        RoundsEnd::Steady if standard.is_some_and(StandardFollowed::keeps_limits) => by_standard,
        RoundsEnd::Steady => by_others,
        RoundsEnd::NotSteady => &kind::ROUNDS_NOT_STEADY,
        RoundsEnd::TooFew => too_few,
        RoundsEnd::LacksValues => without_values,
        RoundsEnd::Unended => unended,
    };
    // Rounds of all cells are asked for with the cells themselves.
    let role = match steady.is_of_cells() {
        true => Role::Answer,
        false => kind.role,
    };
    let asked = &steady.asked;
    let count = |rounds: usize| Point::main(Quantity::Count("round"), rounds as f64);
    let made = match steady.end {
        RoundsEnd::TooFew => count(steady.judged).of(f64::from(asked.window)),
        _ => count(steady.rounds),
    };
    let share = |value, limit| Point::main(Quantity::Share, value).of(limit);
    let worst = steady.worst().and_then(|worst| worst.steadiness);
    let worst = worst.map(|Steadiness { range, slope, .. }| {
        [share(range, asked.range), share(slope, asked.slope)]
    });
    let points = [made, count(asked.window as usize)].into_iter();
    let points = points.chain(worst.into_iter().flatten()).chain(doubts);
    let claim = Claim::of_run(kind, (analysis, run), |_| true).with_points(points);
    Some(claim.in_role(role).with_payload(Payload::Rounds(steady)))
}
