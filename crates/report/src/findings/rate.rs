//! What trials at a given rate tell: which rates were held, and what they did to the response time.

use super::{Finding, Rule, Says, cells_of};
use iolab_analysis::analysis::{Analysis, CellAnalysis, Latency, Response};
use iolab_workload::quantity::{format_ns, significant};
use iolab_workload::settings::cell_label;

pub(crate) const RATE_NOT_HELD: Rule = Rule::doubt(
    "rate-not-held",
    "requests that were due and never issued, in each trial",
);
pub(crate) const LOAD: Rule = Rule::result(
    "load",
    "medians over the trials of their response times' quantiles",
);

/// Whether rates were held.
pub(crate) const HELD: &[Says] = &[rate_not_held];

/// What a load does to the response time.
pub(crate) const LOADS: &[Says] = &[load];

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
    let text = format!(
        "{} fell behind the requested rate: in {} of {} trials{place} up to {} requests were due and never issued (median rate {} of {} per second). Response times of such a trial grow with its length: they show that the rate was too high, not how fast the storage is.",
        cells_of(cells.len(), analysis),
        rate_report.not_held,
        first.n,
        rate_report.backlog_end,
        significant(rate_report.rate_achieved),
        significant(rate_report.rate_wanted),
    );
    RATE_NOT_HELD.one(text)
}

/// The greatest rate that was held, and the response time there and at the least rate.
pub fn load(analysis: &Analysis) -> Vec<Finding> {
    if analysis.factors != ["rate"] || analysis.response != Response::Latency {
        return Vec::new();
    }
    let mut held: Vec<(f64, Latency)> = analysis
        .cells
        .iter()
        .filter_map(|c| {
            let rate_report = c
                .rate_report
                .as_ref()
                .filter(|rate_report| rate_report.not_held == 0)?;
            Some((rate_report.rate_wanted, c.latency?))
        })
        .collect();
    held.sort_by(|a, b| a.0.total_cmp(&b.0));
    let at = |(rate, latency): &(f64, Latency)| {
        format!(
            "{} (99th percentile {}) at {}/s",
            format_ns(latency.p50_ns),
            format_ns(latency.p99_ns),
            significant(*rate)
        )
    };
    match held.as_slice() {
        [] => Vec::new(),
        [only] => LOAD.one(format!("Median response time: {}.", at(only))),
        [least, .., most] => LOAD.one(format!(
            "Median response time: {}, and {}, the highest rate that was held.",
            at(least),
            at(most)
        )),
    }
}
