//! The order and the shape of trials, in words.

use iolab_analysis::analysis::Analysis;
use iolab_analysis::claim::{CellId, drifts, two_groups};
use iolab_workload::units::format_percent;

use super::with_cell;
use crate::findings::{Finding, Rule, within};

const TWO_GROUPS: Rule = Rule::doubt(
    "two-groups",
    "the density of each cell's trials, and its valley",
);
const DRIFT: Rule = Rule::doubt(
    "drift",
    "Mann and Kendall's test in each cell, with Holm's correction over the cells",
);

/// Cells whose trials form two groups, and those that drift by more than the goal of precision over the run.
pub(crate) fn of_trials(run: &Analysis) -> Vec<Finding> {
    let groups = two_groups(run, 0, |_| true).map(|found| {
        let levels = found.levels;
        TWO_GROUPS.one(format!(
            "The trials of {} form two groups{}: {} of them around {}, the others around {}. The median {}.",
            within(found.cells.len(), run),
            most(run, found.cells.len(), found.most),
            format_percent(levels.low_share),
            run.response.format(levels.low_median),
            run.response.format(levels.high_median),
            median_of_groups(levels.low_share),
        ))
    });
    let drifts = drifts(run);
    let steepest = drifts.iter().max_by(|a, b| a.1.abs().total_cmp(&b.1.abs()));
    let drift = steepest.map(|(cell, drift)| {
        let id = CellId {
            run: 0,
            cell: *cell,
        };
        DRIFT.one(format!(
            "The trials of {} drift over the run{} by {}.",
            within(drifts.len(), run),
            most(run, drifts.len(), id),
            format_percent(*drift),
        ))
    });
    [groups, drift].into_iter().flatten().flatten().collect()
}

/// The cell that shows it most, of several.
fn most(run: &Analysis, cells: usize, id: CellId) -> String {
    match cells {
        1 => with_cell(run, id),
        _ => format!(" (most clearly{})", with_cell(run, id)),
    }
}

/// Meaning of the median of two groups, of which the lower one has this share of the values.
pub(crate) fn median_of_groups(low_share: f64) -> &'static str {
    match (0.4..=0.6).contains(&low_share) {
        true => "describes neither group",
        false => "describes the larger group",
    }
}
