//! Ways to give cells more trials.

use crate::analysis::{Analysis, CellAnalysis};
use iolab_record::{EndedBy, RunStatus, TargetKind};

/// Way to give cells of a run more trials.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MoreTrials {
    /// More jobs in an imported file.
    Jobs,
    /// More runs of commands.
    Runs,
    /// A run of a model that is not interrupted: its state is not kept.
    Uninterrupted,
    /// The rest of an interrupted run.
    Resume,
    /// A larger budget, more trials allowed, or a smaller goal of precision.
    Limits {
        /// Whether the budget ended a cell's trials.
        budget: bool,
        /// Whether the limit on the number of trials ended a cell.
        trials_max: bool,
        /// Whether the goal of precision ended a cell's trials.
        precision: bool,
    },
}

impl MoreTrials {
    /// The way that gives these cells more trials.
    pub fn of(analysis: &Analysis, cells: &[&CellAnalysis]) -> Self {
        if analysis.target_kind == TargetKind::Imported {
            return Self::Jobs;
        }
        if analysis.target_kind == TargetKind::Commands {
            return Self::Runs;
        }
        let ended = |by: Option<EndedBy>| cells.iter().any(|c| c.cell.ended_by == by);
        let reaches = |c: &&CellAnalysis| c.precision.is_none_or(|p| p <= analysis.precision_goal);
        let is_cut = ended(None) && analysis.status != RunStatus::Done;
        let is_resumable = analysis.target_kind.is_resumable();
        match (is_cut || ended(Some(EndedBy::User)), is_resumable) {
            (true, false) => Self::Uninterrupted,
            (true, true) => Self::Resume,
            (false, _) => Self::Limits {
                budget: ended(Some(EndedBy::Budget)),
                trials_max: ended(Some(EndedBy::TrialsMax)),
                precision: ended(Some(EndedBy::Precision)) && cells.iter().all(reaches),
            },
        }
    }
}
