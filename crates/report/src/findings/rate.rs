//! Rates that were not held.

use super::{Finding, Rule, Says, cells_of};
use iolab_analysis::analysis::{Analysis, CellAnalysis, CellRate, HELD_FROM};
use iolab_workload::quantity::significant;
use iolab_workload::settings::cell_label;

pub(crate) const RATE_NOT_HELD: Rule = Rule::doubt(
    "rate-not-held",
    "requests that were due and never issued, or completed long after the schedule's end, in each trial",
);

/// Whether rates were held.
pub(crate) const HELD: &[Says] = &[rate_not_held];

/// Cells in which storage or machine could not keep up with the rate.
pub fn rate_not_held(analysis: &Analysis) -> Vec<Finding> {
    let missed = |c: &&CellAnalysis| {
        c.rate_report
            .as_ref()
            .is_some_and(|rate_report| rate_report.not_held > 0)
    };
    let behind = |cell: &&CellAnalysis| cell.rate_report.as_ref().map_or(1.0, reached);
    let cells: Vec<&CellAnalysis> = analysis.cells.iter().filter(missed).collect();
    let worst = cells.iter().min_by(|a, b| behind(a).total_cmp(&behind(b)));
    let Some((worst, rate_report)) = worst.and_then(|c| Some((c, c.rate_report.as_ref()?))) else {
        return Vec::new();
    };
    let place = if analysis.factors.is_empty() {
        String::new()
    } else {
        format!(" at {}", cell_label(&analysis.factors, &worst.cell.levels))
    };
    let how = match rate_report.backlog_end {
        0 => "the storage completed requests long after their schedule had ended".to_owned(),
        left => format!("up to {left} requests were due and never issued"),
    };
    let which = match cells.len() {
        1 => ":",
        _ => "; worst:",
    };
    let follows = if reached(rate_report) >= HELD_FROM {
        "grow with its length; half of the trials or more reached the rate"
    } else if worst.is_disturbed_awake() {
        "grow with its length. The trials were disturbed from outside: cannot tell whether the rate was too high"
    } else if worst.is_suspended() {
        "grow with its length. The machine or iolab was suspended during trials: cannot tell whether the rate was too high"
    } else {
        "grow with its length: they show that the rate was too high, not how fast the storage is"
    };
    let text = format!(
        "{} fell behind the requested rate{which} in {} of {} trials{place} {how} (median rate {} of {} per second). Response times of such a trial {follows}.",
        cells_of(cells.len(), analysis),
        rate_report.not_held,
        worst.n,
        significant(rate_report.rate_achieved),
        significant(rate_report.rate_wanted),
    );
    RATE_NOT_HELD.one(text)
}

/// The share of the rate that the median trial reached.
fn reached(rate: &CellRate) -> f64 {
    rate.rate_achieved / rate.rate_wanted
}
