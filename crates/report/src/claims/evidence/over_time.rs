//! Throughput in the course of a run: changes of level, steady state, drift.

use iolab_analysis::claim::{Change, ChangePlace, Course, GradualChange, Shape, State, Steady};
use iolab_analysis::timeline::{Direction, TrialLevel};
use schemars::JsonSchema;
use serde::Serialize;

use super::cells;
use crate::claims::{CellData, Runs};

/// Throughput that changes its level for good.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(inline)]
pub(crate) struct ChangeData {
    /// The cell whose levels are given.
    cell: CellData,
    /// `over_run`, `within_trials` or `in_warm_up`.
    place: String,
    /// Throughput before it, MB/s.
    before_mb_s: f64,
    /// Throughput after it, MB/s.
    after_mb_s: f64,
    /// How many times as high throughput is after it; `null` where there was none before.
    factor: Option<f64>,
    /// Timed time until then, of the run or of a trial, ns.
    after_ns: u64,
    /// Bytes until then: written by the run, moved by a trial.
    after_bytes: f64,
    /// Disturbed trials at the lower level, where most of them were and a lower share of the others, so that what others did may have made the
    /// change; `null` otherwise.
    disturbed_trials: Option<usize>,
    /// Disturbed trials at the lower level during which the machine or iolab was suspended; `null` where `disturbed_trials` is.
    suspended_trials: Option<usize>,
    /// All trials at the lower level, in that case.
    lower_level_trials: Option<usize>,
    /// All levels within the only trial of the cell, of which the change is the greatest; empty elsewhere.
    levels: Vec<LevelData>,
}

/// One level of throughput within a trial.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(inline)]
pub(crate) struct LevelData {
    /// Its beginning, since the start of the trial, ns.
    from_ns: u64,
    /// Bytes written until then, or read where nothing is written.
    from_bytes: f64,
    /// Median of its intervals, MB/s.
    throughput_mb_s: f64,
}

impl LevelData {
    fn of(level: &TrialLevel) -> Self {
        Self {
            from_ns: level.from_ns,
            from_bytes: level.from_bytes,
            throughput_mb_s: level.throughput_mb_s,
        }
    }
}

/// Throughput that is not constant over an only trial, without a step.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(inline)]
pub(crate) struct GradualData {
    /// The cell in which it is greatest.
    cell: CellData,
    /// Number of such cells.
    cells: usize,
    /// `falls` or `rises`, where the tenths of the trial have a trend; else `neither`.
    direction: String,
    /// Median of the first tenth of the trial, MB/s.
    first_mb_s: f64,
    /// Median of the last tenth, MB/s.
    last_mb_s: f64,
    /// The lowest of the medians of the tenths, MB/s.
    lowest_mb_s: f64,
    /// The highest of them, MB/s.
    highest_mb_s: f64,
    /// Whether the trial was disturbed from outside, which may have made the change.
    disturbed: bool,
}

impl GradualData {
    pub(in crate::claims) fn of(change: &GradualChange, runs: &Runs<'_>) -> Self {
        let found = change.found;
        let direction = match found.direction {
            Direction::Falls => "falls",
            Direction::Rises => "rises",
            Direction::Neither => "neither",
        };
        Self {
            cell: runs.cell(change.cell),
            cells: change.cells,
            direction: direction.to_owned(),
            first_mb_s: found.first_mb_s,
            last_mb_s: found.last_mb_s,
            lowest_mb_s: found.lowest_mb_s,
            highest_mb_s: found.highest_mb_s,
            disturbed: change.disturbed.is_some(),
        }
    }
}

impl ChangeData {
    pub(in crate::claims) fn of(change: &Change, runs: &Runs<'_>) -> Self {
        let place = match change.place {
            ChangePlace::OverRun { .. } => "over_run",
            ChangePlace::WithinTrials { .. } => "within_trials",
            ChangePlace::InWarmUp => "in_warm_up",
        };
        Self {
            cell: runs.cell(change.cell),
            place: place.to_owned(),
            before_mb_s: change.before_mb_s,
            after_mb_s: change.after_mb_s,
            factor: Some(change.factor).filter(|factor| factor.is_finite()),
            after_ns: change.after_ns,
            after_bytes: change.after_bytes,
            disturbed_trials: change.disturbed.map(|lower| lower.disturbed),
            suspended_trials: change.disturbed.map(|lower| lower.suspended),
            lower_level_trials: change.disturbed.map(|lower| lower.all),
            levels: change.levels.iter().map(LevelData::of).collect(),
        }
    }
}

/// The last trials of cells that write.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(inline)]
pub(crate) struct SteadyData {
    /// Cells in the state `state`.
    cells: Vec<CellData>,
    /// Cells that were judged.
    judged: usize,
    /// `reached`, `not_written_over` or `not_reached`.
    state: String,
    /// Of `not_written_over`: least share of the region that had been written.
    written_share: Option<f64>,
    /// Of `not_reached`: range of the last five trials over their mean, in the cell in which it is greatest.
    range: Option<f64>,
    /// Of `not_reached`: change along their line over their mean, in that cell.
    slope: Option<f64>,
    /// Of `not_reached`: whether, in any of the cells, that change exceeds its limit and what scatter explains; otherwise their trials only
    /// scatter.
    slopes: Option<bool>,
}

impl SteadyData {
    pub(in crate::claims) fn of(steady: &Steady, runs: &Runs<'_>) -> Self {
        let (state, written_share, last) = match steady.state {
            State::Reached => ("reached", None, None),
            State::NotWrittenOver { least } => ("not_written_over", Some(least), None),
            State::NotReached {
                worst: _,
                range,
                slope,
                slopes,
            } => ("not_reached", None, Some((range, slope, slopes))),
        };
        Self {
            cells: cells(&steady.cells, runs),
            judged: steady.judged,
            state: state.to_owned(),
            written_share,
            range: last.map(|(range, _, _)| range),
            slope: last.map(|(_, slope, _)| slope),
            slopes: last.map(|(_, _, slopes)| slopes),
        }
    }
}

/// Trials that drift, depend on each other or form two groups.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(inline)]
pub(crate) struct CourseData {
    /// Cells of which it holds.
    cells: Vec<CellData>,
    /// The cell with the largest effect.
    most: CellData,
    /// Of a drift: slope per trial there, as a share of the median.
    slope: Option<f64>,
    /// Of two groups: share of the trials there in the lower group.
    low_share: Option<f64>,
    /// Of two groups: median of the lower group, in the unit of the response.
    low_median: Option<f64>,
    /// Of two groups: median of the upper group, in the unit of the response.
    high_median: Option<f64>,
    /// How many times as wide the interval there would be if trials counted by their effective number; `null` of two groups.
    widening: Option<f64>,
}

impl CourseData {
    pub(in crate::claims) fn of(course: &Course, runs: &Runs<'_>) -> Self {
        let slope = match course.shape {
            Shape::Drifting { slope } => Some(slope),
            Shape::Dependent | Shape::TwoGroups(_) => None,
        };
        let groups = match course.shape {
            Shape::TwoGroups(modes) => Some(modes),
            Shape::Drifting { .. } | Shape::Dependent => None,
        };
        Self {
            cells: cells(&course.cells, runs),
            most: runs.cell(course.most),
            slope,
            low_share: groups.map(|modes| modes.low_share),
            low_median: groups.map(|modes| modes.low_median),
            high_median: groups.map(|modes| modes.high_median),
            widening: course.widening,
        }
    }
}
