//! Whether the rounds of a run came to a steady state.

use iolab_plan::precondition::SteadyRounds;
use iolab_stats::Steadiness;

use super::effect::CellId;
use crate::analysis::{Analysis, RoundsEnd, RoundsOf, StandardFollowed, SteadyAnalysis, TrackedOf};

/// Rounds that were repeated until the last of them were steady, or until there were no more.
#[derive(Debug, Clone, PartialEq)]
pub struct Rounds {
    /// The run.
    pub run: usize,
    /// What the rounds are.
    pub of: RoundsOf,
    /// What was asked: the window, its limits, the most rounds.
    pub asked: SteadyRounds,
    /// Rounds that were completed.
    pub rounds: usize,
    /// How many of them are judged: those since the targets were last prepared.
    pub judged: usize,
    /// What is tracked, in the order of the cells or targets.
    pub tracked: Vec<TrackedState>,
    /// What they came to.
    pub state: RoundsState,
    /// The place in `tracked` of what is least steady; `None` where no window is complete.
    pub worst: Option<usize>,
    /// The test of a standard that the run follows.
    pub standard: Option<StandardFollowed>,
}

/// What rounds came to, and whether it can be relied on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum RoundsState {
    /// The last window is steady.
    Steady,
    /// The last window is alike, but something speaks against a steady state.
    Alike(RoundsDoubts),
    /// It is not steady.
    NotSteady,
    /// There are too few rounds for a window.
    TooFew,
    /// What is tracked lacks values.
    LacksValues,
    /// No window was chosen: the run did not end by its rounds.
    Unended,
}

/// What speaks against a steady state though the rounds of the last window are alike.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct RoundsDoubts {
    /// The lowest share of the region that was written before the window; `None` where all of it was.
    pub written: Option<f64>,
    /// Tracked cells whose throughput changes its level within each trial, which the mean of a round hides.
    pub changing: usize,
    /// Tracked cells whose trials were disturbed.
    pub disturbed: usize,
}

impl RoundsState {
    /// Of the rounds of this run.
    pub fn of(analysis: &Analysis, steady: &SteadyAnalysis) -> Self {
        match steady.end {
            RoundsEnd::Steady => match RoundsDoubts::of(analysis, steady) {
                doubts if doubts == RoundsDoubts::default() => Self::Steady,
                doubts => Self::Alike(doubts),
            },
            RoundsEnd::NotSteady => Self::NotSteady,
            RoundsEnd::TooFew => Self::TooFew,
            RoundsEnd::LacksValues => Self::LacksValues,
            RoundsEnd::Unended => Self::Unended,
        }
    }
}

impl RoundsDoubts {
    fn of(analysis: &Analysis, steady: &SteadyAnalysis) -> Self {
        let tracked = |cell: i64| {
            let mut all = steady.tracked.iter();
            all.any(|one| one.of == TrackedOf::Cell(cell))
        };
        let shifts = analysis.timeline.within.iter();
        let cells = analysis.cells.iter();
        Self {
            written: steady.overwritten.filter(|times| *times < 1.0),
            changing: shifts.filter(|shift| tracked(shift.cell)).count(),
            disturbed: cells
                .filter(|cell| tracked(cell.cell.id) && cell.is_disturbed())
                .count(),
        }
    }
}

/// What is tracked over the rounds.
#[derive(Debug, Clone, PartialEq)]
pub struct TrackedState {
    /// The cell whose response it is; `None` of writes before the first trial.
    pub cell: Option<CellId>,
    /// The target of these writes, where there are several.
    pub target: Option<String>,
    /// The value of each round.
    pub values: Vec<f64>,
    /// How steady the last window is; `None` with too few rounds.
    pub steadiness: Option<Steadiness>,
}

/// The rounds of a run.
pub(super) fn rounds(analysis: &Analysis, run: usize) -> Option<Rounds> {
    let steady = analysis.steady.as_ref()?;
    let tracked = steady.tracked.iter().map(|one| {
        let (cell, target) = match &one.of {
            TrackedOf::Cell(cell) => (Some(CellId { run, cell: *cell }), None),
            TrackedOf::Target(target) => (None, target.clone()),
        };
        TrackedState {
            cell,
            target,
            values: one.values.clone(),
            steadiness: one.steadiness,
        }
    });
    let worst = steady.worst().and_then(|(worst, _)| {
        let mut all = steady.tracked.iter();
        all.position(|one| one.of == worst.of)
    });
    Some(Rounds {
        run,
        of: steady.of,
        asked: steady.asked,
        rounds: steady.rounds,
        judged: steady.judged,
        tracked: tracked.collect(),
        state: RoundsState::of(analysis, steady),
        worst,
        standard: steady.standard.clone(),
    })
}
