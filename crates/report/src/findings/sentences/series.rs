//! The order and the shape of trials, in words.

use iolab_analysis::analysis::Analysis;
use iolab_analysis::claim::{CellId, drifts, two_groups};
use iolab_workload::quantity::format_percent;

use super::at_cell;
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
    let most = |cells: usize, id: CellId| match cells {
        1 => at_cell(run, id),
        _ => format!(", most clearly{}", at_cell(run, id)),
    };
    let groups = two_groups(run, 0, |_| true).map(|found| {
        let levels = found.levels;
        let text = format!(
            "In {} the trials form two groups{}: {} of them around {}, the others around {}. The median {}.",
            within(found.cells.len(), run),
            most(found.cells.len(), found.most),
            format_percent(levels.low_share),
            run.response.format(levels.low_median),
            run.response.format(levels.high_median),
            median_of_groups(levels.low_share),
        );
        Finding {
            rule: TWO_GROUPS,
            text,
        }
    });
    let drifts = drifts(run);
    let steepest = drifts.iter().max_by(|a, b| a.1.abs().total_cmp(&b.1.abs()));
    let drift = steepest.map(|(cell, drift)| {
        let id = CellId {
            run: 0,
            cell: *cell,
        };
        let text = format!(
            "In {} the trials drift with time{}, by {} over the run.",
            within(drifts.len(), run),
            most(drifts.len(), id),
            format_percent(*drift),
        );
        Finding { rule: DRIFT, text }
    });
    groups.into_iter().chain(drift).collect()
}

/// Meaning of the median of two groups, of which the lower one has this share of the values.
pub(crate) fn median_of_groups(low_share: f64) -> &'static str {
    match (0.4..=0.6).contains(&low_share) {
        true => "describes neither group",
        false => "describes the larger group",
    }
}
