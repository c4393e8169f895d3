//! iolab against the peers of a run, cell by cell.

use super::{Better, Comparison, Source, Terms, Test};
use crate::analysed::AnalysedRun;
use crate::tool::Tool;

/// The smallest difference between tools that matters: what they cannot do alike is within it.
pub const PEER_MARGIN: f64 = 0.10;

/// A comparison for each peer of a run, the peer being the base; none where `tool` is no factor of the run.
pub fn with_peers(run: &AnalysedRun) -> Vec<Comparison> {
    if !run.analysis().factors.iter().any(|name| name == "tool") {
        return Vec::new();
    }
    let of = |tool: &'static str| Source {
        run,
        held: Some(("tool", tool)),
    };
    let iolab = Tool::NAMES[0];
    let terms = || Terms {
        margin: PEER_MARGIN,
        tests: vec![Test::Welch],
        better: Better::Unstated,
        repeats: Vec::new(),
    };
    // A peer without a cell in common was not asked for, or could carry out none.
    Tool::NAMES[1..]
        .iter()
        .filter_map(|peer| {
            let names = [(*peer).to_owned(), iolab.to_owned()];
            Comparison::of_runs(names, of(peer), of(iolab), terms()).ok()
        })
        .collect()
}
