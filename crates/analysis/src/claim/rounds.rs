//! Whether the rounds of a run came to a steady state.

use iolab_record::EndedBy;
use iolab_stats::Steadiness;

use super::kind::{self, Role};
use super::{Claim, Point, Quantity, Standing};
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

/// The rounds of a run: their number and window, the criterion with its limits, and each round of the least steady series.
pub(super) fn rounds(analysis: &Analysis, run: usize) -> Option<Claim> {
    let steady = analysis.steady.as_ref()?;
    let doubts = against_steady_state(analysis, steady);
    let standard = analysis.standard.as_ref();
    let [by_standard, by_others, writes_steady] = &kind::STEADY_ROUNDS;
    let [not_steady, writes_not_steady] = &kind::ROUNDS_NOT_STEADY;
    let [too_few, too_few_writes, without_values, unended] = &kind::ROUNDS_NOT_JUDGED;
    let is_of_cells = steady.is_of_cells();
    let kind = match steady.end {
        RoundsEnd::Steady if !is_of_cells => writes_steady,
        RoundsEnd::Steady if !doubts.is_empty() => &kind::ROUNDS_ALIKE,
        RoundsEnd::Steady if standard.is_some_and(StandardFollowed::keeps_limits) => by_standard,
        RoundsEnd::Steady => by_others,
        RoundsEnd::NotSteady if is_of_cells => not_steady,
        RoundsEnd::NotSteady => writes_not_steady,
        RoundsEnd::TooFew if is_of_cells => too_few,
        RoundsEnd::TooFew => too_few_writes,
        RoundsEnd::LacksValues => without_values,
        RoundsEnd::Unended => unended,
    };
    let mut claim = Claim::of_run(kind, (analysis, run), |_| true);
    // Rounds of all cells are asked for with the cells themselves.
    if is_of_cells {
        claim.role = Role::Answer;
    }
    if !kind.advice.is_empty() {
        let more = match steady.ended_by {
            Some(EndedBy::Budget) => "A larger --budget",
            Some(EndedBy::Fills) => "More fills=N in --precondition",
            _ => "More rounds=N in --precondition",
        };
        claim.held.push(("more".to_owned(), more.to_owned()));
    }
    let asked = &steady.asked;
    let count = |rounds: usize| Point::main(Quantity::Count("round"), rounds as f64);
    let made = match steady.end {
        RoundsEnd::TooFew => count(steady.judged).of(f64::from(asked.window)),
        _ => count(steady.rounds),
    };
    claim.points = vec![made, count(asked.window as usize)];
    if let Some(worst) = steady.worst()
        && let Some(Steadiness { range, slope, .. }) = worst.steadiness
    {
        let share = |value, limit| Point::main(Quantity::Share, value).of(limit);
        let limits = [share(range, asked.range), share(slope, asked.slope)];
        claim.points.extend(limits);
        let others = match &worst.of {
            TrackedOf::Cell(cell) => {
                claim.cells.sort_by_key(|id| id.cell != *cell);
                "other tracked cell"
            }
            TrackedOf::Target(target) => {
                let target = target.as_ref().unwrap_or(&analysis.target);
                claim.held.push(("target".to_owned(), target.clone()));
                "other target"
            }
        };
        let first = claim.cells.first().copied().filter(|_| is_of_cells);
        let quantity = match is_of_cells {
            true => Quantity::Of(analysis.response),
            false => Quantity::Rate,
        };
        claim.points.extend(worst.values.iter().map(|value| Point {
            cell: first,
            ..Point::new(Standing::Round, quantity, *value)
        }));
        let others = Point::count(Standing::Alike, others, steady.tracked.len() - 1);
        claim.points.extend((others.value > 0.0).then_some(others));
    }
    claim.points.extend(doubts);
    Some(claim)
}
