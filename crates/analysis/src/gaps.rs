//! Cells that lack results or trials: those that their tool did not carry out, and ways to give cells more trials.

use crate::analysis::{Analysis, CellAnalysis};
use iolab_record::{EndedBy, RunStatus, TargetKind};
use iolab_workload::settings::Tool;

/// Cells that a tool left out, or gave up, for one reason.
#[derive(Debug, Clone, PartialEq)]
pub struct Gap<'a> {
    /// The tool.
    pub tool: Tool,
    /// The reason, as the run file has it.
    pub why: &'a str,
    /// The cells, in the order of the definition.
    pub cells: Vec<&'a CellAnalysis>,
    /// The other cells of the tool.
    pub others: Vec<&'a CellAnalysis>,
    /// Whether the tool failed, rather than being unable to do what is asked.
    pub failed: bool,
}

/// The gaps of a run, in the order of its cells.
pub fn gaps(analysis: &Analysis) -> Vec<Gap<'_>> {
    let mut all: Vec<Gap<'_>> = Vec::new();
    for cell in &analysis.cells {
        let (Some(why), tool) = (cell.gap.as_deref(), cell.cell.spec.tool) else {
            continue;
        };
        let failed = cell.failed > 0;
        let is_same =
            |known: &&mut Gap<'_>| (known.tool, known.why, known.failed) == (tool, why, failed);
        match all.iter_mut().find(is_same) {
            Some(known) => known.cells.push(cell),
            None => all.push(Gap {
                tool,
                why,
                cells: vec![cell],
                others: Vec::new(),
                failed,
            }),
        }
    }
    for gap in &mut all {
        let own = analysis.cells.iter();
        let own = own.filter(|cell| cell.cell.spec.tool == gap.tool);
        let is_other =
            |cell: &&CellAnalysis| !gap.cells.iter().any(|one| one.cell.id == cell.cell.id);
        gap.others = own.filter(is_other).collect();
    }
    all
}

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
