//! Cells whose tail of latency is unknown.

use super::precision::longer_trials;
use super::{Finding, Rule, Says, cells_of};
use iolab_analysis::analysis::{Analysis, CellAnalysis, Response, TAIL_REQUESTS_MIN};

pub(crate) const TAIL_UNKNOWN: Rule = Rule::limit("tail-unknown", "the requests of each trial");

/// Findings on unknown tails.
pub(crate) const UNKNOWN: &[Says] = &[tail_unknown];

/// Cells whose trials have too few requests for a 99th percentile.
pub fn tail_unknown(analysis: &Analysis) -> Vec<Finding> {
    let unknown = |c: &&CellAnalysis| c.latency.is_some() && c.tail.is_none();
    let shown = match analysis.response {
        Response::P99 => "",
        _ => ": p99 is close to the maximum of a trial there, and may be far from the true one",
    };
    match analysis.cells.iter().filter(unknown).count() {
        0 => Vec::new(),
        n => TAIL_UNKNOWN.one(format!(
                "{} had too few requests per trial to estimate the 99th percentile of latency ({TAIL_REQUESTS_MIN} are needed){shown}. {}",
                cells_of(n, analysis),
                longer_trials(analysis),
            ),
        ),
    }
}
