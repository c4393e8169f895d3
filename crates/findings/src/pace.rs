//! What trials at a given rate tell: which rates were held, and what they did to the response time.

use super::{Finding, cells_of, one};
use iolab_analysis::analysis::{Analysis, CellAnalysis, Latency, Response};
use iolab_plan::cells::label;
use iolab_spec::quantity::{format_ns, significant};

/// Cells in which storage or machine could not keep up with the rate.
pub fn rate_not_held(analysis: &Analysis) -> Vec<Finding> {
    let missed = |c: &&CellAnalysis| c.pace.as_ref().is_some_and(|pace| pace.not_held > 0);
    let cells: Vec<&CellAnalysis> = analysis.cells.iter().filter(missed).collect();
    let Some((first, pace)) = cells.first().and_then(|c| Some((c, c.pace.as_ref()?))) else {
        return Vec::new();
    };
    let place = if analysis.factors.is_empty() {
        String::new()
    } else {
        format!(" at {}", label(&analysis.factors, &first.cell.levels))
    };
    let text = format!(
        "{} fell behind the rate asked for: in {} of {} trials{place} up to {} requests were due and never made (median rate {} of {} per second). Response times of such a trial grow with its length: they say that the rate was out of reach, not how fast the storage is.",
        cells_of(cells.len(), analysis),
        pace.not_held,
        first.n,
        pace.backlog_end,
        significant(pace.rate_achieved),
        significant(pace.rate_wanted),
    );
    one("rate-not-held", text)
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
            let pace = c.pace.as_ref().filter(|pace| pace.not_held == 0)?;
            Some((pace.rate_wanted, c.latency?))
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
        [only] => one("load", format!("Median response time: {}.", at(only))),
        [least, .., most] => one(
            "load",
            format!(
                "Median response time: {}, and {}, the greatest rate that was held.",
                at(least),
                at(most)
            ),
        ),
    }
}
