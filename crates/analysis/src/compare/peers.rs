//! Comparison of iolab with the peers of a run, cell by cell.

use std::collections::BTreeSet;

use super::{Comparison, Criteria, RunSide};
use crate::analysed_run::AnalysedRun;
use iolab_workload::settings::Tool;

/// The smallest difference between tools that matters; unavoidable differences between tools are smaller.
pub const PEER_MARGIN: f64 = 0.10;

/// A comparison of each peer of a run with iolab as the base; empty where `tool` is not a factor of the run.
pub fn with_peers(run: &AnalysedRun) -> Vec<Comparison> {
    if !run.analysis().factors.iter().any(|name| name == "tool") {
        return Vec::new();
    }
    let cells = run.analysis().cells.iter();
    let tools = cells.map(|cell| cell.cell.spec.tool);
    let peers: BTreeSet<Tool> = tools.filter(|tool| tool.is_peer()).collect();
    let terms = || Criteria {
        margin: PEER_MARGIN,
        ..Criteria::default()
    };
    // A peer without a cell in common was not requested, or could not carry out any.
    peers
        .iter()
        .filter_map(|peer| {
            let tools = [&Tool::IOLAB, peer];
            let [base, new] = tools.map(|tool| RunSide {
                run,
                held: Some(("tool", tool.name())),
            });
            Comparison::of_runs(
                tools.map(|tool| tool.to_string().into()),
                base,
                new,
                terms(),
            )
            .ok()
        })
        .collect()
}
