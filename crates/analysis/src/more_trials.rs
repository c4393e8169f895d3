//! Ways to give cells more trials, by what ended their repetition or the run.

use iolab_record::{EndedBy, RunStatus, TargetKind};

use crate::analysis::{Analysis, CellAnalysis};

/// Way to give cells of a run more trials.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MoreTrials {
    /// More jobs in an imported file.
    Jobs,
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
        let ended = |by: Option<EndedBy>| cells.iter().any(|c| c.cell.ended_by == by);
        let is_cut = ended(None) && analysis.status != RunStatus::Done;
        let is_resumable = analysis.target_kind.is_resumable();
        match (is_cut || ended(Some(EndedBy::User)), is_resumable) {
            (true, false) => Self::Uninterrupted,
            (true, true) => Self::Resume,
            (false, _) => Self::Limits {
                budget: ended(Some(EndedBy::Budget)),
                trials_max: ended(Some(EndedBy::TrialsMax)),
                precision: ended(Some(EndedBy::Precision)),
            },
        }
    }
}
