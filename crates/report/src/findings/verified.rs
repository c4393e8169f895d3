//! Whether storage holds what was written to it.

use super::{Finding, Rule, Says, cells_of};
use iolab_analysis::analysis::{Analysis, CellVerified, Flag};
use iolab_workload::quantity::format_bytes;

pub(crate) const VERIFY_FAILED: Rule = Rule::doubt(
    "verify-failed",
    "every block that a trial wrote, read back after it",
);
pub(crate) const VERIFIED: Rule = Rule::result(
    "verified",
    "every block that a trial wrote, read back after it",
);

/// What is said of a run, in this order.
pub(crate) const SAYS: &[Says] = &[verified];

/// Data that is not what was written, or how much was found to be so.
pub fn verified(analysis: &Analysis) -> Vec<Finding> {
    let cells = analysis.cells.iter().filter_map(|c| c.verified.as_ref());
    let all = cells.fold(CellVerified::default(), CellVerified::plus);
    if all.failed > 0 {
        return VERIFY_FAILED.one(failed(analysis, &all));
    }
    if all.trials == 0 {
        return Vec::new();
    }
    let cache = match all.cached_bytes {
        0 => String::new(),
        bytes => format!(
            " Up to {} of it came from the page cache, which could not be dropped, and does not verify storage.",
            format_bytes(bytes as f64)
        ),
    };
    let text = format!(
        "All data that {} trials wrote was read back and is correct: {}.{cache}",
        all.trials,
        format_bytes(all.bytes as f64),
    );
    VERIFIED.one(text)
}

fn failed(analysis: &Analysis, all: &CellVerified) -> String {
    let is_flagged = |flags: &[Flag]| flags.contains(&Flag::VerifyFailed);
    let cells = analysis.cells.iter().filter(|c| is_flagged(&c.flags));
    let kinds: Vec<String> = all
        .kinds()
        .map(|(kind, blocks)| format!("{blocks} {}", kind.name()))
        .collect();
    format!(
        "{}: this storage did NOT keep what was written to it. Of {} blocks read back in {} trials these were wrong: {}. The first places are in the run file. Do not use any result before the cause is found.",
        cells_of(cells.count(), analysis),
        all.blocks,
        all.trials,
        kinds.join(", "),
    )
}
