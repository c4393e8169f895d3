//! Rounds that were repeated until they were steady.

use iolab_analysis::claim::{
    Conformance, Outside, Rounds, RoundsDoubts, RoundsState, StageThroughput, TrackedState,
};
use iolab_plan::precondition::Round;
use schemars::JsonSchema;
use serde::Serialize;

use crate::claims::{CellData, Runs, clean};
use crate::findings::sentences::deviation;

/// Rounds that were repeated until the last of them were steady.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(inline)]
pub(crate) struct RoundsData {
    /// `cells`: trials of all cells; `writes`: random writes before the first trial.
    rounds_of: String,
    /// Rounds that were completed.
    rounds: usize,
    /// How many of them are judged: those since the targets were last prepared.
    judged: usize,
    /// Most rounds that were allowed.
    rounds_max: u32,
    /// Rounds of the window that is judged, the last ones.
    window: u32,
    /// Most range of the window over its mean.
    range_max: f64,
    /// Most change of the line through the window over its mean.
    slope_max: f64,
    /// `steady`; `alike`: the last window is steady, but something below speaks against a steady state; `not-steady`; `too-few` rounds for
    /// a window; `lacks-values`: a tracked cell lacks values; `unended`: the run did not end by its rounds, so that no window was chosen.
    state: String,
    /// Whether `state` is `steady`.
    reached: bool,
    /// The lowest share of the region that was written before the window; `null` where all of it was.
    written_share: Option<f64>,
    /// Tracked cells whose throughput changes its level within each trial.
    changing_cells: usize,
    /// Tracked cells that left writes in a cache of the storage.
    cached_cells: usize,
    /// Tracked cells whose trials were disturbed, by something other than a suspended machine.
    disturbed_cells: usize,
    /// Tracked cells during whose trials the machine or iolab was suspended.
    suspended_cells: usize,
    /// What is tracked.
    tracked: Vec<TrackedData>,
    /// Trials of the same writes that lie further from steady rounds of writes than their range; `null` where none do, and of rounds of
    /// cells.
    outside: Option<OutsideData>,
    /// Whether the limits, and what is tracked, are those of the standard whose test the run follows.
    by_standard: bool,
}

/// A cell whose trials make the same writes as the rounds before them, at another level.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(inline)]
struct OutsideData {
    /// The cell; of several the one that is furthest from the rounds.
    cell: CellData,
    /// Median of its trials, requests per second.
    iops: f64,
    /// Mean of the window of rounds, requests per second.
    rounds_iops: f64,
}

impl OutsideData {
    fn of(outside: Outside, runs: &Runs<'_>) -> Self {
        let Outside {
            cell,
            iops,
            rounds_iops,
        } = outside;
        Self {
            cell: runs.cell(cell),
            iops,
            rounds_iops,
        }
    }
}

/// A quantity over the rounds.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(inline)]
struct TrackedData {
    /// The cell whose response it is; `null` of writes before the first trial.
    cell: Option<CellData>,
    /// The target of these writes; `null` where there is one, and of cells.
    target: Option<String>,
    /// Its value in each round: the response of the cell, or requests per second.
    values: Vec<f64>,
    /// Range of the window over its mean; `null` with too few rounds.
    range: Option<f64>,
    /// Change of the line through the window over its mean.
    slope: Option<f64>,
    /// Whether both are within their limits.
    reached: bool,
}

/// A test of a standard, as far as a run follows it.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(inline)]
pub(crate) struct StandardData {
    /// `pts-iops`, `pts-tp`, `pts-lat`, `pts-lat-histogram`, `pts-wsat`, `pts-cbw`, `pts-xsr`, `pts-hir`: tests of SNIA's PTS 2.0.2.
    test: String,
    /// Edition of the standard: `enterprise` or `client`.
    edition: String,
    /// Whether it is smaller than the standard's test: shorter, or on less of the device.
    scaled: bool,
    /// Where it deviates from that test, in words.
    deviations: Vec<String>,
    /// The stages of its only cell, in their order, where they follow one another as in the test; empty without any.
    stages: Vec<StageData>,
}

/// A stage of a test, as the run carried it out.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(inline)]
struct StageData {
    /// Its name.
    stage: String,
    /// Its throughput, MB/s: median over the trials.
    throughput_mb_s: f64,
    /// The same over that of the first stage, without an interval; `null` of that one itself, and where it has none.
    of_first: Option<f64>,
    /// Trials.
    trials: usize,
}

impl RoundsData {
    pub(in crate::claims) fn of(rounds: &Rounds, runs: &Runs<'_>) -> Self {
        let (state, doubts) = match rounds.state {
            RoundsState::Steady => ("steady", RoundsDoubts::default()),
            RoundsState::Alike(doubts) => ("alike", doubts),
            RoundsState::NotSteady => ("not-steady", RoundsDoubts::default()),
            RoundsState::TooFew => ("too-few", RoundsDoubts::default()),
            RoundsState::LacksValues => ("lacks-values", RoundsDoubts::default()),
            RoundsState::Unended => ("unended", RoundsDoubts::default()),
        };
        Self {
            rounds_of: match rounds.asked.round {
                Round::Cells => "cells",
                Round::Writes(_) => "writes",
            }
            .to_owned(),
            rounds: rounds.rounds,
            judged: rounds.judged,
            rounds_max: rounds.asked.rounds,
            window: rounds.asked.window,
            range_max: rounds.asked.range,
            slope_max: rounds.asked.slope,
            state: state.to_owned(),
            reached: rounds.state == RoundsState::Steady,
            written_share: doubts.written,
            changing_cells: doubts.changing,
            cached_cells: doubts.cached,
            disturbed_cells: doubts.disturbed,
            suspended_cells: doubts.suspended,
            tracked: rounds
                .tracked
                .iter()
                .map(|one| TrackedData::of(one, runs))
                .collect(),
            outside: rounds.outside.map(|found| OutsideData::of(found, runs)),
            by_standard: rounds.is_by_standard,
        }
    }
}

impl StandardData {
    pub(in crate::claims) fn of(found: &Conformance) -> Self {
        let Conformance {
            run: _,
            followed,
            stages,
        } = found;
        Self {
            test: followed.test.name().to_owned(),
            edition: followed.edition.name().to_owned(),
            scaled: followed.is_scaled(),
            deviations: followed.deviations.iter().map(deviation).collect(),
            stages: stages.iter().map(StageData::of).collect(),
        }
    }
}

impl StageData {
    fn of(stage: &StageThroughput) -> Self {
        let StageThroughput {
            name,
            mb_s,
            of_first,
            n,
        } = stage;
        Self {
            stage: clean(name),
            throughput_mb_s: *mb_s,
            of_first: *of_first,
            trials: *n,
        }
    }
}

impl TrackedData {
    fn of(tracked: &TrackedState, runs: &Runs<'_>) -> Self {
        Self {
            cell: tracked.cell.map(|cell| runs.cell(cell)),
            target: tracked.target.as_deref().map(clean),
            values: tracked.values.clone(),
            range: tracked.steadiness.map(|steady| steady.range),
            slope: tracked.steadiness.map(|steady| steady.slope),
            reached: tracked.steadiness.is_some_and(|steady| steady.reached),
        }
    }
}
