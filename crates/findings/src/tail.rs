//! How far the slow requests lie from the median one.

use iolab_stats::Summary;

use super::{Finding, Rule, Says, cells_of};
use iolab_analysis::analysis::{Analysis, CellAnalysis, TAIL_REQUESTS_MIN};
use iolab_workload::quantity::{format_ns, significant};
use iolab_workload::settings::cell_label;

pub(crate) const LATENCY_TAIL: Rule = Rule::result(
    "latency-tail",
    "the quantiles of each trial's histogram of all requests; the median of their ratio over the trials",
);
pub(crate) const TAIL_UNKNOWN: Rule = Rule::limit("tail-unknown", "the requests of each trial");

/// What is said of a run, in this order.
pub(crate) const SAYS: &[Says] = &[Says::OfCells(tail)];

/// What was not known of tails.
pub(crate) const UNKNOWN: &[Says] = &[Says::OfCells(tail_unknown)];

/// The 99th percentile over the median, in the cells where it is greatest and least.
pub fn tail(analysis: &Analysis) -> Vec<Finding> {
    let cells = analysis.cells.iter();
    let mut told: Vec<(&CellAnalysis, Summary)> = cells
        .filter_map(|c| Some((c, c.tail.filter(|t| t.median_interval.is_some())?)))
        .collect();
    told.sort_by(|a, b| b.1.median.total_cmp(&a.1.median));
    let text = match told.as_slice() {
        [] => return Vec::new(),
        [only] => format!(
            "The 99th percentile of latency is {}.",
            in_words(analysis, only)
        ),
        [longest, .., shortest] => format!(
            "The 99th percentile of latency is at most {}, and at least {}.",
            in_words(analysis, longest),
            in_words(analysis, shortest)
        ),
    };
    LATENCY_TAIL.one(text)
}

/// `3.2 times the median (95 % interval 2.9 to 3.6) at bs=4KiB: 512 us against 160 us`.
fn in_words(analysis: &Analysis, (cell, tail): &(&CellAnalysis, Summary)) -> String {
    let interval = tail.median_interval.map_or_else(String::new, |i| {
        format!(
            " (95 % interval {} to {})",
            significant(i.low),
            significant(i.high)
        )
    });
    let place = match cell_label(&analysis.factors, &cell.cell.levels) {
        label if label.is_empty() => label,
        label => format!(" at {label}"),
    };
    let values = cell.latency.map_or_else(String::new, |l| {
        format!(": {} against {}", format_ns(l.p99_ns), format_ns(l.p50_ns))
    });
    format!(
        "{} times the median{interval}{place}{values}",
        significant(tail.median)
    )
}

/// Cells whose trials have too few requests for a 99th percentile.
pub fn tail_unknown(analysis: &Analysis) -> Vec<Finding> {
    let unknown = |c: &&CellAnalysis| c.latency.is_some() && c.tail.is_none();
    match analysis.cells.iter().filter(unknown).count() {
        0 => Vec::new(),
        n => TAIL_UNKNOWN.one(format!(
                "{} had too few requests per trial to estimate the 99th percentile of latency ({TAIL_REQUESTS_MIN} are needed): p99 is close to the maximum there. Increase --time.",
                cells_of(n, analysis)
            ),
        ),
    }
}
