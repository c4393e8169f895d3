//! Rates that were not held.

use super::{Finding, Rule, Says, cells_of};
use iolab_analysis::analysis::{Analysis, CellAnalysis};
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
    let cells: Vec<&CellAnalysis> = analysis.cells.iter().filter(missed).collect();
    let Some((first, rate_report)) = cells
        .first()
        .and_then(|c| Some((c, c.rate_report.as_ref()?)))
    else {
        return Vec::new();
    };
    let place = if analysis.factors.is_empty() {
        String::new()
    } else {
        format!(" at {}", cell_label(&analysis.factors, &first.cell.levels))
    };
    let how = match rate_report.backlog_end {
        0 => "the storage completed requests long after their schedule had ended".to_owned(),
        left => format!("up to {left} requests were due and never issued"),
    };
    let text = format!(
        "{} fell behind the requested rate: in {} of {} trials{place} {how} (median rate {} of {} per second). Response times of such a trial grow with its length: they show that the rate was too high, not how fast the storage is.",
        cells_of(cells.len(), analysis),
        rate_report.not_held,
        first.n,
        significant(rate_report.rate_achieved),
        significant(rate_report.rate_wanted),
    );
    RATE_NOT_HELD.one(text)
}
