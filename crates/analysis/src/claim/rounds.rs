//! Whether the rounds of a run came to a steady state.

use iolab_plan::precondition::SteadyRounds;
use iolab_stats::Steadiness;

use super::effect::CellId;
use crate::analysis::{Analysis, RoundsOf, StandardFollowed, TrackedOf};

/// Rounds that were repeated until the last of them were steady, or until there were no more.
#[derive(Debug, Clone, PartialEq)]
pub struct Rounds {
    /// The run.
    pub run: usize,
    /// What the rounds are.
    pub of: RoundsOf,
    /// What was asked: the window, its limits, the most rounds.
    pub asked: SteadyRounds,
    /// Rounds that were made.
    pub rounds: usize,
    /// What is tracked, in the order of the cells or targets.
    pub tracked: Vec<TrackedState>,
    /// Whether all of it is steady.
    pub is_reached: bool,
    /// The place in `tracked` of what is least steady; `None` where no window is complete.
    pub worst: Option<usize>,
    /// The test of a standard that the run follows.
    pub standard: Option<StandardFollowed>,
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
        tracked: tracked.collect(),
        is_reached: steady.is_reached(),
        worst,
        standard: steady.standard.clone(),
    })
}
