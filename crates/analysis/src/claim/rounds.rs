//! Whether the rounds of a run came to a steady state.

use iolab_plan::standard::Deviation;
use schemars::JsonSchema;
use serde::Serialize;

use super::kind::Role;
use super::{Claim, Payload, kind};
use crate::analysis::{Analysis, CellAnalysis, DoubtKind, RoundsEnd, SteadyAnalysis, TrackedOf};

/// Rounds that were repeated until the last of them were steady, or none remained.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Rounds {
    /// The rounds, and what they came to.
    #[serde(flatten)]
    pub steady: SteadyAnalysis,
    /// Doubts whether the last rounds, which are alike, are a steady state.
    pub doubts: RoundsDoubts,
    /// Whether the limits and the tracked series follow the standard whose test the run follows. Otherwise
    /// steady rounds are not its steady state.
    pub is_by_standard: bool,
}

/// Doubts about a steady state although the rounds of the last window are alike.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, JsonSchema)]
pub struct RoundsDoubts {
    /// The lowest share of the region that was written before the window; `None` if all of it was.
    pub written: Option<f64>,
    /// Tracked cells whose throughput changes its level within each trial, which the mean of a round hides.
    pub changing: usize,
    /// Tracked cells that left writes in a cache of the storage, so that they show the level of the cache.
    pub cached: usize,
    /// Tracked cells whose trials were disturbed, by something other than a suspended machine.
    pub disturbed: usize,
    /// Tracked cells during whose trials the machine or iolab was suspended.
    pub suspended: usize,
}

impl RoundsDoubts {
    /// Doubts about the rounds of this run; none if they are not alike.
    pub fn of(analysis: &Analysis, steady: &SteadyAnalysis) -> Self {
        if !steady.is_reached() {
            return Self::default();
        }
        let tracked = |cell: i64| {
            let mut all = steady.tracked.iter();
            all.any(|one| one.of == TrackedOf::Cell(cell))
        };
        let shifts = analysis.timeline.within.iter();
        let count = |is: fn(&CellAnalysis) -> bool| {
            let cells = analysis.cells.iter().filter(|cell| is(cell));
            cells.filter(|cell| tracked(cell.cell.id)).count()
        };
        Self {
            written: steady.overwritten.filter(|times| *times < 1.0),
            changing: shifts.filter(|shift| tracked(shift.cell)).count(),
            cached: count(|cell| cell.disturbance.left_in_storage_cache().is_some()),
            disturbed: count(|cell| {
                let mut flags = cell.flags.iter();
                flags.any(|flag| flag.disturbs() && *flag != DoubtKind::Suspended)
            }),
            suspended: count(CellAnalysis::is_suspended),
        }
    }
}

/// The rounds of a run.
pub(super) fn rounds(analysis: &Analysis, run: usize) -> Option<Claim> {
    let steady = analysis.steady.clone()?;
    let doubts = RoundsDoubts::of(analysis, &steady);
    let kind = match steady.end {
        RoundsEnd::Steady if doubts == RoundsDoubts::default() => &kind::STEADY_ROUNDS,
        RoundsEnd::Steady => &kind::ROUNDS_ALIKE,
        RoundsEnd::NotSteady => &kind::ROUNDS_NOT_STEADY,
        RoundsEnd::TooFew | RoundsEnd::LacksValues | RoundsEnd::Unended => &kind::ROUNDS_NOT_JUDGED,
    };
    // Rounds of all cells are asked for with the cells themselves.
    let role = match steady.is_of_cells() {
        true => Role::Answer,
        false => kind.role,
    };
    let decides = |one: &Deviation| matches!(one, Deviation::Limits | Deviation::Tracked);
    let followed = analysis.standard.as_ref();
    let rounds = Rounds {
        steady,
        doubts,
        is_by_standard: followed.is_some_and(|test| !test.deviations.iter().any(decides)),
    };
    let claim = Claim::of_run(kind, (analysis, run), |_| true);
    Some(claim.in_role(role).with_payload(Payload::Rounds(rounds)))
}
