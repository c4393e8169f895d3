//! Traced trials whose requests could not be split by layer.

use super::{Finding, Rule, Says, cells_of};
use iolab_analysis::analysis::{Analysis, CellStages};
use iolab_workload::escape_control::escape_control;

pub(crate) const NOT_JOINED: Rule = Rule::limit(
    "not-joined",
    "the requests of each traced trial, joined with the kernel's events",
);

/// Findings on what tracing could not show.
pub(crate) const SAYS: &[Says] = &[not_joined];

/// Cells with traced trials whose stages are not known.
fn not_joined(analysis: &Analysis) -> Vec<Finding> {
    let stages = analysis
        .cells
        .iter()
        .filter_map(|cell| cell.stages.as_ref());
    let missing: Vec<&CellStages> = stages
        .filter(|stages| stages.known < stages.traced)
        .collect();
    let Some(reason) = missing.iter().find_map(|stages| stages.note.as_ref()) else {
        return Vec::new();
    };
    NOT_JOINED.one(format!(
        "{} had traced trials without stages: {}.",
        cells_of(missing.len(), analysis),
        escape_control(reason)
    ))
}
