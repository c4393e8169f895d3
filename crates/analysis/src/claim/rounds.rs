//! Whether the rounds of a run came to a steady state.

use iolab_plan::precondition::{RAND_BS, SteadyRounds};
use iolab_plan::standard::Deviation;
use iolab_record::EndedBy;
use iolab_stats::Steadiness;
use iolab_workload::trial::{CacheState, Pattern, SyncPolicy};
use schemars::JsonSchema;
use serde::Serialize;

use super::effect::CellId;
use super::kind::Role;
use super::{Claim, Payload, kind};
use crate::analysis::{Analysis, CellAnalysis, Response, RoundsEnd, SteadyAnalysis, TrackedOf};

/// Rounds that were repeated until the last of them were steady, or none remained.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Rounds {
    /// The requested rounds: kind, window, limits and the most rounds.
    pub asked: SteadyRounds,
    /// Rounds that were completed.
    pub rounds: usize,
    /// Number of judged rounds: those since the targets were last prepared.
    pub judged: usize,
    /// Tracked series, in the order of the cells or targets.
    pub tracked: Vec<TrackedState>,
    /// Result of the rounds.
    pub state: RoundsState,
    /// Reason why the rounds of cells ended; `None` for rounds of writes, whose number is fixed.
    #[serde(skip)]
    pub ended_by: Option<EndedBy>,
    /// Index in `tracked` of the least steady series; `None` if no window is complete.
    pub worst: Option<usize>,
    /// The trials of the same writes that lie furthest from steady rounds of writes; `None` if all lie within
    /// their range.
    pub outside: Option<Outside>,
    /// Whether the limits and the tracked series follow the standard whose test the run follows. Otherwise
    /// steady rounds are not its steady state.
    pub is_by_standard: bool,
}

/// A cell whose trials repeat the writes of the rounds before them, one at a time, at another level.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct Outside {
    /// The cell.
    pub cell: CellId,
    /// Median of its trials, requests per second.
    pub iops: f64,
    /// Mean of the last window, requests per second.
    pub rounds_iops: f64,
}

/// Result of rounds, and whether it can be relied on.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RoundsState {
    /// The last window is steady.
    Steady,
    /// The last window is alike, but there are doubts about a steady state.
    Alike(RoundsDoubts),
    /// The last window is not steady.
    NotSteady,
    /// There are too few rounds for a window.
    TooFew,
    /// A tracked series lacks values.
    LacksValues,
    /// No window was chosen: the run did not end by its rounds.
    Unended,
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

impl RoundsState {
    /// Result of the rounds of this run.
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
        let count = |is: fn(&CellAnalysis) -> bool| {
            let cells = analysis.cells.iter();
            cells
                .filter(|cell| tracked(cell.cell.id) && is(cell))
                .count()
        };
        Self {
            written: steady.overwritten.filter(|times| *times < 1.0),
            changing: shifts.filter(|shift| tracked(shift.cell)).count(),
            cached: count(|cell| cell.disturbance.left_in_storage_cache().is_some()),
            disturbed: count(CellAnalysis::is_disturbed_awake),
            suspended: count(CellAnalysis::is_suspended),
        }
    }
}

/// State of a series that is tracked over the rounds.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct TrackedState {
    /// The cell of this response; `None` for writes before the first trial.
    pub cell: Option<CellId>,
    /// The target of these writes, if there are several.
    pub target: Option<String>,
    /// The value of each round.
    pub values: Vec<f64>,
    /// Steadiness of the last window; `None` with too few rounds.
    pub steadiness: Option<Steadiness>,
}

/// The rounds of a run.
pub(super) fn rounds(analysis: &Analysis, run: usize) -> Option<Claim> {
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
    let worst = steady.worst().and_then(|worst| {
        let mut all = steady.tracked.iter();
        all.position(|one| one.of == worst.of)
    });
    let state = RoundsState::of(analysis, steady);
    let rounds = Rounds {
        asked: steady.asked,
        rounds: steady.rounds,
        judged: steady.judged,
        tracked: tracked.collect(),
        state,
        ended_by: steady.ended_by,
        worst,
        outside: outside(analysis, steady, run),
        is_by_standard: is_by_standard(analysis),
    };
    let kind = match state {
        RoundsState::Steady => &kind::STEADY_ROUNDS,
        RoundsState::Alike(_) => &kind::ROUNDS_ALIKE,
        RoundsState::NotSteady => &kind::ROUNDS_NOT_STEADY,
        RoundsState::TooFew | RoundsState::LacksValues | RoundsState::Unended => {
            &kind::ROUNDS_NOT_JUDGED
        }
    };
    // Rounds of all cells are asked for with the cells themselves.
    let role = match steady.is_of_cells() {
        true => Role::Answer,
        false => kind.role,
    };
    let claim = Claim::of_run(kind, (analysis, run), |_| true);
    Some(claim.in_role(role).with_payload(Payload::Rounds(rounds)))
}

/// Whether the run follows a standard whose limits and tracked cells decide.
fn is_by_standard(analysis: &Analysis) -> bool {
    let decides = |one: &Deviation| matches!(one, Deviation::Limits | Deviation::Tracked);
    let followed = analysis.standard.as_ref();
    followed.is_some_and(|followed| !followed.deviations.iter().any(decides))
}

/// The cell of the same writes that is furthest from the mean of steady rounds, beyond the allowed range. With
/// several targets, it is unknown to which of them rounds belong.
fn outside(analysis: &Analysis, steady: &SteadyAnalysis, run: usize) -> Option<Outside> {
    let [tracked] = steady.tracked.as_slice() else {
        return None;
    };
    if steady.is_of_cells() || !steady.is_reached() {
        return None;
    }
    let mean = tracked.window_mean(&steady.asked)?;
    let is_same = |cell: &&CellAnalysis| {
        let Some(trial) = cell.cell.spec.only_trial() else {
            return false;
        };
        cell.cell.program().is_none()
            && (trial.bs, trial.read_percent, trial.trim_percent) == (RAND_BS, 0, 0)
            && trial.in_flight_of_all() == 1
            && matches!(trial.pattern, Pattern::Rand | Pattern::RandReplace)
            && trial.bs_mix.is_none()
            && trial.rate.is_none()
            && trial.cache == CacheState::Direct
            && matches!(trial.sync, SyncPolicy::None | SyncPolicy::End)
    };
    let same = analysis.cells.iter().filter(is_same);
    let far = |iops: f64| (iops / mean).ln().abs();
    let found = same
        .filter_map(|cell| Some((cell, cell.median(Response::Iops)?)))
        .filter(|(_, iops)| (iops / mean - 1.0).abs() > steady.asked.range)
        .max_by(|(_, a), (_, b)| far(*a).total_cmp(&far(*b)));
    found.map(|(cell, iops)| Outside {
        cell: CellId {
            run,
            cell: cell.cell.id,
        },
        iops,
        rounds_iops: mean,
    })
}
